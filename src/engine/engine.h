// SPDX-License-Identifier: BSD-2-Clause
// The engine of one device in one process, shared by all contexts of that device: the transport
// core with the memory, the links and the lock that it needs. It makes progress in whichever thread
// is at hand: the application's, inside ibv_post_send and ibv_poll_cq, or the helper thread
// (worker.h), when nobody polls.
//
//   engine.ring(bell);            // something was posted: sent at once, if the lock is free
//   engine.progress();            // a turn: receive, timers, transmit, publish
//   { Engine::Section section(engine); section.hca().destroy_qp(qp); }   // control verbs
//
// A turn has a bounded length, and what it could not finish the next one does. Completions become
// visible when the responses that they imply have left, because an application may exit right after
// it saw its last one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/list.h"
#include "datapath/directory/directory.h"
#include "engine/clock.h"
#include "engine/counter_row.h"
#include "engine/doorbell.h"
#include "engine/key_source.h"
#include "engine/mapped_range.h"
#include "engine/peers.h"
#include "engine/port.h"
#include "engine/qpn_allocator.h"
#include "engine/quota.h"
#include "engine/region_slots.h"
#include "engine/shard_lock.h"
#include "engine/sleep_policy.h"
#include "engine/xrc_domains.h"
#include "engine/zeroed_memory.h"
#include "posix/uncancelled.h"
#include "transport/hca.h"
#include "uroce/datapath.h"

namespace uroce::engine {

class Worker;

// What the engine tells the layer above, under the shard's lock: so neither may wait, allocate or
// call back, and the object cannot go away meanwhile.
struct Upcalls {
  void (*completion)(transport::CompletionQueue& cq) = nullptr;  // its armed notification is due
  void (*event)(const transport::Event& event) = nullptr;
};

// Hears of the port's changes, under the shard's lock as well; one per context.
class PortListener {
 public:
  virtual void on_port_event(PortEvent event) = 0;
  ListHook hook;

 protected:
  ~PortListener() = default;
};

// What an engine is made of; links.cc makes them from the configuration, tests from fakes. Null
// links are not there.
struct EngineParts {
  std::unique_ptr<BlockSource> blocks;
  datapath::Directory* directory = nullptr;  // the blocks', where they come from one
  // Whose number is its slot in the directory, so it goes before that; the links count in it.
  // Null: nobody else sees what is counted.
  std::unique_ptr<CounterRow> counters;
  std::array<std::unique_ptr<Datapath>, transport::kLinkCount> links;
  std::unique_ptr<Port> port;
};

class Engine final : private transport::HostOracle {
 public:
  Engine(EngineParts parts, const Upcalls& upcalls);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Any thread; never waits -----------------------------------------------------------------
  // A turn, unless somebody is at it.
  void progress();
  // The QP has new work requests.
  void ring(Doorbell& bell);
  // ibv_req_notify_cq: from now on arrivals wake the helper.
  void application_will_sleep(transport::CompletionQueue& armed);
  // In a forked child of the process that opened it: nothing works any more, nothing hangs.
  [[nodiscard]] bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }

  // --- Control verbs; any thread, waits for the lock -------------------------------------------
  class Section;
  [[nodiscard]] std::optional<Qpn> allocate_qpn();
  // QP1, of which a process has one a device; nothing while it has one.
  [[nodiscard]] std::optional<Qpn> allocate_management_qpn();
  void release_qpn(Qpn number);
  // Fills in the key. 0 or an errno.
  [[nodiscard]] int insert_region(memory::MemoryRegion& region);
  // Afterwards nothing refers to its memory. False: windows are bound to it, or there is none.
  [[nodiscard]] bool erase_region(std::uint32_t key);
  // Unbound, if it was bound; whatever variant its key has by now.
  void erase_window(RKey index);
  // Before a QP is destroyed: what it owes is sent; where its path has lost packets, the last
  // acknowledgement may be lost as well, and the peer asks for it again. Returns when it has been
  // silent for a while.
  void linger(const transport::Qp& qp);
  [[nodiscard]] PdId new_pd();
  void add_listener(PortListener& listener);
  void remove_listener(PortListener& listener);
  [[nodiscard]] Port& port() { return *parts_.port; }
  [[nodiscard]] Quotas& quotas() { return quotas_; }
  [[nodiscard]] XrcDomains& xrc_domains() { return xrc_domains_; }
  [[nodiscard]] Datapath* link(transport::LinkId id) const { return parts_.links[id].get(); }
  // Null in tests without one.
  [[nodiscard]] datapath::Directory* directory() { return parts_.directory; }
  // The uplink takes and lends whole Ethernet frames.
  [[nodiscard]] bool has_raw_packets() const;
  // Since it was opened.
  [[nodiscard]] PortCounters counted();

  // --- The helper thread ----------------------------------------------------------------------
  struct Look {
    std::size_t packets = 0;
    bool contended = false;         // somebody else is at it
    bool application_told = false;  // a completion channel or event was written to
    SleepPolicy::State next = SleepPolicy::State::kArmed;
  };
  // A turn of the helper's.
  Look look(SleepPolicy::Cause woken_by);
  // Arms what is to wake it. How long to sleep now; nothing when something has arrived meanwhile.
  [[nodiscard]] std::optional<Duration> prepare_sleep(Duration at_most);
  [[nodiscard]] int kick_descriptor() const { return kick_descriptor_; }
  // The descriptors to wait for; -1 where there is none.
  [[nodiscard]] std::array<int, transport::kLinkCount> wakeup_descriptors() const;
  // A link that can only be looked at by timer.
  [[nodiscard]] bool has_silent_link() const { return has_silent_link_; }
  void on_port_change();

  void abandon_in_child();

 private:
  struct LinkUse {
    std::uint32_t paths = 0;  // open ones
    std::uint32_t turns_unlooked = 0;
    std::uint32_t looks_in_vain = 0;
  };

  [[nodiscard]] bool peer_stalled(transport::LinkId link, const Path& path) const override;
  [[nodiscard]] bool is_own_address(const Gid& source) const override {
    return parts_.port->is_own_address(source);
  }

  [[nodiscard]] int join_group(const Gid& group);
  [[nodiscard]] bool make_room_for_regions();
  void lend_frames();
  void begin_turn(Datapath::Turn turn);
  std::size_t take_turn(Instant now, Datapath::Turn turn);
  std::size_t receive(Instant now);
  std::size_t receive_from(Instant now, transport::LinkId id);
  [[nodiscard]] bool is_worth_a_look(transport::LinkId id);
  [[nodiscard]] bool has_something_to_send() const;
  void send(Instant now, bool retry_refused);
  void publish(Instant now);
  void tell_application();
  void set_application_waits(bool waits);
  // Wakes the helper if it would sleep longer.
  void mind_the_worker(Instant next);
  [[nodiscard]] Instant next_look(Instant now) const;
  void leave();
  [[nodiscard]] bool arm();
  void disarm();
  void kick();

  alignas(64) ShardLock lock_;
  transport::Counters own_counters_;  // where nobody else sees them
  transport::Hca hca_;
  transport::TxBurst burst_;
  std::array<RxPacket, 32> received_;
  TurnClock clock_;
  std::array<LinkUse, transport::kLinkCount> uses_;
  Datapath::Frames frames_lent_ = Datapath::Frames::kNone;  // whole ones, by the uplink
  bool frames_were_refused_ = false;
  bool more_to_send_ = false;
  bool told_application_ = false;
  std::uint32_t timestamped_cqs_ = 0;
  Instant held_since_ = Instant::never();  // completions wait for responses since then
  bool armed_ = false;
  SleepPolicy policy_;
  Instant worker_sleeps_until_{};  // in the past: it is awake
  Peers peers_;
  List<PortListener, &PortListener::hook> listeners_;

  DoorbellStack doorbells_;
  alignas(64) std::atomic<std::int64_t> last_inline_turn_ns_{0};
  std::atomic<bool> abandoned_{false};
  std::atomic<std::uint32_t> pds_{0};

  EngineParts parts_;
  Upcalls upcalls_;
  std::mutex control_;  // numbers and memory; never taken under the shard's lock
  QpnAllocator qpns_;
  std::unique_ptr<transport::QpBlock> management_block_;  // once there was a QP1
  bool has_management_qp_ = false;
  RegionSlots region_slots_;
  OnDemandPager pager_;
  KeySource keys_;
  Quotas quotas_;
  XrcDomains xrc_domains_;
  ZeroedMemory demux_memory_, deadline_memory_, early_deadline_memory_;
  ZeroedMemory stash_entry_memory_, stash_slot_memory_;
  int kick_descriptor_ = -1;
  bool has_silent_link_ = false;
  std::unique_ptr<Worker> worker_;
};

// The shard's lock, held. What was made due inside leaves when it ends. Not while memory is
// allocated or freed: declare what owns memory before the section.
class Engine::Section {
 public:
  explicit Section(Engine& engine);
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  [[nodiscard]] transport::Hca& hca() { return engine_.hca_; }
  [[nodiscard]] Instant now() const { return now_; }

  // `member` joins its group. 0, ENOMEM when there are too many groups or members, or an
  // errno of the link
  // that multicast comes from.
  [[nodiscard]] int attach(transport::MulticastMember& member);
  void detach(transport::MulticastMember& member);

  // Frames that the flow matches are its target's. The first and the last flow of a kind tell the
  // link what to lend.
  void insert(steering::Flow& flow);
  void erase(steering::Flow& flow);

  // So many completion queues more (or fewer) whose completions are timed exactly.
  void count_timestamped(int change) {
    engine_.timestamped_cqs_ += static_cast<std::uint32_t>(change);
  }

  // Nobody's doorbell is on the stack any more, unless somebody rings now.
  void take_doorbells();

  // Opens the path on the link that reaches `destination` (placement.h), and sets `link`. 0, or
  // an errno.
  [[nodiscard]] int open_path(Path& path, Qpn destination, std::uint8_t& link);
  void close_path(Path& path, std::uint8_t link);
  // The window of the process behind an open path; null where the link has none. `spare` is used
  // up where the window is new.
  [[nodiscard]] transport::Peer* use_peer(const Path& path, std::uint8_t link, Qpn destination,
                                          PeerEntry*& spare);
  // The entry to free after the section, or null.
  [[nodiscard]] PeerEntry* release_peer(transport::Peer* peer);

 private:
  const posix::Uncancelled whole_;  // begun before the lock is taken, ended after
  Engine& engine_;
  Instant now_;
};

}  // namespace uroce::engine
