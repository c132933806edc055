// SPDX-License-Identifier: BSD-2-Clause
// Whose a message to QP1 is, for every attribute of the communication manager.
#include "wire/management.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/byte_order.h"
#include "unit/wire/packets.h"
#include "wire/network.h"

namespace uroce::wire {
namespace {

constexpr std::size_t kBegin = 12 + 8, kMessage = kBegin + 24;
constexpr std::uint64_t kService = 0x0000'0000'0106'1234;

void put(ByteVector& packet, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    packet.at(at + i) = static_cast<std::byte>(value >> 8 * (bytes - 1 - i));
  }
}

// The first identifier is 0x11112222, the second 0x33334444.
ByteVector message(unsigned attribute) {
  ByteVector packet(kBegin + 256);
  put(packet, 0, 0x64, 1);  // UD SEND Only
  put(packet, 5, 1, 3);     // to QP1
  put(packet, kBegin, 0x01'07'02'03, 4);
  put(packet, kBegin + 16, attribute, 2);
  put(packet, kMessage, 0x1111'2222, 4);
  put(packet, kMessage + 4, 0x3333'4444, 4);
  return packet;
}

void put_ipv4(ByteVector& packet, std::size_t ip_header) {
  put(packet, ip_header + 1, 0x40, 1);
  put(packet, ip_header + 32, 0x0a00'0009, 4);
}

TEST(Management, RequestNamesAServiceAndAnAddress) {
  for (const auto& [attribute, ip_header] :
       {std::pair<std::uint16_t, std::size_t>{0x10, kMessage + 140}, {0x17, kMessage + 16}}) {
    ByteVector packet = message(attribute);
    put(packet, kMessage + 8, kService, 8);
    put_ipv4(packet, ip_header);
    const auto of_ipv4 = addressee_of_packet(packet);
    ASSERT_TRUE(of_ipv4);
    EXPECT_TRUE(of_ipv4->is_service);
    EXPECT_EQ(of_ipv4->service_id, kService);
    EXPECT_EQ(of_ipv4->address, gid_of_ipv4(0x0a00'0009));
    put(packet, ip_header + 1, 0x60, 1);
    put(packet, ip_header + 20, 0xfd00'0000'0000'0001, 8);
    const auto of_ipv6 = addressee_of_packet(packet);
    ASSERT_TRUE(of_ipv6);
    EXPECT_EQ(of_ipv6->address.bytes[0], 0xfd);
    EXPECT_EQ(of_ipv6->address.bytes[7], 1);
    EXPECT_EQ(of_ipv6->address.bytes[15], 9);
  }
}

TEST(Management, EveryOtherMessageNamesItsReceiversIdentifier) {
  for (unsigned attribute = 0; attribute < 0x100; ++attribute) {
    if (attribute == 0x10 || attribute == 0x17) continue;
    const auto addressee = addressee_of_packet(message(attribute));
    ASSERT_TRUE(addressee) << attribute;
    EXPECT_FALSE(addressee->is_service);
    EXPECT_EQ(addressee->block, attribute == 0x18 ? 0x1111U : 0x3333U) << attribute;
  }
}

TEST(Management, ShortPacketsAreNobodys) {
  for (const unsigned attribute : {0x10U, 0x14U, 0x17U, 0x18U}) {
    const ByteVector packet = message(attribute);
    for (std::size_t bytes = 12; bytes < packet.size(); ++bytes) {
      EXPECT_FALSE(addressee_of_packet(ConstBytes(packet).first(bytes))) << bytes;
    }
    EXPECT_TRUE(addressee_of_packet(packet));
  }
}

TEST(Management, OtherQueuePairsOpcodesAndClassesAreNotMeant) {
  ByteVector packet = message(0x14);
  put(packet, 5, 2, 3);
  EXPECT_FALSE(addressee_of_packet(packet));
  put(packet, 5, 0x01'0001, 3);
  EXPECT_FALSE(addressee_of_packet(packet));
  packet = message(0x14);
  put(packet, 0, 0x65, 1);  // with immediate data, the rest of it elsewhere
  EXPECT_FALSE(addressee_of_packet(packet));
  packet = message(0x14);
  put(packet, kBegin + 1, 3, 1);
  EXPECT_FALSE(addressee_of_packet(packet));
}

TEST(Management, ADatagramAloneSaysTheSameAsItsPacket) {
  for (const unsigned attribute : {0x10U, 0x13U, 0x17U, 0x18U}) {
    const ByteVector packet = message(attribute);
    const auto whole = addressee_of_packet(packet);
    const auto alone = addressee_of_mad(ConstBytes(packet).subspan(kBegin));
    ASSERT_TRUE(whole && alone);
    EXPECT_EQ(alone->is_service, whole->is_service);
    EXPECT_EQ(alone->block, whole->block);
    EXPECT_EQ(alone->service_id, whole->service_id);
    EXPECT_EQ(alone->address, whole->address);
    EXPECT_FALSE(addressee_of_mad(ConstBytes(packet).subspan(kBegin + 1)));
  }
}

TEST(Management, AnIdentifierTellsItsBlock) {
  EXPECT_EQ(block_of_identifier(identifier_in_block(0xabcd, 0x1234)), 0xabcdU);
  EXPECT_EQ(identifier_in_block(0xabcd, 0x1234), 0xabcd'1234U);
}

}  // namespace
}  // namespace uroce::wire
