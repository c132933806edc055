// SPDX-License-Identifier: BSD-2-Clause
#include "memory/dma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace uroce::memory {
namespace {

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

TEST(Dma, GathersPiecesInOrder) {
  const std::vector<std::byte> source = numbered(10);
  const ConstBytes all(source);
  const std::array<ConstBytes, 3> pieces{all.subspan(5, 5), ConstBytes{}, all.subspan(0, 5)};
  std::array<std::byte, 12> target{};
  EXPECT_EQ(gather(pieces, target), 10U);
  EXPECT_EQ(target[0], std::byte{6});
  EXPECT_EQ(target[9], std::byte{5});
  EXPECT_EQ(target[10], std::byte{0});
}

TEST(Dma, ScattersOverPiecesAndTouchesNothingElse) {
  const std::vector<std::byte> source = numbered(4);
  std::array<std::byte, 8> target{};
  const Bytes all(target);
  const std::array<Bytes, 3> pieces{all.subspan(6, 1), Bytes{}, all.subspan(1, 5)};
  EXPECT_EQ(scatter(source, pieces), 4U);
  const std::array<std::byte, 8> expected{std::byte{0}, std::byte{2}, std::byte{3}, std::byte{4},
                                          std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};
  EXPECT_EQ(target, expected);
}

TEST(Dma, StopsAtTheShorterSide) {
  const std::vector<std::byte> source = numbered(8);
  std::array<std::byte, 3> target{};
  const std::array<ConstBytes, 2> out{ConstBytes(source), ConstBytes(source)};
  EXPECT_EQ(gather(out, target), 3U);
  const std::array<Bytes, 1> in{Bytes(target)};
  EXPECT_EQ(scatter(source, in), 3U);
}

TEST(Dma, ScatterBringsBackWhatGatherTookForRandomPieces) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const std::vector<std::byte> source = numbered(1000);
  for (int round = 0; round < 500; ++round) {
    std::vector<ConstBytes> out;
    std::vector<std::byte> copy(source.size());
    std::vector<Bytes> in;
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t length = std::min<std::size_t>(random() % 200, source.size() - at);
      out.push_back(ConstBytes(source).subspan(at, length));
      in.push_back(Bytes(copy).subspan(at, length));
      at += length;
    }
    std::vector<std::byte> frame(source.size());
    ASSERT_EQ(gather(out, frame), source.size());
    ASSERT_EQ(scatter(frame, in), source.size());
    ASSERT_EQ(copy, source);
  }
}

TEST(Dma, SourceAndTargetMayOverlap) {
  std::vector<std::byte> memory = numbered(64);
  const std::vector<std::byte> before = memory;
  const std::array<Bytes, 1> target{Bytes(memory).subspan(8, 56)};
  EXPECT_EQ(scatter(ConstBytes(memory).first(56), target), 56U);
  EXPECT_EQ(std::memcmp(memory.data() + 8, before.data(), 56), 0);
}

class Atomics : public testing::Test {
 protected:
  std::byte* word() { return static_cast<std::byte*>(static_cast<void*>(&value_)); }
  alignas(8) std::uint64_t value_ = 0;
};

// IBTA 9.4.5
TEST_F(Atomics, CompareAndSwapReturnsTheOriginalAndSwapsOnlyWhenEqual) {
  value_ = 10;
  EXPECT_EQ(compare_and_swap(word(), 11, 99), 10U);
  EXPECT_EQ(value_, 10U);
  EXPECT_EQ(compare_and_swap(word(), 10, 99), 10U);
  EXPECT_EQ(value_, 99U);
}

TEST_F(Atomics, FetchAndAddReturnsTheOriginalAndWraps) {
  value_ = ~0ULL;
  EXPECT_EQ(fetch_and_add(word(), 3), ~0ULL);
  EXPECT_EQ(value_, 2U);
}

TEST_F(Atomics, AreRefusedWhenMisaligned) {
  alignas(8) std::array<std::byte, 16> bytes{};
  for (std::size_t offset = 1; offset < 8; ++offset) {
    EXPECT_EQ(compare_and_swap(bytes.data() + offset, 0, 1), std::nullopt);
    EXPECT_EQ(fetch_and_add(bytes.data() + offset, 1), std::nullopt);
  }
  EXPECT_THAT(bytes, testing::Each(std::byte{0}));
}

TEST_F(Atomics, AreAtomicTowardsTheApplicationsOwn) {
  constexpr std::uint64_t kRounds = 100'000;
  std::thread application([this] {
    for (std::uint64_t i = 0; i < kRounds; ++i) std::atomic_ref(value_).fetch_add(1);
  });
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    if (i % 2 == 0) {
      fetch_and_add(word(), 1);
      continue;
    }
    std::uint64_t seen = *fetch_and_add(word(), 0);
    while (true) {
      const std::uint64_t original = *compare_and_swap(word(), seen, seen + 1);
      if (original == seen) break;
      seen = original;
    }
  }
  application.join();
  EXPECT_EQ(value_, 2 * kRounds);
}

}  // namespace
}  // namespace uroce::memory
