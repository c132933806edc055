// SPDX-License-Identifier: BSD-2-Clause
// What a forked child does with what it inherited while another thread of its parent's held the
// locks of it, which nobody will ever let go of there: it fails, and waits for nobody.
#include <sys/wait.h>

#include <cerrno>
#include <functional>
#include <mutex>

#include "support/quiet_helper.h"
#include "unit/verbs/fixture.h"
#include "verbs/dm.h"

namespace uroce::verbs {
namespace {

struct ForkTest : VerbsTest {
  static ibv_qp_init_attr datagrams() {
    ibv_qp_init_attr a = usual_qp();
    a.qp_type = IBV_QPT_UD;
    return a;
  }
  // Of a child that does so much; one that waits for ever is ended by a signal.
  int status_of(const std::function<int()>& body) {
    test::wait_for_quiet_helpers();
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      engine_.abandon_in_child();
      _exit(body());
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }
  Ah* make_ah() {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.port_num = 1;
    const Gid gid = engine::test_gid(1);
    std::copy(gid.bytes.begin(), gid.bytes.end(), a.grh.dgid.raw);
    return create_ah(*pd_, a);
  }
};

TEST_F(ForkTest, ADatagramToAnAddressThatWasNotUsedYetIsRefused) {
  Qp* const qp = make_qp(datagrams());
  ASSERT_NE(qp, nullptr);
  qp->core.state.store(transport::QpState::kRts);
  Ah* const ah = make_ah();
  EXPECT_EQ(status_of([&] {
              wr_start(*qp);
              wr_send(*qp, {.wr_id = 1, .flags = IBV_SEND_SIGNALED});
              wr_set_target(*qp, ah, 5, 1);
              wr_set_sge_list(*qp, {});
              if (wr_complete(*qp) != EIO) return 1;
              destroy_ah(ah);
              return 0;
            }),
            0);
  destroy_ah(ah);
}

TEST_F(ForkTest, QueuesThatWereLockedAreNotWaitedFor) {
  Qp* const qp = make_qp();
  ASSERT_EQ(to_init(*qp), 0);
  const std::scoped_lock held(qp->send_lock, qp->receive_lock, cq_->batch.lock);
  EXPECT_EQ(status_of([&] {
              if (start_poll(*cq_) != EIO) return 1;
              for (const bool aborts : {true, false}) {
                wr_start(*qp);
                wr_send(*qp, {.wr_id = 1, .flags = IBV_SEND_SIGNALED});
                if (aborts) {
                  wr_abort(*qp);
                } else if (wr_complete(*qp) != EIO) {
                  return 2;
                }
                if (qp->send_lock.try_lock()) return 3;  // it was not ours to let go of
              }
              ibv_recv_wr request{};
              ibv_recv_wr* bad = nullptr;
              return post_recv(*qp, &request, &bad) == EIO && bad == &request ? 0 : 4;
            }),
            0);
}

TEST_F(ForkTest, CompletionsThatWereBeingTakenAreNotWaitedFor) {
  Qp* const a = make_qp();
  Qp* const b = make_qp();
  connect(*a, *b);
  std::array<std::byte, 8> memory{};
  const Mr* const mr = make_mr(memory.data(), memory.size());
  SendRequest request(IBV_WR_RDMA_WRITE, memory.data(), 4, mr->region.key);
  request.wr.rdma = {reinterpret_cast<std::uintptr_t>(&memory[4]), mr->region.key};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &request, &bad), 0);
  const Instant end = engine::monotonic_now() + milliseconds(10'000);
  while (cq_->queue.is_empty() && engine::monotonic_now() < end) engine_.progress();
  ASSERT_FALSE(cq_->queue.is_empty());
  const std::scoped_lock held(cq_->lock);
  EXPECT_EQ(status_of([&] {
              ibv_wc completion{};
              if (poll_cq(*cq_, 1, &completion) != -1) return 1;
              return start_poll(*cq_) == EIO ? 0 : 2;
            }),
            0);
}

TEST_F(ForkTest, ListsThatWereLockedAreNotWaitedFor) {
  Dm* const dm = alloc_dm(*context_, {.length = 64, .log_align_req = 0, .comp_mask = 0});
  Pd* const pd = alloc_pd(*context_);
  ASSERT_TRUE(dm != nullptr && pd != nullptr);
  {
    const std::scoped_lock held(context_->handles().mutex);
    EXPECT_EQ(status_of([&] {
                if (free_dm(dm) != 0 || dealloc_pd(pd) != 0) return 1;
                Dm* const own =
                    alloc_dm(*context_, {.length = 64, .log_align_req = 0, .comp_mask = 0});
                return own != nullptr && free_dm(own) == 0 ? 0 : 2;
              }),
              0);
  }
  EXPECT_EQ(free_dm(dm) | dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace uroce::verbs
