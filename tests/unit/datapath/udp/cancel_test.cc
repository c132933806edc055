// SPDX-License-Identifier: BSD-2-Clause
// Sending and receiving are no cancellation points (man 7 pthreads), whatever system calls they
// make: the shard's lock would stay taken.
#include "support/cancelled.h"
#include "unit/datapath/udp/endpoint.h"

namespace uroce::datapath::test {
namespace {

TEST(UdpCancel, SendingAndReceivingComeToTheirEnd) {
  const TemporaryFolder folder;
  Endpoint end(folder.path());
  const Path path = end.path_to(ipv4_loopback(), ipv4_loopback());
  const std::vector<std::byte> data = pattern(64);
  const ConstBytes gather = data;
  const auto send = [&] {
    TxFrame frame = make_frame(path, end.qpn(), {.payload_bytes = 64}, gather);
    end.link->tx_burst({&frame, 1});
  };
  EXPECT_TRUE(uroce::test::is_no_cancellation_point(send));
  std::array<RxPacket, 32> packets;
  const auto look = [&] { static_cast<void>(end.link->rx_burst(packets)); };
  EXPECT_TRUE(uroce::test::is_no_cancellation_point(look));
}

}  // namespace
}  // namespace uroce::datapath::test
