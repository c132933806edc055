// SPDX-License-Identifier: BSD-2-Clause
// Raw packets through stock libibverbs: where the device has them they go round, and where it has
// not, or the program may not, its calls say so.
#include <gtest/gtest.h>
#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "node.h"
#include "posix/capability.h"
#include "support/ethernet.h"

namespace uroce::tests {
namespace {

using test::FrameBuilder;
using test::kMacA;
using test::kMacB;

constexpr std::uint16_t kType = 0x88b5;  // IEEE 802: for local experiments

struct EthernetFlow {
  ibv_flow_attr attributes{};
  ibv_flow_spec_eth ethernet{};
};
static_assert(sizeof(EthernetFlow) == sizeof(ibv_flow_attr) + sizeof(ibv_flow_spec_eth));

EthernetFlow flow_of(std::uint16_t ether_type) {
  EthernetFlow flow;
  flow.attributes.type = IBV_FLOW_ATTR_NORMAL;
  flow.attributes.size = sizeof flow;
  flow.attributes.num_of_specs = 1;
  flow.attributes.port = 1;
  flow.ethernet.type = IBV_FLOW_SPEC_ETH;
  flow.ethernet.size = sizeof flow.ethernet;
  flow.ethernet.val.ether_type = __builtin_bswap16(ether_type);
  flow.ethernet.mask.ether_type = 0xffff;
  return flow;
}

class RawPackets : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ibv_query_device_ex(node_.context, nullptr, &device_), 0); }
  [[nodiscard]] bool are_there() const {
    return (device_.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) != 0;
  }
  [[nodiscard]] static bool are_allowed() { return posix::has_capability(CAP_NET_RAW); }

  ibv_qp* make_qp() {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = node_.cq;
    a.cap = {.max_send_wr = 16,
             .max_recv_wr = 64,
             .max_send_sge = 2,
             .max_recv_sge = 2,
             .max_inline_data = 64};
    a.qp_type = IBV_QPT_RAW_PACKET;
    a.sq_sig_all = 1;
    return ibv_create_qp(node_.pd, &a);
  }
  static void to_rts(ibv_qp* qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
    for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
      a.qp_state = state;
      ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    }
  }

  ibv_sge piece(std::size_t offset, std::uint32_t bytes) {
    return {reinterpret_cast<std::uintptr_t>(node_.memory.data() + offset), bytes, node_.mr->lkey};
  }
  int send(ibv_qp* qp, const std::vector<std::byte>& frame) {
    std::ranges::copy(frame, node_.memory.begin());
    ibv_sge from = piece(0, static_cast<std::uint32_t>(frame.size()));
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &from;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    return ibv_post_send(qp, &request, &bad);
  }
  // Until a receive is complete.
  ibv_wc wait_for_receive() {
    ibv_wc wc = node_.wait();
    while (wc.status == IBV_WC_SUCCESS && wc.opcode != IBV_WC_RECV) wc = node_.wait();
    return wc;
  }

  Node node_{1 << 16};
  ibv_device_attr_ex device_{};
};

TEST_F(RawPackets, AreRefusedWhereTheyCannotBe) {
  if (are_there() && are_allowed()) GTEST_SKIP() << "they can";
  EXPECT_EQ(make_qp(), nullptr);
  EXPECT_EQ(errno, are_allowed() ? EOPNOTSUPP : EPERM);
  if (are_there()) return;
  EXPECT_EQ(device_.max_wq_type_rq, 0U);
  EXPECT_EQ(device_.rss_caps.supported_qpts, 0U);
}

TEST_F(RawPackets, GoRoundWhereTheyCan) {
  if (!are_there() || !are_allowed()) GTEST_SKIP() << "no raw packets here";
  ibv_qp* const qp = make_qp();
  ASSERT_NE(qp, nullptr);
  to_rts(qp);
  EthernetFlow wanted = flow_of(kType);
  ibv_flow* const flow = ibv_create_flow(qp, &wanted.attributes);
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(ibv_destroy_qp(qp), EBUSY);
  ibv_sge to = piece(4'096, 2'048);
  ibv_recv_wr receive{}, *bad = nullptr;
  receive.sg_list = &to;
  receive.num_sge = 1;
  ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  const auto frame = FrameBuilder(kMacB, kMacA).type(kType).fill(500).bytes();
  ASSERT_EQ(send(qp, frame), 0);
  const ibv_wc wc = wait_for_receive();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.byte_len, frame.size());
  EXPECT_TRUE(std::ranges::equal(frame, std::span(node_.memory).subspan(4'096, frame.size())));
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// A connection over the port goes on, and its packets are to be seen.
TEST_F(RawPackets, ASnifferSeesRoce) {
  if (!are_there() || !are_allowed()) GTEST_SKIP() << "no raw packets here";
  ibv_qp* const qp = make_qp();
  ASSERT_NE(qp, nullptr);
  to_rts(qp);
  ibv_flow_attr all{};
  all.type = IBV_FLOW_ATTR_SNIFFER;
  all.size = sizeof all;
  all.port = 1;
  ibv_flow* const flow = ibv_create_flow(qp, &all);
  ASSERT_NE(flow, nullptr);
  ibv_sge to = piece(32'768, 2'048);
  ibv_recv_wr receive{}, *bad = nullptr;
  receive.sg_list = &to;
  receive.num_sge = 1;
  for (int i = 0; i < 64; ++i) ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  Address own = node_.address();
  ASSERT_EQ(node_.connect(own), 0);
  own.memory += 16'384;
  ASSERT_EQ(node_.write(own, 1'000), 0);
  bool is_written = false;
  bool is_seen = false;
  while (!is_written || !is_seen) {
    const ibv_wc wc = node_.wait();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    is_written |= wc.opcode == IBV_WC_RDMA_WRITE;
    // Ethernet, IP, UDP, BTH, RETH, the payload, ICRC.
    is_seen |= wc.opcode == IBV_WC_RECV && wc.byte_len == 14 + 20 + 8 + 12 + 16 + 1'000 + 4;
  }
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

class Spreading : public RawPackets {
 protected:
  static constexpr std::size_t kQueues = 4;

  void make_queues() {
    for (ibv_wq*& wq : wqs_) {
      ibv_wq_init_attr a{};
      a.wq_type = IBV_WQT_RQ;
      a.max_wr = 64;
      a.max_sge = 1;
      a.pd = node_.pd;
      a.cq = node_.cq;
      wq = ibv_create_wq(node_.context, &a);
      ASSERT_NE(wq, nullptr);
      ibv_wq_attr ready{};
      ready.attr_mask = IBV_WQ_ATTR_STATE;
      ready.wq_state = IBV_WQS_RDY;
      ASSERT_EQ(ibv_modify_wq(wq, &ready), 0);
      ibv_sge to = piece(4'096, 2'048);
      ibv_recv_wr receive{}, *bad = nullptr;
      receive.sg_list = &to;
      receive.num_sge = 1;
      for (int i = 0; i < 64; ++i) ASSERT_EQ(ibv_post_wq_recv(wq, &receive, &bad), 0);
    }
  }
  void destroy_queues() {
    for (ibv_wq* wq : wqs_) EXPECT_EQ(ibv_destroy_wq(wq), 0);
  }
  // errno of ibv_create_qp_ex, or 0 and the queue pair.
  int make_front(ibv_rwq_ind_table* table, std::uint8_t key_bytes, std::uint64_t fields,
                 ibv_qp*& qp) {
    std::array<std::uint8_t, 64> key{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2};
    ibv_qp_init_attr_ex a{};
    a.qp_type = IBV_QPT_RAW_PACKET;
    a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    a.pd = node_.pd;
    a.rwq_ind_tbl = table;
    a.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                      .rx_hash_key_len = key_bytes,
                      .rx_hash_key = key.data(),
                      .rx_hash_fields_mask = fields};
    errno = 0;
    qp = ibv_create_qp_ex(node_.context, &a);
    return qp == nullptr ? errno : 0;
  }

  std::array<ibv_wq*, kQueues> wqs_{};
};

TEST_F(Spreading, GivesEachFlowToOneQueue) {
  if (!are_there() || !are_allowed()) GTEST_SKIP() << "no raw packets here";
  make_queues();
  ibv_rwq_ind_table_init_attr of{};
  of.log_ind_tbl_size = 2;
  of.ind_tbl = wqs_.data();
  ibv_rwq_ind_table* const table = ibv_create_rwq_ind_table(node_.context, &of);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(ibv_destroy_wq(wqs_[0]), EBUSY);
  ibv_qp* front = nullptr;
  EXPECT_EQ(make_front(table, 39, IBV_RX_HASH_SRC_IPV4, front), EINVAL);
  EXPECT_EQ(make_front(table, 40, IBV_RX_HASH_IPSEC_SPI, front), EOPNOTSUPP);
  ASSERT_EQ(make_front(table, 40, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4, front), 0);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), EBUSY);
  EthernetFlow wanted = flow_of(0x0800);
  std::ranges::copy(kMacB, wanted.ethernet.val.dst_mac);
  std::ranges::fill(wanted.ethernet.mask.dst_mac, std::uint8_t{0xff});
  ibv_flow* const flow = ibv_create_flow(front, &wanted.attributes);
  ASSERT_NE(flow, nullptr);
  ibv_qp* const sender = make_qp();
  to_rts(sender);
  std::array<int, kQueues> counts{};
  for (std::uint8_t i = 0; i < 32; ++i) {
    const auto frame =
        FrameBuilder(kMacB, kMacA).ipv4({10, i, i, i}, {10, 9, 9, 9}, 200).fill(64).bytes();
    ASSERT_EQ(send(sender, frame), 0);
    const ibv_wc wc = wait_for_receive();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    const auto wq = std::ranges::find(wqs_, wc.qp_num, &ibv_wq::wq_num);
    ASSERT_NE(wq, wqs_.end());
    ++counts[static_cast<std::size_t>(wq - wqs_.begin())];
  }
  for (const int count : counts) EXPECT_GT(count, 0);
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(front), 0);
  EXPECT_EQ(ibv_destroy_qp(sender), 0);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  destroy_queues();
}

}  // namespace
}  // namespace uroce::tests
