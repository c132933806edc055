// SPDX-License-Identifier: BSD-2-Clause
// The oracle's model of one direction of a connection: the requests posted and not finished, and
// what those finished have done to memory. A reliable connection carries requests out in order, so
// the target's memory is at any time what some number of them, and a part of the next, make of it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/arena.h"
#include "sim/oracle.h"
#include "sim/request.h"
#include "transport/completion.h"

namespace uroce::sim {

struct FlowMemory {
  Arena* local = nullptr;   // where answers to READs and atomics go
  Arena* remote = nullptr;  // the peer's
  Range target;             // what of it this flow may change
};

class Flow {
 public:
  Flow(Oracle& oracle, const FlowMemory& memory) : oracle_(oracle), memory_(memory) {}

  void open(std::uint16_t path_mtu);
  void post(Request request);
  // One that says success, or flushed after the first that failed. The first failure itself is for
  // the end to judge, which knows what may have happened.
  void on_completion(const transport::Cqe& entry);
  // Everything that was not finished is flushed by now: requests without a completion succeeded.
  void succeed_unsignaled();
  // The oldest request, of which a completion has come; null: of none.
  [[nodiscard]] const Request* find(std::uint64_t wr_id) const;

  // The message that the peer receives next; null: there is none.
  [[nodiscard]] const Request* next_received() const {
    return to_receive_.empty() ? nullptr : &to_receive_.front();
  }
  void pop_received() {
    to_receive_.pop_front();
    ++received_;
  }

  // The QP is gone, and its completions with it.
  void abandon();
  // Both QPs are gone: what is left undone may have happened or not, but in order.
  // `receiver_kept_all`: no completion of the peer's was thrown away.
  void settle(bool receiver_kept_all);
  // Nothing is open: memory is exactly what all requests make of it.
  void check_target();

  [[nodiscard]] std::size_t unreceived() const { return to_receive_.size(); }
  [[nodiscard]] bool is_idle() const { return pending_.empty(); }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool has_poison() const { return has_poison_; }
  // That were posted since it was opened.
  [[nodiscard]] std::uint32_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t succeeded() const { return succeeded_; }
  [[nodiscard]] const std::deque<Request>& pending() const { return pending_; }

 private:
  void succeed();
  void check_read(const Request& read);
  [[nodiscard]] bool may_have_read(std::uint32_t offset, std::byte value) const;
  [[nodiscard]] bool may_have_read(const Range& piece, std::uint32_t offset) const;
  void check_atomic(const Request& request);
  void check_facts(const Request& request, const transport::Cqe& entry);
  void give_up_front();
  [[nodiscard]] bool matches_some_prefix();
  [[nodiscard]] bool matches_within(const Request& request);

  Oracle& oracle_;
  FlowMemory memory_;
  std::uint16_t path_mtu_ = 256;
  std::deque<Request> pending_;
  std::vector<Request> uncertain_;  // failed, flushed or abandoned
  std::deque<Request> to_receive_;
  bool has_failed_ = false;
  bool has_poison_ = false;
  std::uint32_t messages_ = 0;
  std::uint64_t succeeded_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;  // messages that take a receive request: of ours, by them
};

// What an atomic makes of `word`.
[[nodiscard]] std::uint64_t apply_atomic(const Request& request, std::uint64_t word);
[[nodiscard]] std::uint64_t load_word(ConstBytes bytes);
void store_word(Bytes bytes, std::uint64_t word);

}  // namespace uroce::sim
