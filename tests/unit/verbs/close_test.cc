// SPDX-License-Identifier: BSD-2-Clause
// What a closed context leaves: nothing that a peer or another context could notice. The fixture's
// context stays open meanwhile. Each test destroys late what it left, which only frees memory.
#include <sys/mman.h>

#include <set>

#include "unit/verbs/raw_fixture.h"

namespace uroce::verbs {
namespace {

class CloseTest : public VerbsTest {
 protected:
  explicit CloseTest(bool wants_frames = false)
      : VerbsTest(wants_frames),
        left_(Context::make(engine_)),
        pd_of_left_(alloc_pd(*left_)),
        cq_of_left_(create_cq(*left_, public_cq_of_left_, 256, nullptr, 0)) {}
  ~CloseTest() override {
    close_left();
    EXPECT_EQ(destroy_cq(cq_of_left_), 0);
    EXPECT_EQ(dealloc_pd(pd_of_left_), 0);
  }

  void close_left() {
    if (left_ == nullptr) return;
    const int events = left_->async_descriptor();
    left_.reset();
    close(events);
  }
  Qp* make_left(PublicQp& part, ibv_qp_type type = IBV_QPT_RC, Srq* srq = nullptr) {
    ibv_qp_init_attr a = usual_qp();
    a.qp_type = type;
    return create_qp(
        *left_, {.pd = pd_of_left_, .send_cq = cq_of_left_, .receive_cq = cq_of_left_, .srq = srq},
        part, a);
  }
  Mr* make_left_mr(int access) {
    return reg_mr(*pd_of_left_, memory_.data(), sizeof memory_, address(), access);
  }
  // Gives up soon.
  static void connect_impatiently(Qp& qp, const Qp& peer) {
    ASSERT_EQ(to_init(qp), 0);
    ASSERT_EQ(to_rtr(qp, peer), 0);
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 8;  // 1 ms
    a.retry_cnt = 2;
    a.sq_psn = 0x1234;
    a.max_rd_atomic = 4;
    ASSERT_EQ(modify_qp(qp, a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  [[nodiscard]] std::uint64_t address() const {
    return reinterpret_cast<std::uintptr_t>(memory_.data());
  }
  ibv_wc_status write(Qp& from, std::uint32_t lkey, std::uint32_t rkey) {
    SendRequest request(IBV_WR_RDMA_WRITE, memory_.data(), 8, lkey);
    request.wr.rdma = {.remote_addr = address() + 32, .rkey = rkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(from, &request, &bad), 0);
    const std::vector<ibv_wc> done = wait_for(1);
    return done.empty() ? IBV_WC_GENERAL_ERR : done[0].status;
  }
  [[nodiscard]] bool is_known(std::uint32_t key) {
    engine::Engine::Section section(engine_);
    return section.hca().regions().find(key) != nullptr;
  }
  // `used` are the fixture's; the rest can be had, and no more.
  static void expect_rest(engine::Quota& quota, std::uint32_t limit, std::uint32_t used = 0) {
    EXPECT_TRUE(quota.take(limit - used));
    EXPECT_FALSE(quota.take());
    quota.give_back(limit - used);
  }

  OpenContext left_;
  Pd* pd_of_left_;
  PublicCq public_cq_of_left_;
  Cq* cq_of_left_;
  alignas(8) std::array<std::byte, 64> memory_{};
};

constexpr int kRemote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

TEST_F(CloseTest, ItsQueuePairsAnswerNobody) {
  PublicQp part;
  Qp* const left = make_left(part);
  Mr* const target = make_left_mr(kRemote);
  Qp* const peer = make_qp();
  connect_impatiently(*peer, *left);
  connect_impatiently(*left, *peer);
  const std::uint32_t lkey = make_mr(memory_.data(), sizeof memory_)->region.key;
  EXPECT_EQ(write(*peer, lkey, target->region.key), IBV_WC_SUCCESS);
  close_left();
  EXPECT_EQ(write(*peer, lkey, target->region.key), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(destroy_qp(left, part), 0);
  EXPECT_EQ(dereg_mr(target), 0);
}

TEST_F(CloseTest, ItsQueuePairsTellNobody) {
  PublicQp part;
  Qp* const left = make_left(part);
  Qp* const peer = make_qp();
  connect_impatiently(*peer, *left);
  connect_impatiently(*left, *peer);
  ASSERT_EQ(req_notify_cq(*cq_of_left_, 0), 0);
  close_left();
  // It would be an event, and a completion in error.
  const std::uint32_t lkey = make_mr(memory_.data(), sizeof memory_)->region.key;
  EXPECT_EQ(write(*peer, lkey, lkey), IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(cq_of_left_->queue.is_empty());
  EXPECT_EQ(destroy_qp(left, part), 0);
}

TEST_F(CloseTest, ItsKeysOpenNothing) {
  PublicQp part;
  Qp* const left = make_left(part);
  Qp* const peer = make_qp();
  connect_impatiently(*left, *peer);
  Mr* const region = make_left_mr(kRemote | IBV_ACCESS_MW_BIND);
  ibv_pd handle_pd{};
  Mw* const window = alloc_mw(*pd_of_left_, handle_pd, IBV_MW_TYPE_1);
  ibv_mr handle{};
  handle.lkey = region->region.key;
  ASSERT_EQ(bind_mw(*left, *window,
                    {.wr_id = 1,
                     .send_flags = 0,
                     .bind_info = {&handle, address(), 8, IBV_ACCESS_REMOTE_WRITE}}),
            0);
  engine_.progress();
  ASSERT_EQ(dereg_mr(region), EBUSY);
  const std::uint32_t key = region->region.key;
  ASSERT_TRUE(is_known(key) && is_known(window->rkey));
  close_left();
  EXPECT_FALSE(is_known(key));
  EXPECT_FALSE(is_known(window->rkey));
  EXPECT_EQ(destroy_qp(left, part), 0);
  dealloc_mw(window);
  EXPECT_EQ(dereg_mr(region), 0);
}

TEST_F(CloseTest, LimitsAreOthersToReach) {
  PublicQp part;
  PublicSrq public_srq;
  ibv_srq_attr wanted{.max_wr = 16, .max_sge = 2, .srq_limit = 0};
  Srq* const srq = create_srq(*pd_of_left_, public_srq, wanted);
  Qp* const qp = make_left(part, IBV_QPT_RC, srq);
  Dm* const dm = alloc_dm(*left_, {.length = 4'096, .log_align_req = 0, .comp_mask = 0});
  Mr* const in_dm = reg_dm_mr(*pd_of_left_, *dm, 0, 64, kRemote | IBV_ACCESS_ZERO_BASED);
  ibv_pd handle_pd{};
  Mw* const window = alloc_mw(*pd_of_left_, handle_pd, IBV_MW_TYPE_2);
  Pd* const parent = alloc_parent_domain(*left_, handle_pd, pd_of_left_, nullptr, {});
  ASSERT_TRUE(qp != nullptr && in_dm != nullptr && window != nullptr && parent != nullptr);
  const std::uint32_t number = qp->core.number.value;
  engine::Quotas& quotas = engine_.quotas();
  const auto expect_all = [&quotas] {
    expect_rest(quotas.qp, engine::kQpMax);
    expect_rest(quotas.srq, engine::kSrqMax);
    expect_rest(quotas.cq, engine::kCqMax, 1);
    expect_rest(quotas.mr, engine::kMrMax);
    expect_rest(quotas.mw, engine::kMwMax);
    expect_rest(quotas.pd, engine::kPdMax, 1);
    expect_rest(quotas.dm_bytes, engine::kDmBytesMax);
  };
  close_left();
  expect_all();
  EXPECT_EQ(destroy_qp(qp, part), 0);
  EXPECT_EQ(destroy_srq(srq), 0);
  EXPECT_EQ(dereg_mr(in_dm), 0);
  EXPECT_EQ(free_dm(dm), 0);
  dealloc_mw(window);
  EXPECT_EQ(dealloc_pd(parent), 0);
  expect_all();
  // Nor is a number given back twice.
  fakes_.blocks->left = 0;
  std::set<std::uint32_t> numbers;
  while (const auto next = engine_.allocate_qpn()) {
    EXPECT_TRUE(numbers.insert(next->value).second) << next->value;
  }
  EXPECT_EQ(numbers.count(number), 1U);
}

TEST_F(CloseTest, ItsPathsAreClosed) {
  PublicQp part, connected_part;
  Qp* const left = make_left(part, IBV_QPT_UD);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  ASSERT_EQ(modify_qp(*left, init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            0);
  ASSERT_EQ(to_state(*left, IBV_QPS_RTR), 0);
  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(modify_qp(*left, rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  Qp* const connected = make_left(connected_part);
  connect_impatiently(*connected, *left);
  ibv_ah_attr to{};
  to.is_global = to.port_num = 1;
  const Gid gid = engine::test_gid(1);
  std::copy(gid.bytes.begin(), gid.bytes.end(), to.grh.dgid.raw);
  Ah* const ah = create_ah(*pd_of_left_, to);
  Ah* const destroyed = create_ah(*pd_of_left_, to);
  {
    const engine::Engine::Section section(engine_);
    fakes_.local->full = true;  // so the datagrams stay
  }
  for (Ah* const way : {ah, destroyed}) {
    SendRequest request(IBV_WR_SEND, nullptr, 0, 0);
    request.num_sge = 0;
    request.wr.ud = {way, left->core.number.value, 0};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(post_send(*left, &request, &bad), 0);
  }
  destroy_ah(destroyed);
  const auto open_paths = [this] {
    const engine::Engine::Section section(engine_);
    return fakes_.local->open_paths;
  };
  EXPECT_EQ(open_paths(), 3);
  close_left();
  EXPECT_EQ(open_paths(), 0);
  expect_rest(engine_.quotas().ah, engine::kAhMax);
  destroy_ah(ah);
  EXPECT_EQ(destroy_qp(left, part), 0);
  EXPECT_EQ(destroy_qp(connected, connected_part), 0);
}

TEST_F(CloseTest, ItLeavesItsGroups) {
  PublicQp part;
  Qp* const left = make_left(part, IBV_QPT_UD);
  ibv_gid group{};
  group.raw[0] = 0xff;
  group.raw[1] = 0x0e;
  ASSERT_EQ(attach_multicast(*left, group), 0);
  close_left();
  expect_rest(engine_.quotas().multicast_groups, engine::kMulticastGroupsMax);
  {
    engine::Engine::Section section(engine_);
    Gid gid;
    std::copy_n(group.raw, gid.bytes.size(), gid.bytes.begin());
    EXPECT_FALSE(section.hca().multicast().has_members(gid));
  }
  EXPECT_EQ(destroy_qp(left, part), 0);
}

// As a kernel's does, the close waits for nobody who has not acknowledged.
TEST_F(CloseTest, WaitsForNoAcknowledgement) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  ibv_comp_channel channel{};
  channel.fd = ends[0];
  PublicCq public_cq;
  Cq* const cq = create_cq(*left_, public_cq, 16, &channel, 0);
  PublicQp part;
  ibv_qp_init_attr a = usual_qp();
  Qp* const left = create_qp(*left_, {.pd = pd_of_left_, .send_cq = cq, .receive_cq = cq}, part, a);
  Qp* const peer = make_qp();
  connect(*left, *peer);
  ASSERT_EQ(req_notify_cq(*cq, 0), 0);
  const std::uint32_t lkey = make_mr(memory_.data(), sizeof memory_)->region.key;
  EXPECT_EQ(write(*peer, lkey, lkey), IBV_WC_REM_ACCESS_ERR);  // of another domain: an event
  SendRequest request(IBV_WR_SEND, nullptr, 0, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*left, &request, &bad), 0);  // flushed: a notification
  std::uint64_t notification = 0;
  std::array<std::byte, 16> event;
  pollfd readable{ends[0], POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 10'000), 1);
  ASSERT_EQ(read(ends[0], &notification, sizeof notification), 8);
  ASSERT_EQ(read(left_->async_descriptor(), event.data(), event.size()), 16);
  close_left();
  EXPECT_EQ(destroy_qp(left, part), 0);
  EXPECT_EQ(destroy_cq(cq), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

class CloseXrcTest : public CloseTest {
 protected:
  ~CloseXrcTest() override { ::close(file_); }
  Xrcd* open(Context& context, int flags) const {
    return open_xrcd(context, {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                               .fd = file_,
                               .oflags = flags});
  }
  int file_ = memfd_create("domain", MFD_CLOEXEC);
};

TEST_F(CloseXrcTest, ADomainEndsWithTheLastContextThatHasIt) {
  Xrcd* const left = open(*left_, O_CREAT);
  Xrcd* const other = open(*context_, 0);
  ASSERT_TRUE(left != nullptr && other != nullptr);
  PublicSrq public_srq;
  ibv_srq_attr wanted{.max_wr = 16, .max_sge = 2, .srq_limit = 0};
  Srq* const srq = create_xrc_srq(*pd_of_left_, public_srq, wanted, left, cq_of_left_);
  PublicQp maker, opener;
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_XRC_RECV;
  Qp* const target = create_qp(*left_, {.xrcd = left}, maker, a);
  ASSERT_TRUE(srq != nullptr && target != nullptr);
  ASSERT_EQ(open_qp(*left, opener, target->core.number.value), target);
  const Qpn number = srq->core.number;
  close_left();
  expect_rest(engine_.quotas().qp, engine::kQpMax);
  {
    engine::Engine::Section section(engine_);
    EXPECT_EQ(section.hca().demux().find_srq(number), nullptr);
    EXPECT_EQ(section.hca().demux().find(target->core.number), nullptr);
  }
  Xrcd* const same = open(*context_, 0);
  EXPECT_NE(same, nullptr);
  EXPECT_EQ(close_xrcd(same) | close_xrcd(other), 0);
  EXPECT_EQ(open(*context_, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(destroy_qp(target, maker) | destroy_qp(target, opener) | destroy_srq(srq), 0);
  EXPECT_EQ(close_xrcd(left), 0);
}

// A target of another context, in the midst of a message that a queue of the closed one received.
TEST_F(CloseXrcTest, AnothersTargetLosesItsQueue) {
  Xrcd* const left = open(*left_, O_CREAT);
  Xrcd* const other = open(*context_, 0);
  PublicSrq public_srq;
  ibv_srq_attr wanted{.max_wr = 16, .max_sge = 2, .srq_limit = 0};
  Srq* const srq = create_xrc_srq(*pd_of_left_, public_srq, wanted, left, cq_of_left_);
  ReceiveRequest receive(nullptr, 0, 0);
  receive.num_sge = 0;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(post_srq_recv(*srq, &receive, &bad_receive), 0);
  PublicQp target_part, initiator_part;
  ibv_qp_init_attr a = usual_qp();
  a.qp_type = IBV_QPT_XRC_RECV;
  Qp* const target = create_qp(*context_, {.xrcd = other}, target_part, a);
  a = usual_qp();
  a.qp_type = IBV_QPT_XRC_SEND;
  Qp* const initiator = create_qp(*context_, {.pd = pd_, .send_cq = cq_}, initiator_part, a);
  connect_impatiently(*target, *initiator);
  connect_impatiently(*initiator, *target);
  const auto send = [&] {
    SendRequest request(IBV_WR_SEND, nullptr, 0, 0);
    request.num_sge = 0;
    request.qp_type.xrc.remote_srqn = srq->core.number.value;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*initiator, &request, &bad), 0);
    const std::vector<ibv_wc> done = wait_for(1);
    return done.empty() ? IBV_WC_GENERAL_ERR : done[0].status;
  };
  EXPECT_EQ(send(), IBV_WC_SUCCESS);
  EXPECT_NE(target->core.srq, nullptr);
  close_left();
  EXPECT_EQ(target->core.srq, nullptr);
  EXPECT_EQ(send(), IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(destroy_qp(target, target_part) | destroy_qp(initiator, initiator_part), 0);
  EXPECT_EQ(destroy_srq(srq) | close_xrcd(left) | close_xrcd(other), 0);
}

class CloseRawTest : public CloseTest {
 protected:
  CloseRawTest() : CloseTest(true) {}
  void SetUp() override {
    if (!may_send_raw_packets()) GTEST_SKIP() << "needs CAP_NET_RAW";
  }
};

struct PublicWq : ibv_wq {
  PublicWq() : ibv_wq{} {
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
  }
  Wq* object = nullptr;
};

TEST_F(CloseRawTest, ItsFlowsGetNoMoreFrames) {
  PublicWq public_wq;
  ibv_wq_init_attr wanted{};
  wanted.wq_type = IBV_WQT_RQ;
  wanted.max_wr = 16;
  Wq* const wq = create_wq(*left_, public_wq, pd_of_left_, cq_of_left_, wanted);
  public_wq.object = wq;
  ibv_wq* list = &public_wq;
  RwqTable* const table =
      create_rwq_table(*left_, {.log_ind_tbl_size = 0, .ind_tbl = &list, .comp_mask = 0},
                       [](ibv_wq* queue) { return static_cast<PublicWq*>(queue)->object; });
  ASSERT_NE(table, nullptr);
  PublicQp part;
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_RAW_PACKET;
  Qp* const qp = create_qp(*left_, {.pd = pd_of_left_, .table = table}, part, a);
  ASSERT_NE(qp, nullptr);
  FlowAttributes sniffer(IBV_FLOW_ATTR_SNIFFER);
  Flow* const flow = create_flow(*qp, sniffer.list());
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(fakes_.uplink->lent_kind, Datapath::Frames::kAll);
  close_left();
  EXPECT_EQ(fakes_.uplink->lent_kind, Datapath::Frames::kNone);
  engine::Quotas& quotas = engine_.quotas();
  expect_rest(quotas.flows, engine::kFlowsMax);
  expect_rest(quotas.wq, engine::kWqMax);
  expect_rest(quotas.rwq_tables, engine::kRwqTablesMax);
  expect_rest(quotas.qp, engine::kQpMax);
  destroy_flow(flow);
  EXPECT_EQ(destroy_qp(qp, part) | destroy_rwq_table(table) | destroy_wq(wq), 0);
}

}  // namespace
}  // namespace uroce::verbs
