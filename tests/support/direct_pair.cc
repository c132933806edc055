// SPDX-License-Identifier: BSD-2-Clause
#include "support/direct_pair.h"

#include <algorithm>
#include <cstdlib>

namespace uroce::test {

using namespace transport;

namespace {

constexpr Duration kTurn{1'000};

}  // namespace

void DirectPair::post(SendOperation operation, std::size_t offset, std::uint32_t bytes) {
  SendQueue& queue = pair_.qp_a.qp.send_queue;
  if (queue.free_slots() == 0) std::abort();
  SendWqe& wqe = queue.at(queue.next_post());
  wqe = SendWqe{};
  wqe.operation = operation;
  wqe.remote_address = pair_.b.address(offset);
  wqe.rkey = {Endpoint::kKey};
  wqe.flags = send_flag::kSignaled;
  wqe.sge_count = 1;
  wqe.length = bytes;
  *wqe.sges() = pair_.a.sge(offset, bytes);
  queue.post(1);
  pair_.a.hca.on_doorbell(pair_.a.now, pair_.qp_a.qp);
  ++outstanding_;
}

void DirectPair::post_receive(std::size_t offset, std::uint32_t bytes) {
  RecvQueue& queue = pair_.qp_b.qp.receive_queue;
  if (queue.free_slots() == 0) std::abort();
  RecvWqe& wqe = queue.at(queue.next_post());
  wqe = {.length = bytes, .sge_count = 1};
  *wqe.sges() = pair_.b.sge(offset, bytes);
  queue.post(1);
}

void DirectPair::finish() {
  while (outstanding_ != 0) {
    const bool moved = turn();
    outstanding_ -= take_completions(pair_.a);
    receives_ += take_completions(pair_.b);
    if (moved) continue;
    const Instant next = std::min(pair_.a.next_deadline(), pair_.b.next_deadline());
    if (outstanding_ != 0 && next == Instant::never()) std::abort();
    if (outstanding_ != 0) pair_.a.now = pair_.b.now = std::max(next, pair_.a.now);
  }
}

bool DirectPair::turn() {
  pair_.a.now = pair_.b.now = pair_.a.now + kTurn;
  const bool sent = move(pair_.a, pair_.b);
  return move(pair_.b, pair_.a) || sent;
}

bool DirectPair::move(Endpoint& from, Endpoint& to) {
  bool moved = false;
  from.timers();
  for (;; moved = true) {
    burst_->clear();
    if (!from.hca.poll_transmit(from.now, kLocalLink, *burst_)) break;
    to.hca.on_packets(to.now, kLocalLink, std::span(received_).first(hand_over()));
  }
  from.hca.publish_completions(from.now);
  return moved;
}

// Into received_, whose fields that no frame changes stay as they are.
std::size_t DirectPair::hand_over() {
  std::size_t count = 0;
  for (const TxFrame& frame : burst_->frames()) {
    packets_ += frame.packet_count;
    if (lose_every_ != 0 && ++until_loss_ == lose_every_) {
      until_loss_ = 0;
      continue;
    }
    RxPacket& packet = received_[count++];
    packet.bytes = frame.headers();
    packet.packet_count = frame.packet_count;
    packet.payload_is_detached = true;
    if (frame.gather_count > 1) std::abort();
    packet.detached_payload = frame.gather_count == 1 ? *frame.gather : ConstBytes();
  }
  return count;
}

std::uint32_t DirectPair::take_completions(Endpoint& endpoint) {
  std::uint32_t count = 0;
  for (; const Cqe* entry = endpoint.cq.front(); ++count) {
    if (entry->status != WcStatus::kSuccess) std::abort();
    endpoint.cq.pop();
  }
  return count;
}

}  // namespace uroce::test
