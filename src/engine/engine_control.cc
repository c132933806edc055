// SPDX-License-Identifier: BSD-2-Clause
// The engine's part of control verbs: numbers, memory regions, paths. Not on the way of a packet.
#include <cerrno>
#include <ctime>

#include "engine/engine.h"
#include "engine/placement.h"

namespace uroce::engine {
namespace {

// Three early retransmissions of a peer come within a few round trips.
constexpr Duration kLingerInSilence = milliseconds(30);
constexpr Duration kLingerAtMost = milliseconds(300);
constexpr timespec kLingerTurn{0, 200'000};

}  // namespace

std::optional<Qpn> Engine::allocate_qpn() {
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

void Engine::release_qpn(Qpn number) {
  const std::lock_guard guard(control_);
  qpns_.release(number);
}

void Engine::linger(const transport::Qp& qp) {
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
        if (!region_slots_.grow()) return ENOMEM;
        break;
    }
  }
}

void Engine::erase_region(std::uint32_t key) {
  lock_.lock();
  hca_.regions().erase(key);
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
