// SPDX-License-Identifier: BSD-2-Clause
// From the core's news to what ibv_get_cq_event and ibv_get_async_event read. Called by the engine
// under the shard's lock.
#pragma once

#include "engine/engine.h"
#include "transport/completion.h"
#include "transport/events.h"

namespace uroce::verbs {

[[nodiscard]] engine::Upcalls upcalls();
void tell_completion(transport::CompletionQueue& queue);
void tell_event(const transport::Event& event);

}  // namespace uroce::verbs
