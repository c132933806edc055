// SPDX-License-Identifier: BSD-2-Clause
// The sending side towards one other engine (or our own): its ring, and everything that must be
// known about whoever reads it: has it got the ring, does it sleep, does it live.
//
// A peer that has died swallows what is sent: the transport's own retries then end as they do on
// any network. A peer that is merely slow makes the ring full.
#pragma once

#include <cstdint>

#include "datapath/directory/directory.h"
#include "datapath/shm/control_socket.h"
#include "datapath/shm/ring.h"
#include "datapath/shm/ring_memory.h"
#include "datapath/shm/wakeup.h"
#include "uroce/packet.h"
#include "uroce/time.h"

namespace uroce::datapath::shm {

class Outbound {
 public:
  Outbound(Directory& directory, Duration wake_after)
      : directory_(directory), wake_after_(wake_after) {}

  // Makes the ring and offers it. 0 or an errno; EHOSTUNREACH: nobody there takes rings.
  [[nodiscard]] int open(SlotHandle peer, std::uint32_t ring_bytes);
  // Gives the ring up; what is in it stays the peer's to read.
  void close();
  [[nodiscard]] bool is_open() const { return memory_.data_bytes() != 0; }

  enum class Taken : std::uint8_t { kYes, kRingIsFull, kPeerIsGone };
  [[nodiscard]] Taken send(const TxFrame& frame) {
    if (is_gone_) return Taken::kPeerIsGone;
    return writer_.write(frame) ? Taken::kYes : Taken::kRingIsFull;
  }
  // Before the frames of a burst: notices that the peer has left; a load.
  void check_presence() {
    if (!directory_.is_present(peer_)) is_gone_ = true;
  }
  // After the frames of a burst. True if the peer slept and we woke it: a system call.
  bool wake_if_asleep();

  // Looks whether the peer reads, and wakes it where it is awake by its own word and reads nothing
  // for `wake_after` (its program computes); the longer that lasts the seldomer. Returns false when
  // all is read and there is nothing to watch.
  struct Watched {
    bool is_unread = false;
    bool has_woken = false;
  };
  [[nodiscard]] Watched watch(Instant now);
  [[nodiscard]] bool is_watched() const { return is_watched_; }
  void begin_watch() {
    is_watched_ = true;
    next_look_ = {};
  }
  // The peer lives, is not stopped, and has not read what we sent. One that does not take our ring
  // (it has no descriptor or no memory left) is so for a while only: then retries count.
  [[nodiscard]] bool is_stalled();
  // After the frames of a burst of the helper's, which has time: true if the peer's application has
  // polled since we last asked and does not wait for us. Then it is not woken now but, should it
  // not read by itself, at next_wake_up().
  [[nodiscard]] bool reads_by_itself();
  [[nodiscard]] Instant next_wake_up() const;
  // For a sender that goes to sleep and watches no more. True if the peer had to be woken.
  bool wake_if_unread();

  [[nodiscard]] SlotHandle peer() const { return peer_; }
  [[nodiscard]] bool is_gone() const { return is_gone_; }

  // Bookkeeping of ShmDatapath.
  std::uint32_t path_count = 0;
  std::uint64_t touched_in_burst = 0;
  std::uint64_t refusing_in_burst = 0;

 private:
  [[nodiscard]] int offer();
  void see_to_adoption();
  [[nodiscard]] bool is_never_adopted() const;
  [[nodiscard]] Duration longest_pause() const;
  void look_whether_alive();
  void wake_anyway();
  void send_wake_up();
  void ring_bell();
  [[nodiscard]] bool find_out_whether_stalled();
  [[nodiscard]] bool is_all_read() { return writer_.refresh_head() == writer_.tail(); }

  Directory& directory_;
  const Duration wake_after_;
  SlotHandle peer_;
  RingMemory memory_;
  std::uint64_t key_ = 0;
  RingWriter writer_;
  Sleeper sleeper_;
  PeerSocket socket_;
  bool is_offered_ = false;  // false: its queue was full
  bool is_gone_ = false;
  Instant first_look_;  // at an unread ring that was not adopted

  bool is_watched_ = false;
  std::uint64_t head_seen_ = 0;
  std::uint64_t woken_for_ = 0;  // the tail when we last woke the peer
  std::uint64_t turns_seen_ = 0;
  bool is_wake_up_put_off_ = false;
  Duration pause_;
  Instant next_look_;
  Instant now_;  // of the last `watch`
  Instant stall_known_until_;
  bool is_stalled_ = false;
};

}  // namespace uroce::datapath::shm
