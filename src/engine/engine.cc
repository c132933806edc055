// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "engine/placement.h"
#include "engine/worker.h"

namespace uroce::engine {
namespace {

using transport::LinkId;

constexpr std::size_t kReceiveBurstsPerTurn = 8;
constexpr std::size_t kTransmitBurstsPerTurn = 16;
// Completions wait for the responses that they imply, but not for ever: a peer that takes nothing
// any more must not keep the application from its other peers' messages.
constexpr Duration kHoldCompletionsAtMost = milliseconds(1);
// What a turn left unfinished (a full ring refused it, or it was too much) is taken up again this
// soon, should nobody take a turn before.
constexpr Duration kFinishWithin = milliseconds(1);
// A link without open paths still has strangers and control traffic; and a system call per turn
// would cost those who use the other link dearly.
constexpr std::uint32_t kLookEveryWithoutPaths = 1024;
constexpr std::uint32_t kLooksInVainUntilRare = 64;
constexpr std::uint32_t kLookEveryWhenRare = 8;
// Packets behind gaps, of all QPs: 8 MiB, of which only what was needed once is there.
constexpr std::size_t kStashedPacketsMax = 2048;

transport::LinkFacts facts_of(const DatapathCapabilities& c) {
  return {.max_run_packets = c.max_run_packets,
          .max_run_bytes = c.max_run_bytes,
          .peer_window_bytes = c.peer_window_bytes,
          .trusted_memory = c.trusted_memory,
          .max_frame_bytes = c.max_frame_bytes};
}

Instant sum_or_never(Instant t, Duration d) {
  return d.ns < Instant::never().ns - t.ns ? t + d : Instant::never();
}

}  // namespace

Engine::Engine(EngineParts parts, const Upcalls& upcalls)
    : hca_(parts.counters != nullptr ? parts.counters->counters().transport : own_counters_),
      parts_(std::move(parts)),
      upcalls_(upcalls),
      qpns_(*parts_.blocks),
      region_slots_(hca_.regions()),
      demux_memory_(transport::kQpBlockCount * sizeof(transport::QpBlock*)),
      deadline_memory_(kQpMax * sizeof(transport::Timer*)),
      early_deadline_memory_(kQpMax * sizeof(transport::Timer*)),
      stash_entry_memory_(kStashedPacketsMax * sizeof(transport::StashEntry)),
      stash_slot_memory_(kStashedPacketsMax * sizeof(transport::StashSlot)),
      kick_descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  hca_.demux().set_memory(demux_memory_.as<transport::QpBlock*>());
  hca_.deadlines().set_memory(deadline_memory_.as<transport::Timer*>());
  hca_.early_deadlines().set_memory(early_deadline_memory_.as<transport::Timer*>());
  hca_.stash().set_memory(stash_entry_memory_.as<transport::StashEntry>(),
                          stash_slot_memory_.as<transport::StashSlot>());
  hca_.set_oracle(this);
  hca_.regions().set_pager(&pager_);
  for (LinkId id = 0; id < transport::kLinkCount; ++id) {
    if (link(id) == nullptr) continue;
    UROCE_CHECK(link(id)->capabilities().max_run_bytes <= memory::kNullBytesMax);
    hca_.set_link(id, facts_of(link(id)->capabilities()));
    has_silent_link_ |= link(id)->wakeup_descriptor() < 0;
  }
  worker_ = Worker::start(*this, parts_.port->device().name);
}

Engine::~Engine() {
  worker_.reset();
  if (kick_descriptor_ >= 0) close(kick_descriptor_);
}

// --- The application's threads -------------------------------------------------------------------

void Engine::progress() {
  if (!lock_.try_lock()) return;
  const Instant now = clock_.now();
  const bool was_busy = take_turn(now, Datapath::Turn::kApplication) != 0;
  // A turn over many packets takes long, and the application may look for the next at once.
  last_inline_turn_ns_.store((was_busy ? clock_.now() : now).ns, std::memory_order_relaxed);
  leave();
}

void Engine::ring(Doorbell& bell) {
  if (!lock_.try_lock()) {
    doorbells_.ring(bell);
    // The holder may have looked before we rang.
    if (!lock_.try_lock()) return;
    begin_turn(Datapath::Turn::kApplication);
    send(clock_.now(), false);
  } else {
    begin_turn(Datapath::Turn::kApplication);
    const Instant now = clock_.now();
    hca_.on_doorbell(now, *bell.qp);
    send(now, false);
  }
  leave();
}

void Engine::leave() {
  lock_.unlock();
  // Somebody may have rung between our last look and now, and failed to take the lock.
  while (!doorbells_.is_empty()) {
    if (!lock_.try_lock()) return;
    send(clock_.now(), false);
    lock_.unlock();
  }
}

void Engine::application_will_sleep(transport::CompletionQueue& armed) {
  if (is_abandoned()) return;
  lock_.lock();
  policy_.application_will_sleep();
  set_application_waits(true);
  // What cannot be armed has something to give already; then the helper looks, not we: the
  // application polls once more before it sleeps.
  if (!armed_ && !arm()) kick();
  hca_.announce_missed(armed);
  if (hca_.has_news()) tell_application();
  // As long as the application polls, its turns see to early retransmission.
  mind_the_worker(hca_.next_early_deadline());
  leave();
}

void Engine::set_application_waits(bool waits) {
  for (const auto& datapath : parts_.links) {
    if (datapath != nullptr) datapath->application_waits(waits);
  }
}

// --- A turn --------------------------------------------------------------------------------------

void Engine::begin_turn(Datapath::Turn turn) {
  for (const auto& datapath : parts_.links) {
    if (datapath != nullptr) datapath->begin_turn(turn);
  }
}

std::size_t Engine::take_turn(Instant now, Datapath::Turn turn) {
  begin_turn(turn);
  const std::size_t packets = receive(now);
  if (std::min(hca_.next_deadline(), hca_.next_early_deadline()) <= now) hca_.on_timer(now);
  if (packets != 0 || has_something_to_send() || hca_.next_announcement() <= now) {
    send(now, true);
  } else {
    for (const auto& datapath : parts_.links) {
      if (datapath != nullptr) datapath->on_turn(now);
    }
  }
  return packets;
}

// Most turns of a program that polls find nothing, and what arrives waits for the end of one.
bool Engine::has_something_to_send() const {
  return !hca_.is_quiet() || !doorbells_.is_empty() || more_to_send_ || frames_were_refused_ ||
         held_since_ != Instant::never();
}

std::size_t Engine::receive(Instant now) {
  std::size_t packets = 0;
  for (LinkId id = 0; id < transport::kLinkCount; ++id) {
    if (link(id) != nullptr && is_worth_a_look(id)) packets += receive_from(now, id);
  }
  return packets;
}

bool Engine::is_worth_a_look(LinkId id) {
  LinkUse& use = uses_[id];
  const LinkUse& other = uses_[1 - id];
  std::uint32_t every = 1;
  if (use.paths == 0) {
    every = kLookEveryWithoutPaths;
  } else if (use.looks_in_vain > kLooksInVainUntilRare && other.looks_in_vain == 0) {
    every = kLookEveryWhenRare;
  }
  if (++use.turns_unlooked < every) return false;
  use.turns_unlooked = 0;
  return true;
}

std::size_t Engine::receive_from(Instant now, LinkId id) {
  Datapath& datapath = *link(id);
  std::size_t packets = 0;
  for (std::size_t burst = 0; burst < kReceiveBurstsPerTurn; ++burst) {
    const std::size_t n = datapath.rx_burst(received_);
    if (n == 0) break;
    hca_.on_packets(now, id, {received_.data(), n});
    packets += n;
    if (n < received_.size()) break;
  }
  LinkUse& use = uses_[id];
  use.looks_in_vain = packets == 0 ? use.looks_in_vain + 1 : 0;
  return packets;
}

void Engine::send(Instant now, bool retry_refused) {
  doorbells_.take_all([&](transport::Qp& qp) { hca_.on_doorbell(now, qp); });
  if (retry_refused) frames_were_refused_ = false;
  more_to_send_ = false;
  for (LinkId id = 0; id < transport::kLinkCount; ++id) {
    Datapath* datapath = link(id);
    if (datapath == nullptr) continue;
    if (retry_refused) hca_.retry_refused(id);
    bool may_have_more = true;
    for (std::size_t bursts = 0; may_have_more && bursts < kTransmitBurstsPerTurn; ++bursts) {
      burst_.clear();
      may_have_more = hca_.poll_transmit(now, id, burst_) && burst_.is_full();
      if (burst_.empty() || datapath->tx_burst(burst_.frames()) == 0) continue;
      frames_were_refused_ = true;
      hca_.on_refused(now, burst_.frames());
    }
    more_to_send_ |= may_have_more;
    datapath->on_turn(now);
  }
  publish(now);
  more_to_send_ |= hca_.has_frames_due();
  mind_the_worker(next_look(now));
}

void Engine::publish(Instant now) {
  if (hca_.has_responses_due()) {
    if (held_since_ == Instant::never()) held_since_ = now;
    if (now - held_since_ < kHoldCompletionsAtMost) return;
  }
  held_since_ = Instant::never();
  hca_.publish_completions(timestamped_cqs_ == 0 ? now : clock_.now());
  if (hca_.has_news()) tell_application();
}

void Engine::tell_application() {
  while (transport::CompletionQueue* cq = hca_.poll_notification()) {
    upcalls_.completion(*cq);
    told_application_ = true;
    set_application_waits(false);
  }
  transport::Event event;
  while (hca_.poll_event(event)) {
    upcalls_.event(event);
    told_application_ = true;
  }
}

bool Engine::peer_stalled(LinkId id, const Path& path) const {
  return link(id)->peer_stalled(path);
}

// --- The helper thread ---------------------------------------------------------------------------

Instant Engine::next_look(Instant now) const {
  const bool unfinished = more_to_send_ || frames_were_refused_ || held_since_ != Instant::never();
  Instant next = std::min(hca_.next_deadline(), hca_.next_announcement());
  if (unfinished) next = std::min(next, now + kFinishWithin);
  for (const auto& datapath : parts_.links) {
    if (datapath != nullptr) next = std::min(next, datapath->next_look());
  }
  return next;
}

void Engine::mind_the_worker(Instant next) {
  if (next >= worker_sleeps_until_) return;
  worker_sleeps_until_ = next;
  kick();
}

void Engine::kick() {
  const posix::Uncancelled whole;
  const std::uint64_t one = 1;
  // It fails only when the counter is full, and then the helper is awake.
  static_cast<void>(!write(kick_descriptor_, &one, sizeof(one)));
}

bool Engine::arm() {
  const posix::Uncancelled whole;
  for (LinkId id = 0; id < transport::kLinkCount; ++id) {
    if (link(id) == nullptr || link(id)->arm_wakeup()) continue;
    for (LinkId armed = 0; armed <= id; ++armed) {
      if (link(armed) != nullptr) link(armed)->disarm_wakeup();
    }
    return false;
  }
  return armed_ = true;
}

void Engine::disarm() {
  if (!armed_) return;
  armed_ = false;
  for (const auto& datapath : parts_.links) {
    if (datapath != nullptr) datapath->disarm_wakeup();
  }
}

Engine::Look Engine::look(SleepPolicy::Cause woken_by) {
  const std::int64_t last_inline = last_inline_turn_ns_.load(std::memory_order_relaxed);
  if (!lock_.try_lock()) return {.contended = true};
  const Instant now = clock_.now();
  worker_sleeps_until_ = {};
  disarm();
  told_application_ = false;
  Look look;
  look.packets = take_turn(now, Datapath::Turn::kHelper);
  look.application_told = told_application_;
  look.next = policy_.after({.woken_by = woken_by,
                             .found_work = look.packets != 0,
                             .since_inline_turn = now - Instant{last_inline}});
  leave();
  return look;
}

std::optional<Duration> Engine::prepare_sleep(Duration at_most) {
  lock_.lock();
  const Instant now = clock_.now();
  const bool ticking = policy_.state() == SleepPolicy::State::kTicking;
  // The next look is at every link, however rarely the application's turns look at it.
  for (LinkUse& use : uses_) use.turns_unlooked = kLookEveryWithoutPaths;
  std::optional<Duration> sleep;
  if (ticking || (!more_to_send_ && (armed_ || arm()))) {
    const Duration longest = ticking ? SleepPolicy::kTick : at_most;
    const Instant until =
        std::min({next_look(now), hca_.next_early_deadline(), sum_or_never(now, longest)});
    worker_sleeps_until_ = until;
    sleep = until - now;
  }
  leave();
  return sleep;
}

std::array<int, transport::kLinkCount> Engine::wakeup_descriptors() const {
  std::array<int, transport::kLinkCount> descriptors{-1, -1};
  for (LinkId id = 0; id < transport::kLinkCount; ++id) {
    if (link(id) != nullptr) descriptors[id] = link(id)->wakeup_descriptor();
  }
  return descriptors;
}

void Engine::on_port_change() {
  const std::vector<PortEvent> events = parts_.port->refresh();
  if (events.empty()) return;
  lock_.lock();
  for (const PortEvent event : events) {
    for (PortListener* l = listeners_.front(); l != nullptr; l = listeners_.next(*l)) {
      l->on_port_event(event);
    }
  }
  leave();
}

void Engine::abandon_in_child() {
  abandoned_.store(true, std::memory_order_relaxed);
  lock_.abandon();
  for (const auto& datapath : parts_.links) {
    if (datapath != nullptr) datapath->abandon_in_child();
  }
  if (parts_.counters != nullptr) parts_.counters->abandon_in_child();
  parts_.blocks->abandon_in_child();
  parts_.port->abandon_in_child();
  if (kick_descriptor_ >= 0) close(kick_descriptor_);
  kick_descriptor_ = -1;
}

}  // namespace uroce::engine
