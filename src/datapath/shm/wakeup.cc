// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/wakeup.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uroce::datapath::shm {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Once per process is enough, more does no harm. A forked child inherits it.
bool take_part_in_membarrier() { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

// Every store before it is visible before any load after it.
void full_fence() {
#if defined(__SANITIZE_THREAD__)
  std::atomic<int> word = 0;  // GCC's thread sanitizer knows no fences
  word.exchange(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

SleepState::SleepState(Mailbox& mailbox, std::uint64_t generation)
    : mailbox_(mailbox), generation_(generation), has_membarrier_(take_part_in_membarrier()) {
  mailbox_.senders_must_fence.store(has_membarrier_ ? 0 : 1, std::memory_order_release);
}

void SleepState::fall_asleep() {
  marked_ = true;
  mailbox_.sleep.store(generation_ * 2 + 1, std::memory_order_seq_cst);
  if (!has_membarrier_ || !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {
    full_fence();
  }
}

void SleepState::wake_up() {
  marked_ = false;
  if (mailbox_.sleep.load(std::memory_order_relaxed) != generation_ * 2) {
    mailbox_.sleep.store(generation_ * 2, std::memory_order_relaxed);
  }
}

Sleeper::Sleeper(Mailbox& mailbox, std::uint64_t generation)
    : mailbox_(&mailbox),
      asleep_word_(generation * 2 + 1),
      can_be_fenced_(take_part_in_membarrier()) {}

bool Sleeper::must_be_woken() {
  if (!can_be_fenced_ || mailbox_->senders_must_fence.load(std::memory_order_relaxed) != 0) {
    full_fence();
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  std::uint64_t word = mailbox_->sleep.load(std::memory_order_relaxed);
  return word == asleep_word_ && mailbox_->sleep.compare_exchange_strong(word, asleep_word_ - 1);
}

}  // namespace uroce::datapath::shm
