// SPDX-License-Identifier: BSD-2-Clause
// Completions and the ring they wait in. The core *stages* completions while it processes packets;
// the engine *publishes* them after the responses they imply were taken by the datapath, because an
// application may exit right after it saw its last completion and its peer must still get the ACK.
//
// Producer: the core, under the shard's lock. Consumer: poll_cq, serialised by verbs.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/list.h"
#include "transport/moderation.h"
#include "transport/work_request.h"
#include "uroce/time.h"

namespace uroce::transport {

namespace wc_flag {  // as ibv_wc_flags
inline constexpr std::uint8_t kGrh = 1;
inline constexpr std::uint8_t kWithImmediate = 2;
inline constexpr std::uint8_t kWithInvalidate = 8;
}  // namespace wc_flag

// What a datagram came as, told where InfiniBand has the service level: the flag that IBTA annex
// 17.4.5.1 wants in a completion has no field of its own in ibv_wc. In the form of ConnectX, which
// UCX looks for (and drops datagrams over IPv4 in its absence).
namespace packet_kind {
inline constexpr std::uint8_t kUdpIpv6 = 8 | 1;
inline constexpr std::uint8_t kUdpIpv4 = 8 | 2;
}  // namespace packet_kind

struct Cqe {
  std::uint64_t wr_id = 0;
  std::atomic<std::uint32_t>* released = nullptr;  // the queue whose slots this gives back
  std::uint32_t release_count = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t immediate = 0;  // as it was on the wire; with kWithInvalidate: the R_Key
  Qpn qpn;
  Qpn source_qpn;
  std::uint32_t vendor_error = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  std::uint8_t flags = 0;
  std::uint8_t service_level = 0;  // of a datagram: its packet_kind
};

class CompletionQueue {
 public:
  static constexpr std::uint32_t ring_slots(std::uint32_t capacity) {
    std::uint32_t slots = 1;
    while (slots < capacity) slots *= 2;
    return slots;
  }
  // `ring` holds ring_slots(capacity) entries and outlives the queue or the next set_memory.
  // `times` is as long, or empty: then nobody asks when an entry was published.
  void set_memory(std::span<Cqe> ring, std::uint32_t capacity, std::span<Instant> times = {}) {
    ring_ = ring.data();
    times_ = times.empty() ? nullptr : times.data();
    mask_ = static_cast<std::uint32_t>(ring.size()) - 1;
    capacity_ = capacity;
  }
  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }
  // IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: what does not fit is lost, and that is all.
  void ignore_overrun() { ignores_overrun_ = true; }

  // Producer. The slot of the next completion, to be filled in all its fields, in place: a copy of
  // a fresh one waits for its narrow stores. Null: overrun; the queue has lost a completion and is
  // in error from here on. `solicited`: also of one that is no success.
  [[nodiscard]] Cqe* stage(bool solicited) {
    if (staged_ - head_.load(std::memory_order_acquire) >= capacity_) {
      if (!ignores_overrun_) overrun_.store(true, std::memory_order_relaxed);
      return nullptr;
    }
    solicited_staged_ |= solicited;
    return &ring_[staged_++ & mask_];
  }
  // Any thread.
  [[nodiscard]] bool has_overrun() const { return overrun_.load(std::memory_order_relaxed); }
  // Makes staged completions visible. True: the armed notification is due; if it waits for others,
  // announcement_due() says until when.
  [[nodiscard]] bool publish(Instant now) {
    const std::uint32_t published = tail_.load(std::memory_order_relaxed);
    if (times_ != nullptr) note_time(published, now);
    tail_.store(staged_, std::memory_order_seq_cst);
    const bool solicited = solicited_staged_;
    solicited_staged_ = false;
    if (solicited) solicited_until_ = staged_;
    const bool is_due = moderation_.is_on()
                            ? moderation_.on_published(staged_ - published, solicited, arm_, now)
                            : disarm_if(arm_, solicited);
    if (is_due) announced_until_ = staged_;
    return is_due;
  }
  // Just armed: what came since the last announcement, unarmed, and was not polled is announced
  // now. IBTA 11.4.2.2 promises no more than the next completion; but devices compare with what was
  // polled, and programs (UCX) that poll, arm and sleep would else sleep over what came in between.
  [[nodiscard]] bool announce_missed() {
    if (moderation_.is_on()) return false;
    const bool only_solicited = arm_.load(std::memory_order_relaxed) == Arm::kSolicited;
    const std::uint32_t published = tail_.load(std::memory_order_relaxed);
    const std::uint32_t behind = only_solicited ? published - solicited_until_ : 0;
    const std::uint32_t unpolled = published - head_.load(std::memory_order_relaxed);
    if (behind >= unpolled || behind >= published - announced_until_) return false;
    if (!disarm_if(arm_, true)) return false;
    announced_until_ = published;
    return true;
  }
  void moderate(std::uint16_t count, Duration period) { moderation_.set(count, period); }
  [[nodiscard]] Instant announcement_due() const { return moderation_.due(); }
  // What waited is announced now; false when there is nothing to announce.
  [[nodiscard]] bool announce() {
    if (!moderation_.announce(arm_)) return false;
    announced_until_ = tail_.load(std::memory_order_relaxed);
    return true;
  }

  // Any thread, also beside a resize: nothing is to be polled now.
  [[nodiscard]] bool is_empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
  }

  // Consumer.
  [[nodiscard]] const Cqe* front() const {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    return head == tail_.load(std::memory_order_acquire) ? nullptr : &ring_[head & mask_];
  }
  // When front() was published; the epoch's begin where there are no times.
  [[nodiscard]] Instant front_time() const {
    return times_ == nullptr ? Instant{} : times_[head_.load(std::memory_order_relaxed) & mask_];
  }
  void pop() {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const Cqe& entry = ring_[head & mask_];
    if (entry.released != nullptr) {
      entry.released->fetch_add(entry.release_count, std::memory_order_release);
    }
    head_.store(head + 1, std::memory_order_release);
  }
  // A completion that was announced before, or polled, is not announced again (announce_missed).
  void arm(Arm what) {
    // kAny is not weakened by a later kSolicited.
    Arm current = arm_.load(std::memory_order_relaxed);
    while (current < what &&
           !arm_.compare_exchange_weak(current, what, std::memory_order_seq_cst)) {
    }
  }

  // Resize, purge: both sides are stopped (shard's lock and the consumer's).
  [[nodiscard]] std::uint32_t pending() const {
    return staged_ - head_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Cqe& pending_at(std::uint32_t i) const {
    return ring_[(head_.load(std::memory_order_relaxed) + i) & mask_];
  }
  // Copies what is pending into `ring` and goes on there; `capacity` >= pending(). `times` is empty
  // if and only if there were none.
  void move_to(std::span<Cqe> ring, std::uint32_t capacity, std::span<Instant> times = {});
  // Takes out the completions of a QP that is destroyed or reset, keeping the others' order. Slots
  // of its own queues go with it; those of `shared` (its SRQ's, or null) are given back.
  void purge(Qpn qpn, std::atomic<std::uint32_t>* shared);
  // Takes out those that would give slots back to a queue that is destroyed.
  void purge(const std::atomic<std::uint32_t>& released);

  ListHook dirty_hook;   // the core's list of queues with staged completions
  ListHook notify_hook;  // ... and of those whose notification is due
  ListHook delay_hook;   // ... or will be (moderation.h)
  void* user = nullptr;  // of verbs
  std::uint32_t pending_events = 0;
  bool overrun_reported = false;
  ListHook event_hook;

 private:
  // `keeps(entry)` is asked of each, in their order.
  template <typename Keeps>
  void purge_if_not(const Keeps& keeps);
  void note_time(std::uint32_t from, Instant now) {
    for (std::uint32_t i = from; i != staged_; ++i) times_[i & mask_] = now;
  }

  Cqe* ring_ = nullptr;
  Instant* times_ = nullptr;
  std::uint32_t mask_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t staged_ = 0;
  std::uint32_t announced_until_ = 0;  // of what is published
  std::uint32_t solicited_until_ = 0;  // behind the last of those
  bool solicited_staged_ = false;
  bool ignores_overrun_ = false;
  Moderation moderation_;
  std::atomic<bool> overrun_{false};
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  alignas(64) std::atomic<std::uint32_t> head_{0};
  std::atomic<Arm> arm_{Arm::kNone};
};

}  // namespace uroce::transport
