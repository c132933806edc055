// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/fault_datapath.h"

#include <algorithm>
#include <utility>

namespace uroce::datapath::tap {
namespace {

// A held packet that nobody passes is handed out after this, beyond the longest delay.
constexpr Duration kHoldAtMost = milliseconds(1);
constexpr int kRefillsMax = 4;  // in one rx_burst, while all that comes is lost or waits

bool makes_wait(const FaultSpec& spec) { return spec.delays() || spec.reorder != 0; }

}  // namespace

Result<std::unique_ptr<Datapath>> FaultDatapath::create(std::unique_ptr<Datapath> link,
                                                        const FaultOptions& options) {
  std::optional<DueTimer> timer;
  if (const int descriptor = link->wakeup_descriptor();
      descriptor >= 0 && makes_wait(options.spec)) {
    Result<DueTimer> made = DueTimer::create(descriptor);
    if (!made) return made.error();
    timer = std::move(*made);
  }
  return std::unique_ptr<Datapath>(new FaultDatapath(std::move(link), options, std::move(timer)));
}

FaultDatapath::FaultDatapath(std::unique_ptr<Datapath> link, const FaultOptions& options,
                             std::optional<DueTimer> timer)
    : link_(std::move(link)),
      dice_(options.spec),
      clock_(options.clock),
      uses_time_(makes_wait(options.spec)),
      capabilities_(link_->capabilities()),
      hold_at_most_(options.spec.delay_max + kHoldAtMost),
      pool_(uses_time_ ? options.pool_packets : 0),
      timer_(std::move(timer)) {
  capabilities_.trusted_memory = false;
}

const DatapathCounters& FaultDatapath::counters() const {
  counters_ = link_->counters();
  counters_.rx_bad_icrc += made_.rx_bad_icrc;
  counters_.faults_lost = made_.faults_lost;
  counters_.faults_duplicated = made_.faults_duplicated;
  counters_.faults_reordered = made_.faults_reordered;
  counters_.faults_corrupted = made_.faults_corrupted;
  counters_.faults_delayed = made_.faults_delayed;
  return counters_;
}

int FaultDatapath::open_path(Path& path, Qpn destination) {
  return link_->open_path(path, destination);
}

// ---- receiving ----

std::size_t FaultDatapath::rx_burst(std::span<RxPacket> packets) {
  take_back_lent();
  if (uses_time_) now_ = clock_();
  packets = packets.first(std::min(packets.size(), kBurst));
  std::size_t filled = 0;
  for (int round = 0; filled == 0 && round < kRefillsMax; ++round) {
    const bool has_more = has_unfinished() || refill();
    filled = fill(packets);
    if (!has_more) break;
  }
  find_earliest();
  return filled;
}

void FaultDatapath::take_back_lent() {
  pool_.give_back_all(lent_);
  free_header_ = 0;
  if (current_.copies != 0 && is_run_) {
    current_.packet = run_.packet(next_in_arrival_ - 1, headers_[0]);
  }
}

bool FaultDatapath::has_unfinished() const {
  return current_.copies != 0 || next_in_arrival_ < packets_in_arrival_ ||
         next_arrival_ < arrival_count_;
}

// Ends the loan of what the link gave before, so that is all dealt with.
bool FaultDatapath::refill() {
  next_arrival_ = 0;
  arrival_count_ = link_->rx_burst(arrivals_);
  return arrival_count_ != 0;
}

std::size_t FaultDatapath::fill(std::span<RxPacket> packets) {
  std::size_t filled = 0;
  while (filled < packets.size()) {
    if (StoredPacket* const due = pop_due(); due != nullptr) {
      lent_.push_back(*due);
      packets[filled++] = due->packet;
      continue;
    }
    if (current_.copies == 0 && !next_packet()) break;
    const Admitted admitted = admit(packets[filled]);
    if (admitted == Admitted::kNoRoom) break;
    if (admitted == Admitted::kHandedOut) ++filled;
  }
  return filled;
}

// The next that is not lost.
bool FaultDatapath::next_packet() {
  while (current_.copies == 0) {
    if (next_in_arrival_ == packets_in_arrival_) {
      if (next_arrival_ == arrival_count_) return false;
      open_arrival();
    }
    draw_fate();
  }
  return true;
}

void FaultDatapath::open_arrival() {
  const RxPacket& arrival = arrivals_[next_arrival_++];
  is_run_ = arrival.packet_count > 1 && run_.open(arrival);
  packets_in_arrival_ = is_run_ ? run_.packet_count() : 1;
  next_in_arrival_ = 0;
}

void FaultDatapath::draw_fate() {
  const unsigned index = next_in_arrival_++;
  const FaultFate fate = dice_.next();
  current_.fate = fate;
  current_.copies = fate.is_corrupt ? 0 : fate.copies;
  if (fate.is_lost()) {
    ++made_.faults_lost;
  } else if (fate.is_corrupt) {
    ++made_.faults_corrupted;
    ++made_.rx_bad_icrc;
  }
  if (current_.copies == 0) return;
  made_.faults_duplicated += fate.copies - 1u;
  made_.faults_reordered += fate.overtaken_by != 0 ? 1 : 0;
  made_.faults_delayed += fate.delay.ns != 0 ? 1 : 0;
  current_.packet =
      is_run_ ? run_.packet(index, headers_[free_header_]) : arrivals_[next_arrival_ - 1];
}

FaultDatapath::Admitted FaultDatapath::admit(RxPacket& out) {
  const FaultFate& fate = current_.fate;
  const bool waits = fate.overtaken_by != 0 || fate.delay.ns != 0 || !delayed_.empty();
  if (waits && PacketPool::is_storable(current_.packet)) {
    if (fate.overtaken_by != 0) return put_aside(held_, now_ + hold_at_most_);
    last_due_ = std::max(last_due_, now_ + fate.delay);
    return put_aside(delayed_, last_due_);
  }
  out = current_.packet;
  --current_.copies;
  ++free_header_;
  note_delivery();
  return Admitted::kHandedOut;
}

FaultDatapath::Admitted FaultDatapath::put_aside(StoredPackets& queue, Instant due) {
  StoredPacket* const stored = pool_.store(current_.packet);
  if (stored == nullptr) return Admitted::kNoRoom;
  stored->due = due;
  stored->overtaken_by = current_.fate.overtaken_by;
  queue.push_back(*stored);
  --current_.copies;
  return Admitted::kWaits;
}

StoredPacket* FaultDatapath::pop_due() {
  if (StoredPacket* const ready = ready_.pop_front(); ready != nullptr) return ready;
  if (StoredPacket* const first = delayed_.front(); first != nullptr && first->due <= now_) {
    delayed_.pop_front();
    note_delivery();
    return first;
  }
  StoredPacket* const held = held_.front();
  return held != nullptr && held->due <= now_ ? held_.pop_front() : nullptr;
}

// One more has passed all that are held.
void FaultDatapath::note_delivery() {
  for (StoredPacket* held = held_.front(); held != nullptr;) {
    StoredPacket* const next = held_.next(*held);
    if (--held->overtaken_by == 0) {
      held->hook.unlink();
      ready_.push_back(*held);
    }
    held = next;
  }
}

void FaultDatapath::find_earliest() {
  earliest_ = Instant::never();
  if (!ready_.empty()) earliest_ = now_;
  if (const StoredPacket* first = delayed_.front(); first != nullptr) {
    earliest_ = std::min(earliest_, first->due);
  }
  if (const StoredPacket* first = held_.front(); first != nullptr) {
    earliest_ = std::min(earliest_, first->due);
  }
  if (is_armed_ && timer_) timer_->set(earliest_);
}

// ---- sleeping ----

int FaultDatapath::wakeup_descriptor() const {
  return timer_ ? timer_->descriptor() : link_->wakeup_descriptor();
}

// While arrivals are in hand the link must not be armed, because that may end their loan.
bool FaultDatapath::arm_wakeup() {
  if (has_unfinished() || (earliest_ != Instant::never() && earliest_ <= clock_())) return false;
  if (!link_->arm_wakeup()) return false;
  is_armed_ = true;
  if (timer_) timer_->set(earliest_);
  return true;
}

// With a timer it is the descriptor that wakes; to be looked at then would be too often.
Instant FaultDatapath::next_look() const {
  const Instant next = link_->next_look();
  return timer_ ? next : std::min(next, earliest_);
}

void FaultDatapath::disarm_wakeup() {
  is_armed_ = false;
  if (timer_) timer_->set(Instant::never());
  link_->disarm_wakeup();
}

void FaultDatapath::abandon_in_child() {
  if (timer_) timer_->close();
  link_->abandon_in_child();
}

}  // namespace uroce::datapath::tap
