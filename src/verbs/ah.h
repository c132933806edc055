// SPDX-License-Identifier: BSD-2-Clause
// An address handle. Which link carries a datagram depends on the process that owns the QPN
// (another one of this host is reached through shared memory), so a handle opens a path for each
// block of QPNs that is sent to, when first needed, and keeps it.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "transport/address_path.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

namespace uroce::verbs {

struct AhPath {
  transport::AddressPath core;
  std::uint32_t block = 0;  // of QPNs
  AhPath* next = nullptr;
};

// What the application holds is its base, since a work request names it so.
struct Ah final : ibv_ah, Made {
  Ah(Pd& owner, const Path& to)
      : ibv_ah{}, Made(Kind::kAh, owner.context), domain(owner), path(to) {}

  Pd& domain;
  Path path;  // not open: what the opened ones are made from
  // Where datagrams to QP1 go, which every process has: to the one that has this block of QPNs.
  std::uint32_t management_block = 0;
  std::atomic<AhPath*> opened{nullptr};  // only added to, so that posts look without a lock

 private:
  void leave_device() override;
};

// Null, and errno: EINVAL for an address vector that no RoCE port takes.
[[nodiscard]] Ah* create_ah(Pd& pd, const ibv_ah_attr& attributes);
// Datagrams that were posted are sent all the same.
void destroy_ah(Ah* ah);

inline Ah& ah_of(ibv_ah& handle) { return static_cast<Ah&>(handle); }

// IBTA 10.2.3: the handle is there, and of the queue pair's protection domain.
[[nodiscard]] inline bool may_send_to(const Qp& qp, ibv_ah* handle) {
  return handle != nullptr && ah_of(*handle).domain.id == qp.core.pd;
}

// Any thread. The way to a QP: opened now if it is the first to its block. Null: no way leads
// there.
[[nodiscard]] transport::AddressPath* path_to(Ah& ah, Qpn destination);

}  // namespace uroce::verbs
