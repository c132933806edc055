// SPDX-License-Identifier: BSD-2-Clause
#include "sim/unreliable_end.h"

#include <algorithm>

#include "sim/receive_pool.h"
#include "wire/grh.h"

namespace uroce::sim {

using namespace transport;

namespace {

inline constexpr std::uint32_t kMillion = Prng::kMillion;
inline constexpr std::uint32_t kEdgeBytes = 64;
inline constexpr std::uint32_t kFirstArena = 64;  // behind those of reliable connections
inline constexpr std::uint32_t kNoSuchKey = 0xdead'be00;
inline constexpr std::uint32_t kWrongOf = kMillion / 20;  // so many have a wrong key
inline constexpr Duration kIdlePause = microseconds(100);

std::uint32_t slot_bytes_of(const Scenario& s) {
  return s.message_bytes + static_cast<std::uint32_t>(wire::kGrhBytes) + kEdgeBytes;
}

std::uint32_t local_bytes_of(const Scenario& s) {
  return kEdgeBytes + 2 * s.capacity * slot_bytes_of(s);
}

NetworkRules rules_of(const Scenario& s, LinkId link) {
  if (link == kLocalLink) return {.repeats = false, .keeps_order = true};
  return {.repeats = s.uplink.duplicate != 0,
          .keeps_order = s.uplink.duplicate == 0 && s.uplink.reorder == 0 &&
                         (s.uplink.keeps_order || s.uplink.jitter.ns == 0)};
}

}  // namespace

UnreliableEnd::UnreliableEnd(World& world, Oracle& oracle, Arrivals& arrivals,
                             const Scenario& scenario, Site& site, std::uint32_t id,
                             const QueuePairOptions& options, Prng prng)
    : world_(world),
      oracle_(oracle),
      arrivals_(arrivals),
      scenario_(scenario),
      site_(site),
      id_(id),
      options_(options),
      prng_(prng.split(1)),
      local_(kFirstArena + 2 * id, local_bytes_of(scenario), prng.split(2)),
      target_(kFirstArena + 2 * id + 1, 2 * kEdgeBytes + 2 * scenario.message_bytes, prng.split(3)),
      ledger_(oracle, id, rules_of(scenario, options.link)),
      is_posted_(scenario.capacity),
      left_(scenario.requests),
      first_psn_(0xff'ffff - prng_.below(2 * scenario.requests)) {
  using enum memory::Access;
  Node& node = site.node();
  node.add_region(local_.key(), local_.address(0), local_.memory(local_.whole()), kLocalWrite);
  const Range open{kEdgeBytes, 2 * scenario.message_bytes};
  node.add_region(target_.key(), target_.address(open.offset), target_.memory(open),
                  kLocalWrite | kRemoteWrite);
  qp_ = std::make_unique<QueuePair>(node, options_, site.cq(), site.cq(), nullptr);
  site.add(qp_->number(), *this);
}

void UnreliableEnd::join_group() {
  membership_.group = group_address();
  membership_.qp = &qp_->core();
  site_.node().hca().multicast().insert(membership_);
  is_member_ = true;
}

void UnreliableEnd::connect() {
  seen_.resize(neighbours_.size());
  for (const UnreliableEnd* neighbour : neighbours_) {
    AddressPath& path = paths_.emplace_back();
    path.path = site_.node().path_to(neighbour->site_.node().index());
    path.link = options_.link;
  }
  group_path_.path = site_.node().path_to_group();
  group_path_.link = options_.link;
  const UnreliableEnd& peer = *neighbours_.front();
  qp_->connect(world_.now(), peer.site_.node().index(), peer.number(), peer.first_psn_, first_psn_);
  look_again();
}

std::uint32_t UnreliableEnd::message_bytes() const {
  return is_datagram() ? std::min<std::uint32_t>(scenario_.message_bytes, options_.path_mtu)
                       : scenario_.message_bytes;
}

Range UnreliableEnd::send_slot(std::uint32_t number) const {
  return {kEdgeBytes + number % scenario_.capacity * slot_bytes_of(scenario_), message_bytes()};
}

Range UnreliableEnd::receive_slot(std::uint32_t slot) const {
  const auto header = static_cast<std::uint32_t>(is_datagram() ? wire::kGrhBytes : 0);
  return {kEdgeBytes + (scenario_.capacity + slot) * slot_bytes_of(scenario_),
          header + message_bytes()};
}

void UnreliableEnd::look_again() {
  if (is_over_) return;
  Duration pause = nanoseconds(1 + prng_.below(static_cast<std::uint32_t>(scenario_.think.ns)));
  if (is_done()) pause = pause + kIdlePause;
  world_.at(world_.now() + pause, *this, 0);
}

void UnreliableEnd::on_event(std::uint32_t) {
  look();
  look_again();
}

void UnreliableEnd::look() {
  if (is_over_) return;
  if (is_healed_ || !prng_.chance(scenario_.late_poll)) site_.poll();
  if (is_broken_) return;
  if (is_healed_ || !prng_.chance(scenario_.late_receive)) post_receives();
  for (std::uint32_t count = prng_.between(1, 4); count != 0 && left_ != 0; --count) {
    if (qp_->send_slots() == 0) break;
    post_parcel();
  }
  if (is_healed_ || !prng_.chance(scenario_.disturb / 4)) return;
  world_.trace.line(world_.now(), "unreliable end %u: breaks", id_);
  is_broken_ = true;
  left_ = 0;
  qp_->to_state(world_.now(), QpState::kErr);
}

void UnreliableEnd::post_receives() {
  for (std::uint32_t slot = 0; slot < is_posted_.size(); ++slot) {
    if (is_posted_[slot] || !qp_->can_receive()) continue;
    is_posted_[slot] = true;
    const memory::Sge sge = local_.sge(receive_slot(slot));
    qp_->post_receive(ReceivePool::kWrIdBit | slot, {&sge, 1});
  }
}

Parcel UnreliableEnd::draw_parcel() {
  Parcel parcel;
  constexpr std::array kOperations = {SendOperation::kSend, SendOperation::kSendWithImmediate,
                                      SendOperation::kWrite, SendOperation::kWriteWithImmediate};
  parcel.operation = kOperations[prng_.below(is_datagram() ? 2 : 4)];
  const std::uint32_t least = parcel.has_immediate() ? 0 : Ledger::kNumberBytes;
  parcel.length = prng_.between(least, message_bytes());
  parcel.place = kEdgeBytes + prng_.below(2 * scenario_.message_bytes - parcel.length + 1);
  parcel.wr_id = std::uint64_t{kFirstArena + id_} << 32 | ledger_.next_number();
  const bool is_last = left_ == 0 || qp_->send_slots() == 1;
  parcel.is_signaled = options_.signal_all || is_last || prng_.chance(scenario_.signal);
  // Of a WRITE of nothing no key is looked at.
  const bool has_key = is_datagram() || (parcel.is_write() && parcel.length != 0);
  parcel.is_refused = has_key && prng_.chance(kWrongOf);
  const UnreliableEnd& to =
      *neighbours_[prng_.below(static_cast<std::uint32_t>(neighbours_.size()))];
  parcel.receiver = is_datagram() && prng_.chance(kMillion / 4) ? kToGroup : to.id_;
  return parcel;
}

DatagramTarget UnreliableEnd::target_of(const Parcel& parcel) {
  const QKey qkey = parcel.is_refused ? QKey{options_.qkey.value ^ 1} : options_.qkey;
  if (parcel.receiver == kToGroup) return {&group_path_, kMulticastQpn, qkey};
  const auto at = std::ranges::find(neighbours_, parcel.receiver, &UnreliableEnd::id_);
  return {&paths_[static_cast<std::size_t>(at - neighbours_.begin())], (*at)->number(), qkey};
}

void UnreliableEnd::post_parcel() {
  --left_;
  const Parcel parcel = draw_parcel();
  const std::uint32_t number = ledger_.next_number();
  const Range from{send_slot(number).offset, parcel.length};
  ledger_.write(number, local_.memory(from));
  local_.accept(from);
  const Arena& there = neighbours_.front()->target_;
  SendRequest request{.operation = parcel.operation,
                      .wr_id = parcel.wr_id,
                      .remote_address = there.address(parcel.place),
                      .rkey = {parcel.is_refused ? kNoSuchKey : there.key()},
                      .immediate = number};
  if (parcel.is_signaled && !options_.signal_all) request.flags |= send_flag::kSignaled;
  if (is_datagram()) request.target = target_of(parcel);
  world_.trace.note(parcel.wr_id << 8 ^ parcel.length);
  ledger_.post(parcel);
  const bool is_inline = from.bytes <= options_.inline_max && prng_.chance(scenario_.use_inline);
  if (is_inline) return qp_->post_inline(request, local_.memory(from));
  const memory::Sge sge = local_.sge(from);
  qp_->post_send(request, {&sge, 1});
}

void UnreliableEnd::on_completion(const Cqe& entry) {
  if ((entry.wr_id & ReceivePool::kWrIdBit) != 0) return on_receive(entry);
  ledger_.on_sent(entry, is_broken_);
}

void UnreliableEnd::on_receive(const Cqe& entry) {
  const auto slot = static_cast<std::uint32_t>(entry.wr_id);
  if (slot >= is_posted_.size() || !is_posted_[slot]) {
    return oracle_.violated("unreliable end %u: a receive completes that was not posted", id_);
  }
  is_posted_[slot] = false;
  if (entry.status == WcStatus::kSuccess) {
    hear(entry, slot);
  } else if (entry.status != WcStatus::kFlushed || !is_broken_) {
    oracle_.violated("unreliable end %u: a receive fails with status %u", id_,
                     static_cast<unsigned>(entry.status));
  }
  local_.accept(receive_slot(slot));  // messages that were cut off have left their beginnings
}

UnreliableEnd* UnreliableEnd::sender_of(const Cqe& entry) const {
  if (!is_datagram()) return neighbours_.front();
  const auto found = std::ranges::find(neighbours_, entry.source_qpn, &UnreliableEnd::number);
  return found == neighbours_.end() ? nullptr : *found;
}

// Who hears it, and what of the IPv4 header lies before it.
void UnreliableEnd::check_header(const UnreliableEnd& sender, ConstBytes header, bool is_to_group) {
  const Gid from = address_of(sender.site_.node().index());
  const Gid to = is_to_group ? group_address() : address_of(site_.node().index());
  const auto is_there = [header](std::size_t at, const Gid& gid) {
    return std::equal(gid.bytes.begin() + 12, gid.bytes.end(), header.subspan(at).begin(),
                      [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
  };
  if (header[20] != std::byte{0x45} || !is_there(32, from) || !is_there(36, to)) {
    oracle_.violated("unreliable end %u: what lies before a datagram is not its header", id_);
  }
  if (is_to_group && (!is_member_ || &sender == this)) {
    oracle_.violated("unreliable end %u hears what is for a group, and not for it", id_);
  }
}

void UnreliableEnd::hear(const Cqe& entry, std::uint32_t slot) {
  UnreliableEnd* const sender = sender_of(entry);
  if (sender == nullptr) return oracle_.violated("unreliable end %u hears from nobody", id_);
  const std::uint32_t header = is_datagram() ? wire::kGrhBytes : 0U;
  const Range room = receive_slot(slot);
  if (entry.byte_count < header ||
      (entry.byte_count > room.bytes && entry.opcode == WcOpcode::kReceive)) {
    return oracle_.violated("unreliable end %u: %u bytes in a buffer of %u", id_, entry.byte_count,
                            room.bytes);
  }
  Arrival arrival{.has_immediate = (entry.flags & wc_flag::kWithImmediate) != 0,
                  .is_write = entry.opcode == WcOpcode::kReceiveRdmaWithImmediate,
                  .immediate = entry.immediate,
                  .length = entry.byte_count - header,
                  .data = {}};
  const Bytes buffer = local_.memory(room);
  if (!arrival.is_write) arrival.data = buffer.subspan(header, arrival.length);
  if (is_datagram()) {
    arrival.is_to_group = std::to_integer<unsigned>(buffer[36]) == group_address().bytes[12];
    check_header(*sender, buffer.first(header), arrival.is_to_group);
  }
  const auto at = std::ranges::find(neighbours_, sender) - neighbours_.begin();
  sender->ledger_.on_received(id_, arrival, seen_[static_cast<std::size_t>(at)]);
  count(*sender, arrival.is_to_group);
}

void UnreliableEnd::count(const UnreliableEnd& sender, bool is_to_group) {
  ++(is_datagram() ? arrivals_.datagrams : arrivals_.over_connections);
  if (!is_to_group) return;
  ++arrivals_.to_group;
  if (&sender.site_ == &site_) ++arrivals_.to_group_from_here;
}

void UnreliableEnd::check_at_end() {
  if (is_broken_) ledger_.flush_unsignaled();
  if (!ledger_.is_idle()) oracle_.violated("unreliable end %u: requests are left open", id_);
  for (std::uint32_t slot = 0; slot < is_posted_.size(); ++slot) {
    if (is_posted_[slot]) local_.accept(receive_slot(slot));
  }
  if (!local_.is_as_expected(local_.whole())) {
    oracle_.violated("unreliable end %u: byte %u of local memory has changed", id_,
                     local_.first_unexpected(local_.whole()));
  }
  const Range target = target_.whole();
  neighbours_.front()->ledger_.accept_writes(id_, target_.memory(target), target_.expected(target));
  if (!target_.is_as_expected(target)) {
    oracle_.violated("unreliable end %u: nobody has written byte %u of its target", id_,
                     target_.first_unexpected(target));
  }
}

void UnreliableEnd::destroy() {
  site_.remove(qp_->number());
  membership_.hook.unlink();
  qp_.reset();
}

}  // namespace uroce::sim
