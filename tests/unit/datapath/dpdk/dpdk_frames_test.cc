// SPDX-License-Identifier: BSD-2-Clause
// Whole Ethernet frames through a port, beside RoCE's own packets: a ring brings back what is sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "datapath/dpdk_loader.h"
#include "support/ethernet.h"
#include "unit/datapath/dpdk/frames.h"

namespace uroce::datapath {
namespace {

using Frame = std::vector<std::byte>;
using Frames = Datapath::Frames;
using testing::ElementsAre;
using testing::IsEmpty;

class DpdkFrames : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_dpdk({.spec = "net_ring", .addresses = {{own_, 24}}});
    ASSERT_TRUE(opened) << opened.error().message;
    link_ = std::move(opened->datapath);
  }

  static Frame foreign(std::size_t bytes = 60) {
    return test::FrameBuilder(test::kMacB, test::kMacA).type(0x88b5).fill(bytes).bytes();
  }
  void send(const Frame& bytes) {
    const ConstBytes first = ConstBytes(bytes).first(bytes.size() / 3);
    const std::array<ConstBytes, 2> pieces{first, ConstBytes(bytes).subspan(first.size())};
    TxFrame frame;
    frame.payload_bytes = static_cast<std::uint32_t>(bytes.size());
    frame.gather = pieces.data();
    frame.gather_count = 2;
    ASSERT_EQ(link_->tx_burst({&frame, 1}), 0U);
  }

  struct Arrivals {
    std::vector<Frame> frames;  // whole ones
    std::size_t packets = 0;    // of RoCE
  };
  Arrivals receive() {
    Arrivals arrivals;
    std::array<RxPacket, 32> packets;
    for (std::int64_t turn = 0; turn < 4; ++turn) {
      const std::size_t count = link_->rx_burst(packets);
      for (const RxPacket& packet : std::span(packets).first(count)) {
        if (packet.has_frame()) {
          const ConstBytes frame = packet.frame();
          arrivals.frames.emplace_back(frame.begin(), frame.end());
        }
        if (!packet.bytes.empty()) ++arrivals.packets;
      }
      link_->on_turn(Instant{turn});
    }
    return arrivals;
  }

  Gid own_ = ipv4(10, 0, 0, 1);
  std::unique_ptr<Datapath> link_;
};

TEST_F(DpdkFrames, AreLentWhenTheyAreAskedForAndAsTheyWere) {
  send(foreign());
  EXPECT_THAT(receive().frames, IsEmpty());
  link_->lend_frames(Frames::kForeign);
  const Frame tagged =
      test::FrameBuilder(test::kMacB, test::kMacA).vlan(0x2005).type(1).fill(100).bytes();
  const Frame broken =
      test::FrameBuilder(test::kMacB, test::kMacA).ipv4({1}, {2}, test::kUdp).bytes();
  send(foreign());
  send(tagged);
  send(broken);
  const Arrivals arrivals = receive();
  EXPECT_THAT(arrivals.frames, ElementsAre(foreign(), tagged, broken));
  EXPECT_EQ(arrivals.packets, 0U);
  link_->lend_frames(Frames::kNone);
  send(foreign());
  EXPECT_THAT(receive().frames, IsEmpty());
}

TEST_F(DpdkFrames, OfEveryLengthThatThePortSaysItTakes) {
  link_->lend_frames(Frames::kForeign);
  const std::uint16_t max = link_->capabilities().max_frame_bytes;
  ASSERT_GE(max, 4'096 + 14);
  for (const std::size_t bytes : {std::size_t{14}, std::size_t{15}, std::size_t{1'514},
                                  std::size_t{max}, std::size_t{max} + wire::kVlanTagBytes}) {
    send(foreign(bytes));
    EXPECT_THAT(receive().frames, ElementsAre(foreign(bytes))) << bytes;
  }
}

TEST_F(DpdkFrames, RocePacketsAreInTheirFramesOnlyForSniffers) {
  Path path{.source = own_, .destination = own_};
  ASSERT_EQ(link_->open_path(path, Qpn{2}), 0);
  receive();  // our own question, and its answer
  receive();
  const auto payload = make_payload(100);
  WriteRun run(path, payload, 1024, 100);
  for (const Frames which : {Frames::kNone, Frames::kForeign, Frames::kAll}) {
    link_->lend_frames(which);
    run.frame.refused = false;
    ASSERT_EQ(link_->tx_burst({&run.frame, 1}), 0U);
    const Arrivals arrivals = receive();
    EXPECT_EQ(arrivals.packets, 1U);
    ASSERT_EQ(arrivals.frames.size(), which == Frames::kAll ? 1U : 0U);
    if (which != Frames::kAll) continue;
    // Ethernet, IPv4, UDP, BTH, RETH, the payload, ICRC.
    EXPECT_EQ(arrivals.frames[0].size(), 14U + 20 + 8 + 12 + 16 + 100 + 4);
    wire::NetworkView view;
    EXPECT_EQ(wire::parse_network(arrivals.frames[0], view), wire::NetworkDrop::kNone);
    EXPECT_EQ(view.destination, own_);
  }
}

// Whoever asks for our address is answered, although somebody else sees the question too.
TEST_F(DpdkFrames, WhatThePortAnswersIsAnsweredStill) {
  link_->lend_frames(Frames::kForeign);
  Path path{.source = own_, .destination = own_};
  ASSERT_EQ(link_->open_path(path, Qpn{2}), 0);
  EXPECT_EQ(receive().frames.size(), 2U);  // the question and the answer
  const auto payload = make_payload(10);
  WriteRun run(path, payload, 1024, 100);
  ASSERT_EQ(link_->tx_burst({&run.frame, 1}), 0U);
  EXPECT_EQ(receive().packets, 1U);
}

TEST_F(DpdkFrames, RoceToAnotherAddressIsForeign) {
  link_->lend_frames(Frames::kForeign);
  const Frame frame = test::FrameBuilder(test::kMacB, test::kMacA)
                          .ipv4({10, 0, 0, 7}, {10, 0, 0, 9}, test::kUdp)
                          .ports(50'000, 4'791)
                          .fill(80)
                          .bytes();
  send(frame);
  EXPECT_THAT(receive().frames, ElementsAre(frame));
}

TEST_F(DpdkFrames, AFullPortRefusesThemAndLosesNone) {
  link_->lend_frames(Frames::kForeign);
  const Frame bytes = foreign(200);
  const ConstBytes piece = bytes;
  std::size_t sent = 0;
  for (bool refused = false; !refused && sent < 100'000;) {
    TxFrame frame;
    frame.payload_bytes = static_cast<std::uint32_t>(bytes.size());
    frame.gather = &piece;
    frame.gather_count = 1;
    refused = link_->tx_burst({&frame, 1}) != 0;
    EXPECT_EQ(frame.refused, refused);
    sent += refused ? 0 : 1;
  }
  ASSERT_LT(sent, 100'000U);
  std::size_t received = 0;
  EXPECT_TRUE(turn_until([&](Instant) { received += receive().frames.size(); },
                         [&] { return received == sent; }))
      << received << " of " << sent;
  EXPECT_EQ(link_->counters().tx_errors, 0U);
}

}  // namespace
}  // namespace uroce::datapath
