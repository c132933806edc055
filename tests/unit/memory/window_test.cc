// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "memory/mr_table.h"

namespace uroce::memory {
namespace {

constexpr PdId kPd{7};
constexpr PdId kOtherPd{8};
constexpr Qpn kQp{0x11};
constexpr Qpn kOtherQp{0x12};
constexpr LKey kRegion{0x1111'1101};
constexpr RKey kType1{0x2222'2200};
constexpr RKey kType2{0x3333'3300};
constexpr std::uint64_t kIova = 0x10'0000;
constexpr std::uint64_t kLength = 0x1000;
constexpr Access kRemote = Access::kRemoteRead | Access::kRemoteWrite;

RKey variant(RKey key, std::uint32_t to) { return {(key.value & ~0xffU) | to}; }

class WindowTest : public testing::Test {
 protected:
  WindowTest() {
    add({.iova = kIova,
         .length = kLength,
         .base = memory_.data(),
         .pd = kPd,
         .access = Access::kLocalWrite | Access::kMwBind,
         .key = kRegion.value});
    add({.pd = kPd, .key = kType1.value, .kind = KeyKind::kWindowType1});
    add({.pd = kPd, .key = kType2.value, .kind = KeyKind::kWindowType2});
  }
  void add(const MemoryRegion& region) {
    EXPECT_EQ(table_.insert(region), InsertOutcome::kInserted);
  }
  static WindowBinding part(RKey window) {
    return {.window = window,
            .region = kRegion,
            .address = kIova + 0x100,
            .length = 0x200,
            .access = kRemote,
            .by = {kPd, kQp}};
  }
  MemoryFault fault(RKey key, std::uint64_t address, Qpn qp = kQp, PdId pd = kPd) const {
    return table_.resolve(key, address, 1, Access::kRemoteWrite, {pd, qp}).fault;
  }

  std::array<std::byte, kLength> memory_{};
  std::vector<MemoryRegion> slots_ = std::vector<MemoryRegion>(16);
  MrTable table_{slots_};
};

TEST_F(WindowTest, ABoundWindowIsAPartOfItsRegionAndNoMore) {
  const RKey key = variant(kType1, 1);
  ASSERT_TRUE(table_.bind(part(key)));
  const Accessor by{kPd, kQp};
  EXPECT_EQ(table_.resolve(key, kIova + 0x100, 0x200, kRemote, by).base, memory_.data() + 0x100);
  EXPECT_EQ(fault(key, kIova + 0xff), MemoryFault::kOutOfBounds);
  EXPECT_EQ(fault(key, kIova + 0x300), MemoryFault::kOutOfBounds);
  EXPECT_EQ(table_.resolve(key, kIova + 0x100, 8, Access::kRemoteAtomic, by).fault,
            MemoryFault::kAccess);
}

TEST_F(WindowTest, AWindowThatIsNotBoundGivesNothing) {
  EXPECT_EQ(fault(kType1, 0), MemoryFault::kAccess);
  EXPECT_EQ(fault(kType2, 0), MemoryFault::kAccess);
}

// A window is for peers: in a scatter/gather list its key is no key.
TEST_F(WindowTest, HasNoLKey) {
  const RKey key = variant(kType1, 1);
  ASSERT_TRUE(table_.bind(part(key)));
  EXPECT_EQ(table_.resolve(LKey{key.value}, kIova + 0x100, 1, Access::kNone, kPd).fault,
            MemoryFault::kAccess);
}

TEST_F(WindowTest, ABindingKillsTheKeyOfTheFormerOne) {
  ASSERT_TRUE(table_.bind(part(variant(kType1, 1))));
  ASSERT_TRUE(table_.bind(part(variant(kType1, 2))));
  EXPECT_EQ(fault(variant(kType1, 1), kIova + 0x100), MemoryFault::kInvalidKey);
  EXPECT_EQ(fault(variant(kType1, 2), kIova + 0x100), MemoryFault::kNone);
  EXPECT_EQ(table_.find(kRegion.value)->window_count, 1U);
}

TEST_F(WindowTest, Type1IsUnboundByABindingOfNoLengthAndServesAnyQpOfItsDomain) {
  ASSERT_TRUE(table_.bind(part(variant(kType1, 1))));
  EXPECT_EQ(fault(variant(kType1, 1), kIova + 0x100, kOtherQp), MemoryFault::kNone);
  EXPECT_EQ(fault(variant(kType1, 1), kIova + 0x100, kQp, kOtherPd), MemoryFault::kWrongPd);
  ASSERT_TRUE(table_.bind({.window = variant(kType1, 2), .by = {kPd, kQp}}));
  EXPECT_EQ(fault(variant(kType1, 2), kIova + 0x100), MemoryFault::kAccess);
  EXPECT_EQ(table_.find(kRegion.value)->window_count, 0U);
}

TEST_F(WindowTest, Type2ServesOnlyTheQpThatBoundItUntilItIsInvalidated) {
  const RKey key = variant(kType2, 0x42);
  ASSERT_TRUE(table_.bind(part(key)));
  EXPECT_EQ(fault(key, kIova + 0x100), MemoryFault::kNone);
  EXPECT_EQ(fault(key, kIova + 0x100, kOtherQp), MemoryFault::kWrongQp);
  EXPECT_FALSE(table_.bind(part(variant(kType2, 0x43)))) << "it is not free";
  EXPECT_FALSE(table_.invalidate(key, {kPd, kOtherQp}));
  EXPECT_FALSE(table_.invalidate(key, {kOtherPd, kQp}));
  EXPECT_FALSE(table_.invalidate(variant(kType2, 0x41), {kPd, kQp}));
  EXPECT_TRUE(table_.invalidate(key, {kPd, kQp}));
  EXPECT_EQ(fault(key, kIova + 0x100), MemoryFault::kAccess);
  EXPECT_TRUE(table_.bind(part(variant(kType2, 0x43))));
}

TEST_F(WindowTest, OnlyType2CanBeInvalidated) {
  ASSERT_TRUE(table_.bind(part(variant(kType1, 1))));
  EXPECT_FALSE(table_.invalidate(variant(kType1, 1), {kPd, kQp}));
  EXPECT_FALSE(table_.invalidate(RKey{kRegion.value}, {kPd, kQp}));
  EXPECT_EQ(fault(variant(kType1, 1), kIova + 0x100), MemoryFault::kNone);
}

TEST_F(WindowTest, AZeroBasedWindowIsAddressedByOffset) {
  const RKey key = variant(kType2, 1);
  WindowBinding binding = part(key);
  binding.access = kRemote | Access::kZeroBased;
  ASSERT_TRUE(table_.bind(binding));
  EXPECT_EQ(table_.resolve(key, 0, 0x200, kRemote, {kPd, kQp}).base, memory_.data() + 0x100);
  EXPECT_EQ(fault(key, 0x200), MemoryFault::kOutOfBounds);
  EXPECT_EQ(table_.behind(key, 8).key, kRegion);
  EXPECT_EQ(table_.behind(key, 8).address, kIova + 0x108);
}

TEST_F(WindowTest, ARegionWithBoundWindowsStays) {
  ASSERT_TRUE(table_.bind(part(variant(kType1, 1))));
  ASSERT_TRUE(table_.bind(part(variant(kType2, 1))));
  EXPECT_FALSE(table_.erase(kRegion.value));
  EXPECT_TRUE(table_.erase(variant(kType1, 1).value));
  EXPECT_FALSE(table_.erase(kRegion.value));
  EXPECT_TRUE(table_.invalidate(variant(kType2, 1), {kPd, kQp}));
  EXPECT_TRUE(table_.erase(kRegion.value));
}

struct Refusal {
  const char* name;
  void (*spoil)(WindowBinding&);
};
class WindowRefusals : public WindowTest, public testing::WithParamInterface<Refusal> {};

// IBTA 10.6.7.2: C10-72 to C10-75, o10-36.2.2.
TEST_P(WindowRefusals, ChangeNothing) {
  add({.iova = kIova,
       .length = kLength,
       .base = memory_.data(),
       .pd = kPd,
       .access = Access::kMwBind,
       .key = 0x4444'4400});
  add({.iova = kIova, .length = kLength, .base = memory_.data(), .pd = kPd, .key = 0x5555'5500});
  add({.iova = kIova,
       .length = kLength,
       .base = memory_.data(),
       .pd = kOtherPd,
       .access = Access::kMwBind | Access::kLocalWrite,
       .key = 0x6666'6600});
  for (const RKey window : {variant(kType1, 1), variant(kType2, 1)}) {
    WindowBinding binding = part(window);
    GetParam().spoil(binding);
    if (binding.length == 0 && window == variant(kType1, 1)) continue;
    if (has(binding.access, Access::kZeroBased) && window == variant(kType2, 1)) continue;
    EXPECT_FALSE(table_.bind(binding));
    EXPECT_NE(table_.find(window.value & ~0xffU), nullptr);
    EXPECT_EQ(table_.find(kRegion.value)->window_count, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WindowRefusals,
    testing::Values(
        Refusal{"no_such_region", [](WindowBinding& b) { b.region.value ^= 1; }},
        Refusal{"window_as_region", [](WindowBinding& b) { b.region.value = kType1.value; }},
        Refusal{"region_of_another_domain", [](WindowBinding& b) { b.region = {0x6666'6600}; }},
        Refusal{"qp_of_another_domain", [](WindowBinding& b) { b.by.pd = kOtherPd; }},
        Refusal{"region_without_the_right", [](WindowBinding& b) { b.region = {0x5555'5500}; }},
        Refusal{"remote_write_without_local", [](WindowBinding& b) { b.region = {0x4444'4400}; }},
        Refusal{"before_the_region", [](WindowBinding& b) { b.address = kIova - 1; }},
        Refusal{"behind_the_region", [](WindowBinding& b) { b.address = kIova + kLength; }},
        Refusal{"over_the_end", [](WindowBinding& b) { b.length = kLength - 0xff; }},
        Refusal{"wraps", [](WindowBinding& b) { b.address = ~0ULL - 0xff; }},
        Refusal{"longest", [](WindowBinding& b) { b.length = ~0ULL; }},
        Refusal{"type_1_zero_based",
                [](WindowBinding& b) { b.access = b.access | Access::kZeroBased; }},
        Refusal{"type_2_to_nothing", [](WindowBinding& b) { b.length = 0; }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(WindowTest, BindingsOutliveAGrowingTable) {
  ASSERT_TRUE(table_.bind(part(variant(kType2, 1))));
  std::vector<MemoryRegion> larger(64);
  static_cast<void>(table_.rehash_into(larger));
  EXPECT_EQ(fault(variant(kType2, 1), kIova + 0x100), MemoryFault::kNone);
  EXPECT_FALSE(table_.erase(kRegion.value));
  EXPECT_TRUE(table_.erase(variant(kType2, 1).value));
  EXPECT_TRUE(table_.erase(kRegion.value));
}

}  // namespace
}  // namespace uroce::memory
