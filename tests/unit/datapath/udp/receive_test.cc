// SPDX-License-Identifier: BSD-2-Clause
// What arrives from strangers: damaged, short, forged, with whatever identification.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>

#include "datapath/crc/fast_crc32.h"
#include "datapath/udp/control.h"
#include "endpoint.h"
#include "wire/icrc.h"

namespace uroce::datapath::test {
namespace {

// An ordinary socket that is no part of the stack.
class Stranger {
 public:
  Stranger() : descriptor_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(descriptor_.get(), generic, bytes), 0);
    EXPECT_EQ(getsockname(descriptor_.get(), generic, &bytes), 0);
    port_ = ntohs(address.sin_port);
  }

  void send(std::span<const std::byte> bytes) const {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(test_port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(sendto(descriptor_.get(), bytes.data(), bytes.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  }

  // A SEND to `qpn` with the ICRC that an IPv4 header with these fields would call for.
  [[nodiscard]] std::vector<std::byte> packet(Qpn qpn, std::uint16_t identification,
                                              bool dont_fragment = true) const {
    TxFrame frame;
    frame.payload_bytes = 8;
    wire::build(frame, wire::Bth{.opcode = wire::Opcode::kRcSendOnly, .destination = qpn});
    std::vector<std::byte> bytes(frame.headers().begin(), frame.headers().end());
    bytes.resize(bytes.size() + 8, std::byte{0x11});
    const wire::IcrcFlow flow(ipv4_loopback(), ipv4_loopback(), port_, dont_fragment);
    const std::uint32_t start = flow.start(bytes.size() + wire::kIcrcBytes, identification);
    std::array<std::byte, wire::kMaxTrailerBytes> trailer;
    const std::uint32_t state = wire::icrc_of(wire::crc32, start, bytes);
    const std::size_t n = wire::icrc_trailer(wire::crc32, state, 0, trailer);
    bytes.insert(bytes.end(), trailer.begin(), trailer.begin() + static_cast<std::ptrdiff_t>(n));
    return bytes;
  }

 private:
  posix::Descriptor descriptor_;
  std::uint16_t port_ = 0;
};

class FromStrangers : public testing::Test {
 protected:
  // Loopback delivers before sendto returns, but under load perhaps later.
  void receive_until_counted(const std::uint64_t& counter, std::uint64_t value) {
    while (counter < value) {
      pollfd ready = {endpoint_.link->wakeup_descriptor(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, 5'000), 1);
      std::array<RxPacket, 4> packets;
      ASSERT_EQ(endpoint_.link->rx_burst(packets), 0u);
    }
  }

  TemporaryFolder folder_;
  Endpoint endpoint_{folder_.path()};
  Stranger stranger_;
};

TEST_F(FromStrangers, AnyIdentificationIsAccepted) {
  for (const std::uint32_t value : {0u, 1u, 0x1234u, 0xffffu}) {
    const auto identification = static_cast<std::uint16_t>(value);
    for (const bool dont_fragment : {true, false}) {
      stranger_.send(stranger_.packet(endpoint_.qpn(), identification, dont_fragment));
      EXPECT_EQ(receive(*endpoint_.link, 1).size(), 1u) << identification;
    }
  }
  EXPECT_EQ(endpoint_.link->counters().rx_bad_icrc, 0u);
}

// A packet whose ICRC is wrong is dropped silently, whichever bit it was.
TEST_F(FromStrangers, EveryFlippedBitIsSeen) {
  const auto good = stranger_.packet(endpoint_.qpn(), 7);
  std::uint64_t damaged = 0;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    if (bit / 8 == 4) continue;  // FECN and BECN are not covered
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    stranger_.send(bad);
    receive_until_counted(endpoint_.link->counters().rx_bad_icrc, ++damaged);
  }
}

TEST_F(FromStrangers, CongestionBitsMayChangeOnTheWay) {
  auto packet = stranger_.packet(endpoint_.qpn(), 0);
  packet[4] = std::byte{0xc0};
  stranger_.send(packet);
  const auto arrivals = receive(*endpoint_.link, 1);
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_TRUE(arrivals[0].parsed().bth.fecn);
}

TEST_F(FromStrangers, EveryLengthFromNothingOnIsHarmless) {
  const std::vector<std::byte> zeroes(200);
  for (std::size_t bytes = 1; bytes < zeroes.size(); ++bytes) {
    stranger_.send(std::span(zeroes).first(bytes));
  }
  const DatapathCounters& counters = endpoint_.link->counters();
  receive_until_counted(counters.rx_bad_icrc, 184);
  EXPECT_EQ(counters.rx_not_roce, 15u);  // shorter than BTH and ICRC
}

// An empty datagram must not look like the end of what is there.
TEST_F(FromStrangers, AnEmptyDatagramHidesNothing) {
  stranger_.send({});
  stranger_.send(stranger_.packet(endpoint_.qpn(), 0));
  EXPECT_EQ(receive(*endpoint_.link, 1).size(), 1u);
}

// Without the group's secret nobody slips in a packet past the ICRC, or moves a member.
TEST_F(FromStrangers, ForgedControlDatagramsAreIgnored) {
  std::vector<std::byte> forged(sizeof(udp::ControlHeader) + sizeof(udp::ForwardedFrom) + 20);
  for (const auto kind : {udp::ControlKind::kProbe, udp::ControlKind::kForwarded}) {
    udp::ControlHeader header;
    header.kind = kind;
    std::memcpy(forged.data(), &header, sizeof header);
    stranger_.send(forged);
    stranger_.send(std::span(forged).first(sizeof header));
  }
  stranger_.send(stranger_.packet(endpoint_.qpn(), 0));
  EXPECT_EQ(receive(*endpoint_.link, 1).size(), 1u);
}

TEST_F(FromStrangers, WithVerificationOffAWrongIcrcPasses) {
  endpoint_.link.reset();
  const Endpoint endpoint(folder_.path(), {.port = test_port(), .verify_icrc = false});
  auto packet = stranger_.packet(endpoint.qpn(), 0);
  packet.back() ^= std::byte{1};
  stranger_.send(packet);
  EXPECT_EQ(receive(*endpoint.link, 1).size(), 1u);
}

TEST(OpenPath, RefusesAddressesOfTwoFamilies) {
  const TemporaryFolder folder;
  const Endpoint endpoint(folder.path());
  Path path;
  path.source = ipv4_loopback();
  path.destination = ipv6_loopback();
  EXPECT_EQ(endpoint.link->open_path(path, {}), EHOSTUNREACH);
}

}  // namespace
}  // namespace uroce::datapath::test
