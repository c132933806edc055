// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues: their limit, and that they become larger and smaller under traffic (P85).
#include "verbs/srq.h"

#include <cerrno>

#include "unit/verbs/fixture.h"
#include "verbs/limits.h"

namespace uroce::verbs {
namespace {

class SrqTest : public VerbsTest {
 protected:
  Srq* make_srq(std::uint32_t capacity) {
    ibv_srq_attr attributes{.max_wr = capacity, .max_sge = 2, .srq_limit = 0};
    srq_ = create_srq(*pd_, handle_, attributes);
    return srq_;
  }
  int resize(std::uint32_t capacity) {
    return modify_srq(*srq_, {.max_wr = capacity, .max_sge = 0, .srq_limit = 0}, IBV_SRQ_MAX_WR);
  }
  int arm(std::uint32_t limit) {
    return modify_srq(*srq_, {.max_wr = 0, .max_sge = 0, .srq_limit = limit}, IBV_SRQ_LIMIT);
  }
  ibv_srq_attr told() {
    ibv_srq_attr attributes{};
    query_srq(*srq_, attributes);
    return attributes;
  }
  int post(std::uint64_t id) {
    ReceiveRequest request(nullptr, 0, 0);
    request.wr_id = id;
    ibv_recv_wr* bad = nullptr;
    return post_srq_recv(*srq_, &request, &bad);
  }
  // As many as there are places for, by numbers that go on.
  void fill() {
    while (post(posted_) == 0) ++posted_;
  }
  void connect_to_it() {
    sender_ = make_qp();
    receiver_ = make_qp(usual_qp(), srq_);
    connect(*sender_, *receiver_);
  }
  // What `count` messages, each without a payload, have taken.
  std::vector<std::uint64_t> take(int count) {
    SendRequest message(IBV_WR_SEND, nullptr, 0, 0);
    ibv_send_wr* bad = nullptr;
    for (int i = 0; i < count; ++i) EXPECT_EQ(post_send(*sender_, &message, &bad), 0);
    std::vector<std::uint64_t> ids;
    for (const ibv_wc& wc : wait_for(2 * static_cast<std::size_t>(count))) {
      if (wc.opcode == IBV_WC_RECV) ids.push_back(wc.wr_id);
    }
    return ids;
  }
  void end() {
    destroy(receiver_);
    EXPECT_EQ(destroy_srq(srq_), 0);
  }

  PublicSrq handle_;
  Srq* srq_ = nullptr;
  Qp* sender_ = nullptr;
  Qp* receiver_ = nullptr;
  std::uint64_t posted_ = 0;
};

using Ids = std::vector<std::uint64_t>;

TEST_F(SrqTest, ItsLimitIsSetToldAndFiresOnce) {
  ASSERT_NE(make_srq(8), nullptr);
  EXPECT_EQ(told().max_wr, 8U);
  EXPECT_EQ(told().max_sge, 2U);
  EXPECT_EQ(told().srq_limit, 0U);
  fill();
  EXPECT_EQ(posted_, 8U);
  EXPECT_EQ(arm(9), EINVAL);
  EXPECT_EQ(arm(7), 0);
  EXPECT_EQ(told().srq_limit, 7U);
  connect_to_it();
  (void)take(4);
  EXPECT_EQ(srq_->events_given, 1U);
  EXPECT_EQ(told().srq_limit, 0U);
  end();
}

TEST_F(SrqTest, ItsUnreadEventGoesWithIt) {
  ASSERT_NE(make_srq(8), nullptr);
  fill();
  ASSERT_EQ(arm(7), 0);
  connect_to_it();
  (void)take(4);
  EXPECT_TRUE(has_unread_event());
  end();
  EXPECT_FALSE(has_unread_event());
}

TEST_F(SrqTest, ResizingLosesAndMovesNothing) {
  ASSERT_NE(make_srq(5), nullptr);
  connect_to_it();
  fill();
  EXPECT_EQ(take(3), (Ids{0, 1, 2}));
  fill();  // round the ring's end
  EXPECT_EQ(resize(12), 0);
  EXPECT_EQ(told().max_wr, 12U);
  fill();
  EXPECT_EQ(posted_, 3U + 12U);
  EXPECT_EQ(take(10), (Ids{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(resize(2), 0);
  EXPECT_EQ(post(99), ENOMEM);
  EXPECT_EQ(take(2), (Ids{13, 14}));
  fill();
  EXPECT_EQ(posted_, 15U + 2U);
  EXPECT_EQ(take(2), (Ids{15, 16}));
  end();
}

TEST_F(SrqTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
  ASSERT_NE(make_srq(8), nullptr);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(post(posted_++), 0);
  EXPECT_EQ(resize(4), EINVAL);  // five are posted
  EXPECT_EQ(resize(0), EINVAL);
  EXPECT_EQ(resize(kWorkRequestsMax + 1), EINVAL);
  const ibv_srq_attr both{.max_wr = 6, .max_sge = 0, .srq_limit = 7};
  EXPECT_EQ(modify_srq(*srq_, both, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(modify_srq(*srq_, both, IBV_SRQ_MAX_WR << 2), EINVAL);
  EXPECT_EQ(arm(5), 0);
  EXPECT_EQ(resize(4), EINVAL);  // below the limit that is armed, which is no more than are posted
  EXPECT_EQ(told().srq_limit, 5U);
  EXPECT_EQ(told().max_wr, 8U);
  connect_to_it();
  EXPECT_EQ(take(5), (Ids{0, 1, 2, 3, 4}));
  end();
}

TEST_F(SrqTest, ACompletionThatIsNotPolledYetTakesItsPlace) {
  ASSERT_NE(make_srq(4), nullptr);
  connect_to_it();
  fill();
  SendRequest message(IBV_WR_SEND, nullptr, 0, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*sender_, &message, &bad), 0);
  const auto one = wait_for(1);  // of the two of this message
  ASSERT_EQ(resize(8), 0);
  const auto other = wait_for(1);
  fill();
  EXPECT_EQ(posted_, 1U + 8U);
  end();
}

}  // namespace
}  // namespace uroce::verbs
