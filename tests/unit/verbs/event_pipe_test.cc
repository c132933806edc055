// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/event_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "support/cancelled.h"
#include "support/few_descriptors.h"

namespace uroce::verbs {
namespace {

class EventPipeTest : public testing::Test {
 protected:
  EventPipeTest() { open(pipe_); }
  ~EventPipeTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  void open(EventPipe& pipe) {
    ASSERT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    pipe.open(ends_[1]);
  }
  std::uint64_t next() {
    std::uint64_t event = 0;
    EXPECT_EQ(read(ends_[0], &event, sizeof(event)), static_cast<ssize_t>(sizeof(event)));
    return event;
  }

  std::array<int, 2> ends_{};
  EventPipe pipe_;
};

TEST_F(EventPipeTest, EventsComeOutInOrder) {
  EXPECT_TRUE(pipe_.write(std::uint64_t{1}));
  EXPECT_TRUE(pipe_.write(std::uint64_t{2}));
  EXPECT_EQ(next(), 1U);
  EXPECT_EQ(next(), 2U);
}

TEST_F(EventPipeTest, AFullPipeSaysSoAndDoesNotBlock) {
  int written = 0;
  while (pipe_.write(std::uint64_t{7})) ++written;
  EXPECT_GT(written, 1'000);
}

// An imported device's is opened by its first event, perhaps when there are no descriptors.
TEST_F(EventPipeTest, CanBeOpenedLater) {
  EventPipe other;
  bool is_open = false;
  {
    const test::FewDescriptors none(0);
    other.open(ends_[0]);
    is_open = other.is_open();
  }
  EXPECT_FALSE(is_open);
  other.open(ends_[0]);
  ASSERT_TRUE(other.is_open());
  EXPECT_TRUE(other.write(std::uint64_t{5}));
  EXPECT_EQ(next(), 5U);
}

// The shard's lock would stay taken (man 7 pthreads).
TEST_F(EventPipeTest, IsUsedByThreadsThatAreToBeCancelled) {
  const auto write = [this] { EXPECT_TRUE(pipe_.write(std::uint64_t{1})); };
  EXPECT_TRUE(test::is_no_cancellation_point(write));
  const auto take_back = [this] {
    EXPECT_EQ(pipe_.take_back<std::uint64_t>([](std::uint64_t) { return true; }), 1U);
  };
  EXPECT_TRUE(test::is_no_cancellation_point(take_back));
}

TEST_F(EventPipeTest, TakesBackTheUnreadEventsOfOneElement) {
  for (const std::uint64_t event : {1U, 2U, 1U, 3U}) EXPECT_TRUE(pipe_.write(event));
  EXPECT_EQ(pipe_.take_back<std::uint64_t>([](std::uint64_t event) { return event == 1; }), 2U);
  EXPECT_EQ(next(), 2U);
  EXPECT_EQ(next(), 3U);
  EXPECT_EQ(pipe_.take_back<std::uint64_t>([](std::uint64_t) { return true; }), 0U);
}

// How much is taken back at a time, and how much the pipe holds, in pages of the machine.
struct Pages {
  int at_a_time, pipe;
};

class FullEventPipeTest : public EventPipeTest, public testing::WithParamInterface<Pages> {};

// A pipe counts pages: to read one event of a full one makes no room for another.
TEST_P(FullEventPipeTest, OnlyTheDeadAreTaken) {
  const std::size_t page = EventPipe::page_bytes();
  EventPipe pipe(page * static_cast<std::size_t>(GetParam().at_a_time));
  pipe.open(ends_[1]);
  const int bytes = static_cast<int>(page) * GetParam().pipe;
  if (fcntl(ends_[1], F_SETPIPE_SZ, bytes) != bytes) GTEST_SKIP() << "more than a user may have";
  std::uint64_t written = 0;
  while (pipe.write(written + 1)) ++written;
  EXPECT_EQ(next(), 1U);  // the first page was begun
  EXPECT_EQ(pipe.take_back<std::uint64_t>([](std::uint64_t e) { return e % 500 == 0; }),
            written / 500);
  fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  for (std::uint64_t event = 2; event <= written; ++event) {
    if (event % 500 == 0) continue;
    ASSERT_EQ(next(), event);
  }
}

// Two pages are what a user of many pipes gets.
INSTANTIATE_TEST_SUITE_P(Sizes, FullEventPipeTest,
                         testing::Values(Pages{1, 16}, Pages{1, 2}, Pages{4, 16}, Pages{4, 2},
                                         Pages{16, 16}, Pages{16, 2}));

TEST_F(EventPipeTest, LeavesTheApplicationsDescriptorBlocking) {
  EXPECT_EQ(fcntl(ends_[0], F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(ends_[1], F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace uroce::verbs
