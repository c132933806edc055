// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "datapath/shm/ring_memory.h"
#include "unit/datapath/shm/shm_end.h"

namespace uroce::datapath::shm {
namespace {

using Found = RingReader::Found;

struct RingTest : testing::Test {
  static constexpr std::uint32_t kBytes = 4096;
  static constexpr std::uint64_t kKey = 0x1234'5678'9abc'def0;
  RingMemory memory = std::move(*RingMemory::make(kBytes));
  RingWriter writer{memory.control(), memory.data(), kBytes, kKey};
  RingReader reader{memory.control(), memory.data(), kBytes, kKey};
  Path path;
  Record record;

  bool write(std::uint32_t number, std::size_t payload_bytes) {
    NumberedFrame one(path, number, payload_bytes);
    return writer.write(one.frame());
  }
  // The next record is whole and is `number`.
  bool read(std::uint32_t number, std::size_t payload_bytes) {
    if (reader.next(record) != Found::kRecord) return false;
    const RxPacket packet{
        .bytes = record.headers, .detached_payload = record.payload, .payload_is_detached = true};
    return record.payload.size() == payload_bytes && NumberedFrame::is_intact(packet) &&
           NumberedFrame::number_of(packet) == number;
  }
  // Where the next record will begin: what a buggy peer may scribble on.
  void scribble(std::uint64_t position, RecordSizes sizes) {
    auto* head = new (memory.data() + position % kBytes) RecordHead;
    head->sizes.store(std::bit_cast<std::uint64_t>(sizes));
    head->stamp.store(record_stamp(kKey, position));
  }
};

TEST_F(RingTest, AnEmptyRingHasNothing) { EXPECT_EQ(reader.next(record), Found::kNothing); }

TEST_F(RingTest, ASmallFrameIsOneLine) {
  ASSERT_TRUE(write(1, 8));
  EXPECT_EQ(writer.tail(), kLineBytes);
}

TEST_F(RingTest, WrapsAtEveryAlignmentWithEveryNumberOfLines) {
  std::uint32_t number = 0;
  for (std::size_t bytes = 0; bytes <= 1900; bytes += 19) {
    for (std::uint32_t i = 0; i < 70; ++i) {
      ++number;
      ASSERT_TRUE(write(number, bytes)) << bytes << " bytes at " << writer.tail();
      ASSERT_TRUE(read(number, bytes)) << bytes << " bytes at " << writer.tail();
      ASSERT_EQ(reader.next(record), Found::kNothing);
      reader.release();
    }
  }
}

TEST_F(RingTest, RefusesWhenFullAndGoesOnInOrder) {
  std::uint32_t sent = 0, received = 0;
  for (int round = 0; round < 200; ++round) {
    while (write(sent + 1, 100)) ++sent;
    EXPECT_GE(writer.tail() - writer.refresh_head(), kBytes - 3 * kLineBytes);
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(read(++received, 100));
    reader.release();
  }
}

TEST_F(RingTest, RoomIsFreeOnlyAfterRelease) {
  std::uint32_t sent = 0;
  while (write(sent + 1, 8)) ++sent;
  EXPECT_EQ(sent, kBytes / kLineBytes);
  ASSERT_TRUE(read(1, 8));
  EXPECT_FALSE(write(sent + 1, 8));
  reader.release();
  EXPECT_TRUE(write(sent + 1, 8));
}

TEST_F(RingTest, CarriesRunsAddressesAndPieces) {
  NumberedFrame one(path, 5, 0);
  path.source.bytes[15] = 1;
  path.destination.bytes[15] = 2;
  path.flow_label = 0xabcde;
  path.traffic_class = 3;
  path.hop_limit = 4;
  const std::vector<std::byte> bytes(900, std::byte{7});
  const ConstBytes pieces[] = {ConstBytes(bytes).first(1), ConstBytes(bytes).first(0),
                               ConstBytes(bytes).first(899)};
  one.frame().gather = pieces;
  one.frame().gather_count = 3;
  one.frame().payload_bytes = 900;
  one.frame().packet_count = 4;
  one.frame().carries_addresses = true;
  ASSERT_TRUE(writer.write(one.frame()));
  ASSERT_EQ(reader.next(record), Found::kRecord);
  EXPECT_EQ(record.packet_count, 4);
  EXPECT_TRUE(std::equal(record.payload.begin(), record.payload.end(), bytes.begin(), bytes.end()));
  ASSERT_NE(record.addresses, nullptr);
  RecordAddresses addresses;
  std::memcpy(&addresses, record.addresses, sizeof addresses);
  EXPECT_EQ(addresses.source, path.source);
  EXPECT_EQ(addresses.destination, path.destination);
  EXPECT_EQ(addresses.flow_label, 0xabcdeu);
  EXPECT_EQ(addresses.traffic_class, 3);
  EXPECT_EQ(addresses.hop_limit, 4);
}

TEST_F(RingTest, AnOlderLapIsNotTakenForNews) {
  for (std::uint32_t i = 1; i <= 3 * kBytes / kLineBytes + 5; ++i) {
    ASSERT_TRUE(write(i, 8));
    ASSERT_TRUE(read(i, 8));
    ASSERT_FALSE(reader.has_news());
    reader.release();
  }
}

struct Nonsense {
  const char* name;
  RecordSizes sizes;
};
struct RingNonsense : RingTest, testing::WithParamInterface<Nonsense> {};

TEST_P(RingNonsense, ClosesTheRingAndTellsTheWriter) {
  ASSERT_TRUE(write(1, 8));
  scribble(writer.tail(), GetParam().sizes);
  ASSERT_TRUE(read(1, 8));
  EXPECT_EQ(reader.next(record), Found::kNonsense);
  EXPECT_EQ(reader.next(record), Found::kNothing);
  EXPECT_FALSE(reader.has_news());
  EXPECT_TRUE(writer.is_refused());
}

constexpr Nonsense kNonsense[] = {
    {"PayloadBeyondTheEnd", {.payload_bytes = 4096 - 64, .packet_count = 1, .header_bytes = 12}},
    {"PayloadOfFourGiB", {.payload_bytes = 0xffff'fff0, .packet_count = 1, .header_bytes = 12}},
    {"NoPackets", {.payload_bytes = 8, .packet_count = 0, .header_bytes = 12}},
    {"HeadersShorterThanABth", {.payload_bytes = 8, .packet_count = 1, .header_bytes = 11}},
    {"HeadersTooLong", {.payload_bytes = 8, .packet_count = 1, .header_bytes = 65}},
    {"UnknownFlags", {.payload_bytes = 8, .packet_count = 1, .header_bytes = 12, .flags = 4}},
};
INSTANTIATE_TEST_SUITE_P(All, RingNonsense, testing::ValuesIn(kNonsense),
                         [](const auto& one) { return one.param.name; });

TEST_F(RingTest, ASkipOverAWholeLapIsNonsense) {
  scribble(0, {.flags = kSkip});
  EXPECT_EQ(reader.next(record), Found::kNonsense);
}

TEST_F(RingTest, ASkipAfterASkipIsNonsense) {
  ASSERT_TRUE(write(1, 8));
  ASSERT_TRUE(read(1, 8));
  scribble(kLineBytes, {.flags = kSkip});
  scribble(kBytes, {.flags = kSkip});
  EXPECT_EQ(reader.next(record), Found::kNonsense);
}

TEST(RingMemoryTest, AMappingSeesTheSameBytes) {
  auto made = RingMemory::make(8192);
  ASSERT_TRUE(made);
  auto adopted = RingMemory::adopt(::dup(made->descriptor()), 8192);
  ASSERT_TRUE(adopted);
  made->data()[8191] = std::byte{9};
  EXPECT_EQ(adopted->data()[8191], std::byte{9});
}

TEST(RingMemoryTest, CanNeitherShrinkNorGrow) {
  auto made = RingMemory::make(8192);
  ASSERT_TRUE(made);
  EXPECT_NE(::ftruncate(made->descriptor(), 4096), 0);
  EXPECT_NE(::ftruncate(made->descriptor(), 1 << 20), 0);
}

TEST(RingMemoryTest, AnUnsealedOrShortFileIsRefused) {
  const int unsealed = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(unsealed, 4096 + 8192), 0);
  EXPECT_FALSE(RingMemory::adopt(unsealed, 8192));
  auto made = RingMemory::make(4096);
  EXPECT_FALSE(RingMemory::adopt(::dup(made->descriptor()), 8192));
}

}  // namespace
}  // namespace uroce::datapath::shm
