// SPDX-License-Identifier: BSD-2-Clause
// What a rule of ibv_create_flow matches: its list of specs as one pattern.
#pragma once

#include <infiniband/verbs.h>

#include "steering/frame_key.h"

namespace uroce::verbs {

// Of the specs that follow `attributes`. 0; EOPNOTSUPP: one of them is for what no link of ours
// looks at; EINVAL: it has no such type, another size, or a mask over what the field has not, or
// they contradict each other, so that no frame could match.
[[nodiscard]] int to_pattern(const ibv_flow_attr& attributes, steering::Pattern& pattern);

}  // namespace uroce::verbs
