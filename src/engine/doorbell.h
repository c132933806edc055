// SPDX-License-Identifier: BSD-2-Clause
// How a thread that found the shard's lock taken tells the holder that there is work: it pushes the
// QP's doorbell on a lock-free stack, tries the lock once more, and leaves. The holder empties the
// stack before it lets go and looks again after it has let go, so one of the two sees it.
#pragma once

#include <atomic>

namespace uroce::transport {
struct Qp;
}

namespace uroce::engine {

// One per QP; on the stack at most once.
struct Doorbell {
  transport::Qp* qp = nullptr;
  std::atomic<bool> rung{false};
  Doorbell* next = nullptr;
};

class DoorbellStack {
 public:
  // Any thread.
  void ring(Doorbell& bell) {
    if (bell.rung.exchange(true, std::memory_order_acq_rel)) return;
    Doorbell* top = top_.load(std::memory_order_relaxed);
    do {
      bell.next = top;
    } while (!top_.compare_exchange_weak(top, &bell, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
  }
  [[nodiscard]] bool is_empty() const { return top_.load(std::memory_order_seq_cst) == nullptr; }

  // The holder: calls `visit(qp)` for each that was rung. A bell is reset before its QP is looked
  // at, so that a post during the visit rings again.
  template <typename Visit>
  void take_all(Visit visit) {
    if (top_.load(std::memory_order_relaxed) == nullptr) [[likely]]
      return;
    Doorbell* bell = top_.exchange(nullptr, std::memory_order_acq_rel);
    while (bell != nullptr) {
      Doorbell* next = bell->next;
      bell->rung.store(false, std::memory_order_seq_cst);
      visit(*bell->qp);
      bell = next;
    }
  }

 private:
  alignas(64) std::atomic<Doorbell*> top_{nullptr};
};

}  // namespace uroce::engine
