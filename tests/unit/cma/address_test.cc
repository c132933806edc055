// SPDX-License-Identifier: BSD-2-Clause
#include "cma/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/ib.h>
#include <netinet/in.h>

#include <cstring>

#include "base/byte_order.h"

namespace uroce::cma {
namespace {

sockaddr_in ipv4(const char* text, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
  return address;
}
sockaddr_in6 ipv6(const char* text, std::uint16_t port, std::uint32_t scope = 0) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return address;
}

template <typename Sockaddr>
void expect_back(const Address& address, const Sockaddr& expected) {
  Sockaddr back{};
  ASSERT_EQ(to_sockaddr(address, &back), sizeof back);
  EXPECT_EQ(std::memcmp(&back, &expected, sizeof back), 0);
}

TEST(Address, OfIpv4IsMappedAndComesBack) {
  const sockaddr_in given = ipv4("10.1.2.3", 7471);
  const auto address = to_address(&given, sizeof given);
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->is_ipv4);
  EXPECT_TRUE(address->gid.is_ipv4());
  EXPECT_EQ(address->gid.bytes[12], 10);
  EXPECT_EQ(address->gid.bytes[15], 3);
  EXPECT_EQ(address->port, 7471);
  EXPECT_FALSE(address->is_any());
  EXPECT_FALSE(address->is_loopback());
  expect_back(*address, given);
}

TEST(Address, OfIpv6ComesBackWithItsScope) {
  const sockaddr_in6 given = ipv6("fe80::7", 1, 5);
  const auto address = to_address(&given, sizeof given);
  ASSERT_TRUE(address);
  EXPECT_FALSE(address->is_ipv4);
  EXPECT_EQ(address->scope, 5U);
  expect_back(*address, given);
}

TEST(Address, AnyIsZeroInEitherFamily) {
  const sockaddr_in four = ipv4("0.0.0.0", 9);
  const sockaddr_in6 six = ipv6("::", 9);
  EXPECT_TRUE(to_address(&four, sizeof four)->is_any());
  EXPECT_TRUE(to_address(&six, sizeof six)->is_any());
  expect_back(*to_address(&four, sizeof four), four);
}

TEST(Address, LoopbackIsANetworkOfIpv4AndOneAddressOfIpv6) {
  for (const char* text : {"127.0.0.1", "127.255.3.4"}) {
    const sockaddr_in given = ipv4(text, 0);
    EXPECT_TRUE(to_address(&given, sizeof given)->is_loopback()) << text;
  }
  const sockaddr_in6 one = ipv6("::1", 0);
  const sockaddr_in6 two = ipv6("::2", 0);
  EXPECT_TRUE(to_address(&one, sizeof one)->is_loopback());
  EXPECT_FALSE(to_address(&two, sizeof two)->is_loopback());
}

TEST(Address, WhatIsTooShortOrOfAnotherFamilyIsNone) {
  const sockaddr_in four = ipv4("10.1.2.3", 1);
  const sockaddr_in6 six = ipv6("fd00::1", 1);
  for (std::size_t bytes = 0; bytes < sizeof four; ++bytes) EXPECT_FALSE(to_address(&four, bytes));
  for (std::size_t bytes = 0; bytes < sizeof six; ++bytes) EXPECT_FALSE(to_address(&six, bytes));
  sockaddr_storage other{};
  other.ss_family = AF_UNIX;
  EXPECT_FALSE(to_address(&other, sizeof other));
}

TEST(Address, AsInfiniBandNamesGidAndService) {
  const sockaddr_in given = ipv4("10.1.2.3", 0);
  const Gid gid = to_address(&given, sizeof given)->gid;
  sockaddr_ib ib{};
  ASSERT_EQ(to_sockaddr_ib(gid, 0xffff, 0x0106'1d2f, &ib), sizeof ib);
  EXPECT_EQ(ib.sib_family, AF_IB);
  EXPECT_EQ(ntohs(ib.sib_pkey), 0xffff);
  EXPECT_EQ(std::memcmp(&ib.sib_addr, gid.bytes.data(), sizeof ib.sib_addr), 0);
  EXPECT_EQ(to_big(ib.sib_sid), 0x0106'1d2fU);
}

TEST(Address, OfInfinibandIsAGidAPkeyAndAService) {
  sockaddr_ib given{};
  Gid gid;
  gid.bytes[0] = 0xfe;
  gid.bytes[15] = 1;
  ASSERT_EQ(to_sockaddr_ib(gid, 0x8001, 0x0106'1d2f, &given), sizeof given);
  const auto address = to_infiniband_address(&given, sizeof given);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->gid, gid);
  EXPECT_EQ(address->pkey, 0x8001);
  EXPECT_EQ(address->service_id, 0x0106'1d2fU);
  EXPECT_EQ(address->service_mask, ~std::uint64_t{0});
  EXPECT_FALSE(address->is_any_or_loopback());
  EXPECT_FALSE(to_infiniband_address(&given, sizeof given - 1));
  EXPECT_FALSE(to_address(&given, sizeof given));
  const sockaddr_in ip = ipv4("10.1.2.3", 7471);
  EXPECT_FALSE(to_infiniband_address(&ip, sizeof ip));
}

}  // namespace
}  // namespace uroce::cma
