// SPDX-License-Identifier: BSD-2-Clause
// What a program sees of its events: readable while there are some, one byte for each that it may
// take.
#include "cma/event_file.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "cma/id.h"

namespace uroce::cma {
namespace {

class EventFileTest : public testing::Test {
 protected:
  EventFileTest() : file_(EventFile::open(program_end_)) {}
  ~EventFileTest() override {
    if (program_end_ >= 0) close(program_end_);
  }
  static PendingEvent numbered(std::uint32_t number, Id* id = nullptr) {
    PendingEvent event;
    event.answer.event = number;
    event.id = id;
    return event;
  }
  [[nodiscard]] bool is_readable() const {
    pollfd end{program_end_, POLLIN, 0};
    return poll(&end, 1, 0) == 1 && (end.revents & POLLIN) != 0;
  }
  // As GET_EVENT does; nothing where the program would wait.
  std::optional<std::uint32_t> take() {
    char token = 0;
    if (!is_readable() || read(program_end_, &token, 1) != 1) return std::nullopt;
    const auto event = file_->pop();
    return event ? std::optional(event->answer.event) : std::nullopt;
  }

  int program_end_ = -1;
  std::unique_ptr<EventFile> file_;
};

TEST_F(EventFileTest, IsReadableWhileThereAreEvents) {
  ASSERT_NE(file_, nullptr);
  EXPECT_FALSE(is_readable());
  for (const std::uint32_t number : {1U, 2U, 3U}) file_->push(numbered(number));
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(take(), 2U);
  file_->push(numbered(4));
  EXPECT_EQ(take(), 3U);
  EXPECT_EQ(take(), 4U);
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(take(), std::nullopt);
}

// Whoever was woken for it finds nothing, and waits again.
TEST_F(EventFileTest, AnEventMayGoAfterItsByteWasRead) {
  Id id;
  file_->push(numbered(1, &id));
  char token = 0;
  ASSERT_EQ(read(program_end_, &token, 1), 1);
  file_->take_out([&id](const PendingEvent& event) { return event.id == &id; }, nullptr);
  EXPECT_FALSE(file_->pop());
  file_->push(numbered(2));
  EXPECT_EQ(take(), 2U);
}

TEST_F(EventFileTest, IsNotReadableWhenItsEventsHaveGone) {
  Id gone, stays;
  file_->push(numbered(1, &gone));
  file_->push(numbered(2, &stays));
  const auto take_out = [this](const Id& id) {
    file_->take_out([&id](const PendingEvent& event) { return event.id == &id; }, nullptr);
    file_->take_token_back(program_end_);
  };
  take_out(gone);
  EXPECT_TRUE(is_readable());
  take_out(stays);
  EXPECT_FALSE(is_readable());
  file_->push(numbered(3));
  EXPECT_EQ(take(), 3U);
}

// Who has read it already finds nothing, or what came meanwhile; there is no second byte for it.
TEST_F(EventFileTest, AByteThatWasReadIsNotTakenBack) {
  Id id;
  file_->push(numbered(1, &id));
  char token = 0;
  ASSERT_EQ(read(program_end_, &token, 1), 1);
  file_->take_out([&id](const PendingEvent& event) { return event.id == &id; }, nullptr);
  file_->take_token_back(program_end_);
  file_->push(numbered(2));
  EXPECT_FALSE(is_readable());
  const auto event = file_->pop();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->answer.event, 2U);
}

TEST_F(EventFileTest, WhatIsTakenOutKeepsItsOrder) {
  Id one, two;
  for (std::uint32_t i = 0; i < 6; ++i) file_->push(numbered(i, i % 2 == 0 ? &one : &two));
  std::deque<PendingEvent> taken;
  file_->take_out([&one](const PendingEvent& event) { return event.id == &one; }, &taken);
  ASSERT_EQ(taken.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(taken[i].answer.event, 2 * i);
  for (const std::uint32_t number : {1U, 3U, 5U}) EXPECT_EQ(take(), number);
}

TEST_F(EventFileTest, IsKnownByItsProgramsDescriptorAndItsCopies) {
  EXPECT_EQ(EventFile::place_of(program_end_), file_->place());
  const int copy = dup(program_end_);
  EXPECT_EQ(EventFile::place_of(copy), file_->place());
  close(program_end_);
  program_end_ = copy;
  EXPECT_FALSE(file_->is_closed_by_program());
  close(program_end_);
  program_end_ = -1;
  EXPECT_TRUE(file_->is_closed_by_program());
  EXPECT_EQ(EventFile::place_of(-1), std::nullopt);
}

}  // namespace
}  // namespace uroce::cma
