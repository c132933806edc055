// SPDX-License-Identifier: BSD-2-Clause
// The engine's part of control verbs: numbers, memory regions, paths. Not on the way of a packet.
#include <cerrno>
#include <ctime>

#include "engine/engine.h"
#include "engine/placement.h"
#include "posix/uncancelled.h"
#include "wire/management.h"

namespace uroce::engine {
namespace {

// Three early retransmissions of a peer come within a few round trips.
constexpr Duration kLingerInSilence = milliseconds(30);
constexpr Duration kLingerAtMost = milliseconds(300);
constexpr timespec kLingerTurn{0, 200'000};

}  // namespace

std::optional<Qpn> Engine::allocate_qpn() {
  const posix::Uncancelled whole;
  const std::lock_guard guard(control_);
  const auto allocation = qpns_.allocate();
  if (!allocation) return std::nullopt;
  if (allocation->new_block != nullptr) {
    // Before anybody else is given a number of it.
    lock_.lock();
    hca_.demux().add_block(qpn_block(allocation->number), *allocation->new_block);
    leave();
  }
  return allocation->number;
}

std::optional<Qpn> Engine::allocate_management_qpn() {
  const posix::Uncancelled whole;
  const std::lock_guard guard(control_);
  if (has_management_qp_) return std::nullopt;
  if (management_block_ == nullptr) {
    management_block_ = std::make_unique<transport::QpBlock>();
    lock_.lock();
    hca_.demux().add_block(qpn_block(wire::kManagementQpn), *management_block_);
    leave();
  }
  has_management_qp_ = true;
  return wire::kManagementQpn;
}

void Engine::release_qpn(Qpn number) {
  const posix::Uncancelled whole;
  const std::lock_guard guard(control_);
  if (number == wire::kManagementQpn) {
    has_management_qp_ = false;
  } else {
    qpns_.release(number);
  }
}

void Engine::linger(const transport::Qp& qp) {
  const posix::Uncancelled whole;
  for (Instant until = Instant::never();; nanosleep(&kLingerTurn, nullptr)) {
    progress();
    Section section(*this);
    const Instant now = section.now();
    if (until == Instant::never()) until = now + kLingerAtMost;
    if (now >= until || !section.hca().may_be_asked_again(now, qp, kLingerInSilence)) return;
  }
}

PdId Engine::new_pd() { return {pds_.fetch_add(1, std::memory_order_relaxed) + 1}; }

int Engine::insert_region(memory::MemoryRegion& region) {
  for (;;) {
    region.key = keys_.next();
    if (region.key == 0) return ENOMEM;
    lock_.lock();
    const memory::InsertOutcome outcome = hca_.regions().insert(region);
    leave();
    switch (outcome) {
      case memory::InsertOutcome::kInserted:
        return 0;
      case memory::InsertOutcome::kKeyTaken:
        break;
      case memory::InsertOutcome::kBadRegion:
        return EINVAL;
      case memory::InsertOutcome::kNoRoom:
        if (!make_room_for_regions()) return ENOMEM;
        break;
    }
  }
}

// Other threads may do the same at the same time, and whoever comes second finds nothing left to
// do.
bool Engine::make_room_for_regions() {
  lock_.lock();
  const std::size_t had = hca_.regions().slot_count();
  leave();
  ZeroedMemory larger = RegionSlots::make_larger(had);
  if (!larger) return false;
  lock_.lock();
  region_slots_.move_to(larger, had);
  leave();
  return true;
}

bool Engine::erase_region(std::uint32_t key) {
  lock_.lock();
  const bool is_erased = hca_.regions().erase(key);
  leave();
  return is_erased;
}

void Engine::erase_window(RKey index) {
  lock_.lock();
  hca_.regions().erase_window(index);
  leave();
}

void Engine::add_listener(PortListener& listener) {
  lock_.lock();
  listeners_.push_back(listener);
  leave();
}

void Engine::remove_listener(PortListener& listener) {
  lock_.lock();
  listener.hook.unlink();
  leave();
}

// --- Section -------------------------------------------------------------------------------------

Engine::Section::Section(Engine& engine) : engine_(engine) {
  engine_.lock_.lock();
  now_ = engine_.clock_.now();
}

Engine::Section::~Section() {
  engine_.send(now_, false);
  engine_.leave();
}

void Engine::Section::take_doorbells() {
  engine_.doorbells_.take_all([this](transport::Qp& qp) { engine_.hca_.on_doorbell(now_, qp); });
}

int Engine::Section::open_path(Path& path, Qpn destination, std::uint8_t& link) {
  const bool is_own = engine_.parts_.port->is_own_address(path.destination);
  const int failure = open_on_some_link(engine_.parts_.links, is_own, path, destination, link);
  if (failure == 0) ++engine_.uses_[link].paths;
  return failure;
}

int Engine::Section::attach(transport::MulticastMember& member) {
  transport::MulticastTable& table = engine_.hca_.multicast();
  std::uint32_t members = 0;
  table.for_each(member.group, [&members](const transport::Qp&) { ++members; });
  if (members == kMulticastMembersMax) return ENOMEM;
  if (members == 0) {
    if (const int error = engine_.join_group(member.group); error != 0) return error;
  }
  table.insert(member);
  return 0;
}

void Engine::Section::detach(transport::MulticastMember& member) {
  member.hook.unlink();
  if (engine_.hca_.multicast().has_members(member.group)) return;
  group_link(engine_.parts_.links).leave_group(member.group);
  engine_.quotas_.multicast_groups.give_back();
}

int Engine::join_group(const Gid& group) {
  if (!quotas_.multicast_groups.take()) return ENOMEM;
  const int error = group_link(parts_.links).join_group(group);
  if (error != 0) quotas_.multicast_groups.give_back();
  return error;
}

PortCounters Engine::counted() {
  PortCounters all;
  const Section section(*this);
  all.transport = hca_.counters();
  for (transport::LinkId id = 0; id < transport::kLinkCount; ++id) {
    if (link(id) != nullptr) all.links[id] = link(id)->counters();
  }
  return parts_.counters == nullptr ? all : difference(all, parts_.counters->before());
}

bool Engine::has_raw_packets() const {
  const Datapath* const uplink = link(transport::kUplink);
  return uplink != nullptr && uplink->capabilities().max_frame_bytes != 0;
}

// A link with a flow is looked at as one with a path.
void Engine::Section::insert(steering::Flow& flow) {
  engine_.hca_.flows().insert(flow);
  ++engine_.uses_[transport::kUplink].paths;
  engine_.lend_frames();
}

void Engine::Section::erase(steering::Flow& flow) {
  engine_.hca_.flows().erase(flow);
  --engine_.uses_[transport::kUplink].paths;
  engine_.lend_frames();
}

void Engine::lend_frames() {
  using Frames = Datapath::Frames;
  const steering::FlowTable& flows = hca_.flows();
  const Frames wanted = flows.is_empty()       ? Frames::kNone
                        : flows.has_sniffers() ? Frames::kAll
                                               : Frames::kForeign;
  if (wanted == frames_lent_) return;
  frames_lent_ = wanted;
  link(transport::kUplink)->lend_frames(wanted);
}

void Engine::Section::close_path(Path& path, std::uint8_t link) {
  engine_.link(link)->close_path(path);
  --engine_.uses_[link].paths;
}

transport::Peer* Engine::Section::use_peer(const Path& path, std::uint8_t link, Qpn destination,
                                           PeerEntry*& spare) {
  if (engine_.link(link)->capabilities().peer_window_bytes == 0) return nullptr;
  return &engine_.peers_.use(path.destination, qpn_block(destination), spare);
}

PeerEntry* Engine::Section::release_peer(transport::Peer* peer) {
  return peer == nullptr ? nullptr : engine_.peers_.release(*peer);
}

}  // namespace uroce::engine
