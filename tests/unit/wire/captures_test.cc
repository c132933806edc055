// SPDX-License-Identifier: BSD-2-Clause
// Packets of a real peer (tests/data/captures): each parses, bears the ICRC that we compute, and is
// what we build from the same fields, from the Ethernet header to the last byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>

#include "support/pcap.h"
#include "unit/wire/packets.h"
#include "wire/describe.h"
#include "wire/icrc.h"
#include "wire/identification.h"
#include "wire/network.h"
#include "wire/run.h"

namespace uroce::wire {
namespace {

std::vector<std::string> capture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(UROCE_TEST_DATA "/captures")) {
    if (entry.path().extension() == ".pcap") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Captured {
  explicit Captured(const test::Frame& from) : frame(from) {
    network_drop = parse_network(frame, network);
    if (network_drop != NetworkDrop::kNone || network.udp_payload.size() < kIcrcBytes) return;
    covered = network.udp_payload.first(network.udp_payload.size() - kIcrcBytes);
    packet.bytes = covered;
    reason = parse(packet, view);
  }
  Captured(const Captured&) = delete;

  // What a UDP socket does not hand out.
  std::uint16_t identification() const {
    return network.destination.is_ipv4() ? load<Be16>(&network.ip_header[4]).get()
                                         : std::uint16_t{0};
  }
  IcrcFlow flow() const { return {network.source, network.destination, network.udp_source_port}; }
  std::uint32_t icrc() const { return load_icrc(network.udp_payload); }

  test::Frame frame;
  NetworkDrop network_drop = NetworkDrop::kTruncated;
  NetworkView network;
  ConstBytes covered;
  RxPacket packet;
  DropReason reason = DropReason::kTooShort;
  PacketView view;
};

class Captures : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const test::Frame& frame :
         test::read_pcap(UROCE_TEST_DATA "/captures/" + GetParam() + ".pcap")) {
      packets_.push_back(std::make_unique<Captured>(frame));
      ASSERT_EQ(packets_.back()->network_drop, NetworkDrop::kNone);
    }
    ASSERT_FALSE(packets_.empty());
  }

  std::vector<std::unique_ptr<Captured>> packets_;
};

TEST_P(Captures, EveryPacketParses) {
  for (const auto& captured : packets_) {
    EXPECT_EQ(captured->reason, DropReason::kNone) << name(captured->reason);
    EXPECT_FALSE(captured->view.bth.mig_req);  // rxe's habit; ours is 1
  }
}

TEST_P(Captures, EveryIcrcIsRight) {
  for (const auto& captured : packets_) {
    const std::uint32_t by_headers =
        icrc_start(crc32, captured->network.ip_header, captured->network.udp_header);
    const std::uint32_t by_flow =
        captured->flow().start(captured->network.udp_payload.size(), captured->identification());
    EXPECT_EQ(by_flow, by_headers);
    EXPECT_EQ(icrc_of(crc32, by_headers, captured->covered), captured->icrc());
  }
}

TEST_P(Captures, IdentificationIsFoundFromTheIcrc) {
  for (const auto& captured : packets_) {
    if (!captured->network.destination.is_ipv4()) continue;
    const std::uint32_t computed = icrc_of(
        crc32, captured->flow().start(captured->network.udp_payload.size()), captured->covered);
    const IdentificationFit fit =
        icrc_fit_identification(captured->icrc(), computed, captured->covered.size());
    EXPECT_TRUE(fit.fits && fit.dont_fragment);
    EXPECT_EQ(fit.identification, captured->identification());
  }
}

TEST_P(Captures, SameFieldsGiveTheSameFrame) {
  for (const auto& captured : packets_) {
    const NetworkView& network = captured->network;
    const Path path = {.source = network.source,
                       .destination = network.destination,
                       .flow_label = network.flow_label,
                       .udp_source_port = network.udp_source_port,
                       .traffic_class = network.traffic_class,
                       .hop_limit = network.hop_limit};
    std::array<std::byte, kMaxNetworkHeaderBytes> headers;
    const std::size_t header_bytes =
        build_network(path, network.link, static_cast<std::uint16_t>(network.udp_payload.size()),
                      captured->identification(), headers);
    test::Frame frame = to_vector(std::span(headers).first(header_bytes));
    const ByteVector packet = packet_bytes(captured->view, captured->view.payload);
    append(frame, packet);
    const std::uint32_t start =
        captured->flow().start(network.udp_payload.size(), captured->identification());
    std::array<std::byte, kMaxTrailerBytes> trailer;
    const std::size_t trailer_bytes =
        icrc_trailer(crc32, icrc_of(crc32, start, packet), 0, trailer);
    append(frame, std::span(trailer).first(trailer_bytes));
    EXPECT_EQ(frame, captured->frame);
  }
}

// The packets of each message of several, put together by who sends it to whom.
using Stream = std::tuple<std::vector<std::uint8_t>, std::uint32_t, Kind>;
using Message = std::vector<const Captured*>;

std::vector<Message> messages_of(const std::vector<std::unique_ptr<Captured>>& packets) {
  std::map<Stream, Message> open;
  std::vector<Message> complete;
  for (const auto& captured : packets) {
    const PacketView& view = captured->view;
    if (!view.opcode->payload) continue;
    const auto& source = captured->network.source.bytes;
    Message& message =
        open[{{source.begin(), source.end()}, view.bth.destination.value, view.opcode->kind}];
    if (view.opcode->begins()) message.clear();
    if (message.empty() ? !view.opcode->begins()
                        : message.back()->view.bth.psn + 1 != view.bth.psn) {
      message.clear();  // a loss
      continue;
    }
    message.push_back(captured.get());
    if (view.opcode->ends()) complete.push_back(std::exchange(message, {}));
  }
  return complete;
}

// The run that the message is: header fields of its first packet, but what goes with the last from
// there.
TxFrame run_of(const Message& message, std::vector<ConstBytes>& gather) {
  PacketView view = message.front()->view;
  const PacketView& last = message.back()->view;
  view.opcode = &opcode_info(
      pick_opcode(view.opcode->service, view.opcode->kind, Place::kOnly, last.opcode->suffix()));
  view.bth.opcode = view.opcode->opcode;
  view.bth.ack_request = last.bth.ack_request;
  view.bth.solicited = last.bth.solicited;
  view.immediate = last.immediate;
  view.ieth = last.ieth;
  TxFrame frame;
  frame.packet_count = static_cast<std::uint16_t>(message.size());
  frame.segment_bytes = static_cast<std::uint16_t>(message.front()->view.payload.size());
  for (const Captured* captured : message) {
    gather.push_back(captured->view.payload);
    frame.payload_bytes += static_cast<std::uint32_t>(captured->view.payload.size());
  }
  build_as(frame, view);
  return frame;
}

TEST_P(Captures, RunsExpandToTheMessagesSeen) {
  for (const Message& message : messages_of(packets_)) {
    std::vector<ConstBytes> gather;
    TxFrame frame = run_of(message, gather);
    frame.gather = gather.data();
    frame.gather_count = static_cast<std::uint32_t>(gather.size());
    PayloadCursor cursor(frame.payload());
    for (unsigned i = 0; i < message.size(); ++i) {
      std::array<std::byte, kMaxHeaderBytes> headers;
      const std::size_t header_bytes = run_headers(frame, i, headers);
      ByteVector packet = to_vector(std::span(headers).first(header_bytes));
      packet.resize(header_bytes + run_payload_bytes(frame, i));
      cursor.copy(std::span(packet).subspan(header_bytes));
      packet.resize(run_packet_bytes(frame, i));
      EXPECT_EQ(packet, to_vector(message[i]->covered));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rxe, Captures, testing::ValuesIn(capture_names()),
                         [](const auto& capture) {
                           std::string label = capture.param;
                           std::replace(label.begin(), label.end(), '-', '_');
                           return label;
                         });

TEST(CaptureSet, HoldsMessagesOfSeveralPackets) {
  std::vector<std::unique_ptr<Captured>> packets;
  for (const test::Frame& frame : test::read_pcap(UROCE_TEST_DATA "/captures/rc-write-ipv4.pcap")) {
    packets.push_back(std::make_unique<Captured>(frame));
  }
  const std::vector<Message> messages = messages_of(packets);
  EXPECT_EQ(std::ranges::count_if(messages, [](const Message& m) { return m.size() > 1; }), 3);
}

}  // namespace
}  // namespace uroce::wire
