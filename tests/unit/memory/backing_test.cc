// SPDX-License-Identifier: BSD-2-Clause
// What lies behind a region: memory on demand, or nothing at all.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "memory/dma.h"
#include "memory/mr_table.h"
#include "memory/sge_cursor.h"

namespace uroce::memory {
namespace {

constexpr PdId kPd{7};
constexpr Accessor kBy{kPd, Qpn{0x11}};
constexpr std::uint32_t kKey = 0x100;

// Says what it was told to, and remembers what it was asked.
class FakePager final : public Pager {
 public:
  bool bring_in(std::byte* at, std::uint64_t length, bool writes) const override {
    asked.push_back({at, length, writes});
    return answer;
  }
  struct Question {
    std::byte* at;
    std::uint64_t length;
    bool writes;
    friend bool operator==(const Question&, const Question&) = default;
  };
  bool answer = true;
  mutable std::vector<Question> asked;
};

class BackingTest : public testing::Test {
 protected:
  void insert(Backing backing, Access access = Access::kLocalWrite | Access::kRemoteWrite |
                                               Access::kRemoteRead | Access::kMwBind) {
    const bool is_null = backing == Backing::kNull;
    ASSERT_EQ(table_.insert({.iova = 0,
                             .length = is_null ? ~0ULL : memory_.size(),
                             .base = is_null ? nullptr : memory_.data(),
                             .pd = kPd,
                             .access = access,
                             .key = kKey,
                             .backing = backing}),
              InsertOutcome::kInserted);
    table_.set_pager(&pager_);
  }
  using Questions = std::vector<FakePager::Question>;

  std::array<std::byte, 0x1000> memory_{};
  std::vector<MemoryRegion> slots_ = std::vector<MemoryRegion>(16);
  MrTable table_{slots_};
  FakePager pager_;
};

TEST_F(BackingTest, MemoryOnDemandIsBroughtInWhenItIsResolved) {
  insert(Backing::kOnDemand);
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0x10, 8, Access::kNone, kPd).base, &memory_[0x10]);
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0x20, 8, Access::kLocalWrite, kPd).base, &memory_[0x20]);
  EXPECT_EQ(table_.resolve(RKey{kKey}, 0x30, 8, Access::kRemoteRead, kBy).base, &memory_[0x30]);
  EXPECT_EQ(table_.resolve(RKey{kKey}, 0x40, 8, Access::kRemoteWrite, kBy).base, &memory_[0x40]);
  EXPECT_EQ(pager_.asked, (Questions{{&memory_[0x10], 8, false},
                                     {&memory_[0x20], 8, true},
                                     {&memory_[0x30], 8, false},
                                     {&memory_[0x40], 8, true}}));
}

TEST_F(BackingTest, OfALongMessageTheBytesInHandAreBroughtIn) {
  insert(Backing::kOnDemand);
  const auto found = table_.resolve(RKey{kKey}, 0, 0x1000, Access::kRemoteWrite, kBy, 0x100);
  EXPECT_EQ(found.base, memory_.data());
  EXPECT_EQ(pager_.asked, (Questions{{memory_.data(), 0x100, true}}));
  EXPECT_EQ(table_.resolve(RKey{kKey}, 0, 0x1000, Access::kRemoteRead, kBy, 0).fault,
            MemoryFault::kNone);
  EXPECT_EQ(pager_.asked.size(), 1U);
}

TEST_F(BackingTest, MemoryThatIsNotThereIsAFault) {
  insert(Backing::kOnDemand);
  pager_.answer = false;
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0, 8, Access::kNone, kPd).fault, MemoryFault::kNotPresent);
  // Nobody asks for what is out of bounds.
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0, 0x1001, Access::kNone, kPd).fault,
            MemoryFault::kOutOfBounds);
  EXPECT_EQ(pager_.asked.size(), 1U);
  table_.set_pager(nullptr);
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0, 8, Access::kNone, kPd).fault, MemoryFault::kNotPresent);
}

TEST_F(BackingTest, GrowingKeepsThePager) {
  insert(Backing::kOnDemand);
  std::vector<MemoryRegion> larger(32);
  static_cast<void>(table_.rehash_into(larger));
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0, 8, Access::kNone, kPd).fault, MemoryFault::kNone);
}

TEST_F(BackingTest, AWindowOnMemoryOnDemandIsOnDemandToo) {
  insert(Backing::kOnDemand);
  constexpr RKey kWindow{0x300};
  ASSERT_EQ(table_.insert({.pd = kPd, .key = kWindow.value, .kind = KeyKind::kWindowType1}),
            InsertOutcome::kInserted);
  ASSERT_TRUE(table_.bind({.window = kWindow,
                           .region = {kKey},
                           .address = 0x100,
                           .length = 0x100,
                           .access = Access::kRemoteWrite,
                           .by = kBy}));
  pager_.answer = false;
  EXPECT_EQ(table_.resolve(kWindow, 0x100, 8, Access::kRemoteWrite, kBy).fault,
            MemoryFault::kNotPresent);
}

TEST_F(BackingTest, ANullRegionIsReadAsZeroes) {
  insert(Backing::kNull, Access::kLocalWrite);
  const std::array<Sge, 2> list{{{0, 0x3000, {kKey}}, {0xffff'ffff'ffff'0000, 8, {kKey}}}};
  SgeCursor cursor(list);
  std::array<ConstBytes, 4> pieces;
  const auto taken = cursor.take(0x3008, table_, kPd, Access::kNone, std::span<ConstBytes>(pieces));
  ASSERT_EQ(taken.bytes, 0x3008U);
  std::vector<std::byte> got(0x3008, std::byte{0xff});
  gather({pieces.data(), taken.pieces}, got);
  EXPECT_EQ(got, std::vector<std::byte>(0x3008));
  EXPECT_EQ(table_.resolve(LKey{kKey}, 0, kNullBytesMax + 1, Access::kNone, kPd).fault,
            MemoryFault::kOutOfBounds);
}

TEST_F(BackingTest, WhatIsWrittenToANullRegionGoesNowhere) {
  insert(Backing::kNull, Access::kLocalWrite);
  std::array<std::byte, 16> tail{};
  ASSERT_EQ(table_.insert({.iova = 0,
                           .length = tail.size(),
                           .base = tail.data(),
                           .pd = kPd,
                           .access = Access::kLocalWrite,
                           .key = 0x200}),
            InsertOutcome::kInserted);
  const std::array<Sge, 2> list{{{0x1234, 100, {kKey}}, {0, 16, {0x200}}}};
  SgeCursor cursor(list);
  std::array<Bytes, 4> pieces;
  const auto taken = cursor.take(116, table_, kPd, Access::kLocalWrite, std::span<Bytes>(pieces));
  ASSERT_EQ(taken.fault, MemoryFault::kNone);
  std::vector<std::byte> data(116);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  EXPECT_EQ(scatter(data, {pieces.data(), taken.pieces}), 116U);
  EXPECT_EQ(tail[0], std::byte{100});
  ASSERT_EQ(table_.resolve(LKey{kKey}, 0, 8, Access::kNone, kPd).fault, MemoryFault::kNone);
  EXPECT_EQ(*table_.resolve(LKey{kKey}, 0, 8, Access::kNone, kPd).base, std::byte{0});
}

}  // namespace
}  // namespace uroce::memory
