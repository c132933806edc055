// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/table.h"

#include <algorithm>
#include <span>

namespace uroce::datapath {

std::optional<std::uint32_t> NeighbourTable::want(const Gid& address) {
  Entry* entry = find_entry(address);
  if (entry == nullptr) {
    entry = free_place();
    if (entry == nullptr) return std::nullopt;
    *entry = Entry{.address = address,
                   .mac = {},
                   .state = State::kIncomplete,
                   .pause = timing_.first_pause,
                   .ask_at = {}};
  }
  // Nobody has wanted it for a while; it may be there again.
  if (entry->users == 0 && entry->state == State::kIncomplete) ask_afresh(*entry);
  ++entry->users;
  look_again_at(entry->ask_at);
  return static_cast<std::uint32_t>(entry - entries_.data());
}

void NeighbourTable::ask_afresh(Entry& entry) const {
  entry.questions = 0;
  entry.is_expected = true;
  entry.pause = timing_.first_pause;
  entry.ask_at = {};
}

void NeighbourTable::release(std::uint32_t index) {
  if (entries_[index].users > 0) --entries_[index].users;
}

void NeighbourTable::on_answer(Instant now, const Gid& address, const MacAddress& mac) {
  Entry* entry = find_entry(address);
  if (entry == nullptr || is_group(mac)) return;
  entry->mac = mac;
  set_reachable(now, *entry);
}

void NeighbourTable::on_confirmation(Instant now, const Gid& address) {
  Entry* entry = find_entry(address);
  if (entry != nullptr && entry->state != State::kIncomplete) set_reachable(now, *entry);
}

void NeighbourTable::set_reachable(Instant now, Entry& entry) {
  entry.state = State::kReachable;
  ask_afresh(entry);
  entry.ask_at = now + timing_.reachable_for;
  look_again_at(entry.ask_at);
}

std::optional<NeighbourTable::Question> NeighbourTable::poll_question(Instant now) {
  if (now < next_deadline_) return std::nullopt;
  next_deadline_ = Instant::never();
  for (std::uint32_t i = 0; i < used_; ++i) {
    Entry& entry = entries_[i];
    if (entry.state == State::kFree || entry.users == 0) continue;
    if (entry.ask_at <= now) {
      count_question(now, entry);
      next_deadline_ = now;  // others may be due as well
      return Question{i, entry.address, find(i)};
    }
    look_again_at(entry.ask_at);
  }
  return std::nullopt;
}

// A neighbour that was known is still used while it is asked again; after three questions without
// an answer it is gone.
void NeighbourTable::count_question(Instant now, Entry& entry) const {
  if (entry.questions == 0) entry.first_asked_at = now;
  entry.is_expected = now < entry.first_asked_at + timing_.expected_for;
  entry.ask_at = now + entry.pause;
  entry.pause = std::min(entry.pause * 2, timing_.last_pause);
  if (entry.state == State::kReachable) entry.state = State::kStale;
  if (entry.state == State::kStale && entry.questions == kQuestionsWhileStale) {
    entry.state = State::kIncomplete;
  }
  if (entry.questions < kQuestionsWhileStale) ++entry.questions;
}

NeighbourTable::Entry* NeighbourTable::find_entry(const Gid& address) {
  const std::span in_use(entries_.data(), used_);
  const auto found = std::ranges::find_if(in_use, [&](const Entry& entry) {
    return entry.state != State::kFree && entry.address == address;
  });
  return found == in_use.end() ? nullptr : &*found;
}

NeighbourTable::Entry* NeighbourTable::free_place() {
  if (used_ < kCapacity) return &entries_[used_++];
  const auto unpinned =
      std::ranges::find_if(entries_, [](const Entry& entry) { return entry.users == 0; });
  return unpinned == entries_.end() ? nullptr : &*unpinned;
}

}  // namespace uroce::datapath
