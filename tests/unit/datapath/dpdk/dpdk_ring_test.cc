// SPDX-License-Identifier: BSD-2-Clause
// A whole DPDK port without privilege: a ring that brings back what is sent.
#include <gtest/gtest.h>

#include "datapath/dpdk_loader.h"
#include "unit/datapath/dpdk/frames.h"

namespace uroce::datapath {
namespace {

class DpdkRing : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_dpdk({.spec = "net_ring", .addresses = {{own_, 24}, {own_v6_, 64}}});
    ASSERT_TRUE(opened) << opened.error().message;
    link_ = std::move(opened->datapath);
  }

  // The ring brings our own question back, which we answer.
  void open(Path& path) {
    ASSERT_EQ(link_->open_path(path, Qpn{2}), 0);
    Collector turner(*link_);
    for (unsigned i = 0; i < 4; ++i) turner.turn(Instant{i});
  }

  Gid own_ = ipv4(10, 0, 0, 1);
  Gid own_v6_{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  std::unique_ptr<Datapath> link_;
};

TEST_F(DpdkRing, CapabilitiesSayWhatTheLinkIs) {
  const DatapathCapabilities& capabilities = link_->capabilities();
  EXPECT_STREQ(capabilities.name, "dpdk");
  EXPECT_EQ(capabilities.max_path_mtu, 4096);
  EXPECT_FALSE(capabilities.trusted_memory);
  EXPECT_GT(capabilities.peer_window_bytes, 0u);
}

TEST_F(DpdkRing, RunsOfEverySizeComeBackAsTheirPackets) {
  for (const Gid& gid : {own_, own_v6_}) {
    Path path{.source = gid, .destination = gid};
    open(path);
    for (const std::size_t bytes : {0u, 1u, 3u, 1023u, 1024u, 1025u, 2500u, 32u * 1024u}) {
      const auto payload = make_payload(bytes);
      WriteRun run(path, payload, 1024, 100);
      ASSERT_TRUE(send_all(*link_, run.frame));
      Collector collector(*link_);
      ASSERT_TRUE(turn_until([&](Instant now) { collector.turn(now); },
                             [&] { return collector.psns.size() == run.frame.packet_count; }))
          << bytes;
      EXPECT_EQ(collector.payload, payload) << bytes;
      EXPECT_EQ(collector.psns.back(), 99u + run.frame.packet_count);
      EXPECT_EQ(collector.source, gid);
      EXPECT_EQ(collector.unparsable, 0u);
    }
    link_->close_path(path);
  }
  EXPECT_EQ(link_->counters().rx_bad_icrc, 0u);
}

TEST_F(DpdkRing, AFullPortRefusesAndLosesNothing) {
  Path path{.source = own_, .destination = own_};
  open(path);
  const auto payload = make_payload(32 * 256);
  std::vector<std::byte> sent;
  std::uint32_t psn = 0;
  bool refused = false;
  while (!refused && psn < 100'000) {
    WriteRun run(path, payload, 256, psn);
    refused = link_->tx_burst({&run.frame, 1}) != 0;
    EXPECT_EQ(run.frame.refused, refused);
    if (!refused) psn += run.frame.packet_count;
  }
  ASSERT_TRUE(refused);
  Collector collector(*link_);
  ASSERT_TRUE(turn_until([&](Instant now) { collector.turn(now); },
                         [&] { return collector.psns.size() == psn; }))
      << collector.psns.size() << " of " << psn;
  for (std::uint32_t i = 0; i < psn; ++i) ASSERT_EQ(collector.psns[i], i);
  EXPECT_EQ(link_->counters().tx_errors, 0u);
}

// As long as its first answer may come; then what is sent is lost.
TEST_F(DpdkRing, AnUnresolvedNeighbourIsWaitedForAndThenCostsPackets) {
  Path path{.source = own_, .destination = ipv4(10, 0, 0, 99)};
  ASSERT_EQ(link_->open_path(path, Qpn{2}), 0);
  const auto payload = make_payload(10);
  WriteRun run(path, payload, 1024, 1);
  EXPECT_EQ(link_->tx_burst({&run.frame, 1}), 1u);
  EXPECT_TRUE(run.frame.refused);
  EXPECT_EQ(link_->counters().tx_errors, 0u);
  Collector collector(*link_);
  ASSERT_TRUE(turn_until([&](Instant now) { collector.turn(now); },
                         [&] {
                           return link_->tx_burst({&run.frame, 1}) == 0;
                         }));
  EXPECT_EQ(link_->counters().tx_errors, 1u);
}

TEST_F(DpdkRing, AnAddressInNoSubnetOfOursIsUnreachable) {
  Path path{.source = own_, .destination = ipv4(192, 0, 2, 1)};
  EXPECT_EQ(link_->open_path(path, Qpn{2}), EHOSTUNREACH);
}

TEST_F(DpdkRing, AFrameBeyondThePathMtuIsNotSent) {
  Path path{.source = own_, .destination = own_};
  open(path);
  const auto payload = make_payload(8192);
  WriteRun run(path, payload, 8192, 1);
  EXPECT_EQ(link_->tx_burst({&run.frame, 1}), 0u);
  EXPECT_EQ(link_->counters().tx_errors, 1u);
}

TEST_F(DpdkRing, ASecondPortOpensBesideTheFirst) {
  auto second = open_dpdk({.spec = "net_ring", .addresses = {{own_, 24}}});
  ASSERT_TRUE(second) << second.error().message;
}

}  // namespace
}  // namespace uroce::datapath
