// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/inode_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>

namespace uroce::kernel {
namespace {

class InodeTableTest : public testing::Test {
 protected:
  // So many come and go, a few at a time, beside what is in the table already.
  void come_and_go(ino_t first, ino_t count) {
    constexpr ino_t kAtATime = 8;
    for (ino_t inode = first; inode < first + count; ++inode) {
      table_->remember(inode);
      if (inode >= first + kAtATime) table_->forget(inode - kAtATime);
    }
    for (ino_t inode = first + count - kAtATime; inode < first + count; ++inode) {
      table_->forget(inode);
    }
  }

  std::unique_ptr<InodeTable> table_ = std::make_unique<InodeTable>();
};

TEST_F(InodeTableTest, HasWhatIsRememberedUntilItIsForgotten) {
  EXPECT_FALSE(table_->has(4711));
  table_->remember(4711);
  EXPECT_TRUE(table_->has(4711));
  EXPECT_FALSE(table_->has(4712));
  table_->forget(4711);
  table_->forget(4712);
  EXPECT_FALSE(table_->has(4711));
}

// Searches would become longer and longer.
TEST_F(InodeTableTest, WhatIsForgottenLeavesNothingBehind) {
  come_and_go(1'000, 300'000);
  EXPECT_EQ(table_->occupied(), 0U);
}

// Two thirds full, so that most do not stand where they are looked for first.
TEST_F(InodeTableTest, IsRightAboutManyThatComeAndGoAtRandom) {
  std::mt19937 random(1);
  std::uniform_int_distribution<ino_t> any(2, 90'000);
  std::unordered_set<ino_t> expected;
  for (int i = 0; i < 500'000; ++i) {
    const ino_t inode = any(random);
    if (expected.erase(inode) != 0) {
      table_->forget(inode);
    } else {
      expected.insert(inode);
      table_->remember(inode);
    }
  }
  for (ino_t inode = 2; inode <= 90'000; ++inode) {
    ASSERT_EQ(table_->has(inode), expected.contains(inode)) << inode;
  }
  for (const ino_t inode : expected) table_->forget(inode);
  EXPECT_EQ(table_->occupied(), 0U);
}

// The table is nearly full, and those that go stand before those that stay, which move up.
TEST_F(InodeTableTest, WhoLooksFindsWhatMovesUpMeanwhile) {
  constexpr std::size_t kGo = 32'000, kStay = 32'000;
  std::mt19937 random(2);
  std::uniform_int_distribution<ino_t> any(2, ino_t{1} << 60);
  std::vector<ino_t> go(kGo), stay(kStay);
  for (ino_t& inode : go) table_->remember(inode = any(random));
  for (ino_t& inode : stay) table_->remember(inode = any(random));
  std::atomic<bool> all_gone = false;
  std::thread writer([&] {
    for (const ino_t inode : go) table_->forget(inode);
    all_gone = true;
  });
  std::size_t missed = 0;
  while (!all_gone) {
    for (const ino_t inode : stay) missed += table_->has(inode) ? 0U : 1U;
  }
  writer.join();
  EXPECT_EQ(missed, 0U);
  EXPECT_EQ(table_->occupied(), kStay);
}

TEST_F(InodeTableTest, SeveralMayWriteAtATime) {
  constexpr ino_t kWriters = 3, kEach = 50'000;
  std::vector<std::thread> writers;
  for (ino_t i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] { come_and_go(1'000 + i * kEach, kEach); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(table_->occupied(), 0U);
}

}  // namespace
}  // namespace uroce::kernel
