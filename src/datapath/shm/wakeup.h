// SPDX-License-Identifier: BSD-2-Clause
// Going to sleep and being woken, without a fence on the sender's way.
//
//   receiver: asleep = 1; barrier on every CPU; look at the rings once more; sleep
//   sender:   write the record; asleep? -> take the 1 away (one of many does) and send a datagram
//
// Each side stores and then loads what the other stored, which wants a full fence on both; but the
// sender passes here at every burst, and a fence makes it wait until its record has reached the
// other core. membarrier(2) lets the receiver, which is about to sleep anyway, make the fence for
// both. Where the kernel or a filter refuses it, the mailbox asks the senders for theirs.
#pragma once

#include <atomic>
#include <cstdint>

#include "datapath/directory/table.h"

namespace uroce::datapath::shm {

class SleepState {
 public:
  SleepState(Mailbox& mailbox, std::uint64_t generation);

  // All stores of senders that do not see it are visible when this returns.
  void fall_asleep();
  void wake_up();
  [[nodiscard]] bool is_marked() const { return marked_; }

 private:
  Mailbox& mailbox_;
  std::uint64_t generation_;
  bool marked_ = false;
  bool has_membarrier_;
};

// What a sender needs to know of a receiver: true if it sleeps and it is for us to wake it.
class Sleeper {
 public:
  Sleeper() = default;
  Sleeper(Mailbox& mailbox, std::uint64_t generation);
  [[nodiscard]] bool must_be_woken();

 private:
  Mailbox* mailbox_ = nullptr;
  std::uint64_t asleep_word_ = 0;
  bool can_be_fenced_ = false;  // this process takes part in membarrier
};

}  // namespace uroce::datapath::shm
