// SPDX-License-Identifier: BSD-2-Clause
// The receive windows of the processes that our QPs send to, by address and block of QPNs: QPs to
// the same process share what its socket's buffer holds. Under the shard's lock, so the caller
// brings the memory for a new one and takes back what is no longer used.
#pragma once

#include <array>
#include <cstdint>

#include "transport/qp.h"
#include "uroce/ids.h"

namespace uroce::engine {

struct PeerEntry {
  transport::Peer peer;
  PeerEntry* next = nullptr;
};

class Peers {
 public:
  // The peer's window with one more user: the one there is, or `spare`, which then is the table's
  // and null afterwards.
  [[nodiscard]] transport::Peer& use(const Gid& address, std::uint32_t block, PeerEntry*& spare);
  // One user less; the entry to free when that was the last, else null.
  [[nodiscard]] PeerEntry* release(transport::Peer& peer);

 private:
  static std::size_t bucket_of(const Gid& address, std::uint32_t block);

  std::array<PeerEntry*, 256> buckets_{};
};

}  // namespace uroce::engine
