// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/shm_datapath.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "posix/uncancelled.h"

namespace uroce::datapath {

using shm::Inbound;
using shm::Outbound;

Result<std::unique_ptr<ShmDatapath>> ShmDatapath::create(Directory& directory,
                                                         const ShmOptions& options) {
  if (!std::has_single_bit(options.ring_bytes) || options.ring_bytes / 4 < options.max_run_bytes) {
    return Error{EINVAL, "shm: ring_bytes must be a power of two, 4 runs or more"};
  }
  Result<shm::ControlSocket> control = shm::ControlSocket::open(directory);
  if (!control) return control.error();
  return std::unique_ptr<ShmDatapath>(new ShmDatapath(directory, options, std::move(*control)));
}

ShmDatapath::ShmDatapath(Directory& directory, const ShmOptions& options,
                         shm::ControlSocket control)
    : directory_(directory),
      options_(options),
      counters_(options.counters != nullptr ? *options.counters : own_counters_),
      control_(std::move(control)),
      mailbox_(directory.mailbox(directory.own_slot().index)),
      sleep_(mailbox_, directory.own_slot().generation) {
  constexpr std::uint32_t kSmallestPathMtu = 256;
  capabilities_ = {
      .name = "shm",
      .max_path_mtu = 4096,
      .max_run_packets = static_cast<std::uint16_t>(options.max_run_bytes / kSmallestPathMtu),
      .max_run_bytes = options.max_run_bytes,
      .trusted_memory = true};
  outbound_.reserve(kSlotCount);
  inbound_.reserve(kSlotCount);
  everybody_.reserve(kSlotCount);
  touched_.reserve(kSlotCount);
  watched_.reserve(kSlotCount);
  lent_.reserve(kRingsPerPoll + 1);
  bell_seen_ = mailbox_.bell.load(std::memory_order_acquire) - 1;  // look once in any case
}

ShmDatapath::~ShmDatapath() = default;

// ---- paths ----

int ShmDatapath::open_path(Path& path, Qpn destination) {
  if (path.destination.is_multicast()) {
    ++group_paths_;
    path.route = kRouteToAll;
    is_somebody_missing_ = !find_everybody();
    return 0;
  }
  const auto peer = directory_.owner(destination);
  if (!peer) return EHOSTUNREACH;
  Outbound* to = find_open(*peer);
  if (to == nullptr) {
    to = &closed_outbound();
    if (const int error = to->open(*peer, options_.ring_bytes); error != 0) return error;
  }
  ++to->path_count;
  const auto at = std::find_if(outbound_.begin(), outbound_.end(),
                               [to](const auto& one) { return one.get() == to; });
  path.route = static_cast<std::uint32_t>(at - outbound_.begin()) + 1;
  return 0;
}

// The ring stays: connections between two engines come and go.
void ShmDatapath::close_path(Path& path) {
  if (path.route == kRouteToAll) --group_paths_;
  if (Outbound* to = outbound_of(path); to != nullptr && to->path_count > 0) --to->path_count;
  path.route = 0;
}

// Those that are present under our device's name, ourselves among them. False: one of them has no
// ring just now, for want of a descriptor or of memory.
bool ShmDatapath::find_everybody() {
  const posix::Uncancelled whole;
  bool is_whole = true;
  everybody_epoch_ = directory_.epoch();
  for (Outbound* to : everybody_) --to->path_count;
  everybody_.clear();
  const auto own = directory_.info(directory_.own_slot());
  for (const SlotInfo& slot : directory_.slots()) {
    if (!own || slot.device != own->device) continue;
    Outbound* to = find_open(slot.handle);
    if (to == nullptr) to = &closed_outbound();
    const int error = to->is_open() ? 0 : to->open(slot.handle, options_.ring_bytes);
    if (error != 0) {
      is_whole &= error == EHOSTUNREACH;
      continue;
    }
    ++to->path_count;
    everybody_.push_back(to);
  }
  return is_whole;
}

Outbound* ShmDatapath::outbound_of(const Path& path) {
  return path.route == 0 || path.route > outbound_.size() ? nullptr
                                                          : outbound_[path.route - 1].get();
}

Outbound* ShmDatapath::find_open(SlotHandle peer) {
  for (const auto& one : outbound_) {
    if (one->is_open() && !one->is_gone() && one->peer() == peer) return one.get();
  }
  return nullptr;
}

Outbound& ShmDatapath::closed_outbound() {
  for (const auto& one : outbound_) {
    if (!one->is_open() && one->path_count == 0) return *one;
  }
  outbound_.push_back(std::make_unique<Outbound>(directory_, options_.wake_after));
  return *outbound_.back();
}

void ShmDatapath::begin_turn(Turn turn) {
  is_helpers_turn_ = turn == Turn::kHelper;
  if (is_helpers_turn_) return;
  std::atomic<std::uint64_t>& turns = mailbox_.application_turns;
  turns.store(turns.load(std::memory_order_relaxed) + 2, std::memory_order_relaxed);
}

void ShmDatapath::application_waits(bool waits) {
  std::atomic<std::uint64_t>& turns = mailbox_.application_turns;
  const std::uint64_t count = turns.load(std::memory_order_relaxed) & ~std::uint64_t{1};
  turns.store(count + (waits ? 1 : 0), std::memory_order_relaxed);
}

// ---- sending ----

std::size_t ShmDatapath::tx_burst(std::span<TxFrame> frames) {
  ++burst_;
  refused_now_ = 0;
  for (TxFrame& frame : frames) send_one(frame);
  for (Outbound* to : touched_) {
    const bool is_full = to->refusing_in_burst == burst_;
    if (is_helpers_turn_ && !is_full && to->reads_by_itself()) continue;
    if (to->wake_if_asleep()) ++counters_.wakeups_sent;
  }
  touched_.clear();
  counters_.tx_refused += refused_now_;
  return refused_now_;
}

// One that has no room loses it, as a switch would.
void ShmDatapath::send_to_all(TxFrame& frame) {
  for (Outbound* to : everybody_) {
    if (to->touched_in_burst != burst_) touch(*to);
    if (to->send(frame) != Outbound::Taken::kYes) ++counters_.tx_errors;
  }
  counters_.tx_packets += frame.packet_count;
  counters_.tx_bytes += frame.header_bytes + frame.payload_bytes;
}

void ShmDatapath::send_one(TxFrame& frame) {
  if (frame.path->route == kRouteToAll) return send_to_all(frame);
  Outbound* to = outbound_of(*frame.path);
  if (to == nullptr) {
    counters_.tx_errors += frame.packet_count;
    return;
  }
  if (to->touched_in_burst != burst_) touch(*to);
  Outbound::Taken taken = Outbound::Taken::kRingIsFull;
  if (to->refusing_in_burst != burst_) taken = to->send(frame);
  switch (taken) {
    case Outbound::Taken::kYes:
      counters_.tx_packets += frame.packet_count;
      counters_.tx_bytes += frame.header_bytes + frame.payload_bytes;
      return;
    case Outbound::Taken::kPeerIsGone:
      counters_.tx_errors += frame.packet_count;
      return;
    case Outbound::Taken::kRingIsFull:
      to->refusing_in_burst = burst_;
      frame.refused = true;
      ++refused_now_;
      return;
  }
}

void ShmDatapath::touch(Outbound& to) {
  to.touched_in_burst = burst_;
  to.check_presence();
  if (to.is_gone()) return;
  touched_.push_back(&to);
  if (to.is_watched()) return;
  to.begin_watch();
  watched_.push_back(&to);
}

void ShmDatapath::on_turn(Instant now) {
  std::size_t kept = 0;
  for (Outbound* to : watched_) {
    const Outbound::Watched watched = to->watch(now);
    counters_.wakeups_sent += watched.has_woken ? 1 : 0;
    if (watched.is_unread) watched_[kept++] = to;
  }
  watched_.resize(kept);
  is_helpers_turn_ = false;
  if (directory_.epoch() != epoch_seen_) let_go_of_the_gone();
  if (group_paths_ != 0) keep_everybody(now);
}

void ShmDatapath::keep_everybody(Instant now) {
  const bool looks_again = is_somebody_missing_ && now >= look_for_missing_at_;
  if (directory_.epoch() == everybody_epoch_ && !looks_again) return;
  is_somebody_missing_ = !find_everybody();
  look_for_missing_at_ = now + kMissingPause;
}

bool ShmDatapath::peer_stalled(const Path& path) {
  Outbound* to = outbound_of(path);
  return to != nullptr && to->is_open() && to->is_stalled();
}

// ---- receiving ----

std::size_t ShmDatapath::rx_burst(std::span<RxPacket> packets) {
  release_lent();
  // While the wake-up is armed the socket is the helper's: a wake-up that a turn of the
  // application's took out of it would leave the helper asleep and its senders sure that it is not.
  if (!sleep_.is_marked() && mailbox_.bell.load(std::memory_order_acquire) != bell_seen_) {
    take_offers();
  }
  packets = packets.first(std::min(packets.size(), kLargestBurst));
  std::size_t filled = 0;
  for (std::size_t i = 0; i < inbound_.size() && filled < packets.size(); ++i) {
    if (i >= kRingsPerPoll && filled != 0) break;
    if (next_ring_ >= inbound_.size()) next_ring_ = 0;
    Inbound& from = *inbound_[next_ring_++];
    if (from.is_open() && from.has_news()) filled = read_ring(from, packets, filled);
  }
  return filled;
}

void ShmDatapath::release_lent() {
  for (Inbound* from : lent_) {
    from->reader().release();
    from->is_lent = false;
  }
  lent_.clear();
}

std::size_t ShmDatapath::read_ring(Inbound& from, std::span<RxPacket> packets, std::size_t filled) {
  shm::Record record;
  lent_.push_back(&from);
  from.is_lent = true;
  while (filled < packets.size()) {
    const shm::RingReader::Found found = from.reader().next(record);
    if (found == shm::RingReader::Found::kNonsense) ++counters_.rx_not_roce;
    if (found != shm::RingReader::Found::kRecord) break;
    hand_out(record, packets[filled], filled);
    ++filled;
  }
  return filled;
}

void ShmDatapath::hand_out(const shm::Record& record, RxPacket& packet, std::size_t index) {
  packet = {.bytes = record.headers,
            .detached_payload = record.payload,
            .payload_is_detached = true,
            .packet_count = record.packet_count};
  counters_.rx_packets += record.packet_count;
  counters_.rx_bytes += record.headers.size() + record.payload.size();
  if (record.addresses == nullptr) return;
  shm::RecordAddresses& addresses = addresses_[index];
  std::memcpy(&addresses, record.addresses, sizeof addresses);
  packet.source = &addresses.source;
  packet.destination = &addresses.destination;
  packet.flow_label = addresses.flow_label;
  packet.traffic_class = addresses.traffic_class;
  packet.hop_limit = addresses.hop_limit;
}

void ShmDatapath::take_offers() {
  const posix::Uncancelled whole;
  bell_seen_ = mailbox_.bell.load(std::memory_order_acquire);
  while (const auto received = control_.receive()) take(*received);
}

// An offer meant for a former user of our slot, or one that is no ring, is let go of: its maker
// finds its ring unread for ever, and we are present under another generation.
void ShmDatapath::take(const shm::ControlSocket::Received& received) {
  auto place = std::find_if(inbound_.begin(), inbound_.end(),
                            [](const auto& one) { return !one->is_open(); });
  if (place == inbound_.end()) {
    inbound_.push_back(std::make_unique<Inbound>());
    place = inbound_.end() - 1;
  }
  const Inbound::Opened opened = (*place)->open(received);
  if (opened == Inbound::Opened::kNot) ++counters_.rx_not_roce;
  if (opened == Inbound::Opened::kYes && received.offer.to != directory_.own_slot()) {
    (*place)->close();
  }
}

// What is in the ring of an engine that has left is delivered first; the epoch is looked at again
// until all such rings are empty.
void ShmDatapath::let_go_of_the_gone() {
  const posix::Uncancelled whole;
  const std::uint64_t epoch = directory_.epoch();
  bool is_done = true;
  for (const auto& from : inbound_) {
    if (!from->is_open() || directory_.is_present(from->from())) continue;
    if (from->has_news() || from->is_lent) {
      is_done = false;
    } else {
      from->close();
    }
  }
  for (const auto& to : outbound_) {
    if (!to->is_open()) continue;
    to->check_presence();
    if (to->is_gone() && !to->is_watched()) to->close();
  }
  if (is_done) epoch_seen_ = epoch;
}

// ---- sleeping ----

bool ShmDatapath::has_news() const {
  if (mailbox_.bell.load(std::memory_order_acquire) != bell_seen_) return true;
  return std::any_of(inbound_.begin(), inbound_.end(),
                     [](const auto& from) { return from->is_open() && from->has_news(); });
}

bool ShmDatapath::arm_wakeup() {
  for (Outbound* to : watched_) {
    if (to->wake_if_unread()) ++counters_.wakeups_sent;
  }
  release_lent();
  sleep_.fall_asleep();
  return !has_news();
}

Instant ShmDatapath::next_look() const {
  Instant next = Instant::never();
  for (const Outbound* to : watched_) next = std::min(next, to->next_wake_up());
  return next;
}

void ShmDatapath::disarm_wakeup() {
  if (!sleep_.is_marked()) return;
  sleep_.wake_up();
  take_offers();
}

void ShmDatapath::abandon_in_child() {
  control_.close();
  outbound_.clear();
  inbound_.clear();
  touched_.clear();
  watched_.clear();
  lent_.clear();
  everybody_.clear();
}

}  // namespace uroce::datapath
