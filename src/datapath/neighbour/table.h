// SPDX-License-Identifier: BSD-2-Clause
// Who has which MAC address: next hops, their state, and when to ask for them again. Pure: time
// comes in, what to ask comes out (RFC 4861, 7.3, much reduced, serves ARP as well).
//
//            want()            answer
//   free ------------> incomplete -----> reachable --time--> stale (still used, asked again)
//                       ^   asked again and again                |
//                       +----------- three questions unanswered -+
//
// An answer changes only entries that somebody wanted, so strangers cannot fill the table. It is
// bounded; entries are pinned by the paths that use them and kept after that until their place is
// needed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "datapath/neighbour/ethernet.h"
#include "uroce/ids.h"
#include "uroce/time.h"

namespace uroce::datapath {

class NeighbourTable {
 public:
  static constexpr std::uint32_t kCapacity = 1024;
  static constexpr std::uint8_t kQuestionsWhileStale = 3;

  // The pause between questions doubles from the first to the last. What is to be sent waits for an
  // answer that long, or is given up with the first question after that.
  struct Timing {
    Duration reachable_for = milliseconds(30'000);
    Duration first_pause = milliseconds(50);
    Duration last_pause = milliseconds(1'000);
    Duration expected_for = milliseconds(1'000);
  };

  struct Question {
    std::uint32_t index;
    Gid address;
    const MacAddress* last_known;  // null: nothing is known, ask everybody
  };

  explicit NeighbourTable(const Timing& timing) : timing_(timing) {}

  // The entry of `address`, pinned; nothing when every place is pinned already.
  [[nodiscard]] std::optional<std::uint32_t> want(const Gid& address);
  void release(std::uint32_t index);

  // Null while the address has not been resolved.
  [[nodiscard]] const MacAddress* find(std::uint32_t index) const {
    const Entry& entry = entries_[index];
    return entry.state == State::kReachable || entry.state == State::kStale ? &entry.mac : nullptr;
  }

  // Not resolved, and not asked for so long that nobody will answer.
  [[nodiscard]] bool is_expected(std::uint32_t index) const {
    const Entry& entry = entries_[index];
    return entry.state == State::kIncomplete && entry.is_expected;
  }

  // Somebody says that `address` is at `mac`.
  void on_answer(Instant now, const Gid& address, const MacAddress& mac);

  // `address` is still where it was last known to be, if it was.
  void on_confirmation(Instant now, const Gid& address);

  // The next question that is due, which then counts as asked. Call until there is none.
  [[nodiscard]] std::optional<Question> poll_question(Instant now);

  // Not earlier than this will there be a question.
  [[nodiscard]] Instant next_deadline() const { return next_deadline_; }

 private:
  enum class State : std::uint8_t { kFree, kIncomplete, kReachable, kStale };
  struct Entry {
    Gid address;
    MacAddress mac;
    State state = State::kFree;
    bool is_expected = true;
    std::uint8_t questions = 0;  // unanswered ones
    std::uint32_t users = 0;
    Duration pause;  // after the next question
    Instant ask_at;
    Instant first_asked_at{};  // of those without an answer
  };

  [[nodiscard]] Entry* find_entry(const Gid& address);
  void ask_afresh(Entry& entry) const;
  void set_reachable(Instant now, Entry& entry);
  [[nodiscard]] Entry* free_place();
  void count_question(Instant now, Entry& entry) const;
  void look_again_at(Instant at) { next_deadline_ = at < next_deadline_ ? at : next_deadline_; }

  Timing timing_;
  std::array<Entry, kCapacity> entries_;
  std::uint32_t used_ = 0;  // entries from here on were never used
  Instant next_deadline_ = Instant::never();
};

}  // namespace uroce::datapath
