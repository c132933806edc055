// SPDX-License-Identifier: BSD-2-Clause
// Against the table that Microsoft publishes for implementers ("Verifying the RSS Hash
// Calculation").
#include "steering/hash.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "support/ethernet.h"

namespace uroce::steering {
namespace {

constexpr ToeplitzKey kKey{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                           0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                           0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                           0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

struct Vector {
  const char* destination;
  std::uint16_t destination_port;
  const char* source;
  std::uint16_t source_port;
  std::uint32_t of_addresses;
  std::uint32_t with_ports;
};

constexpr Vector kIpv4Vectors[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
};
constexpr Vector kIpv6Vectors[] = {
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985,
     0x02d1feef},
};

template <typename Address>
Address address_of(int family, const char* text) {
  Address address{};
  EXPECT_EQ(inet_pton(family, text, address.data()), 1) << text;
  return address;
}

FrameKey key_of(const Vector& v, std::uint8_t protocol) {
  test::FrameBuilder frame(test::kMacB, test::kMacA);
  if (std::string_view(v.source).find(':') == std::string_view::npos) {
    frame.ipv4(address_of<test::Ipv4Address>(AF_INET, v.source),
               address_of<test::Ipv4Address>(AF_INET, v.destination), protocol);
  } else {
    frame.ipv6(address_of<test::Ipv6Address>(AF_INET6, v.source),
               address_of<test::Ipv6Address>(AF_INET6, v.destination), protocol);
  }
  return classify(frame.ports(v.source_port, v.destination_port).bytes());
}

using namespace hash_field;
constexpr std::uint32_t kAddresses =
    kSourceIpv4 | kDestinationIpv4 | kSourceIpv6 | kDestinationIpv6;
constexpr std::uint32_t kTcpPorts = kSourcePortTcp | kDestinationPortTcp;
constexpr std::uint32_t kUdpPorts = kSourcePortUdp | kDestinationPortUdp;

TEST(Toeplitz, GivesWhatMicrosoftPublishedForIpv4) {
  for (const Vector& v : kIpv4Vectors) {
    EXPECT_EQ(hash_of({kKey, kAddresses}, key_of(v, test::kTcp)), v.of_addresses) << v.source;
    EXPECT_EQ(hash_of({kKey, kAddresses | kTcpPorts}, key_of(v, test::kTcp)), v.with_ports);
  }
}

TEST(Toeplitz, GivesWhatMicrosoftPublishedForIpv6) {
  for (const Vector& v : kIpv6Vectors) {
    EXPECT_EQ(hash_of({kKey, kAddresses}, key_of(v, test::kUdp)), v.of_addresses) << v.source;
    EXPECT_EQ(hash_of({kKey, kAddresses | kUdpPorts}, key_of(v, test::kUdp)), v.with_ports);
  }
}

TEST(HashRule, CountsTheFieldsThatItNamesAndTheFrameHas) {
  const Vector& v = kIpv4Vectors[0];
  EXPECT_EQ(hash_of({kKey, kAddresses | kUdpPorts}, key_of(v, test::kTcp)), v.of_addresses);
  EXPECT_EQ(hash_of({kKey, kSourceIpv6 | kDestinationIpv6}, key_of(v, test::kTcp)), 0U);
  EXPECT_EQ(hash_of({kKey, 0}, key_of(v, test::kTcp)), 0U);
  EXPECT_EQ(hash_of({kKey, kAll}, FrameKey{}), 0U);
}

TEST(HashRule, EachFieldAloneTellsTwoFlowsApart) {
  for (const std::uint32_t field :
       {kSourceIpv4, kDestinationIpv4, kSourcePortTcp, kDestinationPortTcp}) {
    EXPECT_NE(hash_of({kKey, field}, key_of(kIpv4Vectors[0], test::kTcp)),
              hash_of({kKey, field}, key_of(kIpv4Vectors[1], test::kTcp)))
        << field;
  }
}

}  // namespace
}  // namespace uroce::steering
