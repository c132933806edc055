// SPDX-License-Identifier: BSD-2-Clause
// Extended completion queues: what they may be asked for, batches, times, moderation.
#include <thread>

#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

TEST(CqOptionsTest, WhatNoCompletionHasIsNotSupported) {
  CqOptions options;
  for (const auto flag : {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO}) {
    ibv_cq_init_attr_ex a{};
    a.wc_flags = flag;
    EXPECT_EQ(to_cq_options(a, options), EOPNOTSUPP) << flag;
  }
  ibv_cq_init_attr_ex a{};
  a.wc_flags = IBV_WC_STANDARD_FLAGS;
  EXPECT_EQ(to_cq_options(a, options), 0);
  EXPECT_FALSE(options.timestamps);
  a.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  a.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  EXPECT_EQ(to_cq_options(a, options), 0);
  EXPECT_TRUE(options.timestamps && options.single_threaded && options.ignore_overrun);
  EXPECT_FALSE(options.wall_clock);
  a.flags = 1U << 31;
  EXPECT_EQ(to_cq_options(a, options), EOPNOTSUPP);
  a.comp_mask = 1U << 31;
  EXPECT_EQ(to_cq_options(a, options), EINVAL);
}

class CqBatchTest : public VerbsTest {
 protected:
  CqBatchTest() { EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK), 0); }
  ~CqBatchTest() override {
    if (extended_ != nullptr) {
      EXPECT_EQ(destroy_cq(extended_), 0);
    }
    close(ends_[0]);
    close(ends_[1]);
  }
  Cq& make_extended(const CqOptions& options, int entries = 16) {
    channel_.fd = ends_[0];
    extended_ = create_cq(*context_, handle_, entries, &channel_, 0, options);
    return *extended_;
  }
  // As the core does.
  void complete(std::uint64_t wr_id, Instant now = engine::monotonic_now()) {
    engine::Engine::Section section(engine_);
    transport::Cqe* const entry = extended_->queue.stage(false);
    ASSERT_NE(entry, nullptr);
    *entry = {};
    entry->wr_id = wr_id;
    if (extended_->queue.publish(now)) tell_completion(extended_->queue);
  }
  std::size_t notifications() {
    std::size_t count = 0;
    for (std::uint64_t element = 0; read(ends_[0], &element, sizeof(element)) == 8; ++count) {
    }
    handle_.comp_events_completed += static_cast<std::uint32_t>(count);
    return count;
  }

  std::array<int, 2> ends_{};
  ibv_comp_channel channel_{};
  PublicCq handle_;
  Cq* extended_ = nullptr;
};

TEST_F(CqBatchTest, OneAfterAnotherIsCurrent) {
  Cq& cq = make_extended({});
  EXPECT_EQ(start_poll(cq), ENOENT);
  for (std::uint64_t id : {7U, 8U, 9U}) complete(id);
  ASSERT_EQ(start_poll(cq), 0);
  EXPECT_EQ(cq.batch.entry.wr_id, 7U);
  ASSERT_EQ(next_poll(cq), 0);
  EXPECT_EQ(cq.batch.entry.wr_id, 8U);
  end_poll(cq);
  // ibv_poll_cq has what the batch left.
  ibv_wc wc{};
  ASSERT_EQ(poll_cq(cq, 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 9U);
  EXPECT_EQ(start_poll(cq), ENOENT);
  complete(10);
  ASSERT_EQ(start_poll(cq), 0);
  EXPECT_EQ(next_poll(cq), ENOENT);
  complete(11);
  EXPECT_EQ(next_poll(cq), 0);
  end_poll(cq);
}

// The one whose completion is current may be destroyed, and its queue resized.
TEST_F(CqBatchTest, ControlVerbsMayBeCalledWithinABatch) {
  Cq& cq = make_extended({});
  complete(1);
  complete(2);
  ASSERT_EQ(start_poll(cq), 0);
  EXPECT_EQ(resize_cq(cq, 64), 0);
  EXPECT_EQ(cq.batch.entry.wr_id, 1U);
  ASSERT_EQ(next_poll(cq), 0);
  EXPECT_EQ(cq.batch.entry.wr_id, 2U);
  end_poll(cq);
}

TEST_F(CqBatchTest, BatchesExcludeEachOther) {
  Cq& cq = make_extended({});
  complete(1);
  complete(2);
  ASSERT_EQ(start_poll(cq), 0);
  std::atomic<std::uint64_t> other{0};
  std::thread thread([&] {
    if (start_poll(cq) != 0) return;
    other = cq.batch.entry.wr_id;
    end_poll(cq);
  });
  EXPECT_EQ(cq.batch.entry.wr_id, 1U);
  end_poll(cq);
  thread.join();
  EXPECT_EQ(other, 2U);
}

TEST_F(CqBatchTest, TimesAreWhenACompletionBecameVisible) {
  Cq& cq = make_extended({.timestamps = true, .wall_clock = true}, 3);
  ibv_values_ex before{};
  ibv_values_ex after{};
  before.comp_mask = after.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | IBV_VALUES_MASK_RESERVED;
  const std::uint64_t wall_before = engine::wall_clock_now();
  ASSERT_EQ(query_rt_values(*context_, before), 0);
  EXPECT_EQ(before.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
  for (std::uint64_t id : {1U, 2U}) complete(id);
  ASSERT_EQ(resize_cq(cq, 100), 0);
  complete(3);
  ASSERT_EQ(query_rt_values(*context_, after), 0);
  const std::uint64_t wall_after = engine::wall_clock_now();
  std::int64_t last = before.raw_clock.tv_nsec;
  ASSERT_EQ(start_poll(cq), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(cq.batch.published.ns, last);
    last = cq.batch.published.ns;
    const auto wall = static_cast<std::uint64_t>(last + cq.batch.wall_clock_offset);
    constexpr std::uint64_t kSlew = 1'000'000;  // the clocks are not read at one instant
    EXPECT_GE(wall + kSlew, wall_before);
    EXPECT_LE(wall, wall_after + kSlew);
    EXPECT_EQ(next_poll(cq), i < 2 ? 0 : ENOENT);
  }
  EXPECT_LE(last, after.raw_clock.tv_nsec);
  end_poll(cq);
}

// Through the engine: the time lies between the post and the poll.
TEST_F(CqBatchTest, AMessageIsTimed) {
  Cq& cq = make_extended({.timestamps = true});
  public_qps_.push_back(std::make_unique<PublicQp>());
  ibv_qp_init_attr attributes = usual_qp();
  Qp* const a = create_qp(*context_, {.pd = pd_, .send_cq = &cq, .receive_cq = &cq},
                          *public_qps_.back(), attributes);
  ASSERT_NE(a, nullptr);
  Qp* const b = make_qp();
  connect(*a, *b);
  const Instant before = engine::monotonic_now();
  SendRequest request(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &request, &bad), 0);
  const Instant end = before + milliseconds(10'000);
  while (start_poll(cq) != 0 && engine::monotonic_now() < end) {
  }
  // The engine counts ticks between two readings of the clock; and the helper thread may have lost
  // its processor between the beginning of a turn, which is the time, and its look at the
  // doorbells.
  EXPECT_GE(cq.batch.published + milliseconds(5), before);
  EXPECT_LE(cq.batch.published, engine::monotonic_now() + microseconds(100));
  end_poll(cq);
  EXPECT_EQ(destroy_qp(a, a->handles.front()->part), 0);
}

// Of what was there before, each is polled.
TEST_F(CqBatchTest, OverrunEndsABatch) {
  Cq& cq = make_extended({}, 2);
  complete(1);
  complete(2);
  {
    engine::Engine::Section section(engine_);
    EXPECT_EQ(cq.queue.stage(false), nullptr);
  }
  ASSERT_EQ(start_poll(cq), 0);
  EXPECT_EQ(next_poll(cq), 0);
  EXPECT_EQ(next_poll(cq), EIO);
  end_poll(cq);
  EXPECT_EQ(start_poll(cq), EIO);
}

TEST_F(CqBatchTest, OverrunIsIgnoredWhereThatWasAskedFor) {
  Cq& cq = make_extended({.ignore_overrun = true}, 2);
  public_qps_.push_back(std::make_unique<PublicQp>());
  ibv_qp_init_attr attributes = usual_qp();
  Qp* const a = create_qp(*context_, {.pd = pd_, .send_cq = &cq, .receive_cq = &cq},
                          *public_qps_.back(), attributes);
  Qp* const b = make_qp();
  connect(*a, *b);
  for (int i = 0; i < 8; ++i) {
    SendRequest request(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(post_send(*a, &request, &bad), 0);
  }
  const Instant end = engine::monotonic_now() + milliseconds(10'000);
  const auto is_done = [&] {
    engine::Engine::Section section(engine_);
    return a->core.requester.oldest_index == 8;
  };
  while (!is_done() && engine::monotonic_now() < end) engine_.progress();
  ibv_wc wcs[8];
  EXPECT_EQ(poll_cq(cq, 8, wcs), 2);
  EXPECT_EQ(poll_cq(cq, 8, wcs), 0);
  EXPECT_FALSE(cq.queue.has_overrun());
  EXPECT_EQ(a->core.state, transport::QpState::kRts);
  // The slots of what was lost are free again.
  EXPECT_EQ(a->core.send_queue.free_slots(), 16U);
  EXPECT_EQ(destroy_qp(a, a->handles.front()->part), 0);
}

ibv_modify_cq_attr moderate(std::uint16_t count, std::uint16_t period) {
  return {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = count, .cq_period = period}};
}

TEST_F(CqBatchTest, SoManyCompletionsAreAnnouncedAtOnce) {
  Cq& cq = make_extended({});
  ASSERT_EQ(modify_cq(cq, moderate(3, UINT16_MAX)), 0);
  ASSERT_EQ(req_notify_cq(cq, 0), 0);
  const Instant now = engine::monotonic_now();  // of all three: the period is of real time
  complete(1, now);
  complete(2, now);
  EXPECT_EQ(notifications(), 0U);
  complete(3, now);
  EXPECT_EQ(notifications(), 1U);
}

TEST_F(CqBatchTest, ModerationTakenBackAnnouncesWhatWaits) {
  Cq& cq = make_extended({});
  ASSERT_EQ(modify_cq(cq, moderate(3, UINT16_MAX)), 0);
  ASSERT_EQ(req_notify_cq(cq, 0), 0);
  complete(1);
  ASSERT_EQ(modify_cq(cq, moderate(0, 0)), 0);
  EXPECT_EQ(notifications(), 1U);
  ASSERT_EQ(req_notify_cq(cq, 0), 0);
  complete(2);
  EXPECT_EQ(notifications(), 1U);
  EXPECT_EQ(modify_cq(cq, {.attr_mask = IBV_CQ_ATTR_RESERVED, .moderate = {}}), EINVAL);
  EXPECT_EQ(modify_cq(cq, {.attr_mask = 0, .moderate = {}}), EINVAL);
}

// Nobody polls: the helper thread announces when the period is over.
TEST_F(CqBatchTest, OneThatWaitedForThePeriodIsAnnounced) {
  Cq& cq = make_extended({});
  ASSERT_EQ(fcntl(ends_[0], F_SETFL, 0), 0);
  public_qps_.push_back(std::make_unique<PublicQp>());
  ibv_qp_init_attr attributes = usual_qp();
  Qp* const a = create_qp(*context_, {.pd = pd_, .send_cq = &cq, .receive_cq = &cq},
                          *public_qps_.back(), attributes);
  Qp* const b = make_qp();
  connect(*a, *b);
  ASSERT_EQ(modify_cq(cq, moderate(100, 2'000)), 0);
  const Instant before = engine::monotonic_now();
  ASSERT_EQ(req_notify_cq(cq, 0), 0);
  SendRequest request(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &request, &bad), 0);
  std::uint64_t element = 0;
  ASSERT_EQ(read(ends_[0], &element, sizeof(element)), 8);
  EXPECT_GE(engine::monotonic_now() - before, microseconds(1'900));
  handle_.comp_events_completed = 1;
  EXPECT_EQ(destroy_qp(a, a->handles.front()->part), 0);
}

}  // namespace
}  // namespace uroce::verbs
