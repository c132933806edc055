// SPDX-License-Identifier: BSD-2-Clause
// Faults that other stacks have had, above the core (docs/CONFORMANCE.md, P53 to P97): objects,
// their limits and their reuse, what is reported of an error.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

#include "host/port_attributes.h"
#include "unit/verbs/fixture.h"
#include "verbs/limits.h"
#include "verbs/srq.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

class CasesTest : public VerbsTest {
 protected:
  void send(Qp& qp, ibv_send_wr& request) {
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(post_send(qp, &request, &bad), 0);
  }
  void receive(Qp& qp, ibv_recv_wr& request) {
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(post_recv(qp, &request, &bad), 0);
  }
  static void aim(SendRequest& request, const Mr& target) {
    request.wr.rdma.remote_addr = target.region.iova;
    request.wr.rdma.rkey = target.region.key;
  }
};

// P53.
TEST_F(CasesTest, AQueuePairTalksToItself) {
  Qp* qp = make_qp();
  ASSERT_EQ(to_init(*qp), 0);
  ASSERT_EQ(to_rtr(*qp, *qp), 0);
  ASSERT_EQ(to_rts(*qp), 0);
  std::array<std::byte, 64> source{}, target{};
  source.fill(std::byte{9});
  Mr* from = make_mr(source.data(), source.size());
  Mr* to = make_mr(target.data(), target.size());
  ReceiveRequest wanted(target.data(), 32, to->region.key);
  receive(*qp, wanted);
  SendRequest message(IBV_WR_SEND, source.data(), 32, from->region.key);
  send(*qp, message);
  for (const ibv_wc& wc : wait_for(2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  SendRequest write(IBV_WR_RDMA_WRITE, source.data(), 64, from->region.key);
  aim(write, *to);
  send(*qp, write);
  EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(source, target);
}

// P54.
TEST_F(CasesTest, UdpSourcePortsSpreadAndStay) {
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 64; ++i) {
    Qp* a = make_qp();
    Qp* b = make_qp();
    connect(*a, *b);
    const std::uint16_t port = a->core.attributes.path.udp_source_port;
    EXPECT_GE(port, 0xc000);
    SendRequest write(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
    send(*a, write);
    EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->core.attributes.path.udp_source_port, port);
    ports.insert(port);
  }
  EXPECT_GE(ports.size(), 32U);
}

// P55: of each size of packet that an interface may have.
TEST(PathMtuCase, IsNoLargerThanThePortHas) {
  for (const std::uint32_t interface_mtu : {576U, 1500U, 2200U, 4200U, 9000U}) {
    host::TreeDevice device{.name = "uroce0", .netdev = "test0", .node_guid = 1, .gids = {}};
    host::Interface interface;
    interface.name = "test0";
    interface.mtu_bytes = interface_mtu;
    const engine::Port port(std::nullopt, std::move(device),
                            {.interfaces = {interface}, .default_route = "test0"});
    const std::uint16_t active = host::port_path_mtu(interface_mtu);
    for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
      ibv_qp_attr wanted{};
      wanted.path_mtu = mtu;
      transport::QpAttributes to;
      EXPECT_EQ(to_qp_attributes(port, {1}, wanted, IBV_QP_PATH_MTU, to),
                bytes_of_mtu(mtu) <= active ? 0 : EINVAL)
          << interface_mtu;
    }
  }
}

// P58: the memory of a shared receive belongs to the domain of whoever receives.
TEST_F(CasesTest, ASharedReceiveQueueOfAnotherDomainIsRefused) {
  Pd* other = alloc_pd(*context_);
  PublicSrq handle;
  ibv_srq_attr wanted{.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  Srq* srq = create_srq(*other, handle, wanted);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(make_qp(usual_qp(), srq), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(destroy_srq(srq), 0);
  EXPECT_EQ(dealloc_pd(other), 0);
}

// P59.
TEST_F(CasesTest, KeysAreGoodAfterAnyNumberOfRegistrations) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::array<std::byte, 64> source{}, target{};
  source.fill(std::byte{3});
  Mr* from = make_mr(source.data(), source.size());
  for (int i = 0; i < 200'000; ++i) {
    Mr* passing = reg_mr(*pd_, target.data(), 64, 0, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(passing, nullptr);
    ASSERT_EQ(dereg_mr(passing), 0);
  }
  Mr* to = make_mr(target.data(), target.size());
  SendRequest write(IBV_WR_RDMA_WRITE, source.data(), 64, from->region.key);
  aim(write, *to);
  send(*a, write);
  EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(source, target);
}

// P62: the address that a peer names need not be that of the memory, nor aligned.
TEST_F(CasesTest, ARegionIsKnownByAnyAddress) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::array<std::byte, 64> source{};
  std::vector<std::byte> memory(20'000);
  Mr* from = make_mr(source.data(), source.size());
  source.fill(std::byte{5});
  for (const std::uint64_t iova : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x7fff'f001},
                                   ~std::uint64_t{0} - 19'990}) {
    constexpr std::size_t kBytes = 19'991;
    Mr* to = reg_mr(*pd_, memory.data() + 1, kBytes, iova,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(to, nullptr);
    mrs_.push_back(to);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{kBytes - 64}}) {
      std::ranges::fill(memory, std::byte{0});
      SendRequest write(IBV_WR_RDMA_WRITE, source.data(), 64, from->region.key);
      write.wr.rdma.remote_addr = iova + offset;
      write.wr.rdma.rkey = to->region.key;
      send(*a, write);
      EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
      EXPECT_EQ(std::ranges::count(memory, std::byte{5}), 64);
      EXPECT_EQ(memory[1 + offset], std::byte{5});
      EXPECT_EQ(memory[64 + offset], std::byte{5});
    }
  }
}

// P72: every number of elements, with nothing, little and all that fits.
TEST_F(CasesTest, InlineDataOfAnyNumberOfElementsArrivesWhole) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::array<std::uint8_t, 64> source{}, target{};
  Mr* to = make_mr(target.data(), target.size());
  for (const int elements : {1, 3, 4}) {
    for (const std::size_t total : {0UL, 1UL, 7UL, 64UL}) {
      std::iota(source.begin(), source.end(), std::uint8_t{1});
      target.fill(0);
      std::array<ibv_sge, 4> list{};
      std::size_t at = 0;
      for (int i = 0; i < elements; ++i) {
        const std::size_t bytes =
            i + 1 == elements ? total - at : total / static_cast<std::size_t>(elements);
        list[static_cast<std::size_t>(i)] = {reinterpret_cast<std::uintptr_t>(&source[0]) + at,
                                             static_cast<std::uint32_t>(bytes), 0xbad};
        at += bytes;
      }
      SendRequest write(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
      aim(write, *to);
      write.sg_list = list.data();
      write.num_sge = elements;
      write.send_flags |= IBV_SEND_INLINE;
      send(*a, write);
      source.fill(0xff);
      EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
      for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(target[i], i < total ? i + 1 : 0);
    }
  }
}

// P81.
TEST_F(CasesTest, AnErrorCompletionSaysWhoseItIs) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::array<std::byte, 64> memory{};
  Mr* mr = make_mr(memory.data(), memory.size());
  SendRequest wrong(IBV_WR_RDMA_WRITE, memory.data(), 8, mr->region.key);
  wrong.wr_id = 77;
  wrong.wr.rdma.rkey = 0xbad'0bad;
  SendRequest behind(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
  behind.wr_id = 78;
  wrong.next = &behind;
  send(*a, wrong);
  const std::vector<ibv_wc> all = wait_for(2);
  EXPECT_EQ(all[0].wr_id, 77U);
  EXPECT_EQ(all[0].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(all[0].qp_num, a->core.number.value);
  EXPECT_EQ(all[1].wr_id, 78U);
  EXPECT_EQ(all[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(all[1].qp_num, a->core.number.value);
}

// P85.
TEST_F(CasesTest, SharedReceivesTakeAsManyElementsAsPromised) {
  for (const std::uint32_t elements : {1U, kSgesMax}) {
    PublicSrq handle;
    ibv_srq_attr wanted{.max_wr = 2, .max_sge = elements, .srq_limit = 0};
    Srq* srq = create_srq(*pd_, handle, wanted);
    ASSERT_NE(srq, nullptr);
    Qp* a = make_qp();
    Qp* b = make_qp(usual_qp(), srq);
    connect(*a, *b);
    std::vector<std::byte> source(2 * elements, std::byte{4}), target(4 * elements);
    Mr* from = make_mr(source.data(), source.size());
    Mr* to = make_mr(target.data(), target.size());
    std::vector<ibv_sge> list(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      list[i] = {reinterpret_cast<std::uintptr_t>(target.data()) + 4 * i, 2, to->region.key};
    }
    ibv_recv_wr request{};
    request.sg_list = list.data();
    request.num_sge = static_cast<int>(elements);
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(post_srq_recv(*srq, &request, &bad), 0);
    request.num_sge = static_cast<int>(elements) + 1;
    EXPECT_EQ(post_srq_recv(*srq, &request, &bad), EINVAL);
    SendRequest message(IBV_WR_SEND, source.data(), 2 * elements, from->region.key);
    send(*a, message);
    for (const ibv_wc& wc : wait_for(2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    for (std::size_t i = 0; i < target.size(); ++i) {
      EXPECT_EQ(target[i], i % 4 < 2 ? std::byte{4} : std::byte{0});
    }
    destroy(b);
    EXPECT_EQ(destroy_srq(srq), 0);
  }
}

// P86.
TEST_F(CasesTest, AQueueOfAnySizeTakesJustAsManyAndThenNoMore) {
  for (const std::uint32_t size : {1U, 2U, 3U, 7U, 8U}) {
    ibv_qp_init_attr wanted = usual_qp();
    wanted.cap.max_send_wr = wanted.cap.max_recv_wr = size;
    Qp* a = make_qp(wanted);
    Qp* b = make_qp(wanted);
    connect(*a, *b);
    EXPECT_EQ(a->limits.max_send_wr, size);
    for (int round = 0; round < 3; ++round) {
      SendRequest write(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
      ibv_send_wr* bad = nullptr;
      for (std::uint32_t i = 0; i < size; ++i) ASSERT_EQ(post_send(*a, &write, &bad), 0);
      EXPECT_EQ(post_send(*a, &write, &bad), ENOMEM);
      (void)wait_for(size);
    }
  }
}

// P88: a queue grows and shrinks while it is filled and emptied.
TEST_F(CasesTest, ResizingUnderTrafficLosesAndMovesNothing) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::uint64_t posted = 0;
  std::uint64_t polled = 0;
  for (int round = 0; round < 500; ++round) {
    SendRequest write(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
    ibv_send_wr* bad = nullptr;
    for (write.wr_id = posted; post_send(*a, &write, &bad) == 0; write.wr_id = ++posted) {
    }
    const int error = resize_cq(*cq_, 16 + round * 37 % 300);
    EXPECT_EQ(error, 0);
    for (const ibv_wc& wc : wait_for(static_cast<std::size_t>(1 + round % 16))) {
      EXPECT_EQ(wc.wr_id, polled++);
    }
  }
  while (polled < posted) EXPECT_EQ(wait_for(1)[0].wr_id, polled++);
}

// P90.
TEST_F(CasesTest, AskingForNotificationWithoutAChannelChangesNothing) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  for (const int solicited_only : {0, 1}) {
    EXPECT_EQ(req_notify_cq(*cq_, solicited_only), 0);
    SendRequest write(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
    send(*a, write);
    EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
    on_notification_read(*cq_);
  }
  EXPECT_EQ(cq_->notifications.given, 0U);
}

// P93: every attribute with a value of its own, and the state after an error of the connection.
TEST_F(CasesTest, QueryTellsEveryAttributeAndTheStateAfterAnError) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  ASSERT_EQ(to_init(*a), 0);
  ibv_qp_attr set = rtr(*b);
  set.path_mtu = IBV_MTU_512;
  set.rq_psn = 0x12'3456;
  set.max_dest_rd_atomic = 7;
  set.min_rnr_timer = 21;
  set.ah_attr.grh.traffic_class = 0x60;
  set.ah_attr.grh.hop_limit = 9;
  set.ah_attr.grh.flow_label = 0xa'bcde;
  ASSERT_EQ(modify_qp(*a, set, kRtrMask), 0);
  set.qp_state = IBV_QPS_RTS;
  set.timeout = 17;
  set.retry_cnt = 5;
  set.rnr_retry = 6;
  set.sq_psn = 0x65'4321;
  set.max_rd_atomic = 3;
  ASSERT_EQ(modify_qp(*a, set,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            0);
  ibv_qp_attr now{};
  ibv_qp_init_attr initial{};
  query_qp(*a, now, initial);
  EXPECT_EQ(now.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(now.cur_qp_state, IBV_QPS_RTS);
  EXPECT_EQ(now.path_mtu, set.path_mtu);
  EXPECT_EQ(now.rq_psn, set.rq_psn);
  EXPECT_EQ(now.sq_psn, set.sq_psn);
  EXPECT_EQ(now.timeout, set.timeout);
  EXPECT_EQ(now.retry_cnt, set.retry_cnt);
  EXPECT_EQ(now.rnr_retry, set.rnr_retry);
  EXPECT_EQ(now.min_rnr_timer, set.min_rnr_timer);
  EXPECT_EQ(now.max_rd_atomic, set.max_rd_atomic);
  EXPECT_EQ(now.max_dest_rd_atomic, set.max_dest_rd_atomic);
  EXPECT_EQ(now.ah_attr.grh.traffic_class, 0x60);
  EXPECT_EQ(now.ah_attr.grh.hop_limit, 9);
  EXPECT_EQ(now.ah_attr.grh.flow_label, 0xa'bcdeU);
  EXPECT_EQ(now.qp_access_flags,
            static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC));
  SendRequest wrong(IBV_WR_RDMA_WRITE, reinterpret_cast<void*>(0x1000), 8, 0xbad'0bad);
  send(*a, wrong);
  EXPECT_EQ(wait_for(1)[0].status, IBV_WC_LOC_PROT_ERR);
  query_qp(*a, now, initial);
  EXPECT_EQ(now.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(now.cur_qp_state, IBV_QPS_ERR);
}

// P97.
TEST_F(CasesTest, NumbersAreUniqueAmongTheLivingHoweverManyWereBefore) {
  std::set<std::uint32_t> living;
  for (int i = 0; i < 20'000; ++i) {
    Qp* qp = make_qp();
    ASSERT_NE(qp, nullptr);
    ASSERT_TRUE(living.insert(qp->core.number.value).second);
    if (qps_.size() < 100) continue;
    living.erase(qps_.front()->core.number.value);
    destroy(qps_.front());
    public_qps_.erase(public_qps_.begin());
  }
}

}  // namespace
}  // namespace uroce::verbs
