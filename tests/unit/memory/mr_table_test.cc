// SPDX-License-Identifier: BSD-2-Clause
#include "memory/mr_table.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace uroce::memory {
namespace {

constexpr PdId kPd{7};
constexpr Accessor kBy{kPd, Qpn{0x11}};
constexpr std::uint32_t kKey = 0xabcd'ef12;
constexpr std::uint64_t kIova = 0x10'0000;
constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

class MrTableTest : public testing::Test {
 protected:
  MemoryRegion region(std::uint32_t key = kKey) {
    return {.iova = kIova,
            .length = memory_.size(),
            .base = memory_.data(),
            .pd = kPd,
            .access = kAll,
            .key = key};
  }
  void register_at(std::uint64_t iova) {
    MemoryRegion placed = region();
    placed.iova = iova;
    ASSERT_EQ(table_.insert(placed), InsertOutcome::kInserted);
  }
  Resolved remote_write(std::uint64_t address, std::uint64_t length) const {
    return table_.resolve(RKey{kKey}, address, length, Access::kRemoteWrite, kBy);
  }

  std::array<std::byte, 0x1000> memory_{};
  std::vector<MemoryRegion> slots_ = std::vector<MemoryRegion>(16);
  MrTable table_{slots_};
};

TEST_F(MrTableTest, ResolvesEveryByteOfARegionAndNoOther) {
  register_at(kIova);
  EXPECT_EQ(remote_write(kIova, memory_.size()).base, memory_.data());
  EXPECT_EQ(remote_write(kIova + 0xfff, 1).base, memory_.data() + 0xfff);
  EXPECT_EQ(remote_write(kIova - 1, 1).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(kIova - 1, 2).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(kIova + 0x1000, 1).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(kIova, memory_.size() + 1).fault, MemoryFault::kOutOfBounds);
}

TEST_F(MrTableTest, LocalAndRemoteKeyHaveOneValue) {
  register_at(kIova);
  const Resolved local = table_.resolve(LKey{kKey}, kIova, 8, Access::kLocalWrite, kPd);
  EXPECT_EQ(local.fault, MemoryFault::kNone);
  EXPECT_EQ(local.base, remote_write(kIova, 8).base);
}

TEST_F(MrTableTest, FaultsAreToldInTheOrderKeyPdAccessBounds) {
  register_at(kIova);
  const std::uint64_t outside = kIova + 0x2000;
  const Access more = Access::kRemoteAtomic;
  const PdId other{8};
  EXPECT_EQ(table_.resolve(RKey{kKey ^ 1}, outside, 1, more, {other, {}}).fault,
            MemoryFault::kInvalidKey);
  EXPECT_EQ(table_.resolve(RKey{kKey}, outside, 1, more, {other, {}}).fault, MemoryFault::kWrongPd);
  EXPECT_EQ(table_.resolve(RKey{kKey}, outside, 1, more, kBy).fault, MemoryFault::kAccess);
  EXPECT_EQ(table_.resolve(RKey{kKey}, outside, 1, kAll, kBy).fault, MemoryFault::kOutOfBounds);
}

TEST_F(MrTableTest, AKeyOfTheSameIndexButAnotherVariantIsInvalid) {
  register_at(kIova);
  for (std::uint32_t flip = 1; flip < 256; ++flip) {
    EXPECT_EQ(table_.find(kKey ^ flip), nullptr);
    EXPECT_FALSE(table_.erase(kKey ^ flip));
  }
  EXPECT_NE(table_.find(kKey), nullptr);
}

// IBTA C9-88
TEST_F(MrTableTest, ZeroBytesAreGrantedWithoutALookAtTheKey) {
  for (const std::uint64_t address : {0ULL, 0xdead'beefULL, ~0ULL}) {
    const Resolved at =
        table_.resolve(RKey{0xdead'beef}, address, 0, Access::kRemoteWrite, Accessor{});
    EXPECT_EQ(at.fault, MemoryFault::kNone);
    EXPECT_EQ(at.base, nullptr);
  }
}

TEST_F(MrTableTest, RangesThatWrapAreOutOfBounds) {
  register_at(kIova);
  for (const std::uint64_t address : {0xffff'ffff'ffff'fc00ULL, 0xffff'ffff'ffff'ffffULL}) {
    for (const std::uint64_t length : {0x1ULL, 0x400ULL, 0x401ULL, 0x8000'0000ULL, ~0ULL}) {
      EXPECT_EQ(remote_write(address, length).fault, MemoryFault::kOutOfBounds);
    }
  }
  EXPECT_EQ(remote_write(kIova + 1, ~0ULL).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(kIova + 1, ~0ULL - kIova + 1).fault, MemoryFault::kOutOfBounds);
}

TEST_F(MrTableTest, ARegionMayEndWhereTheAddressSpaceDoes) {
  register_at(0xffff'ffff'ffff'f000);
  EXPECT_EQ(remote_write(0xffff'ffff'ffff'fc00, 0x400).base, memory_.data() + 0xc00);
  EXPECT_EQ(remote_write(0xffff'ffff'ffff'fc00, 0x401).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(0, 1).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(0xffff'ffff'ffff'ffff, 2).fault, MemoryFault::kOutOfBounds);
}

TEST_F(MrTableTest, AZeroBasedRegionIsAddressedByOffset) {
  register_at(0);
  EXPECT_EQ(remote_write(0, 1).base, memory_.data());
  EXPECT_EQ(remote_write(0xffe, 2).base, memory_.data() + 0xffe);
  EXPECT_EQ(remote_write(0xfff, 2).fault, MemoryFault::kOutOfBounds);
  EXPECT_EQ(remote_write(~0ULL, 1).fault, MemoryFault::kOutOfBounds);
}

TEST_F(MrTableTest, ARegionMayBeAllOfTheAddressSpace) {
  MemoryRegion all = region();
  all.iova = 0;
  all.base = nullptr;
  all.length = ~0ULL;
  ASSERT_EQ(table_.insert(all), InsertOutcome::kInserted);
  EXPECT_EQ(remote_write(0x1234, 16).base, std::bit_cast<std::byte*>(std::uintptr_t{0x1234}));
}

TEST_F(MrTableTest, RefusesRegionsThatWrapOrHaveNoPd) {
  MemoryRegion wraps = region();
  wraps.iova = 0xffff'ffff'ffff'f001;
  EXPECT_EQ(table_.insert(wraps), InsertOutcome::kBadRegion);
  MemoryRegion nobodys = region();
  nobodys.pd = {};
  EXPECT_EQ(table_.insert(nobodys), InsertOutcome::kBadRegion);
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(MrTableTest, OneIndexIsTakenOnce) {
  ASSERT_EQ(table_.insert(region(0x100)), InsertOutcome::kInserted);
  EXPECT_EQ(table_.insert(region(0x100)), InsertOutcome::kKeyTaken);
  EXPECT_EQ(table_.insert(region(0x1ff)), InsertOutcome::kKeyTaken);
  EXPECT_EQ(table_.insert(region(0x200)), InsertOutcome::kInserted);
}

TEST_F(MrTableTest, IsFullAtHalfItsSlotsAndGrowsIntoLargerOnes) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(table_.insert(region(i << 8)), InsertOutcome::kInserted);
  }
  EXPECT_EQ(table_.insert(region(0x4242'4242)), InsertOutcome::kNoRoom);

  std::vector<MemoryRegion> larger(32);
  const std::span<MemoryRegion> former = table_.rehash_into(larger);
  EXPECT_EQ(former.data(), slots_.data());
  EXPECT_EQ(table_.insert(region(0x4242'4242)), InsertOutcome::kInserted);
  EXPECT_EQ(table_.size(), 9U);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_NE(table_.find(i << 8), nullptr);
}

TEST(MrTableWithoutSlots, HasNoRoomAndNoKeys) {
  MrTable table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_FALSE(table.erase(0));
  EXPECT_EQ(table.resolve(LKey{0}, 0, 1, Access::kNone, PdId{}).fault, MemoryFault::kInvalidKey);
  EXPECT_EQ(table.insert({.pd = kPd}), InsertOutcome::kNoRoom);
  std::vector<MemoryRegion> slots(2);
  EXPECT_TRUE(table.rehash_into(slots).empty());
  EXPECT_EQ(table.insert({.pd = kPd}), InsertOutcome::kInserted);
}

TEST_F(MrTableTest, ErasingInsideAClusterKeepsTheRestReachable) {
  // All with home 15, so the cluster also wraps round the end of the slots.
  const std::array<std::uint32_t, 4> keys{0x0f00, 0x1f00, 0x2f00, 0x3f00};
  for (std::size_t victim = 0; victim < keys.size(); ++victim) {
    std::vector<MemoryRegion> slots(16);
    MrTable table(slots);
    for (const std::uint32_t key : keys) {
      ASSERT_EQ(table.insert(region(key)), InsertOutcome::kInserted);
    }
    EXPECT_TRUE(table.erase(keys[victim]));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(table.find(keys[i]) != nullptr, i != victim);
    }
  }
}

// Small tables and few indices, so that clusters form, wrap and split all the time.
TEST(MrTableProperty, AgreesWithAMapUnderRandomInsertsErasesAndGrowth) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<MemoryRegion> slots(8);
  MrTable table(slots);
  std::map<std::uint32_t, std::uint32_t> model;  // index to key
  for (int step = 0; step < 200'000; ++step) {
    const auto key =
        static_cast<std::uint32_t>(random() % 512) << 8 | static_cast<std::uint32_t>(random() % 2);
    if (random() % 2 == 0) {
      const InsertOutcome outcome = table.insert({.length = key, .pd = kPd, .key = key});
      if (outcome == InsertOutcome::kNoRoom) {
        ASSERT_EQ(model.size(), table.capacity());
        std::vector<MemoryRegion> larger(slots.size() * 2);
        ASSERT_EQ(table.rehash_into(larger).size(), slots.size());
        slots.swap(larger);
        continue;
      }
      ASSERT_EQ(outcome == InsertOutcome::kInserted, model.emplace(key >> 8, key).second);
    } else {
      const auto known = model.find(key >> 8);
      const bool present = known != model.end() && known->second == key;
      ASSERT_EQ(table.erase(key), present);
      if (present) model.erase(known);
    }
    ASSERT_EQ(table.size(), model.size());
    if (step % 1000 == 0) {
      for (const auto& [index, value] : model) ASSERT_EQ(table.find(value)->length, value);
    }
  }
}

// Against arithmetic that cannot wrap, with addresses and lengths near everything that matters.
TEST(MrTableProperty, BoundsAgreeWithWideArithmetic) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto near = [&](std::uint64_t value) { return value + random() % 5 - 2; };
  for (int step = 0; step < 200'000; ++step) {
    const std::uint64_t iova = random() % 2 == 0 ? near(0) : random();
    const std::uint64_t length = random() >> (random() % 64);
    std::array<MemoryRegion, 2> slots{};
    MrTable table(slots);
    const Wide end = Wide{iova} + length;
    const bool wraps = end > Wide{1} << 64;
    const InsertOutcome outcome =
        table.insert({.iova = iova, .length = length, .pd = kPd, .key = kKey});
    ASSERT_EQ(outcome, wraps ? InsertOutcome::kBadRegion : InsertOutcome::kInserted);
    if (wraps) continue;
    const std::uint64_t address = random() % 2 == 0 ? near(iova) : near(iova + length);
    const std::uint64_t bytes = random() % 2 == 0 ? near(length) : near(~address);
    if (bytes == 0) continue;
    const bool inside = address >= iova && Wide{address} + bytes <= end;
    const Resolved at = table.resolve(RKey{kKey}, address, bytes, Access::kNone, kBy);
    ASSERT_EQ(at.fault, inside ? MemoryFault::kNone : MemoryFault::kOutOfBounds)
        << iova << " " << length << ": " << address << " " << bytes;
  }
}

TEST(MrTable, HoldsAMillionRegions) {
  constexpr std::uint32_t kCount = 1'000'000;
  std::vector<MemoryRegion> slots(std::size_t{1} << 21);
  MrTable table(slots);
  std::mt19937 random(1);
  std::vector<std::uint32_t> keys;
  while (keys.size() < kCount) {
    const auto key = static_cast<std::uint32_t>(random());
    if (table.insert({.length = 1, .pd = kPd, .key = key}) == InsertOutcome::kInserted) {
      keys.push_back(key);
    }
  }
  for (const std::uint32_t key : keys) ASSERT_NE(table.find(key), nullptr);
  for (const std::uint32_t key : keys) ASSERT_TRUE(table.erase(key));
  for (const MemoryRegion& slot : slots) ASSERT_TRUE(slot.is_empty());
}

}  // namespace
}  // namespace uroce::memory
