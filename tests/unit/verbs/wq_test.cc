// SPDX-License-Identifier: BSD-2-Clause
// Receive work queues, indirection tables, and queue pairs that spread over them.
#include "verbs/wq.h"

#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "unit/verbs/raw_fixture.h"

namespace uroce::verbs {
namespace {

struct PublicWq : ibv_wq {
  PublicWq() : ibv_wq{} {
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
  }
  Wq* object = nullptr;
};

Wq* object_of(ibv_wq* wq) { return static_cast<PublicWq*>(wq)->object; }

class WqTest : public RawVerbsTest {
 protected:
  static constexpr std::uint32_t kCapacity = 16;

  static ibv_wq_init_attr usual_wq() {
    ibv_wq_init_attr a{};
    a.wq_type = IBV_WQT_RQ;
    a.max_wr = kCapacity;
    a.max_sge = 2;
    return a;
  }
  Wq* make(PublicWq& wq, ibv_wq_init_attr a = usual_wq()) {
    return wq.object = create_wq(*context_, wq, pd_, cq_, a);
  }
  int error_of(ibv_wq_init_attr a) {
    PublicWq wq;
    errno = 0;
    EXPECT_EQ(make(wq, a), nullptr);
    return errno;
  }
  static int to(Wq& wq, ibv_wq_state state) {
    ibv_wq_attr a{};
    a.attr_mask = IBV_WQ_ATTR_STATE;
    a.wq_state = state;
    return modify_wq(wq, a);
  }
  int post(Wq& wq, std::uint64_t wr_id) {
    ReceiveRequest receive(buffer_.data(), 4'096, lkey());
    receive.wr_id = wr_id;
    ibv_recv_wr* bad = nullptr;
    return post_wq_recv(wq, &receive, &bad);
  }
};

TEST_F(WqTest, WrongAttributesAreErrors) {
  const auto with = [](auto change) {
    ibv_wq_init_attr a = usual_wq();
    change(a);
    return a;
  };
  EXPECT_EQ(error_of(with([](auto& a) { a.wq_type = static_cast<ibv_wq_type>(1); })), EINVAL);
  EXPECT_EQ(error_of(with([](auto& a) { a.max_wr = 0; })), EINVAL);
  EXPECT_EQ(error_of(with([](auto& a) { a.max_wr = kWorkRequestsMax + 1; })), EINVAL);
  EXPECT_EQ(error_of(with([](auto& a) { a.max_sge = kSgesMax + 1; })), EINVAL);
  EXPECT_EQ(error_of(with([](auto& a) { a.comp_mask = IBV_WQ_INIT_ATTR_RESERVED; })), EOPNOTSUPP);
  EXPECT_EQ(error_of(with([](auto& a) {
              a.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
              a.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
            })),
            EOPNOTSUPP);
  ibv_wq_init_attr a = usual_wq();
  PublicWq wq;
  EXPECT_EQ(create_wq(*context_, wq, nullptr, cq_, a), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(create_wq(*context_, wq, pd_, nullptr, a), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(WqTest, GoesFromResetToReadyAndFromErrorOnlyBack) {
  PublicWq wq;
  ASSERT_NE(make(wq), nullptr);
  Wq& q = *wq.object;
  EXPECT_EQ(state_of(q), IBV_WQS_RESET);
  EXPECT_EQ(to(q, IBV_WQS_ERR), EINVAL);
  EXPECT_EQ(post(q, 1), EINVAL);
  EXPECT_EQ(to(q, IBV_WQS_RDY), 0);
  EXPECT_EQ(to(q, IBV_WQS_RDY), 0);
  EXPECT_EQ(post(q, 1), 0);
  EXPECT_EQ(to(q, IBV_WQS_ERR), 0);
  EXPECT_EQ(to(q, IBV_WQS_RDY), EINVAL);
  EXPECT_EQ(state_of(q), IBV_WQS_ERR);
  EXPECT_EQ(to(q, IBV_WQS_UNKNOWN), EINVAL);
  EXPECT_EQ(to(q, IBV_WQS_RESET), 0);
  EXPECT_EQ(to(q, IBV_WQS_RDY), 0);
  ibv_wq_attr a{};
  EXPECT_EQ(modify_wq(q, a), EINVAL);
  a.attr_mask = IBV_WQ_ATTR_FLAGS;
  EXPECT_EQ(modify_wq(q, a), EOPNOTSUPP);
  a.attr_mask = IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_STATE;
  a.curr_wq_state = IBV_WQS_ERR;
  a.wq_state = IBV_WQS_RESET;
  EXPECT_EQ(modify_wq(q, a), EINVAL);
  EXPECT_EQ(destroy_wq(wq.object), 0);
}

TEST_F(WqTest, ErrorFlushesWhatIsPostedBeforeAndAfter) {
  PublicWq wq;
  ASSERT_NE(make(wq), nullptr);
  ASSERT_EQ(to(*wq.object, IBV_WQS_RDY), 0);
  ASSERT_EQ(post(*wq.object, 1), 0);
  ASSERT_EQ(to(*wq.object, IBV_WQS_ERR), 0);
  ASSERT_EQ(post(*wq.object, 2), 0);
  const auto flushed = wait_for(2);
  for (std::size_t i = 0; i < flushed.size(); ++i) {
    EXPECT_EQ(flushed[i].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed[i].wr_id, i + 1);
    EXPECT_EQ(flushed[i].qp_num, wq.object->core.number.value);
  }
  EXPECT_EQ(destroy_wq(wq.object), 0);
}

// A completion that found no room is the end of its queue: of three, two are lost.
class LostCompletion : public WqTest {
 protected:
  void SetUp() override {
    WqTest::SetUp();
    full_ = create_cq(*context_, small_, 1, nullptr, 0);
    ibv_wq_init_attr a = usual_wq();
    wq_.object = create_wq(*context_, wq_, pd_, full_, a);
    ASSERT_NE(wq_.object, nullptr);
    ASSERT_EQ(to(*wq_.object, IBV_WQS_RDY), 0);
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post(*wq_.object, i), 0);
    ASSERT_EQ(to(*wq_.object, IBV_WQS_ERR), 0);
  }

  PublicCq small_;
  PublicWq wq_;
  Cq* full_ = nullptr;
};

TEST_F(LostCompletion, IsTheQueuesLastEvent) {
  std::set<std::uint32_t> events;
  for (int i = 0; i < 2; ++i) {
    ib_uverbs_async_event_desc event{};
    ASSERT_EQ(read(context_->async_descriptor(), &event, sizeof event),
              static_cast<ssize_t>(sizeof event));
    events.insert(event.event_type);
    if (event.event_type != IBV_EVENT_WQ_FATAL) continue;
    EXPECT_EQ(event.element, reinterpret_cast<std::uintptr_t>(static_cast<ibv_wq*>(&wq_)));
    wq_.events_completed = 1;
  }
  EXPECT_EQ(events, (std::set<std::uint32_t>{IBV_EVENT_CQ_ERR, IBV_EVENT_WQ_FATAL}));
  small_.async_events_completed = 1;
  EXPECT_EQ(destroy_wq(wq_.object), 0);
  EXPECT_EQ(destroy_cq(full_), 0);
}

TEST_F(LostCompletion, UnreadEventsOfItGoWithTheirQueues) {
  EXPECT_EQ(wq_.object->events_given, 1U);
  EXPECT_EQ(destroy_wq(wq_.object), 0);
  EXPECT_TRUE(has_unread_event());
  EXPECT_EQ(destroy_cq(full_), 0);
  EXPECT_FALSE(has_unread_event());
}

TEST_F(WqTest, ItsPartsStay) {
  PublicCq public_cq;
  Cq* const cq = create_cq(*context_, public_cq, 16, nullptr, 0);
  Pd* const pd = alloc_pd(*context_);
  PublicWq wq;
  ibv_wq_init_attr a = usual_wq();
  wq.object = create_wq(*context_, wq, pd, cq, a);
  ASSERT_NE(wq.object, nullptr);
  EXPECT_EQ(dealloc_pd(pd), EBUSY);
  EXPECT_EQ(destroy_cq(cq), EBUSY);
  EXPECT_EQ(destroy_wq(wq.object), 0);
  EXPECT_EQ(destroy_cq(cq), 0);
  EXPECT_EQ(dealloc_pd(pd), 0);
}

TEST_F(WqTest, TakesJustAsManyAsItsCapacity) {
  PublicWq wq;
  ASSERT_NE(make(wq), nullptr);
  ASSERT_EQ(to(*wq.object, IBV_WQS_RDY), 0);
  for (std::uint32_t i = 0; i < kCapacity; ++i) EXPECT_EQ(post(*wq.object, i), 0);
  EXPECT_EQ(post(*wq.object, 99), ENOMEM);
  EXPECT_EQ(destroy_wq(wq.object), 0);
}

TEST_F(WqTest, AsManyAsTheDevicePromises) {
  std::vector<std::unique_ptr<PublicWq>> all;
  for (std::uint32_t i = 0; i < engine::kWqMax; ++i) {
    all.push_back(std::make_unique<PublicWq>());
    ASSERT_NE(make(*all.back()), nullptr) << i;
  }
  EXPECT_EQ(error_of(usual_wq()), ENOMEM);
  for (const auto& wq : all) EXPECT_EQ(destroy_wq(wq->object), 0);
}

class TableTest : public WqTest {
 protected:
  void SetUp() override {
    WqTest::SetUp();
    if (IsSkipped()) return;
    for (PublicWq& wq : wqs_) {
      ASSERT_NE(make(wq), nullptr);
      ASSERT_EQ(to(*wq.object, IBV_WQS_RDY), 0);
      list_.push_back(&wq);
    }
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (PublicWq& wq : wqs_) EXPECT_EQ(destroy_wq(wq.object), 0);
  }
  RwqTable* make_table(std::uint32_t log_size) {
    list_.resize(std::size_t{1} << std::min(log_size, 16U), &wqs_.front());
    ibv_rwq_ind_table_init_attr a{};
    a.log_ind_tbl_size = log_size;
    a.ind_tbl = list_.data();
    return create_rwq_table(*context_, a, object_of);
  }
  // Without a table it is an ordinary one.
  Qp* make_spreading_qp(RwqTable& table) {
    public_qps_.push_back(std::make_unique<PublicQp>());
    ibv_qp_init_attr a{};
    a.qp_type = IBV_QPT_RAW_PACKET;
    QpParts parts{.pd = pd_};
    parts.table = &table;
    parts.hash = {.key = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67},
                  .fields = steering::hash_field::kAll};
    Qp* const qp = create_qp(*context_, parts, *public_qps_.back(), a);
    if (qp != nullptr) qps_.push_back(qp);
    return qp;
  }

  std::array<PublicWq, 4> wqs_;
  std::vector<ibv_wq*> list_;
};

TEST_F(TableTest, SizesArePowersOfTwoUpToTheLimit) {
  ASSERT_EQ(std::uint32_t{1} << 12, kRwqTableMax);
  for (const std::uint32_t log_size : {0U, 2U, 12U}) {
    RwqTable* const table = make_table(log_size);
    ASSERT_NE(table, nullptr) << log_size;
    EXPECT_EQ(destroy_rwq_table(table), 0);
  }
  for (const std::uint32_t log_size : {13U, 32U, 63U, 255U}) {
    EXPECT_EQ(make_table(log_size), nullptr) << log_size;
    EXPECT_EQ(errno, EINVAL);
  }
  list_[1] = nullptr;
  EXPECT_EQ(make_table(2), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(TableTest, AsManyAsTheDevicePromisesAndNothingBesideThem) {
  engine::Quota& quota = engine_.quotas().rwq_tables;
  ASSERT_TRUE(quota.take(engine::kRwqTablesMax));
  EXPECT_EQ(make_table(1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(destroy_wq(std::exchange(wqs_[0].object, nullptr)), 0);  // it kept none of them
  ASSERT_NE(make(wqs_[0]), nullptr);
  quota.give_back(engine::kRwqTablesMax);
  ibv_rwq_ind_table_init_attr a{};
  a.ind_tbl = list_.data();
  a.comp_mask = 1;
  EXPECT_EQ(create_rwq_table(*context_, a, object_of), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(TableTest, WhatIsInUseStays) {
  RwqTable* const table = make_table(2);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(destroy_wq(wqs_[0].object), EBUSY);
  Qp* const qp = make_spreading_qp(*table);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(destroy_rwq_table(table), EBUSY);
  destroy(qp);
  EXPECT_EQ(destroy_rwq_table(table), 0);
}

TEST_F(TableTest, FramesAreSpreadWhateverTheStateOfTheQueuePair) {
  RwqTable* const table = make_table(2);
  Qp* const qp = make_spreading_qp(*table);
  ASSERT_NE(qp, nullptr);
  FlowAttributes all(IBV_FLOW_ATTR_ALL_DEFAULT);
  Flow* const flow = create_flow(*qp, all.list());
  ASSERT_NE(flow, nullptr);
  for (PublicWq& wq : wqs_) {
    for (std::uint32_t i = 0; i < kCapacity; ++i) ASSERT_EQ(post(*wq.object, i), 0);
  }
  constexpr std::uint8_t kFlows = 16;
  for (std::uint8_t i = 0; i < kFlows; ++i) {
    arrive(test::FrameBuilder(test::kMacB, test::kMacA)
               .ipv4({10, i, i, i}, {10, 0, 1, 1}, test::kUdp)
               .ports(1, 2)
               .fill(60)
               .bytes());
  }
  std::set<std::uint32_t> used;
  for (const ibv_wc& wc : wait_for(kFlows)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, 60U);
    used.insert(wc.qp_num);
  }
  EXPECT_EQ(used.size(), wqs_.size());
  EXPECT_FALSE(used.contains(qp->core.number.value));
  destroy_flow(flow);
  destroy(qp);
  EXPECT_EQ(destroy_rwq_table(table), 0);
}

TEST_F(TableTest, ASpreadingQueuePairHasNoQueuesOfItsOwn) {
  RwqTable* const table = make_table(1);
  Qp* const qp = make_spreading_qp(*table);
  ASSERT_NE(qp, nullptr);
  ReceiveRequest receive(buffer_.data(), 64, lkey());
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(post_recv(*qp, &receive, &bad_receive), EINVAL);
  EXPECT_EQ(qp->limits.max_send_wr, 0U);
  destroy(qp);
  EXPECT_EQ(destroy_rwq_table(table), 0);
}

}  // namespace
}  // namespace uroce::verbs
