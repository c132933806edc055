// SPDX-License-Identifier: BSD-2-Clause
// Where each field of each message lies (IBTA 12.6 to 12.11, annex A11), and that every one is read
// from where it is written.
#include "cm/message.h"

#include "unit/cm/message_bits.h"
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

constexpr std::uint32_t kId = 0x1122'3344, kPeersId = 0x5566'7788;

Offer full_offer() {
  return {.qpn = {0xab'cdef},
          .psn = 0x12'3456,
          .service = Service::kUc,
          .responder_resources = 0x7e,
          .initiator_depth = 0x3c,
          .retry_count = 5,
          .rnr_retry_count = 6,
          .flow_control = true,
          .has_srq = true,
          .path_mtu = 5,
          .ack_timeout = 19,
          .ca_guid = 0x0102'0304'0506'0708};
}

void expect_same(const Offer& one, const Offer& other) {
  EXPECT_EQ(one.qpn, other.qpn);
  EXPECT_EQ(one.psn, other.psn);
  EXPECT_EQ(one.service, other.service);
  EXPECT_EQ(one.responder_resources, other.responder_resources);
  EXPECT_EQ(one.initiator_depth, other.initiator_depth);
  EXPECT_EQ(one.retry_count, other.retry_count);
  EXPECT_EQ(one.rnr_retry_count, other.rnr_retry_count);
  EXPECT_EQ(one.flow_control, other.flow_control);
  EXPECT_EQ(one.has_srq, other.has_srq);
  EXPECT_EQ(one.path_mtu, other.path_mtu);
  EXPECT_EQ(one.ack_timeout, other.ack_timeout);
  EXPECT_EQ(one.ca_guid, other.ca_guid);
}

Gid gid_from(std::uint8_t first) {
  Gid gid;
  for (std::uint8_t& byte : gid.bytes) byte = first++;
  return gid;
}

RequestWire full_request(const Offer& offer, std::string_view text = "private") {
  const Route route = {.source = gid_from(0x10),
                       .destination = gid_from(0x30),
                       .flow_label = 0xf'1234,
                       .traffic_class = 0x68,
                       .hop_limit = 33};
  const IpAddresses addresses = {
      .source = gid_from(0x50), .destination = gid_from(0x70), .source_port = 0xbeef};
  return make_request(kId, 0x0123'4567'89ab'cdef, route, offer, addresses, data_of(text));
}

TEST(CmMad, HasItsClassAndVersions) {
  Mad mad;
  mad.set(Attribute::kReady, 0x0102'0304'0506'0708, ReadyWire{});
  const auto bytes = std::as_bytes(std::span(&mad, 1));
  expect_fields(bytes, kMadHeaderBytes,
                {{"base version", 0, 0, 8, 1},
                 {"class", 1, 0, 8, 7},
                 {"class version", 2, 0, 8, 2},
                 {"method", 3, 0, 8, 3},
                 {"transaction", 8, 0, 64, 0x0102'0304'0506'0708},
                 {"attribute", 16, 0, 16, 0x14}});
}

TEST(CmMad, AttributesAreTheStandards) {
  EXPECT_EQ(static_cast<int>(Attribute::kRequest), 0x10);
  EXPECT_EQ(static_cast<int>(Attribute::kMessageReceipt), 0x11);
  EXPECT_EQ(static_cast<int>(Attribute::kReject), 0x12);
  EXPECT_EQ(static_cast<int>(Attribute::kReply), 0x13);
  EXPECT_EQ(static_cast<int>(Attribute::kReady), 0x14);
  EXPECT_EQ(static_cast<int>(Attribute::kDisconnectRequest), 0x15);
  EXPECT_EQ(static_cast<int>(Attribute::kDisconnectReply), 0x16);
  EXPECT_EQ(static_cast<int>(Attribute::kSidrRequest), 0x17);
  EXPECT_EQ(static_cast<int>(Attribute::kSidrReply), 0x18);
  EXPECT_EQ(static_cast<int>(Attribute::kLoadAlternatePath), 0x19);
  EXPECT_EQ(static_cast<int>(Attribute::kAlternatePathResponse), 0x1a);
}

TEST(CmRequest, LiesOnTheWireAsDrawn) {
  const RequestWire request = full_request(full_offer());
  const auto bytes = bytes_of(request);
  expect_fields(bytes.first(52), 52,
                {{"local identifier", 0, 0, 32, kId},
                 {"service", 8, 0, 64, 0x0123'4567'89ab'cdef},
                 {"CA GUID", 16, 0, 64, 0x0102'0304'0506'0708},
                 {"QPN", 32, 0, 24, 0xab'cdef},
                 {"responder resources", 35, 0, 8, 0x7e},
                 {"initiator depth", 39, 0, 8, 0x3c},
                 {"remote response timeout", 43, 0, 5, 20},
                 {"transport service", 43, 5, 2, 1},
                 {"flow control", 43, 7, 1, 1},
                 {"PSN", 44, 0, 24, 0x12'3456},
                 {"local response timeout", 47, 0, 5, 20},
                 {"retry count", 47, 5, 3, 5},
                 {"P_Key", 48, 0, 16, 0xffff},
                 {"path MTU", 50, 0, 4, 5},
                 {"RNR retry count", 50, 5, 3, 6},
                 {"retries of the manager", 51, 0, 4, 15},
                 {"SRQ", 51, 4, 1, 1}});
}

TEST(CmRequest, NamesItsPathAndNoOther) {
  const RequestWire request = full_request(full_offer());
  const auto bytes = bytes_of(request);
  EXPECT_EQ(bits(bytes, 52, 0, 16), 0xffffU);  // LIDs
  EXPECT_EQ(bits(bytes, 54, 0, 16), 0xffffU);
  EXPECT_EQ(std::memcmp(&bytes[56], gid_from(0x10).bytes.data(), 16), 0);
  EXPECT_EQ(std::memcmp(&bytes[72], gid_from(0x30).bytes.data(), 16), 0);
  EXPECT_EQ(bits(bytes, 88, 0, 20), 0xf'1234U);
  EXPECT_EQ(bits(bytes, 91, 2, 6), 3U);  // rate
  EXPECT_EQ(bits(bytes, 92, 0, 8), 0x68U);
  EXPECT_EQ(bits(bytes, 93, 0, 8), 33U);
  EXPECT_EQ(bits(bytes, 94, 0, 8), 0U);  // service level, subnet local
  EXPECT_EQ(bits(bytes, 95, 0, 5), 19U);
  for (std::size_t i = 96; i < 140; ++i) EXPECT_EQ(bytes[i], std::byte{0}) << "alternate path";
}

TEST(CmRequest, BeginsItsPrivateDataWithAddresses) {
  const RequestWire request = full_request(full_offer());
  const auto bytes = bytes_of(request);
  EXPECT_EQ(bits(bytes, 140, 0, 8), 0U);  // version
  EXPECT_EQ(bits(bytes, 141, 0, 4), 6U);  // IP version
  EXPECT_EQ(bits(bytes, 142, 0, 16), 0xbeefU);
  EXPECT_EQ(std::memcmp(&bytes[144], gid_from(0x50).bytes.data(), 16), 0);
  EXPECT_EQ(std::memcmp(&bytes[160], gid_from(0x70).bytes.data(), 16), 0);
  EXPECT_EQ(text_of(bytes.subspan(176)), "private");
}

TEST(CmRequest, CutsPrivateDataThatIsTooLong) {
  const RequestWire request = full_request(full_offer(), std::string(300, 'x'));
  EXPECT_EQ(text_of(bytes_of(request).subspan(176)), std::string(56, 'x'));
}

TEST(CmRequest, SaysWhatItIsReadToSay) {
  for (const Service service : {Service::kRc, Service::kUc, Service::kXrc}) {
    Offer offer = full_offer();
    offer.service = service;
    const auto read = offer_of(full_request(offer));
    ASSERT_TRUE(read);
    expect_same(*read, offer);
  }
}

TEST(CmRequest, OfXrcSaysSoInBothPlaces) {
  Offer offer = full_offer();
  offer.service = Service::kXrc;
  const RequestWire request = full_request(offer);
  EXPECT_EQ(bits(bytes_of(request), 43, 5, 2), 3U);
  EXPECT_EQ(bits(bytes_of(request), 51, 5, 3), 1U);
}

// RD, and an extended type that nobody has defined.
TEST(CmRequest, OfAnotherServiceIsNoOffer) {
  RequestWire request = full_request({});
  request.remote_eecn_and_flags = Be24_8(0, 2 << 1);
  EXPECT_FALSE(offer_of(request));
  for (std::uint8_t extended = 0; extended < 8; ++extended) {
    request.remote_eecn_and_flags = Be24_8(0, 3 << 1);
    request.retries_and_srq = extended;
    EXPECT_EQ(offer_of(request).has_value(), extended == 1);
  }
}

TEST(CmIpHeader, HasIpv4AddressesInTheLastFourBytes) {
  std::array<std::byte, kIpHeaderBytes> bytes;
  const IpAddresses addresses = {
      .source = ipv4(7), .destination = ipv4(9), .source_port = 1, .is_ipv4 = true};
  write_ip_header(addresses, bytes);
  EXPECT_EQ(bits(bytes, 1, 0, 4), 4U);
  EXPECT_EQ(bits(bytes, 4, 0, 64), 0U);
  EXPECT_EQ(bits(bytes, 12, 0, 32), 0U);
  EXPECT_EQ(bits(bytes, 16, 0, 32), 0x0a00'0007U);
  EXPECT_EQ(bits(bytes, 20, 0, 64), 0U);
  EXPECT_EQ(bits(bytes, 32, 0, 32), 0x0a00'0009U);
  const auto read = read_ip_header(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->source, addresses.source);
  EXPECT_EQ(read->destination, addresses.destination);
  EXPECT_EQ(read->source_port, 1);
  EXPECT_TRUE(read->is_ipv4);
}

TEST(CmIpHeader, OfAnotherVersionIsNone) {
  std::array<std::byte, kIpHeaderBytes> bytes{};
  for (unsigned ip = 0; ip < 16; ++ip) {
    bytes[1] = static_cast<std::byte>(ip << 4 | 5);
    EXPECT_EQ(read_ip_header(bytes).has_value(), ip == 4 || ip == 6);
  }
  bytes[1] = std::byte{0x40};
  EXPECT_FALSE(read_ip_header(std::span(bytes).first(kIpHeaderBytes - 1)));
  bytes[0] = std::byte{1};
  EXPECT_FALSE(read_ip_header(bytes));
}

TEST(CmReply, LiesOnTheWireAsDrawn) {
  const ReplyWire reply = make_reply(kId, kPeersId, full_offer(), data_of("private"));
  expect_fields(bytes_of(reply), 36,
                {{"local identifier", 0, 0, 32, kId},
                 {"remote identifier", 4, 0, 32, kPeersId},
                 {"QPN", 12, 0, 24, 0xab'cdef},
                 {"PSN", 20, 0, 24, 0x12'3456},
                 {"responder resources", 24, 0, 8, 0x7e},
                 {"initiator depth", 25, 0, 8, 0x3c},
                 {"ACK delay", 26, 0, 5, 15},
                 {"failover", 26, 5, 2, 0},
                 {"flow control", 26, 7, 1, 1},
                 {"RNR retry count", 27, 0, 3, 6},
                 {"SRQ", 27, 3, 1, 1},
                 {"CA GUID", 28, 0, 64, 0x0102'0304'0506'0708}});
  EXPECT_EQ(text_of(bytes_of(reply).subspan(36)), "private");
}

TEST(CmReply, SaysWhatItIsReadToSay) {
  Offer offer = full_offer();
  const Offer read = offer_of(make_reply(kId, kPeersId, offer, {}), Service::kUc);
  offer.retry_count = offer.path_mtu = offer.ack_timeout = 0;  // a request's alone
  expect_same(read, offer);
}

TEST(CmReply, OfXrcHasItsNumberWhereAnEndToEndContextWas) {
  Offer offer = full_offer();
  offer.service = Service::kXrc;
  const ReplyWire reply = make_reply(kId, kPeersId, offer, {});
  EXPECT_EQ(bits(bytes_of(reply), 12, 0, 24), 0U);
  EXPECT_EQ(bits(bytes_of(reply), 16, 0, 24), 0xab'cdefU);
  EXPECT_EQ(offer_of(reply, Service::kXrc).qpn, offer.qpn);
}

TEST(CmPrivateData, IsCutAtWhatTheLongestMessageHolds) {
  EXPECT_EQ(data_of(std::string(500, 'x')).bytes().size(), 224U);
  EXPECT_EQ(data_of("abc").bytes().size(), 3U);
  EXPECT_TRUE(PrivateData().bytes().empty());
}

}  // namespace
}  // namespace uroce::cm::test
