// SPDX-License-Identifier: BSD-2-Clause
// Two endpoints and one reliable connection, as Pair has them, but frames go from one core into the
// other where they lie: headers in the burst, payload in the sender's registered memory. So the
// only copy is the responder's, nothing is allocated, and what is measured or watched is the core.
//
//   DirectPair pair(facts, {.path_mtu = 4096}, 1 << 20);
//   pair.post(SendOperation::kWrite, 0, 65536);
//   pair.finish();                                  // all posted work is complete
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "support/pair.h"

namespace uroce::test {

class DirectPair {
 public:
  DirectPair(const transport::LinkFacts& facts, const QpOptions& options, std::size_t buffer_bytes)
      : pair_(facts, options, buffer_bytes) {}

  // From (READ: to) `offset` of the one buffer to the same place of the other. There is one SGE.
  void post(transport::SendOperation operation, std::size_t offset, std::uint32_t bytes);
  void post_receive(std::size_t offset, std::uint32_t bytes);
  // Until every work request of post() is complete. When nothing moves, time jumps to the next
  // timer. Aborts when a completion says anything but success.
  void finish();

  // Every so many-th frame is lost; 0: none.
  void lose_every(std::uint32_t count) { lose_every_ = count; }
  // Data and acknowledgements, both ways, lost ones included.
  [[nodiscard]] std::uint64_t packets() const { return packets_; }
  // Of the responder, so far.
  [[nodiscard]] std::uint64_t receives() const { return receives_; }
  [[nodiscard]] Endpoint& requester() { return pair_.a; }
  [[nodiscard]] Endpoint& responder() { return pair_.b; }

 private:
  bool turn();
  bool move(Endpoint& from, Endpoint& to);
  std::size_t hand_over();
  static std::uint32_t take_completions(Endpoint& endpoint);

  Pair pair_;
  std::unique_ptr<transport::TxBurst> burst_ = std::make_unique<transport::TxBurst>();
  std::array<RxPacket, transport::TxBurst::kFrames> received_;
  std::uint32_t outstanding_ = 0;
  std::uint32_t lose_every_ = 0;
  std::uint32_t until_loss_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t receives_ = 0;
};

}  // namespace uroce::test
