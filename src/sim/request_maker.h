// SPDX-License-Identifier: BSD-2-Clause
// Random requests: every operation, lengths round the borders of packets, data from several pieces,
// and now and then one that must fail.
#pragma once

#include <cstdint>
#include <optional>

#include "base/prng.h"
#include "sim/arena.h"
#include "sim/queue_pair.h"
#include "sim/request.h"
#include "sim/scenario.h"

namespace uroce::sim {

// Where an end keeps what: its target is open to the peer between two closed edges, and begins with
// words for atomics; its local memory has a slot for the answer of each request in flight.
struct EndLayout {
  static constexpr std::uint32_t kEdgeBytes = 64;
  static constexpr std::uint32_t kWords = 8;

  explicit EndLayout(const Scenario& s)
      : slot_bytes(s.message_bytes + kEdgeBytes),
        target_bytes(2 * kEdgeBytes + kWords * 8 + s.message_bytes + s.message_bytes / 2),
        receives{kEdgeBytes + s.capacity * slot_bytes, s.capacity * slot_bytes},
        local_bytes(receives.offset + receives.bytes + kEdgeBytes) {}

  std::uint32_t slot_bytes;
  std::uint32_t target_bytes;
  Range receives;
  std::uint32_t local_bytes;

  [[nodiscard]] Range open_target() const { return {kEdgeBytes, target_bytes - 2 * kEdgeBytes}; }
  [[nodiscard]] std::uint32_t answer_slot(std::uint32_t index) const {
    return kEdgeBytes + index * slot_bytes;
  }
};

class RequestMaker {
 public:
  RequestMaker(const Scenario& scenario, std::uint32_t end_id, Arena& source, Arena& local,
               Prng prng)
      : scenario_(scenario),
        layout_(scenario),
        end_id_(end_id),
        source_(source),
        local_(local),
        prng_(prng) {}

  // The request to post next; `may_be_wrong` allows poison.
  [[nodiscard]] Request make(std::uint16_t path_mtu, bool must_signal, bool signal_all,
                             bool may_be_wrong);
  // Posts it.
  void post(QueuePair& qp, const Request& request, const Arena& peer_target,
            std::optional<Qpn> srq = {});
  void set_peer(std::uint32_t end_id) { peer_id_ = end_id; }

  // The windows of an end. The first is bound to parts of local memory, over and over; the second
  // is never bound, and so may be invalidated by anybody of the domain at any time.
  static constexpr RKey bound_window(std::uint32_t end_id) { return {0x5700'0000 | end_id << 8}; }
  static constexpr RKey free_window(std::uint32_t end_id) { return {0x5800'0000 | end_id << 8}; }

 private:
  [[nodiscard]] transport::SendOperation draw_operation();
  [[nodiscard]] std::uint32_t draw_length(std::uint16_t path_mtu);
  [[nodiscard]] Poison draw_poison(const Request& request);
  void draw_source(Request& request);
  void draw_local(Request& request, bool may_be_wrong);
  void draw_remote(Request& request, std::uint16_t path_mtu);
  void draw_data(Request& request);
  void post_local(QueuePair& qp, const Request& request, std::uint8_t flags);
  void draw_answer(Request& request);
  void draw_words(Request& request);
  void poison(Request& request, Poison poison);

  const Scenario& scenario_;
  EndLayout layout_;
  std::uint32_t end_id_;
  std::uint32_t peer_id_ = 0;
  Arena& source_;
  Arena& local_;
  Prng prng_;
  std::uint32_t made_ = 0;
  std::uint32_t since_signal_ = 0;
  Pieces sent_from_;  // of the request made last
  bool is_inline_ = false;
};

}  // namespace uroce::sim
