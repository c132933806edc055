// SPDX-License-Identifier: BSD-2-Clause
// Raw packet queue pairs: frames out as they are, frames in as flows steer them.
#include "transport/raw_packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <vector>

#include "protocol/fixture.h"
#include "support/ethernet.h"

namespace uroce::test {
namespace {

using namespace transport;
using steering::FlowKind;
using testing::ElementsAre;
using testing::IsEmpty;

using Frame = std::vector<std::byte>;

constexpr std::uint16_t kFrameMax = 1'514;
constexpr std::size_t kReceiveAt = 1 << 16;  // in the buffer

Frame frame_of(std::uint16_t type, std::size_t bytes = 60) {
  return FrameBuilder(kMacB, kMacA).type(type).fill(bytes).bytes();
}

class RawPacketTest : public testing::Test {
 protected:
  RawPacketTest() : endpoint(1 << 20) {
    endpoint.hca.set_link(kUplink, {.max_frame_bytes = kFrameMax});
  }

  TestQp& add_qp(std::uint32_t number, bool to_rts = true) {
    TestQp& qp = endpoint.add_qp(Qpn{number}, {.service = Service::kRawPacket});
    if (to_rts) {
      EXPECT_EQ(move(qp, QpState::kInit), 0);
      EXPECT_EQ(move(qp, QpState::kRtr), 0);
      EXPECT_EQ(move(qp, QpState::kRts), 0);
    }
    return qp;
  }
  int move(TestQp& qp, QpState to) {
    using namespace qp_attribute;
    QpAttributes a;
    a.state = to;
    return endpoint.modify(qp, a, to == QpState::kInit ? kState | kPort : kState);
  }

  steering::Flow& steer(TestQp& qp, FlowKind kind, std::uint16_t type = 0) {
    steering::Flow& flow = *flows_.emplace_back(std::make_unique<steering::Flow>());
    flow.kind = kind;
    flow.target = &qp.qp;
    if (kind == FlowKind::kRule) {
      flow.pattern.value.ether_type.set(type);
      flow.pattern.mask.ether_type.set(0xffff);
    }
    endpoint.hca.flows().insert(flow);
    return flow;
  }

  // As a link lends it; with `packet_bytes`, that is what RoCE has of it.
  void arrive(const Frame& frame, std::size_t before = 0, std::size_t packet_bytes = 0) {
    RxPacket packet;
    packet.bytes = ConstBytes(frame).subspan(before, packet_bytes);
    packet.frame_bytes_before = static_cast<std::uint16_t>(before);
    packet.frame_bytes_behind = static_cast<std::uint16_t>(frame.size() - before - packet_bytes);
    endpoint.hca.on_packets(endpoint.now, kUplink, {&packet, 1});
    endpoint.hca.publish_completions(endpoint.now);
  }

  // What leaves, and completions after it.
  std::vector<Frame> transmit(bool refuse = false) {
    std::vector<Frame> sent;
    endpoint.hca.retry_refused(kUplink);
    burst_->clear();
    if (endpoint.hca.poll_transmit(endpoint.now, kUplink, *burst_)) {
      for (TxFrame& frame : burst_->frames()) {
        EXPECT_EQ(frame.path, nullptr);
        EXPECT_EQ(frame.header_bytes, 0);
        frame.refused = refuse;
        if (refuse) continue;
        Frame& copy = sent.emplace_back();
        for (const ConstBytes piece : frame.payload()) {
          copy.insert(copy.end(), piece.begin(), piece.end());
        }
        EXPECT_EQ(copy.size(), frame.payload_bytes);
      }
      if (refuse) endpoint.hca.on_refused(endpoint.now, burst_->frames());
    }
    endpoint.hca.publish_completions(endpoint.now);
    return sent;
  }

  memory::Sge put(std::size_t offset, const Frame& frame) {
    std::ranges::copy(frame, endpoint.buffer.begin() + static_cast<std::ptrdiff_t>(offset));
    return endpoint.sge(offset, static_cast<std::uint32_t>(frame.size()));
  }
  Frame received(std::size_t bytes) const {
    const auto at = endpoint.buffer.begin() + kReceiveAt;
    return {at, at + static_cast<std::ptrdiff_t>(bytes)};
  }

  Endpoint endpoint;

 private:
  std::unique_ptr<TxBurst> burst_ = std::make_unique<TxBurst>();
  std::vector<std::unique_ptr<steering::Flow>> flows_;
};

TEST_F(RawPacketTest, AFrameLeavesAsItIs) {
  TestQp& qp = add_qp(0x101);
  const Frame whole = frame_of(0x1234, 600);
  const Frame head(whole.begin(), whole.begin() + 13);  // cut in the middle of the type
  const Frame tail(whole.begin() + 13, whole.end());
  endpoint.post_send(qp, {.wr_id = 1, .sges = {put(0, whole)}});
  endpoint.post_send(qp, {.wr_id = 2, .sges = {put(4096, head), put(8192, tail)}});
  const Frame small = frame_of(0x88b5, 40);
  endpoint.post_send(qp, {.wr_id = 3, .inline_data = small});
  EXPECT_THAT(transmit(), ElementsAre(whole, whole, small));
  transmit();
  const auto done = endpoint.poll_all();
  ASSERT_EQ(done.size(), 3U);
  for (const Cqe& entry : done) EXPECT_EQ(entry.status, WcStatus::kSuccess);
  EXPECT_EQ(done[2].wr_id, 3U);
}

struct LengthCase {
  std::size_t bytes;
  bool is_tagged;
  WcStatus status;
};
class RawPacketLength : public RawPacketTest, public testing::WithParamInterface<LengthCase> {};

TEST_P(RawPacketLength, IsThatOfAFrameOrAnError) {
  const LengthCase& c = GetParam();
  TestQp& qp = add_qp(0x101);
  FrameBuilder frame(kMacB, kMacA);
  if (c.is_tagged) frame.vlan(5);
  Frame bytes = frame.type(1).fill(c.bytes).bytes();
  bytes.resize(c.bytes);
  endpoint.post_send(qp, {.wr_id = 9, .sges = {put(0, bytes)}});
  const bool leaves = c.status == WcStatus::kSuccess;
  EXPECT_EQ(transmit().size(), leaves ? 1U : 0U);
  transmit();
  const auto entry = endpoint.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->status, c.status);
  EXPECT_EQ(entry->wr_id, 9U);
  EXPECT_EQ(qp.qp.state.load(), leaves ? QpState::kRts : QpState::kSqe);
}

constexpr auto kTooLong = WcStatus::kLocalLengthError;
INSTANTIATE_TEST_SUITE_P(All, RawPacketLength,
                         testing::Values(LengthCase{13, false, kTooLong},
                                         LengthCase{14, false, WcStatus::kSuccess},
                                         LengthCase{kFrameMax, false, WcStatus::kSuccess},
                                         LengthCase{kFrameMax + 1, false, kTooLong},
                                         LengthCase{kFrameMax + 4, true, WcStatus::kSuccess},
                                         LengthCase{kFrameMax + 5, true, kTooLong},
                                         LengthCase{66'000, false, kTooLong}));

TEST_F(RawPacketTest, MemoryThatIsNotOursIsAProtectionError) {
  TestQp& qp = add_qp(0x101);
  endpoint.post_send(qp, {.sges = {{endpoint.address(0), 100, {0xdead}}}});
  EXPECT_THAT(transmit(), IsEmpty());
  transmit();
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalProtectionError);
}

TEST_F(RawPacketTest, WhatAFullPortRefusesIsSentLaterAndInOrder) {
  TestQp& qp = add_qp(0x101);
  const Frame one = frame_of(1);
  const Frame two = frame_of(2);
  endpoint.post_send(qp, {.wr_id = 1, .sges = {put(0, one)}});
  endpoint.post_send(qp, {.wr_id = 2, .sges = {put(100, two)}});
  transmit(true);
  EXPECT_FALSE(endpoint.poll().has_value());
  EXPECT_THAT(transmit(), ElementsAre(one, two));
  transmit();
  EXPECT_EQ(endpoint.poll_all().size(), 2U);
}

TEST_F(RawPacketTest, AFrameArrivesWholeWhereAFlowSteersIt) {
  TestQp& qp = add_qp(0x101);
  const Frame frame = frame_of(0x1234, 200);
  endpoint.post_receive(qp, 7,
                        {endpoint.sge(kReceiveAt, 100), endpoint.sge(kReceiveAt + 100, 400)});
  arrive(frame);
  EXPECT_FALSE(endpoint.poll().has_value());  // without a flow there is nothing
  steering::Flow& flow = steer(qp, FlowKind::kRule, 0x1234);
  arrive(frame_of(0x4321));
  EXPECT_FALSE(endpoint.poll().has_value());
  arrive(frame);
  const auto entry = endpoint.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->wr_id, 7U);
  EXPECT_EQ(entry->opcode, WcOpcode::kReceive);
  EXPECT_EQ(entry->byte_count, frame.size());
  EXPECT_EQ(entry->qpn, (Qpn{0x101}));
  EXPECT_EQ(entry->flags, 0);
  EXPECT_EQ(received(frame.size()), frame);
  endpoint.hca.flows().erase(flow);
  endpoint.post_receive(qp, 8, {endpoint.sge(kReceiveAt, 400)});
  arrive(frame);
  EXPECT_FALSE(endpoint.poll().has_value());
}

TEST_F(RawPacketTest, FramesAreTakenFromReadyToReceiveOn) {
  TestQp& qp = add_qp(0x101, false);
  steer(qp, FlowKind::kAllDefault);
  EXPECT_EQ(move(qp, QpState::kInit), 0);
  endpoint.post_receive(qp, 1, {endpoint.sge(kReceiveAt, 400)});
  arrive(frame_of(1));
  EXPECT_FALSE(endpoint.poll().has_value());
  EXPECT_EQ(move(qp, QpState::kRtr), 0);
  arrive(frame_of(1));
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kSuccess);
  EXPECT_EQ(endpoint.hca.counters().raw_dropped, 1U);
}

TEST_F(RawPacketTest, WithoutAReceiveAFrameIsLost) {
  TestQp& qp = add_qp(0x101);
  steer(qp, FlowKind::kAllDefault);
  arrive(frame_of(1));
  EXPECT_FALSE(endpoint.poll().has_value());
  EXPECT_EQ(endpoint.hca.counters().raw_dropped, 1U);
  EXPECT_EQ(endpoint.hca.counters().raw_received, 0U);
}

TEST_F(RawPacketTest, ReceivesMayBeShared) {
  Srq srq;
  std::vector<std::byte> ring(std::size_t{RecvQueue::ring_slots(4)} * 32);
  srq.queue.set_memory(ring, 4, 32);
  srq.pd = Endpoint::kPd;
  TestQp& qp =
      endpoint.add_qp(Qpn{0x101}, {.service = Service::kRawPacket, .sge_max = 1, .srq = &srq});
  ASSERT_EQ(move(qp, QpState::kInit) | move(qp, QpState::kRtr), 0);
  steer(qp, FlowKind::kAllDefault);
  endpoint.post_receive(qp, 5, {endpoint.sge(kReceiveAt, 100)});
  arrive(frame_of(1));
  arrive(frame_of(1));  // for which there is none
  const auto entries = endpoint.poll_all();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].wr_id, 5U);
  EXPECT_EQ(received(60), frame_of(1));
}

TEST_F(RawPacketTest, AFrameThatIsTooLongFailsItsReceiveOnly) {
  TestQp& qp = add_qp(0x101);
  steer(qp, FlowKind::kAllDefault);
  endpoint.post_receive(qp, 1, {endpoint.sge(kReceiveAt, 99)});
  endpoint.post_receive(qp, 2, {endpoint.sge(kReceiveAt, 100)});
  arrive(frame_of(1, 100));
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalLengthError);
  arrive(frame_of(1, 100));
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kSuccess);
}

TEST_F(RawPacketTest, AReceiveIntoNothingEndsTheQueuePair) {
  TestQp& qp = add_qp(0x101);
  steer(qp, FlowKind::kAllDefault);
  endpoint.post_receive(qp, 1, {{endpoint.address(0), 400, {0xdead}}});
  arrive(frame_of(1));
  EXPECT_EQ(endpoint.poll()->status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(qp.qp.state.load(), QpState::kErr);
}

TEST_F(RawPacketTest, EachThatIsMeantHasACopy) {
  TestQp& a = add_qp(0x101);
  TestQp& b = add_qp(0x102);
  steer(a, FlowKind::kRule, 5);
  steer(b, FlowKind::kSniffer);
  endpoint.post_receive(a, 1, {endpoint.sge(kReceiveAt, 400)});
  endpoint.post_receive(b, 2, {endpoint.sge(kReceiveAt + 1'000, 400)});
  arrive(frame_of(5));
  EXPECT_EQ(endpoint.poll_all().size(), 2U);
}

TEST_F(RawPacketTest, PacketsOfRoceGoOnAndSnifferSeeThem) {
  TestQp& raw = add_qp(0x101);
  steer(raw, FlowKind::kAllDefault);
  endpoint.post_receive(raw, 1, {endpoint.sge(kReceiveAt, 400)});
  Frame frame = frame_of(0x0800, 120);
  arrive(frame, 42, 70);  // no packet of any kind, but RoCE's to judge
  const auto malformed = [this] {
    std::uint64_t sum = endpoint.hca.counters().rx_unknown_qpn;
    for (const std::uint64_t count : endpoint.hca.counters().rx_malformed) sum += count;
    return sum;
  };
  EXPECT_EQ(malformed(), 1U);
  EXPECT_FALSE(endpoint.poll().has_value());
  steer(raw, FlowKind::kSniffer);
  arrive(frame, 42, 70);
  EXPECT_EQ(malformed(), 2U);
  EXPECT_EQ(endpoint.poll()->byte_count, frame.size());
  EXPECT_EQ(received(frame.size()), frame);
}

TEST_F(RawPacketTest, NoPacketOfRoceReachesItByItsNumber) {
  add_qp(0x101);
  EXPECT_EQ(endpoint.hca.demux().find(Qpn{0x101}), nullptr);
}

TEST_F(RawPacketTest, StatesTakeThePortAndNothingElse) {
  using namespace qp_attribute;
  TestQp& qp = add_qp(0x101, false);
  QpAttributes a;
  a.state = QpState::kInit;
  EXPECT_EQ(endpoint.modify(qp, a, kState), EINVAL);
  EXPECT_EQ(endpoint.modify(qp, a, kState | kPort | kPKeyIndex), EINVAL);
  EXPECT_EQ(endpoint.modify(qp, a, kState | kPort), 0);
  a.state = QpState::kRts;
  EXPECT_EQ(endpoint.modify(qp, a, kState), EINVAL);
  a.state = QpState::kRtr;
  EXPECT_EQ(endpoint.modify(qp, a, kState | kAddressVector), EINVAL);
  EXPECT_EQ(endpoint.modify(qp, a, kState), 0);
  a.state = QpState::kRts;
  EXPECT_EQ(endpoint.modify(qp, a, kState | kSendPsn), EINVAL);
  EXPECT_EQ(endpoint.modify(qp, a, kState), 0);
}

TEST_F(RawPacketTest, ErrorFlushesWhatWaits) {
  TestQp& qp = add_qp(0x101);
  steer(qp, FlowKind::kAllDefault);
  endpoint.post_receive(qp, 1, {endpoint.sge(kReceiveAt, 400)});
  endpoint.post_send(qp, {.wr_id = 2, .sges = {put(0, frame_of(1))}});
  EXPECT_EQ(move(qp, QpState::kErr), 0);
  EXPECT_THAT(transmit(), IsEmpty());
  const auto flushed = endpoint.poll_all();
  ASSERT_EQ(flushed.size(), 2U);
  for (const Cqe& entry : flushed) EXPECT_EQ(entry.status, WcStatus::kFlushed);
  arrive(frame_of(1));
  EXPECT_FALSE(endpoint.poll().has_value());
}

// Every flow stays with its queue, and all queues have some.
TEST_F(RawPacketTest, ASpreadGivesEachFlowToOneOfItsQueues) {
  std::vector<Qp*> queues;
  for (std::uint32_t i = 0; i < 4; ++i) {
    TestQp& queue = add_qp(0x101 + i);
    for (int n = 0; n < 64; ++n) endpoint.post_receive(queue, i, {endpoint.sge(kReceiveAt, 400)});
    queues.push_back(&queue.qp);
  }
  Spread spread{.rule = {.key = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67},
                         .fields = steering::hash_field::kAll},
                .queues = queues};
  TestQp& front = add_qp(0x200, false);
  front.qp.spread = &spread;
  steer(front, FlowKind::kAllDefault);
  std::set<std::uint64_t> used;
  for (std::uint8_t flow = 0; flow < 32; ++flow) {
    const Frame frame = FrameBuilder(kMacB, kMacA)
                            .ipv4({10, 0, 0, flow}, {10, 0, 1, 1}, kUdp)
                            .ports(1'000, 2'000)
                            .bytes();
    arrive(frame);
    arrive(frame);
    const auto both = endpoint.poll_all();
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0].wr_id, both[1].wr_id);
    EXPECT_EQ(both[0].qpn, (Qpn{0x101 + static_cast<std::uint32_t>(both[0].wr_id)}));
    used.insert(both[0].wr_id);
  }
  EXPECT_EQ(used.size(), 4U);
}

}  // namespace
}  // namespace uroce::test
