// SPDX-License-Identifier: BSD-2-Clause
// Raw packet queue pairs and flows as the application has them.
#include <gtest/gtest.h>

#include <cerrno>

#include "unit/verbs/raw_fixture.h"

namespace uroce::verbs {
namespace {

using Frames = Datapath::Frames;

class RawPacketVerbs : public RawVerbsTest {
 protected:
  Flow* make_flow(Qp& qp, FlowAttributes attributes) { return create_flow(qp, attributes.list()); }
  int error_of_flow(Qp& qp, FlowAttributes attributes) {
    errno = 0;
    Flow* const flow = create_flow(qp, attributes.list());
    EXPECT_EQ(flow, nullptr);
    return errno;
  }
};

TEST_F(RawPacketVerbs, AreForThoseWhoMaySendThem) {
  const WithoutRawPackets unprivileged;
  EXPECT_EQ(make_raw_qp(), nullptr);
  EXPECT_EQ(errno, EPERM);
}

TEST_F(RawPacketVerbs, TheDeviceSaysWhatThereIs) {
  ibv_device_attr_ex a{};
  ASSERT_EQ(query_device_ex(*context_, a, sizeof a), 0);
  EXPECT_NE(a.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0U);
  EXPECT_EQ(a.raw_packet_caps, 0U);
  EXPECT_EQ(a.max_wq_type_rq, engine::kWqMax);
  EXPECT_EQ(a.rss_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
  EXPECT_EQ(a.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
  EXPECT_EQ(a.rss_caps.rx_hash_fields_mask, 0xffU);
}

// A device without: one whose uplink has no frames.
using NoRawPackets = VerbsTest;

TEST_F(NoRawPackets, AreNotSupportedAndNotAdvertised) {
  if (!may_send_raw_packets()) GTEST_SKIP() << "needs CAP_NET_RAW";
  ibv_qp_init_attr initial = usual_qp();
  initial.qp_type = IBV_QPT_RAW_PACKET;
  EXPECT_EQ(make_qp(initial), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_device_attr_ex a{};
  ASSERT_EQ(query_device_ex(*context_, a, sizeof a), 0);
  EXPECT_EQ(a.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0U);
  EXPECT_EQ(a.max_wq_type_rq, 0U);
  EXPECT_EQ(a.rss_caps.supported_qpts, 0U);
  ibv_wq public_wq{};
  ibv_wq_init_attr wq{};
  wq.max_wr = wq.max_sge = 1;
  EXPECT_EQ(create_wq(*context_, public_wq, pd_, cq_, wq), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(RawPacketVerbs, AFrameGoesRound) {
  Qp* const qp = make_raw_qp();
  ASSERT_NE(qp, nullptr);
  Flow* const flow = make_flow(*qp, FlowAttributes().add(ether_type_spec(0x88b5)));
  ASSERT_NE(flow, nullptr);
  const auto frame = test::FrameBuilder(test::kMacB, test::kMacA).type(0x88b5).fill(300).bytes();
  std::ranges::copy(frame, buffer_.begin());
  ReceiveRequest receive(buffer_.data() + 4096, 1'000, lkey());
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(post_recv(*qp, &receive, &bad_receive), 0);
  SendRequest send(IBV_WR_SEND, buffer_.data(), 300, lkey());
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*qp, &send, &bad), 0);
  for (const ibv_wc& wc : wait_for(2)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, 300U);
  }
  EXPECT_TRUE(std::ranges::equal(frame, std::span(buffer_).subspan(4096, 300)));
  destroy_flow(flow);
}

TEST_F(RawPacketVerbs, SendAndNothingElse) {
  Qp* const qp = make_raw_qp();
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                     IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV, IBV_WR_TSO}) {
    SendRequest send(opcode, buffer_.data(), 64, lkey());
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*qp, &send, &bad), EINVAL) << opcode;
  }
  SendRequest send(IBV_WR_SEND, buffer_.data(), 64, lkey());
  send.send_flags |= IBV_SEND_IP_CSUM;  // an offload
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(post_send(*qp, &send, &bad), EINVAL);
}

TEST_F(RawPacketVerbs, AQueuePairWithAFlowIsBusy) {
  Qp* const qp = make_raw_qp();
  Flow* const flow = make_flow(*qp, FlowAttributes(IBV_FLOW_ATTR_ALL_DEFAULT));
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(destroy_qp(qp, qp->handles.front()->part), EBUSY);
  destroy_flow(flow);
  destroy(qp);
}

TEST_F(RawPacketVerbs, TheLinkLendsWhatFlowsWant) {
  Qp* const qp = make_raw_qp();
  EXPECT_EQ(fakes_.uplink->lent_kind, Frames::kNone);
  Flow* const rule = make_flow(*qp, FlowAttributes().add(ether_type_spec(1)));
  EXPECT_EQ(fakes_.uplink->lent_kind, Frames::kForeign);
  Flow* const sniffer = make_flow(*qp, FlowAttributes(IBV_FLOW_ATTR_SNIFFER));
  EXPECT_EQ(fakes_.uplink->lent_kind, Frames::kAll);
  destroy_flow(rule);
  EXPECT_EQ(fakes_.uplink->lent_kind, Frames::kAll);
  destroy_flow(sniffer);
  EXPECT_EQ(fakes_.uplink->lent_kind, Frames::kNone);
}

TEST_F(RawPacketVerbs, WrongFlowsAreErrorsOfTheManualPage) {
  Qp* const qp = make_raw_qp();
  const auto with = [](auto change, ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL) {
    FlowAttributes attributes(type);
    change(attributes.list());
    return attributes;
  };
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.comp_mask = 1; })), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.port = 0; })), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.port = 2; })), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.num_of_specs = 11; })), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.flags = 1; })), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.flags = 8; })), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) { a.flags = IBV_FLOW_ATTR_FLAGS_EGRESS; })),
            EOPNOTSUPP);
  const auto dont_trap = [](auto& a) { a.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP; };
  EXPECT_EQ(error_of_flow(*qp, with(dont_trap, IBV_FLOW_ATTR_ALL_DEFAULT)), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with(dont_trap, IBV_FLOW_ATTR_SNIFFER)), EINVAL);
  EXPECT_EQ(error_of_flow(*qp, with([](auto& a) {
              const std::uint32_t no_type = 4;  // as a program in C may say
              std::memcpy(&a.type, &no_type, sizeof no_type);
            })),
            EINVAL);
  EXPECT_EQ(error_of_flow(*qp, FlowAttributes(IBV_FLOW_ATTR_MC_DEFAULT).add(ether_type_spec(1))),
            EINVAL);
  const WithoutRawPackets unprivileged;
  EXPECT_EQ(error_of_flow(*qp, FlowAttributes()), EPERM);
  EXPECT_EQ(qp->flows.load(), 0U);
}

TEST_F(RawPacketVerbs, OnlyRawPacketsAreSteered) {
  ibv_qp_init_attr a = usual_qp();
  Qp* const rc = make_qp(a);
  EXPECT_EQ(error_of_flow(*rc, FlowAttributes()), EINVAL);
  a.qp_type = IBV_QPT_UD;
  Qp* const ud = make_qp(a);
  EXPECT_EQ(error_of_flow(*ud, FlowAttributes()), EOPNOTSUPP);
}

TEST_F(RawPacketVerbs, AsManyFlowsAsThereMayBe) {
  Qp* const qp = make_raw_qp();
  std::vector<Flow*> flows;
  for (std::uint32_t i = 0; i < engine::kFlowsMax; ++i) {
    flows.push_back(make_flow(*qp, FlowAttributes().add(ether_type_spec(0x88b5))));
    ASSERT_NE(flows.back(), nullptr) << i;
  }
  EXPECT_EQ(error_of_flow(*qp, FlowAttributes()), ENOMEM);
  for (Flow* flow : flows) destroy_flow(flow);
}

}  // namespace
}  // namespace uroce::verbs
