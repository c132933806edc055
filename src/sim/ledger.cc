// SPDX-License-Identifier: BSD-2-Clause
#include "sim/ledger.h"

#include <algorithm>

#include "sim/fill.h"

namespace uroce::sim {

using namespace transport;

namespace {

unsigned long long printed(std::uint64_t wr_id) { return wr_id; }

WcOpcode sent_as(const Parcel& parcel) {
  return parcel.is_write() ? WcOpcode::kRdmaWrite : WcOpcode::kSend;
}

}  // namespace

void Ledger::write(std::uint32_t number, Bytes data) const {
  fill(data, Prng(std::uint64_t{sender_} << 32 | number));
  for (std::uint32_t i = 0; i < std::min<std::size_t>(kNumberBytes, data.size()); ++i) {
    data[i] = static_cast<std::byte>(number >> (8 * i));
  }
}

Bytes Ledger::written(std::uint32_t number, std::size_t bytes) {
  scratch_.resize(std::max(scratch_.size(), bytes));
  const Bytes data{scratch_.data(), bytes};
  write(number, data);
  return data;
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
  const Bytes sent = written(number, arrival.data.size());
  const auto wrong = std::ranges::mismatch(arrival.data, sent).in1;
  if (wrong == arrival.data.end()) return;
  oracle_.violated("byte %u of %#llx is wrong where it arrived",
                   static_cast<unsigned>(wrong - arrival.data.begin()), printed(parcel.wr_id));
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

void Ledger::accept_writes(std::uint32_t receiver, ConstBytes memory, Bytes expected) {
  for (std::uint32_t number = 0; number < parcels_.size(); ++number) {
    const Parcel& parcel = parcels_[number];
    if (!parcel.is_write() || parcel.is_refused || parcel.receiver != receiver) continue;
    const Bytes sent = written(number, parcel.length);
    for (std::uint32_t i = 0; i < parcel.length; ++i) {
      const std::uint32_t at = parcel.place + i;
      expected[at] = memory[at] == sent[i] ? sent[i] : expected[at];
    }
  }
}

}  // namespace uroce::sim
