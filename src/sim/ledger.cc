// SPDX-License-Identifier: BSD-2-Clause
#include "sim/ledger.h"

namespace uroce::sim {

using namespace transport;

namespace {

unsigned long long printed(std::uint64_t wr_id) { return wr_id; }

WcOpcode sent_as(const Parcel& parcel) {
  return parcel.is_write() ? WcOpcode::kRdmaWrite : WcOpcode::kSend;
}

}  // namespace

std::byte Ledger::byte_of(std::uint32_t number, std::uint32_t at) const {
  if (at < kNumberBytes) return static_cast<std::byte>(number >> (8 * at));
  return static_cast<std::byte>((number * 0x9e37'79b1U + sender_ * 0x85eb'ca6bU + at * 0x1b87U) >>
                                (at % 17));
}

void Ledger::write(std::uint32_t number, Bytes data) const {
  for (std::uint32_t i = 0; i < data.size(); ++i) data[i] = byte_of(number, i);
}

void Ledger::post(const Parcel& parcel) {
  pending_.push_back(next_number());
  parcels_.push_back(parcel);
}

void Ledger::succeed_front() {
  ++succeeded_;
  pending_.pop_front();
}

void Ledger::on_sent(const Cqe& entry, bool may_flush) {
  std::uint32_t covered = 1;
  while (!pending_.empty() && parcels_[pending_.front()].wr_id != entry.wr_id) {
    if (parcels_[pending_.front()].is_signaled || was_flushed_) break;
    succeed_front();
    ++covered;
  }
  if (pending_.empty() || parcels_[pending_.front()].wr_id != entry.wr_id) {
    return oracle_.violated("completion of %#llx, which is not next", printed(entry.wr_id));
  }
  const Parcel& parcel = parcels_[pending_.front()];
  if (entry.status == WcStatus::kFlushed && may_flush) {
    was_flushed_ = true;
    return pending_.pop_front();
  }
  if (entry.status != WcStatus::kSuccess || was_flushed_) {
    return oracle_.violated("%#llx, which nobody acknowledges, ends with status %u",
                            printed(entry.wr_id), static_cast<unsigned>(entry.status));
  }
  if (!parcel.is_signaled || entry.opcode != sent_as(parcel) || entry.release_count != covered) {
    oracle_.violated("completion of %#llx: opcode %u, %u slots given back and not %u",
                     printed(entry.wr_id), static_cast<unsigned>(entry.opcode), entry.release_count,
                     covered);
  }
  succeed_front();
}

void Ledger::flush_unsignaled() {
  while (!pending_.empty() && !parcels_[pending_.front()].is_signaled) succeed_front();
}

std::uint32_t Ledger::number_of(const Arrival& arrival) const {
  if (arrival.has_immediate) return arrival.immediate;
  if (arrival.data.size() < kNumberBytes) return ~0U;
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < kNumberBytes; ++i) {
    number |= std::to_integer<std::uint32_t>(arrival.data[i]) << (8 * i);
  }
  return number;
}

void Ledger::check_whole(std::uint32_t number, const Arrival& arrival) {
  const Parcel& parcel = parcels_[number];
  if (arrival.length != parcel.length || arrival.has_immediate != parcel.has_immediate() ||
      arrival.is_write != parcel.is_write()) {
    return oracle_.violated("%#llx of %u bytes arrives with %u, as another operation or cut",
                            printed(parcel.wr_id), parcel.length, arrival.length);
  }
  for (std::uint32_t i = 0; i < arrival.data.size(); ++i) {
    if (arrival.data[i] == byte_of(number, i)) continue;
    return oracle_.violated("byte %u of %#llx is wrong where it arrived", i, printed(parcel.wr_id));
  }
}

void Ledger::check_turn(std::uint32_t number, Seen& seen) {
  seen.times.resize(parcels_.size());
  const unsigned times = ++seen.times[number];
  if (times > (rules_.repeats ? 2U : 1U)) {
    oracle_.violated("%#llx arrives %u times", printed(parcels_[number].wr_id), times);
  }
  if (rules_.keeps_order && number < seen.next) {
    oracle_.violated("%#llx arrives late", printed(parcels_[number].wr_id));
  }
  seen.next = number + 1;
}

void Ledger::on_received(std::uint32_t receiver, const Arrival& arrival, Seen& seen) {
  const std::uint32_t number = number_of(arrival);
  if (number >= parcels_.size()) return oracle_.violated("receiver %u: nobody sent this", receiver);
  const Parcel& parcel = parcels_[number];
  if (parcel.receiver != (arrival.is_to_group ? kToGroup : receiver)) {
    return oracle_.violated("%#llx arrives at receiver %u", printed(parcel.wr_id), receiver);
  }
  if (parcel.is_refused) {
    return oracle_.violated("%#llx arrives, and has a wrong key", printed(parcel.wr_id));
  }
  check_whole(number, arrival);
  check_turn(number, seen);
}

bool Ledger::may_have_written(std::uint32_t receiver, std::uint32_t place, std::byte value) const {
  for (std::uint32_t number = 0; number < parcels_.size(); ++number) {
    const Parcel& parcel = parcels_[number];
    if (!parcel.is_write() || parcel.is_refused || parcel.receiver != receiver) continue;
    if (place < parcel.place || place - parcel.place >= parcel.length) continue;
    if (byte_of(number, place - parcel.place) == value) return true;
  }
  return false;
}

}  // namespace uroce::sim
