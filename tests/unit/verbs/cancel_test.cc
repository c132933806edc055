// SPDX-License-Identifier: BSD-2-Clause
// Programs cancel threads that poll and post. None of these calls is a cancellation point (man 7
// pthreads); one that was would end in the middle of a turn and leave the shard's lock taken.
#include "support/cancelled.h"
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

struct CancelTest : VerbsTest {
  CancelTest() {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    channel_.fd = ends_[0];
    announced_ = create_cq(*context_, handle_, 16, &channel_, 0);
  }
  ~CancelTest() override {
    EXPECT_EQ(destroy_cq(announced_), 0);
    for (const int end : ends_) close(end);
  }
  std::array<int, 2> ends_{};
  ibv_comp_channel channel_{};
  PublicCq handle_;
  Cq* announced_ = nullptr;
};

TEST_F(CancelTest, PostsAndPollsComeToTheirEnd) {
  Qp* const a = make_qp();
  Qp* const b = make_qp();
  connect(*a, *b);
  std::array<std::byte, 64> memory{};
  const Mr* const mr = make_mr(memory.data(), memory.size());
  // The first wakes the helper, for a retransmission.
  const auto post = [&] {
    SendRequest request(IBV_WR_RDMA_WRITE, memory.data(), 8, mr->region.key);
    request.wr.rdma = {reinterpret_cast<std::uintptr_t>(&memory[32]), mr->region.key};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*a, &request, &bad), 0);
  };
  EXPECT_TRUE(test::is_no_cancellation_point(post));
  std::size_t polled = 0;
  const auto poll = [&] { polled = wait_for(1).size(); };
  EXPECT_TRUE(test::is_no_cancellation_point(poll));
  EXPECT_EQ(polled, 1U);
  const auto arm = [&] { EXPECT_EQ(req_notify_cq(*announced_, 0), 0); };
  EXPECT_TRUE(test::is_no_cancellation_point(arm));
}

TEST_F(CancelTest, WhatIsMadeAndUnmadeComesToItsEnd) {
  const auto make = [this] { destroy(make_qp()); };
  EXPECT_TRUE(test::is_no_cancellation_point(make));
  int events = -1;
  const auto open = [&] {
    const OpenContext other(Context::make(engine_));
    events = other->async_descriptor();
  };
  EXPECT_TRUE(test::is_no_cancellation_point(open));
  close(events);
}

}  // namespace
}  // namespace uroce::verbs
