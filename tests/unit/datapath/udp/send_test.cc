// SPDX-License-Identifier: BSD-2-Clause
// What is sent arrives: every path MTU, every shape of run, both families, with and without trains.
#include <algorithm>
#include <tuple>

#include "datapath/directory/directory.h"
#include "endpoint.h"

namespace uroce::datapath::test {
namespace {

struct Shape {
  const char* name;
  wire::Opcode opcode;
  bool whole_packets;  // no shorter packet at the end
};

constexpr Shape kShapes[] = {
    {"Only", wire::Opcode::kRcWriteOnly, false},
    {"OnlyImmediate", wire::Opcode::kRcWriteOnlyImmediate, false},
    {"First", wire::Opcode::kRcWriteFirst, true},
    {"Middle", wire::Opcode::kRcWriteMiddle, true},
    {"Last", wire::Opcode::kRcWriteLast, false},
    {"LastImmediate", wire::Opcode::kRcWriteLastImmediate, false},
    {"SendOnly", wire::Opcode::kRcSendOnly, false},
    {"ReadResponse", wire::Opcode::kRcReadResponseOnly, false},
};

using Parameters = std::tuple<std::uint16_t, Shape, bool, Segmentation>;

class EveryRun : public testing::TestWithParam<Parameters> {
 protected:
  void expect_arrives(std::uint32_t packets, std::uint32_t short_by) {
    const auto& [path_mtu, shape, is_ipv4, segmentation] = GetParam();
    const Gid address = is_ipv4 ? ipv4_loopback() : ipv6_loopback();
    const Path path = sender_.path_to(address, address);
    const auto data = pattern(packets * path_mtu - short_by);
    const ConstBytes gather = data;
    const WriteRun run = {shape.opcode, static_cast<std::uint32_t>(data.size()), path_mtu};
    TxFrame frame = make_frame(path, receiver_.qpn(), run, gather);
    ASSERT_EQ(sender_.link->tx_burst({&frame, 1}), 0u);
    const auto arrivals = receive(*receiver_.link, packets);
    ASSERT_EQ(arrivals.size(), packets);
    EXPECT_TRUE(std::ranges::equal(payload_of(arrivals), data));
    for (std::uint32_t i = 0; i < packets; ++i) {
      EXPECT_EQ(arrivals[i].parsed().bth.psn, Psn(100 + i));
      EXPECT_EQ(arrivals[i].source, address);
      EXPECT_EQ(arrivals[i].destination, address);
      EXPECT_EQ(arrivals[i].hop_limit, 64);
    }
  }

  TemporaryFolder folder_;
  Endpoint sender_{folder_.path(),
                   {.port = test_port(), .segmentation = std::get<Segmentation>(GetParam())}};
  Endpoint receiver_{folder_.path()};
};

TEST_P(EveryRun, ArrivesWholeAndInOrder) {
  const bool whole_packets = std::get<Shape>(GetParam()).whole_packets;
  for (const std::uint32_t packets : {1u, 2u, 3u, 17u, 70u}) {
    expect_arrives(packets, 0);
    if (!whole_packets) expect_arrives(packets, 101);
  }
  EXPECT_EQ(receiver_.link->counters().rx_bad_icrc, 0u);
  EXPECT_EQ(sender_.link->counters().tx_errors, 0u);
}

std::string name_of(const testing::TestParamInfo<Parameters>& info) {
  const auto& [path_mtu, shape, is_ipv4, segmentation] = info.param;
  return std::string(shape.name) + std::to_string(path_mtu) + (is_ipv4 ? "Ipv4" : "Ipv6") +
         (segmentation == Segmentation::kNever ? "Single" : "Trains");
}

INSTANTIATE_TEST_SUITE_P(
    Udp, EveryRun,
    testing::Combine(testing::Values<std::uint16_t>(256, 512, 1024, 2048, 4096),
                     testing::ValuesIn(kShapes), testing::Bool(),
                     testing::Values(Segmentation::kNever, Segmentation::kWhereNumbered)),
    name_of);

}  // namespace
}  // namespace uroce::datapath::test
