// SPDX-License-Identifier: BSD-2-Clause
// What a QP gives up when it is reset or destroyed. Inside a section, so what is to be freed comes
// back.
#pragma once

#include "engine/engine.h"
#include "verbs/qp.h"

namespace uroce::verbs {

// Its completions that nobody polled; the slots of an SRQ that they stand for are free again.
void purge_completions(Qp& qp);

// The path, and the share of the peer's window.
[[nodiscard]] engine::PeerEntry* let_go_of_path(engine::Engine::Section& section, Qp& qp);

}  // namespace uroce::verbs
