// SPDX-License-Identifier: BSD-2-Clause
#include "sim/node.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/parse.h"
#include "wire/run.h"

namespace uroce::sim {
namespace {

using namespace transport;

inline constexpr std::size_t kQpsMax = 1024;
inline constexpr std::size_t kRegionSlots = 1024;
inline constexpr std::uint32_t kFirstQpn = 0x100;
// What a full link refused is tried again this soon.
inline constexpr Duration kTryAgain = microseconds(4);

}  // namespace

Node::Node(World& world, unsigned index, const NodeOptions& options, Prng prng)
    : world_(world),
      index_(index),
      options_(options),
      refusal_(prng),
      blocks_(kQpBlockCount),
      deadline_memory_(kQpsMax),
      early_deadline_memory_(kQpsMax),
      stash_entries_(options.stash_packets),
      stash_slots_(std::make_unique_for_overwrite<StashSlot[]>(options.stash_packets)),
      regions_(kRegionSlots),
      burst_(std::make_unique<TxBurst>()),
      next_qpn_(kFirstQpn * (index + 1)) {
  hca_.demux().set_memory(blocks_);
  hca_.deadlines().set_memory(deadline_memory_);
  hca_.early_deadlines().set_memory(early_deadline_memory_);
  hca_.stash().set_memory(stash_entries_, {stash_slots_.get(), options.stash_packets});
  (void)hca_.regions().rehash_into(regions_);
  hca_.set_oracle(this);
  for (unsigned i = 0; i < kNodesMax; ++i) addresses_[i] = address_of(i);
}

void Node::heal() {
  options_.refuse = 0;
  options_.turn_gap = NodeOptions{}.turn_gap;
  options_.packets_a_turn = NodeOptions{}.packets_a_turn;
  options_.inbox_packets = NodeOptions{}.inbox_packets;
}

void Node::set_link(LinkId id, const LinkFacts& facts) {
  facts_[id] = facts;
  hca_.set_link(id, facts);
}

Path Node::path_to(unsigned to) const {
  return {.source = addresses_[index_], .destination = addresses_[to], .route = to};
}

Path Node::path_to_group() const {
  return {.source = addresses_[index_], .destination = group_, .route = kGroupRoute};
}

Peer* Node::peer(LinkId id, unsigned to) {
  return facts_[id].peer_window_bytes == 0 ? nullptr : &peers_[id][to];
}

Qpn Node::allocate_qpn() {
  const Qpn number{next_qpn_++};
  if (blocks_[qpn_block(number)] == nullptr) {
    hca_.demux().add_block(qpn_block(number), block_memory_.emplace_back());
  }
  return number;
}

void Node::add_region(std::uint32_t key, std::uint64_t iova, Bytes memory, memory::Access access) {
  memory::MemoryRegion region;
  region.iova = iova;
  region.length = memory.size();
  region.base = memory.data();
  region.pd = {1};
  region.access = access;
  region.key = key;
  UROCE_CHECK(hca_.regions().insert(region) == memory::InsertOutcome::kInserted);
}

void Node::add_window(RKey key, memory::KeyKind kind) {
  const memory::MemoryRegion window{.pd = {1}, .key = key.value, .kind = kind};
  UROCE_CHECK(hca_.regions().insert(window) == memory::InsertOutcome::kInserted);
}

void Node::ring(Qp& qp) {
  hca_.on_doorbell(world_.now(), qp);
  request_turn(world_.now());
}

void Node::request_turn(Instant when) {
  when = std::max({when, world_.now(), last_turn_ + options_.turn_gap});
  if (when >= next_turn_) return;
  next_turn_ = when;
  world_.at(when, *this, kTurn);
}

void Node::on_event(std::uint32_t what) {
  if (what == kTurn) {
    if (world_.now() == next_turn_) take_turn();  // else: another one came in between
    return;
  }
  const PacketInfo& packet = world_.packets.info(what);
  const unsigned from = packet.via->source();
  if (!packet.via->options().is_memory && inbox_.size() >= options_.inbox_packets) {
    ++inbox_overflows_;
    world_.trace.dropped(world_.now(), from, index_, world_.packets.received(what), "inbox full");
    world_.packets.release(what);
    return;
  }
  if (world_.trace.is_captured()) [[unlikely]] {
    world_.trace.arrived(world_.now(), from, index_, world_.packets.received(what));
  }
  inbox_.push_back(what);
  request_turn(world_.now());
}

void Node::take_turn() {
  next_turn_ = Instant::never();
  last_turn_ = world_.now();
  was_refused_ = false;
  receive();
  hca_.on_timer(world_.now());
  for (LinkId id = 0; id < kLinkCount; ++id) transmit(id);
  tell_user();
  if (!inbox_.empty()) request_turn(world_.now());
  if (was_refused_) request_turn(world_.now() + kTryAgain);
  const Instant due = std::min(hca_.next_deadline(), hca_.next_early_deadline());
  if (due != Instant::never()) request_turn(due);
}

// Neighbours in the inbox that came over links of one kind are handed over together.
void Node::receive() {
  std::size_t left = std::min<std::size_t>(inbox_.size(), options_.packets_a_turn);
  while (left != 0) {
    const bool is_memory = world_.packets.info(inbox_.front()).via->options().is_memory;
    std::size_t count = 1;
    while (count < left &&
           world_.packets.info(inbox_[count]).via->options().is_memory == is_memory) {
      ++count;
    }
    receive_over(is_memory ? kLocalLink : kUplink, count);
    left -= count;
  }
}

void Node::receive_over(LinkId id, std::size_t count) {
  received_.clear();
  received_ids_.assign(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(count));
  inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(count));
  for (const PacketId packet : received_ids_) {
    if (damages_next_) damage(packet);
    RxPacket& lent = received_.emplace_back(world_.packets.received(packet));
    const PacketInfo& info = world_.packets.info(packet);
    if (id == kLocalLink && !info.has_addresses) continue;
    lent.source = &addresses_[info.via->source()];
    lent.destination = info.is_to_group ? &group_ : &addresses_[index_];
  }
  hca_.on_packets(world_.now(), id, received_);
  for (const PacketId packet : received_ids_) {
    world_.packets.info(packet).via->on_consumed();
    world_.packets.release(packet);
  }
}

void Node::damage(PacketId packet) {
  const RxPacket lent = world_.packets.received(packet);
  wire::PacketView view;
  if (wire::parse(lent, view) != wire::DropReason::kNone || view.payload.empty()) return;
  // What a WRITE brings may be written over before anybody looks.
  if (view.opcode->kind == wire::Kind::kWrite) return;
  const std::ptrdiff_t last = &view.payload.back() - world_.packets.data(packet);
  world_.packets.data(packet)[last] ^= std::byte{1};
  damages_next_ = false;
  has_damaged_ = true;
}

void Node::transmit(LinkId id) {
  hca_.retry_refused(id);
  for (;;) {
    burst_->clear();
    if (!hca_.poll_transmit(world_.now(), id, *burst_)) return;
    if (!send_burst(id)) {
      was_refused_ = true;
      return;
    }
  }
}

// The contract of Datapath::tx_burst: behind a frame that is refused, all to the same node are.
// False: some were.
bool Node::send_burst(LinkId id) {
  std::array<bool, kNodesMax> is_full{};
  bool all_taken = true;
  for (TxFrame& frame : burst_->frames()) {
    if (frame.path->route == kGroupRoute) {
      send_to_group(id, frame);
      continue;
    }
    Link& link = *links_[id][frame.path->route];
    bool& full = is_full[frame.path->route];
    full = full || !link.has_room() || (options_.refuse != 0 && refusal_.chance(options_.refuse));
    frame.refused = full;
    all_taken = all_taken && !full;
    if (full) continue;
    if (link.options().is_memory) {
      send_run(link, frame);
    } else {
      send(link, frame);
    }
  }
  if (!all_taken) hca_.on_refused(world_.now(), burst_->frames());
  return all_taken;
}

// What a full link does not take is lost there, and nowhere else.
void Node::send_to_group(LinkId id, const TxFrame& frame) {
  for (Link* const link : links_[id]) {
    if (link == nullptr || !link->has_room()) continue;
    if (link->options().is_memory) {
      send_run(*link, frame);
    } else {
      send(*link, frame);
    }
  }
}

void Node::send(Link& link, const TxFrame& frame) {
  wire::PayloadCursor payload(frame.payload());
  for (unsigned i = 0; i < frame.packet_count; ++i) {
    const PacketId id = world_.packets.allocate();
    std::byte* const data = world_.packets.data(id);
    const std::size_t header_bytes =
        wire::run_headers(frame, i, std::span<std::byte, kMaxHeaderBytes>(data, kMaxHeaderBytes));
    const std::uint32_t payload_bytes = wire::run_payload_bytes(frame, i);
    const std::uint32_t pad_bytes = -payload_bytes & 3U;
    if (payload_bytes != 0) payload.copy({data + header_bytes, payload_bytes});
    std::memset(data + header_bytes + payload_bytes, 0, pad_bytes);
    PacketInfo& info = world_.packets.info(id);
    info.bytes = static_cast<std::uint32_t>(header_bytes) + payload_bytes + pad_bytes;
    info.has_addresses = frame.carries_addresses;
    info.is_to_group = frame.path->route == kGroupRoute;
    link.send(id);
  }
}

void Node::send_run(Link& link, const TxFrame& frame) {
  const PacketId id = world_.packets.allocate();
  PacketInfo& info = world_.packets.info(id);
  std::byte* const data = world_.packets.data(id);
  info.is_run = true;
  info.packet_count = frame.packet_count;
  info.bytes = frame.header_bytes;
  info.payload_bytes = frame.payload_bytes;
  info.has_addresses = frame.carries_addresses;
  info.is_to_group = frame.path->route == kGroupRoute;
  std::memcpy(data, frame.header.data(), frame.header_bytes);
  if (frame.payload_bytes != 0) {
    wire::PayloadCursor(frame.payload()).copy({data + kMaxHeaderBytes, frame.payload_bytes});
  }
  link.send(id);
}

void Node::tell_user() {
  hca_.publish_completions(world_.now());
  while (CompletionQueue* cq = hca_.poll_notification()) {
    if (user_ != nullptr) user_->on_notification(*cq);
  }
  Event event;
  while (hca_.poll_event(event)) {
    if (user_ != nullptr) user_->on_async_event(event);
  }
}

}  // namespace uroce::sim
