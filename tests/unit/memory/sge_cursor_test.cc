// SPDX-License-Identifier: BSD-2-Clause
#include "memory/sge_cursor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace uroce::memory {
namespace {

constexpr PdId kPd{3};
constexpr LKey kLKey{0x5555'5501};
constexpr std::uint64_t kIova = 0x7000'0000;

class SgeCursorTest : public testing::Test {
 protected:
  SgeCursorTest() {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(i * 7);
    EXPECT_EQ(table_.insert({.iova = kIova,
                             .length = memory_.size(),
                             .base = memory_.data(),
                             .pd = kPd,
                             .access = Access::kLocalWrite,
                             .key = kLKey.value}),
              InsertOutcome::kInserted);
  }

  static Sge at(std::uint32_t offset, std::uint32_t length) {
    return {kIova + offset, length, kLKey};
  }
  SgeCursor::Taken take(SgeCursor& cursor, std::uint64_t bytes, std::size_t room = 8) {
    pieces_.assign(room, {});
    return cursor.take(bytes, table_, kPd, Access::kNone, std::span<ConstBytes>(pieces_));
  }
  // What piece `index` of the last take is: offset into the region and length.
  std::pair<std::ptrdiff_t, std::size_t> piece(std::size_t index) const {
    return {pieces_[index].data() - memory_.data(), pieces_[index].size()};
  }

  std::array<std::byte, 4096> memory_{};
  std::array<MemoryRegion, 4> slots_{};
  MrTable table_{slots_};
  std::vector<ConstBytes> pieces_;
};

using Piece = std::pair<std::ptrdiff_t, std::size_t>;

TEST_F(SgeCursorTest, TakesAcrossElements) {
  const std::array list{at(100, 10), at(50, 20), at(300, 5)};
  SgeCursor cursor(list);
  const auto first = take(cursor, 16);
  EXPECT_EQ(first.bytes, 16U);
  ASSERT_EQ(first.pieces, 2U);
  EXPECT_EQ(piece(0), Piece(100, 10));
  EXPECT_EQ(piece(1), Piece(50, 6));
  EXPECT_EQ(cursor.position(), 16U);
  const auto second = take(cursor, 100);
  EXPECT_EQ(second.bytes, 19U);
  ASSERT_EQ(second.pieces, 2U);
  EXPECT_EQ(piece(0), Piece(56, 14));
  EXPECT_EQ(piece(1), Piece(300, 5));
  EXPECT_EQ(take(cursor, 1).bytes, 0U);
}

TEST_F(SgeCursorTest, TakesOnlyWhatTheRoomHolds) {
  const std::array list{at(0, 4), at(8, 4), at(16, 4)};
  SgeCursor cursor(list);
  EXPECT_EQ(take(cursor, 12, 2).bytes, 8U);
  EXPECT_EQ(take(cursor, 4, 0).bytes, 0U);
  EXPECT_EQ(take(cursor, 4, 2).bytes, 4U);
  EXPECT_EQ(piece(0), Piece(16, 4));
}

TEST_F(SgeCursorTest, ElementsOfNoLengthMakeNoPieceAndTheirKeyIsNotChecked) {
  const Sge nothing{~0ULL, 0, LKey{0xdead'beef}};
  const std::array list{nothing, at(0, 4), nothing, nothing, at(8, 4), nothing};
  SgeCursor cursor(list);
  const auto taken = take(cursor, 8);
  EXPECT_EQ(taken.fault, MemoryFault::kNone);
  EXPECT_EQ(taken.bytes, 8U);
  EXPECT_EQ(taken.pieces, 2U);
  EXPECT_EQ(piece(1), Piece(8, 4));
}

TEST_F(SgeCursorTest, AnEmptyMessageTakesNothing) {
  SgeCursor none;
  EXPECT_EQ(take(none, 10).bytes, 0U);
  const std::array list{Sge{0, 0, LKey{1}}};
  SgeCursor cursor(list);
  const auto taken = take(cursor, 0);
  EXPECT_EQ(taken.bytes, 0U);
  EXPECT_EQ(taken.fault, MemoryFault::kNone);
}

TEST_F(SgeCursorTest, SeeksForwardBackAndBehindTheEnd) {
  const std::array list{at(0, 10), at(20, 10)};
  SgeCursor cursor(list);
  cursor.seek(15);
  EXPECT_EQ(take(cursor, 2).bytes, 2U);
  EXPECT_EQ(piece(0), Piece(25, 2));
  cursor.seek(3);
  EXPECT_EQ(take(cursor, 1).bytes, 1U);
  EXPECT_EQ(piece(0), Piece(3, 1));
  cursor.seek(1000);
  EXPECT_EQ(cursor.position(), 20U);
  EXPECT_EQ(take(cursor, 1).bytes, 0U);
}

TEST_F(SgeCursorTest, AFaultTakesNothingAndLeavesTheCursorInPlace) {
  const std::array list{at(0, 10), Sge{kIova, 10, LKey{0x1234}}};
  SgeCursor cursor(list);
  cursor.seek(4);
  const auto taken = take(cursor, 10);
  EXPECT_EQ(taken.fault, MemoryFault::kInvalidKey);
  EXPECT_EQ(taken.bytes, 0U);
  EXPECT_EQ(taken.pieces, 0U);
  EXPECT_EQ(cursor.position(), 4U);
  EXPECT_EQ(take(cursor, 6).bytes, 6U);
}

TEST_F(SgeCursorTest, OnlyTheBytesTakenMustBeInTheRegion) {
  const std::array list{at(4000, 200)};
  SgeCursor cursor(list);
  EXPECT_EQ(take(cursor, 96).fault, MemoryFault::kNone);
  EXPECT_EQ(take(cursor, 1).fault, MemoryFault::kOutOfBounds);
}

TEST_F(SgeCursorTest, AnElementThatWrapsIsOutOfBounds) {
  const std::array list{Sge{0xffff'ffff'ffff'fc00, 0x400, kLKey}};
  SgeCursor cursor(list);
  EXPECT_EQ(take(cursor, 0x400).fault, MemoryFault::kOutOfBounds);
}

TEST_F(SgeCursorTest, WritingNeedsTheRight) {
  const std::array list{at(0, 8)};
  SgeCursor cursor(list);
  std::array<Bytes, 1> out;
  EXPECT_EQ(cursor.take(4, table_, kPd, Access::kRemoteWrite, std::span<Bytes>(out)).fault,
            MemoryFault::kAccess);
  const auto taken = cursor.take(4, table_, kPd, Access::kLocalWrite, std::span<Bytes>(out));
  EXPECT_EQ(taken.bytes, 4U);
  EXPECT_EQ(out[0].data(), memory_.data());
}

TEST_F(SgeCursorTest, ARegionGoneBetweenTwoPacketsIsAFault) {
  const std::array list{at(0, 8)};
  SgeCursor cursor(list);
  EXPECT_EQ(take(cursor, 4).fault, MemoryFault::kNone);
  ASSERT_TRUE(table_.erase(kLKey.value));
  EXPECT_EQ(take(cursor, 4).fault, MemoryFault::kInvalidKey);
}

TEST(SgeTotal, DoesNotWrapAt32Bits) {
  const std::array<Sge, 3> list{Sge{.length = ~0U}, Sge{.length = ~0U}, Sge{.length = 2}};
  EXPECT_EQ(total_bytes(list), 0x2'0000'0000ULL);
}

// The model is the message written out: byte i of the list is byte i of `flat`.
TEST_F(SgeCursorTest, AgreesWithTheFlatMessageForRandomListsSeeksAndTakes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<Sge> list(random() % 6);
    std::vector<std::byte> flat;
    for (Sge& sge : list) {
      const auto length = static_cast<std::uint32_t>(random() % 3 == 0 ? 0 : random() % 64);
      const auto offset = static_cast<std::uint32_t>(random() % 4000);
      sge = at(offset, length);
      flat.insert(flat.end(), memory_.begin() + offset, memory_.begin() + offset + length);
    }
    SgeCursor cursor(list);
    for (int step = 0; step < 20; ++step) {
      if (random() % 3 == 0) {
        const std::uint64_t target = random() % (flat.size() + 10);
        cursor.seek(target);
        ASSERT_EQ(cursor.position(), std::min<std::uint64_t>(target, flat.size()));
      }
      const std::uint64_t start = cursor.position();
      const std::uint64_t asked = random() % 100;
      const std::size_t room = random() % 5;
      const auto taken = take(cursor, asked, room);
      ASSERT_EQ(taken.fault, MemoryFault::kNone);
      ASSERT_TRUE(taken.bytes == std::min<std::uint64_t>(asked, flat.size() - start) ||
                  taken.pieces == room);
      std::vector<std::byte> got;
      for (std::size_t i = 0; i < taken.pieces; ++i) {
        ASSERT_FALSE(pieces_[i].empty());
        got.insert(got.end(), pieces_[i].begin(), pieces_[i].end());
      }
      ASSERT_EQ(got.size(), taken.bytes);
      ASSERT_EQ(cursor.position(), start + taken.bytes);
      ASSERT_TRUE(
          std::equal(got.begin(), got.end(), flat.begin() + static_cast<std::ptrdiff_t>(start)));
    }
  }
}

}  // namespace
}  // namespace uroce::memory
