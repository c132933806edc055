// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs in multicast groups (man ibv_attach_mcast).
#pragma once

#include <infiniband/verbs.h>

namespace uroce::verbs {

struct Qp;

// 0; EINVAL: no multicast address, or no datagram queue pair; ENOMEM: too many groups, or too many
// in this one; else what
// the system said. Attaching again changes nothing.
[[nodiscard]] int attach_multicast(Qp& qp, const ibv_gid& group);
// 0; EINVAL: it is not attached.
[[nodiscard]] int detach_multicast(Qp& qp, const ibv_gid& group);

}  // namespace uroce::verbs
