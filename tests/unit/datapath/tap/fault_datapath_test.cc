// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/fault_datapath.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "posix/descriptor.h"
#include "unit/datapath/tap/scripted_link.h"

namespace uroce::datapath::tap {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kAlways = 1'000'000;
Instant virtual_time;

class Faults : public testing::Test {
 protected:
  void SetUp() override { virtual_time = {1'000'000'000}; }

  void make(const FaultSpec& spec, std::size_t pool_packets = 64) {
    auto link = std::make_unique<ScriptedLink>();
    link_ = link.get();
    link_->descriptor = descriptor;
    auto made = FaultDatapath::create(
        std::move(link),
        {.spec = spec, .clock = [] { return virtual_time; }, .pool_packets = pool_packets});
    ASSERT_TRUE(made) << made.error().message;
    faulty_ = std::move(*made);
  }

  // The PSNs of one burst; every payload must still be what was sent.
  std::vector<std::uint32_t> receive(std::size_t room = 32) {
    std::vector<RxPacket> packets(room);
    packets.resize(faulty_->rx_burst(packets));
    std::vector<std::uint32_t> psns;
    for (const RxPacket& packet : packets) {
      EXPECT_EQ(packet.packet_count, 1);
      psns.push_back(psn_of(packet));
      for (std::size_t i = 0; i < packet.detached_payload.size(); ++i) {
        EXPECT_EQ(packet.detached_payload[i], static_cast<std::byte>(i)) << psns.back();
      }
    }
    return psns;
  }

  int descriptor = -1;
  ScriptedLink* link_ = nullptr;
  std::unique_ptr<Datapath> faulty_;
};

TEST_F(Faults, WithoutLuckNothingIsLeft) {
  make({.loss = kAlways});
  link_->arrive({write_run(1, 8), write_run(2, 8)});
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(faulty_->counters().faults_lost, 2u);
  EXPECT_EQ(faulty_->counters().rx_packets, 2u);
}

TEST_F(Faults, LostBurstsDoNotHideWhatComesBehind) {
  make({.loss = kAlways, .packets = 2});
  link_->arrive({write_run(1, 8)});
  link_->arrive({write_run(2, 8)});
  link_->arrive({write_run(3, 8)});
  EXPECT_THAT(receive(), ElementsAre(3));
}

TEST_F(Faults, ACorruptedPacketIsOneThatTheIcrcCaught) {
  make({.corrupt = kAlways, .packets = 1});
  link_->arrive({write_run(1, 8), write_run(2, 8)});
  EXPECT_THAT(receive(), ElementsAre(2));
  EXPECT_EQ(faulty_->counters().rx_bad_icrc, 1u);
  EXPECT_EQ(faulty_->counters().faults_corrupted, 1u);
}

TEST_F(Faults, ADuplicateFollowsItsPacketEvenIntoTheNextBurst) {
  make({.duplicate = kAlways});
  link_->arrive({write_run(1, 8), write_run(2, 8)});
  EXPECT_THAT(receive(3), ElementsAre(1, 1, 2));
  EXPECT_THAT(receive(3), ElementsAre(2));
  EXPECT_EQ(faulty_->counters().faults_duplicated, 2u);
}

TEST_F(Faults, ARunIsLostPacketByPacket) {
  make({.loss = kAlways / 2, .seed = 3});
  link_->arrive({write_run(100, 64 * 256, 64)});
  std::vector<std::uint32_t> all;
  for (std::vector<std::uint32_t> some; !(some = receive(5)).empty();) {
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_GT(all.size(), 16u);
  EXPECT_LT(all.size(), 48u);
  EXPECT_EQ(faulty_->counters().faults_lost + all.size(), 64u);
}

TEST_F(Faults, DuplicatesOfARunSurviveTheEndOfABurst) {
  make({.duplicate = kAlways});
  link_->arrive({write_run(100, 3 * 256, 3)});
  EXPECT_THAT(receive(1), ElementsAre(100));
  EXPECT_THAT(receive(2), ElementsAre(100, 101));
  EXPECT_THAT(receive(), ElementsAre(101, 102, 102));
}

TEST_F(Faults, DelayedPacketsComeInOrderWhenTheirTimeHasCome) {
  make({.delay_min = microseconds(50), .delay_max = milliseconds(2)});
  link_->arrive({write_run(1, 8), write_run(2, 8), write_run(3, 8)});
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_GE(faulty_->next_look(), virtual_time + microseconds(50));
  EXPECT_LE(faulty_->next_look(), virtual_time + milliseconds(2));
  std::vector<std::uint32_t> all;
  for (int i = 0; i < 200; ++i) {
    virtual_time = virtual_time + microseconds(10);
    const auto some = receive();
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_THAT(all, ElementsAre(1, 2, 3));
  EXPECT_EQ(faulty_->next_look(), Instant::never());
  EXPECT_EQ(faulty_->counters().faults_delayed, 3u);
}

// Frames without a packet of RoCE's meet with faults as well, and come whole.
TEST_F(Faults, AFrameThatWaitsIsKeptWhole) {
  make({.delay_min = microseconds(50), .delay_max = microseconds(50)});
  const ByteVector frame(4'600, std::byte{9});
  link_->arrive({{.headers = frame, .payload = {}, .is_frame = true}});
  EXPECT_THAT(receive(), IsEmpty());
  virtual_time = virtual_time + microseconds(50);
  std::array<RxPacket, 4> packets;
  ASSERT_EQ(faulty_->rx_burst(packets), 1u);
  EXPECT_TRUE(packets[0].bytes.empty());
  ASSERT_TRUE(packets[0].has_frame());
  EXPECT_TRUE(std::ranges::equal(packets[0].frame(), frame));
}

TEST_F(Faults, ALatePacketIsOvertaken) {
  make({.reorder = kAlways, .packets = 1});
  link_->arrive({write_run(1, 8)});
  EXPECT_THAT(receive(), IsEmpty());
  std::vector<std::uint32_t> all;
  for (std::uint32_t psn = 2; psn < 8; ++psn) {
    link_->arrive({write_run(psn, 8)});
    const auto some = receive();
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_EQ(std::ranges::count(all, 1u), 1);
  EXPECT_NE(all.front(), 1u);
  EXPECT_EQ(all.size(), 7u);
}

TEST_F(Faults, ALatePacketThatNobodyFollowsComesAllTheSame) {
  make({.reorder = kAlways});
  link_->arrive({write_run(1, 8), write_run(2, 8)});
  EXPECT_THAT(receive(), IsEmpty());
  virtual_time = virtual_time + milliseconds(1);
  EXPECT_THAT(receive(), ElementsAre(1, 2));
}

TEST_F(Faults, WhenThePoolIsFullTheLinkIsLeftAloneAndNothingIsLost) {
  make({.delay_min = milliseconds(1), .delay_max = milliseconds(1)}, 4);
  link_->arrive({write_run(100, 6 * 256, 6)});
  link_->arrive({write_run(200, 8)});
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_FALSE(faulty_->arm_wakeup()) << "the link would take back what we have of it";
  virtual_time = virtual_time + milliseconds(1);
  EXPECT_THAT(receive(), ElementsAre(100, 101, 102, 103));
  EXPECT_EQ(link_->counted.rx_packets, 1u);
  EXPECT_THAT(receive(), IsEmpty());
  virtual_time = virtual_time + milliseconds(1);
  EXPECT_THAT(receive(), ElementsAre(104, 105, 200));
}

TEST_F(Faults, WhatIsNoRunGoesOnForTheTransportToCount) {
  make({.duplicate = kAlways});
  link_->arrive({write_run(1, 8, 9)});
  std::vector<RxPacket> packets(32);
  ASSERT_EQ(faulty_->rx_burst(packets), 2u);
  EXPECT_EQ(packets[0].packet_count, 9);
}

TEST_F(Faults, TheLinkSaysThatItLosesPackets) {
  make({.loss = 1});
  EXPECT_TRUE(link_->capabilities().trusted_memory);
  EXPECT_FALSE(faulty_->capabilities().trusted_memory);
  EXPECT_EQ(faulty_->capabilities().max_run_packets, 256);
  EXPECT_STREQ(faulty_->capabilities().name, "scripted");
}

TEST_F(Faults, ArmedTheLinksOwnDescriptorIsEnoughWhereNothingWaits) {
  const posix::Descriptor event(eventfd(0, EFD_NONBLOCK));
  descriptor = event.get();
  make({.loss = 1});
  EXPECT_EQ(faulty_->wakeup_descriptor(), descriptor);
  EXPECT_TRUE(faulty_->arm_wakeup());
  faulty_->abandon_in_child();
  EXPECT_TRUE(link_->is_abandoned);
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd wait{descriptor, POLLIN, 0};
  return poll(&wait, 1, milliseconds) == 1;
}

// With the clock of the kernel's timers.
TEST_F(Faults, AWaitingPacketWakesByItself) {
  const posix::Descriptor event(eventfd(0, EFD_NONBLOCK));
  auto link = std::make_unique<ScriptedLink>();
  link->descriptor = event.get();
  ScriptedLink& script = *link;
  auto made = FaultDatapath::create(
      std::move(link),
      {.spec = {.delay_min = milliseconds(5), .delay_max = milliseconds(5)}, .clock = [] {
         return Instant{std::chrono::steady_clock::now().time_since_epoch() /
                        std::chrono::nanoseconds(1)};
       }});
  ASSERT_TRUE(made);
  faulty_ = std::move(*made);
  ASSERT_TRUE(faulty_->arm_wakeup());
  EXPECT_FALSE(is_readable(faulty_->wakeup_descriptor(), 0));
  // The application's turn, while the helper sleeps.
  script.arrive({write_run(1, 8)});
  EXPECT_THAT(receive(), IsEmpty());
  EXPECT_EQ(faulty_->next_look(), Instant::never());
  EXPECT_TRUE(is_readable(faulty_->wakeup_descriptor(), 10'000));
  faulty_->disarm_wakeup();
  EXPECT_FALSE(is_readable(faulty_->wakeup_descriptor(), 0));
  EXPECT_THAT(receive(), ElementsAre(1));
}

}  // namespace
}  // namespace uroce::datapath::tap
