// SPDX-License-Identifier: BSD-2-Clause
#include "sim/receive_pool.h"

#include <algorithm>

namespace uroce::sim {

using namespace transport;

namespace {

unsigned printed(WcStatus status) { return static_cast<unsigned>(status); }

// What is wrong with the message ends the receive request that it took in this way.
bool fails(const Request& message, WcStatus status) {
  if (message.has_invalidate() && message.poison == Poison::kRemoteKey) {
    return status == WcStatus::kRemoteInvalidRequest;
  }
  if (message.poison == Poison::kTooLong) return status == WcStatus::kLocalLengthError;
  const bool is_out_of_reach =
      message.poison == Poison::kRemoteKey || message.poison == Poison::kRemoteBounds;
  return is_out_of_reach && message.is_write() && status == WcStatus::kLocalAccessError;
}

}  // namespace

ReceivePool::ReceivePool(Oracle& oracle, Arena& arena, Range area, std::uint32_t slot_bytes,
                         std::uint32_t message_bytes, bool is_shared, Prng prng)
    : oracle_(oracle),
      arena_(arena),
      area_(area),
      slot_bytes_(slot_bytes),
      message_bytes_(message_bytes),
      is_shared_(is_shared),
      prng_(prng),
      slots_(area.bytes / slot_bytes) {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
}

Range ReceivePool::slot_range(std::uint32_t slot) const {
  return {area_.offset + slot * slot_bytes_, slot_bytes_};
}

// Pieces of random lengths, with room of random width between them.
void ReceivePool::cut(Slot& slot, std::uint32_t index) {
  slot.pieces = {};
  std::uint32_t left = message_bytes_;
  std::uint32_t room = slot_bytes_ - message_bytes_;
  std::uint32_t at = slot_range(index).offset;
  const std::uint32_t count = prng_.between(1, kSgesMax);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t gap = prng_.below(room / 2 + 1);
    const std::uint32_t bytes = i + 1 == count ? left : prng_.below(left + 1);
    slot.pieces.add({at + gap, bytes});
    at += gap + bytes;
    room -= gap;
    left -= bytes;
  }
}

ReceivePool::Posted ReceivePool::post() {
  const std::uint32_t index = free_.front();
  free_.pop_front();
  order_.push_back(index);
  Slot& slot = slots_[index];
  slot.is_posted = true;
  cut(slot, index);
  Posted posted{.wr_id = kWrIdBit | index, .sges = {}, .sge_count = slot.pieces.count};
  for (std::uint32_t i = 0; i < slot.pieces.count; ++i) {
    posted.sges[i] = arena_.sge(slot.pieces.ranges[i]);
  }
  return posted;
}

void ReceivePool::accept(const Slot& slot) {
  for (const Range& piece : slot.pieces.all()) arena_.accept(piece);
}

// A QP's own receive requests are used up in order.
void ReceivePool::check_order(std::uint32_t index) {
  const auto found = std::find(order_.begin(), order_.end(), index);
  if (!is_shared_ && found != order_.begin()) oracle_.violated("receives complete out of order");
  if (found != order_.end()) order_.erase(found);
}

void ReceivePool::compare(const Request& message, const Slot& slot) {
  std::uint32_t done = 0;
  for (const Range& piece : slot.pieces.all()) {
    const std::uint32_t bytes = std::min(piece.bytes, message.length - done);
    const Bytes there = arena_.memory({piece.offset, bytes});
    if (!std::equal(there.begin(), there.end(), message.data.begin() + done)) {
      return oracle_.violated("what was received of %#llx differs from what was sent",
                              static_cast<unsigned long long>(message.wr_id));
    }
    arena_.accept({piece.offset, bytes});
    done += bytes;
  }
}

void ReceivePool::check_message(const Cqe& entry, const Request& message, Slot& slot) {
  const WcOpcode opcode =
      message.is_send() ? WcOpcode::kReceive : WcOpcode::kReceiveRdmaWithImmediate;
  const bool has_immediate = (entry.flags & wc_flag::kWithImmediate) != 0;
  const bool has_invalidate = (entry.flags & wc_flag::kWithInvalidate) != 0;
  if (has_invalidate != message.has_invalidate() ||
      (has_invalidate && entry.immediate != message.immediate)) {
    oracle_.violated("receive of %#llx: invalidates %#x",
                     static_cast<unsigned long long>(message.wr_id), entry.immediate);
  }
  if (entry.opcode != opcode || entry.byte_count != message.length ||
      has_immediate != message.has_immediate() ||
      (has_immediate && entry.immediate != message.immediate)) {
    oracle_.violated("receive of %#llx: opcode %u, %u bytes of %u, immediate %#x",
                     static_cast<unsigned long long>(message.wr_id),
                     static_cast<unsigned>(entry.opcode), entry.byte_count, message.length,
                     entry.immediate);
  }
  if (message.poison != Poison::kNone) oracle_.violated("a poisoned message was received");
  if (message.is_send()) compare(message, slot);
}

void ReceivePool::on_completion(const Cqe& entry, Flow& flow, bool may_flush) {
  const auto index = static_cast<std::uint32_t>(entry.wr_id);
  if (index >= slots_.size() || !slots_[index].is_posted) {
    return oracle_.violated("a receive completes that was not posted");
  }
  Slot& slot = slots_[index];
  check_order(index);
  take_back(index);
  const Request* const message = flow.next_received();
  if (entry.status == WcStatus::kSuccess) {
    if (message == nullptr) return oracle_.violated("received what nobody sent");
    check_message(entry, *message, slot);
    flow.pop_received();
  } else {
    const bool is_excused = entry.status == WcStatus::kFlushed
                                ? may_flush
                                : message != nullptr && fails(*message, entry.status);
    if (!is_excused) {
      oracle_.violated("a receive fails with status %u", printed(entry.status));
    }
    accept(slot);
  }
  if (!arena_.is_as_expected(slot_range(index))) {
    oracle_.violated("bytes beside those received have changed");
  }
}

void ReceivePool::take_back(std::uint32_t index) {
  slots_[index].is_posted = false;
  free_.push_back(index);
}

void ReceivePool::abandon() {
  for (const std::uint32_t index : order_) {
    accept(slots_[index]);
    take_back(index);
  }
  order_.clear();
}

void ReceivePool::reclaim(std::uint64_t wr_id) {
  const auto index = static_cast<std::uint32_t>(wr_id);
  std::erase(order_, index);
  accept(slots_[index]);
  take_back(index);
}

}  // namespace uroce::sim
