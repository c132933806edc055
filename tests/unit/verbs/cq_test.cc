// SPDX-License-Identifier: BSD-2-Clause
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

using CqTest = VerbsTest;

TEST_F(CqTest, SizesAreHonouredAtTheLimitAndRefusedBeyond) {
  PublicCq handle;
  for (const auto& [entries, error] : {std::pair{0, EINVAL},
                                       {-1, EINVAL},
                                       {1, 0},
                                       {static_cast<int>(kCqesMax), 0},
                                       {static_cast<int>(kCqesMax) + 1, EINVAL}}) {
    errno = 0;
    Cq* cq = create_cq(*context_, handle, entries, nullptr, 0);
    EXPECT_EQ(cq != nullptr, error == 0) << entries;
    if (cq == nullptr) {
      EXPECT_EQ(errno, error) << entries;
      continue;
    }
    EXPECT_GE(handle.cqe, entries);
    EXPECT_EQ(destroy_cq(cq), 0);
  }
  EXPECT_EQ(create_cq(*context_, handle, 1, nullptr, kCompletionVectors), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(CqTest, InUseByAQpItStays) {
  ASSERT_NE(make_qp(), nullptr);
  EXPECT_EQ(destroy_cq(cq_), EBUSY);
}

TEST_F(CqTest, ResizeKeepsWhatIsThereAndRefusesToLoseIt) {
  Qp* a = make_qp();
  Qp* b = make_qp();
  connect(*a, *b);
  for (int i = 0; i < 4; ++i) {
    ibv_send_wr* bad = nullptr;
    SendRequest request(IBV_WR_RDMA_WRITE, nullptr, 0, 0);
    request.wr_id = static_cast<std::uint64_t>(i);
    ASSERT_EQ(post_send(*a, &request, &bad), 0);
  }
  ibv_wc none{};
  const Instant end = engine::monotonic_now() + milliseconds(10'000);
  const auto pending = [this] {
    engine::Engine::Section section(engine_);
    return cq_->queue.pending();
  };
  while (pending() < 4 && engine::monotonic_now() < end) engine_.progress();
  EXPECT_EQ(poll_cq(*cq_, 0, &none), 0);
  EXPECT_EQ(resize_cq(*cq_, 3), EINVAL);
  EXPECT_EQ(resize_cq(*cq_, 4), 0);
  EXPECT_EQ(resize_cq(*cq_, 1'000), 0);
  EXPECT_EQ(public_cq_.cqe, 1'000);
  const std::vector<ibv_wc> all = wait_for(4);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].wr_id, i);
}

class ChannelTest : public VerbsTest {
 protected:
  ChannelTest() {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK), 0);
    channel_.fd = ends_[0];
    announced_ = create_cq(*context_, handle_, 16, &channel_, 0);
  }
  ~ChannelTest() override {
    if (announced_ != nullptr) {
      EXPECT_EQ(destroy_cq(announced_), 0);
    }
    close(ends_[0]);
    close(ends_[1]);
  }
  std::size_t notifications() {
    std::size_t count = 0;
    for (std::uint64_t element = 0; read(ends_[0], &element, sizeof(element)) == 8; ++count) {
      EXPECT_EQ(element, reinterpret_cast<std::uintptr_t>(&handle_));
    }
    return count;
  }
  // As the core does.
  void complete(bool solicited) {
    engine::Engine::Section section(engine_);
    transport::Cqe* const entry = announced_->queue.stage(solicited);
    ASSERT_NE(entry, nullptr);
    *entry = {};
    if (announced_->queue.publish({})) tell_completion(announced_->queue);
  }

  std::array<int, 2> ends_{};
  ibv_comp_channel channel_{};
  PublicCq handle_;
  Cq* announced_ = nullptr;
};

TEST_F(ChannelTest, OneNotificationForEachRequest) {
  complete(true);
  EXPECT_EQ(notifications(), 0U);
  ASSERT_EQ(req_notify_cq(*announced_, 0), 0);
  complete(false);
  complete(false);
  EXPECT_EQ(notifications(), 1U);
  handle_.comp_events_completed = 1;
}

TEST_F(ChannelTest, SolicitedOnlyWaitsForASolicitedOne) {
  ASSERT_EQ(req_notify_cq(*announced_, 1), 0);
  complete(false);
  EXPECT_EQ(notifications(), 0U);
  complete(true);
  EXPECT_EQ(notifications(), 1U);
  handle_.comp_events_completed = 1;
}

TEST_F(ChannelTest, UnreadNotificationsGoWithTheirQueue) {
  ASSERT_EQ(req_notify_cq(*announced_, 0), 0);
  complete(false);
  EXPECT_EQ(destroy_cq(std::exchange(announced_, nullptr)), 0);
  EXPECT_EQ(notifications(), 0U);
}

class FullChannelTest : public ChannelTest {
 protected:
  FullChannelTest() {
    EventPipe other;
    other.open(ends_[1]);
    while (other.write(kOthers)) {
    }
    EXPECT_EQ(req_notify_cq(*announced_, 0), 0);
    complete(false);
    EXPECT_EQ(announced_->notifications.waiting, 1U);
  }
  // Of the queue, behind those of others.
  std::size_t own_notifications() {
    std::size_t own = 0;
    for (std::uint64_t element = 0; read(ends_[0], &element, sizeof(element)) == 8;) {
      if (element != kOthers) ++own;
    }
    return own;
  }
  static constexpr std::uint64_t kOthers = 7;
};

TEST_F(FullChannelTest, WhatItDidNotTakeComesWhenAnyIsRead) {
  PublicCq handle;
  Cq* other = create_cq(*context_, handle, 16, &channel_, 0);
  EXPECT_EQ(own_notifications(), 0U);
  on_notification_read(*other);
  EXPECT_EQ(own_notifications(), 1U);
  handle_.comp_events_completed = 1;
  EXPECT_EQ(destroy_cq(other), 0);
}

TEST_F(FullChannelTest, WhatItDidNotTakeComesWhenOthersGo) {
  PublicCq handle;
  Cq* other = create_cq(*context_, handle, 16, &channel_, 0);
  EXPECT_EQ(own_notifications(), 0U);
  EXPECT_EQ(destroy_cq(other), 0);
  EXPECT_EQ(own_notifications(), 1U);
  handle_.comp_events_completed = 1;
}

TEST_F(FullChannelTest, WhatItDidNotTakeGoesWithItsQueue) {
  PublicCq handle;
  Cq* other = create_cq(*context_, handle, 16, &channel_, 0);
  EXPECT_EQ(own_notifications(), 0U);
  EXPECT_EQ(destroy_cq(std::exchange(announced_, nullptr)), 0);
  on_notification_read(*other);
  EXPECT_EQ(own_notifications(), 0U);
  EXPECT_EQ(destroy_cq(other), 0);
}

}  // namespace
}  // namespace uroce::verbs
