// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "unit/verbs/fixture.h"
#include "unit/verbs/privilege.h"

namespace uroce::verbs {
namespace {

using QpTest = VerbsTest;

// As a program in C may: any number.
void put(std::uint32_t number, ibv_qp_state& state) { std::memcpy(&state, &number, sizeof state); }

TEST_F(QpTest, CapabilitiesAreGivenAtTheLimitAndRefusedBeyond) {
  const auto wanted = [](std::uint32_t ibv_qp_cap::*field, std::uint32_t value) {
    ibv_qp_init_attr a = usual_qp();
    a.cap.*field = value;
    return a;
  };
  struct Case {
    std::uint32_t ibv_qp_cap::*field;
    std::uint32_t limit;
  };
  for (const Case& c :
       {Case{&ibv_qp_cap::max_send_wr, kWorkRequestsMax},
        Case{&ibv_qp_cap::max_recv_wr, kWorkRequestsMax}, Case{&ibv_qp_cap::max_send_sge, kSgesMax},
        Case{&ibv_qp_cap::max_recv_sge, kSgesMax},
        Case{&ibv_qp_cap::max_inline_data, kInlineBytesMax}}) {
    Qp* qp = make_qp(wanted(c.field, c.limit));
    ASSERT_NE(qp, nullptr);
    EXPECT_GE(qp->limits.*c.field, c.limit);
    destroy(qp);
    EXPECT_EQ(make_qp(wanted(c.field, c.limit + 1)), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(QpTest, OtherServicesAreNotSupported) {
  ibv_qp_init_attr a = usual_qp();
  for (const std::uint32_t type : {std::uint32_t{IBV_QPT_DRIVER}, std::uint32_t{99}}) {
    std::memcpy(&a.qp_type, &type, sizeof type);
    errno = 0;
    EXPECT_EQ(make_qp(a), nullptr) << type;
    EXPECT_EQ(errno, EOPNOTSUPP) << type;
  }
}

TEST_F(QpTest, ItsPartsAreOfItsContext) {
  const OtherContext other(engine_);
  PublicQp handle;
  for (const QpParts& parts : {QpParts{.pd = other.pd, .send_cq = cq_, .receive_cq = cq_},
                               QpParts{.pd = pd_, .send_cq = other.cq, .receive_cq = cq_},
                               QpParts{.pd = pd_, .send_cq = cq_, .receive_cq = other.cq}}) {
    ibv_qp_init_attr a = usual_qp();
    errno = 0;
    EXPECT_EQ(create_qp(*context_, parts, handle, a), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

// Case P16.
TEST_F(QpTest, AServiceRefusesWhatItHasNot) {
  ibv_qp_init_attr a = usual_qp();
  a.qp_type = IBV_QPT_UC;
  Qp* const uc = make_qp(a);
  ASSERT_EQ(to_init(*uc), 0);
  ASSERT_EQ(modify_qp(*uc, rtr(*uc),
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
            0);
  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(modify_qp(*uc, rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  std::uint64_t word = 0;
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
        IBV_WR_SEND_WITH_INV, IBV_WR_ATOMIC_WRITE}) {
    SendRequest request(opcode, &word, sizeof word, 0);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*uc, &request, &bad), EINVAL) << opcode;
    EXPECT_EQ(bad, &request);
  }
}

TEST_F(QpTest, PostsAreTakenInTheStatesThatTakeThem) {
  Qp* qp = make_qp();
  Qp* peer = make_qp();
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_receive = nullptr;
  SendRequest send(IBV_WR_SEND, nullptr, 0, 0);
  ReceiveRequest receive(nullptr, 0, 0);
  EXPECT_EQ(post_recv(*qp, &receive, &bad_receive), EINVAL);  // RESET
  EXPECT_EQ(bad_receive, &receive);
  EXPECT_EQ(post_send(*qp, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
  ASSERT_EQ(to_init(*qp) | to_init(*peer), 0);
  EXPECT_EQ(post_recv(*qp, &receive, &bad_receive), 0);
  EXPECT_EQ(post_send(*qp, &send, &bad_send), EINVAL);
  ASSERT_EQ(to_rtr(*qp, *peer), 0);
  EXPECT_EQ(post_send(*qp, &send, &bad_send), EINVAL);
  ASSERT_EQ(to_state(*qp, IBV_QPS_ERR), 0);
  EXPECT_EQ(post_send(*qp, &send, &bad_send), 0);
  EXPECT_EQ(post_recv(*qp, &receive, &bad_receive), 0);
  for (const ibv_wc& wc : wait_for(3)) EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(QpTest, WrongSendRequestsAreTheFirstNotPosted) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::array<std::byte, 256> memory{};
  Mr* mr = make_mr(memory.data(), memory.size());
  const std::uint32_t key = mr->region.key;
  struct Case {
    const char* name;
    void (*spoil)(SendRequest&);
  };
  for (const Case& c : {
           Case{"opcode", [](SendRequest& r) { r.opcode = IBV_WR_TSO; }},
           Case{"opcode that nobody has", [](SendRequest& r) { r.opcode = ibv_wr_opcode(14); }},
           Case{"flag", [](SendRequest& r) { r.send_flags |= 1U << 7; }},
           Case{"SGE count", [](SendRequest& r) { r.num_sge = 5; }},
           Case{"negative SGE count", [](SendRequest& r) { r.num_sge = -1; }},
           Case{"inline length",
                [](SendRequest& r) {
                  r.send_flags |= IBV_SEND_INLINE;
                  r.sge.length = 65;
                }},
           Case{"inline read",
                [](SendRequest& r) {
                  r.opcode = IBV_WR_RDMA_READ;
                  r.send_flags |= IBV_SEND_INLINE;
                }},
           Case{"message length", [](SendRequest& r) { r.sge.length = 0x8000'0001; }},
           Case{"short atomic",
                [](SendRequest& r) {
                  r.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
                  r.sge.length = 7;
                }},
       }) {
    SendRequest good(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
    SendRequest wrong(IBV_WR_RDMA_WRITE, memory.data(), 8, key);
    wrong.wr.rdma.remote_addr = mr->region.iova;
    wrong.wr.rdma.rkey = key;
    c.spoil(wrong);
    good.next = &wrong;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*a, &good, &bad), EINVAL) << c.name;
    EXPECT_EQ(bad, &wrong) << c.name;
    EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS) << c.name;
  }
}

TEST_F(QpTest, AQueueTakesExactlyItsCapacity) {
  Qp* qp = make_qp();
  ASSERT_EQ(to_init(*qp), 0);
  ibv_recv_wr* bad = nullptr;
  ReceiveRequest receive(nullptr, 0, 0);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(post_recv(*qp, &receive, &bad), 0);
  EXPECT_EQ(post_recv(*qp, &receive, &bad), ENOMEM);
  EXPECT_EQ(bad, &receive);
}

TEST_F(QpTest, ModifyRefusesWhatNoDeviceOfOursTakes) {
  Qp* qp = make_qp();
  Qp* peer = make_qp();
  ASSERT_EQ(to_init(*qp), 0);
  struct Case {
    const char* name;
    void (*spoil)(ibv_qp_attr&);
  };
  for (const Case& c : {
           Case{"no GRH", [](ibv_qp_attr& a) { a.ah_attr.is_global = 0; }},
           Case{"port", [](ibv_qp_attr& a) { a.ah_attr.port_num = 2; }},
           Case{"GID index", [](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 200; }},
           Case{"service level", [](ibv_qp_attr& a) { a.ah_attr.sl = 16; }},
           Case{"state", [](ibv_qp_attr& a) { put(256 + IBV_QPS_RTR, a.qp_state); }},
           Case{"other family", [](ibv_qp_attr& a) { a.ah_attr.grh.dgid.raw[0] = 0xfd; }},
           Case{"path MTU", [](ibv_qp_attr& a) { a.path_mtu = ibv_mtu(6); }},
           Case{"reads", [](ibv_qp_attr& a) { a.max_dest_rd_atomic = 129; }},
       }) {
    ibv_qp_attr a = rtr(*peer);
    c.spoil(a);
    EXPECT_EQ(modify_qp(*qp, a, kRtrMask), EINVAL) << c.name;
    EXPECT_EQ(qp->core.state.load(), transport::QpState::kInit) << c.name;
    EXPECT_EQ(fakes_.local->open_paths, 0) << c.name;
  }
  fakes_.local->open_error = ENOMEM;
  EXPECT_EQ(to_rtr(*qp, *peer), ENOMEM);
  fakes_.local->open_error = 0;
  EXPECT_EQ(to_rtr(*qp, *peer), 0);
  EXPECT_EQ(fakes_.local->open_paths, 1);
  EXPECT_EQ(to_state(*qp, IBV_QPS_RESET), 0);
  EXPECT_EQ(fakes_.local->open_paths, 0);
}

// man ibv_modify_qp: an attribute is set or refused, never taken and forgotten.
TEST_F(QpTest, ModifyForgetsNoAttribute) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  ibv_qp_attr wanted{};
  const auto set_migration = [&](int state) {
    wanted.path_mig_state = static_cast<ibv_mig_state>(state);
    return modify_qp(*a, wanted, IBV_QP_PATH_MIG_STATE);
  };
  EXPECT_EQ(set_migration(IBV_MIG_MIGRATED), 0);
  EXPECT_EQ(set_migration(IBV_MIG_ARMED), EOPNOTSUPP);
  EXPECT_EQ(set_migration(IBV_MIG_REARM), EOPNOTSUPP);
  EXPECT_EQ(set_migration(3), EINVAL);
  EXPECT_EQ(modify_qp(*a, wanted, IBV_QP_ALT_PATH), EINVAL);
  EXPECT_EQ(modify_qp(*a, wanted, IBV_QP_CAP), EINVAL);
  EXPECT_EQ(modify_qp(*a, wanted, IBV_QP_RATE_LIMIT), EOPNOTSUPP);
  const auto set_access = [&](unsigned flags) {
    wanted.qp_access_flags = flags;
    return modify_qp(*a, wanted, IBV_QP_ACCESS_FLAGS);
  };
  const unsigned named = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
  EXPECT_EQ(set_access(named), 0);
  EXPECT_EQ(set_access(0xffff'ffff), EINVAL);
  EXPECT_EQ(set_access(IBV_ACCESS_REMOTE_READ | 1U << 15), EINVAL);
  put(256 + IBV_QPS_RTS, wanted.cur_qp_state);
  EXPECT_EQ(modify_qp(*a, wanted, IBV_QP_CUR_STATE), EINVAL);
  ibv_qp_attr now{};
  ibv_qp_init_attr initial{};
  query_qp(*a, now, initial);
  EXPECT_EQ(now.qp_access_flags, named);
  EXPECT_EQ(now.path_mig_state, IBV_MIG_MIGRATED);
}

TEST_F(QpTest, QueryTellsWhatWasSet) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  ASSERT_EQ(to_init(*a), 0);
  ibv_qp_attr to_peer = rtr(*b);
  to_peer.ah_attr.sl = 3;
  ASSERT_EQ(modify_qp(*a, to_peer, kRtrMask), 0);
  ASSERT_EQ(to_rts(*a), 0);
  ibv_qp_attr now{};
  ibv_qp_init_attr initial{};
  query_qp(*a, now, initial);
  EXPECT_EQ(now.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(now.ah_attr.sl, 3);
  EXPECT_EQ(now.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(now.dest_qp_num, b->core.number.value);
  EXPECT_EQ(now.timeout, 14);
  EXPECT_EQ(now.ah_attr.grh.dgid.raw[15], 1);
  EXPECT_EQ(initial.cap.max_send_wr, 16U);
  EXPECT_EQ(initial.send_cq, &public_cq_);
}

TEST_F(QpTest, AWriteArrives) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::vector<std::byte> source(10'000, std::byte{7}), target(10'000);
  Mr* from = make_mr(source.data(), source.size());
  Mr* to = make_mr(target.data(), target.size());
  SendRequest write(IBV_WR_RDMA_WRITE, source.data(), 10'000, from->region.key);
  write.wr_id = 42;
  write.wr.rdma.remote_addr = to->region.iova;
  write.wr.rdma.rkey = to->region.key;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &write, &bad), 0);
  const ibv_wc wc = wait_for(1)[0];
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(wc.wr_id, 42U);
  EXPECT_EQ(wc.qp_num, a->core.number.value);
  EXPECT_EQ(source, target);
}

TEST_F(QpTest, InlineDataMayBeOverwrittenAtOnceAndNeedNoKey) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  std::array<std::uint32_t, 16> source{}, target{};
  source.fill(5);
  Mr* to = make_mr(target.data(), sizeof(target));
  fakes_.local->full = true;  // nothing leaves before the source has changed
  SendRequest write(IBV_WR_RDMA_WRITE, source.data(), sizeof(source), 0);
  write.send_flags |= IBV_SEND_INLINE;
  write.wr.rdma.remote_addr = to->region.iova;
  write.wr.rdma.rkey = to->region.key;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &write, &bad), 0);
  source.fill(6);
  {
    engine::Engine::Section section(engine_);
    fakes_.local->full = false;
  }
  EXPECT_EQ(wait_for(1)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(target[0], 5U);
  EXPECT_EQ(target[15], 5U);
}

TEST_F(QpTest, ADestroyedQpLeavesNoCompletions) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  SendRequest write(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &write, &bad), 0);
  const Instant end = engine::monotonic_now() + milliseconds(10'000);
  while (cq_->queue.is_empty() && engine::monotonic_now() < end) engine_.progress();
  destroy(a);
  ibv_wc wc{};
  EXPECT_EQ(poll_cq(*cq_, 1, &wc), 0);
}

// Of a queue pair that is reset some completions are polled just then: they are of requests that
// have given their places back already.
TEST_F(QpTest, AResetBesideAPollerLeavesTheQueuesEmpty) {
  Qp* qp = make_qp();
  ASSERT_EQ(to_init(*qp), 0);
  ibv_recv_wr* bad = nullptr;
  ReceiveRequest receive(nullptr, 0, 0);
  ASSERT_EQ(post_recv(*qp, &receive, &bad), 0);
  ASSERT_EQ(to_state(*qp, IBV_QPS_ERR), 0);
  const Instant end = engine::monotonic_now() + milliseconds(10'000);
  while (cq_->queue.is_empty() && engine::monotonic_now() < end) engine_.progress();
  std::thread resetting;
  {
    const std::lock_guard polling(cq_->lock);
    ASSERT_FALSE(cq_->queue.is_empty());
    resetting = std::thread([&] { EXPECT_EQ(to_state(*qp, IBV_QPS_RESET), 0); });
    while (qp->core.state.load() != transport::QpState::kReset && engine::monotonic_now() < end) {
    }
    cq_->queue.pop();
  }
  resetting.join();
  EXPECT_EQ(qp->core.receive_queue.free_slots(), qp->core.receive_queue.capacity());
}

TEST_F(QpTest, SharedReceivesGoToWhoeverNeedsThem) {
  PublicSrq handle;
  ibv_srq_attr wanted{.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  Srq* srq = create_srq(*pd_, handle, wanted);
  ASSERT_NE(srq, nullptr);
  Qp* a = make_qp();
  Qp* b = make_qp(usual_qp(), srq);
  connect(*a, *b);
  ibv_recv_wr* bad_receive = nullptr;
  ReceiveRequest receive(nullptr, 0, 0);
  EXPECT_EQ(post_recv(*b, &receive, &bad_receive), EINVAL);
  for (std::uint64_t i = 0; i < 4; ++i) {
    receive.wr_id = 100 + i;
    ASSERT_EQ(post_srq_recv(*srq, &receive, &bad_receive), 0);
  }
  EXPECT_EQ(post_srq_recv(*srq, &receive, &bad_receive), ENOMEM);
  SendRequest send(IBV_WR_SEND_WITH_IMM, nullptr, 0, 0);
  send.send_flags = 0;
  send.imm_data = 0x11223344;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &send, &bad), 0);
  const ibv_wc wc = wait_for(1)[0];
  EXPECT_EQ(wc.wr_id, 100U);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.imm_data, 0x11223344U);
  EXPECT_EQ(destroy_srq(srq), EBUSY);
  destroy(b);
  EXPECT_EQ(destroy_srq(srq), 0);
}

TEST_F(QpTest, UnreadEventsGoWithTheirQp) {
  PublicSrq handle;
  ibv_srq_attr wanted{.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  Srq* srq = create_srq(*pd_, handle, wanted);
  Qp* qp = make_qp(usual_qp(), srq);
  ASSERT_EQ(to_init(*qp), 0);
  ASSERT_EQ(to_state(*qp, IBV_QPS_ERR), 0);  // raises "last WQE reached"
  EXPECT_EQ(qp->handles.front()->events_given, 1U);
  EXPECT_TRUE(has_unread_event());
  destroy(qp);  // would wait for ever for an acknowledgement
  EXPECT_FALSE(has_unread_event());
  EXPECT_EQ(destroy_srq(srq), 0);
}

TEST_F(QpTest, ThereAreAsManyQpsAsPromised) {
  ibv_qp_init_attr small = usual_qp();
  small.cap = {.max_send_wr = 1,
               .max_recv_wr = 1,
               .max_send_sge = 1,
               .max_recv_sge = 1,
               .max_inline_data = 0};
  while (make_qp(small) != nullptr) {
  }
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(qps_.size(), engine::kQpMax);
}

TEST_F(QpTest, AControlledQKeyIsForThoseWhoMaySendRawPackets) {
  ibv_qp_init_attr initial = usual_qp();
  initial.qp_type = IBV_QPT_UD;
  Qp* const qp = make_qp(initial);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  {
    const WithoutRawPackets unprivileged;
    a.qkey = 0x8001'0000;
    EXPECT_EQ(modify_qp(*qp, a, kMask), EPERM);
    EXPECT_EQ(qp->core.state.load(), transport::QpState::kReset);
    a.qkey = 0x7fff'ffff;
    EXPECT_EQ(modify_qp(*qp, a, kMask), 0);
  }
  a.qkey = 0x8001'0000;
  const int expected = may_send_raw_packets() ? 0 : EPERM;
  EXPECT_EQ(modify_qp(*qp, a, IBV_QP_QKEY | IBV_QP_PKEY_INDEX | IBV_QP_PORT), expected);
}

}  // namespace
}  // namespace uroce::verbs
