// SPDX-License-Identifier: BSD-2-Clause
// Verbs objects over an engine whose link comes back to it: no libibverbs, no device, no privilege.
// What libibverbs does around the operations (the mutex of a CQ) is done here.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <set>
#include <vector>

#include "unit/engine/fake_parts.h"
#include "verbs/bridge.h"
#include "verbs/events.h"

namespace uroce::verbs {

struct PublicCq : ibv_cq {
  PublicCq() : ibv_cq{} {
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
  }
};
struct PublicQp : ibv_qp {
  PublicQp() : ibv_qp{} {
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
  }
};
struct PublicSrq : ibv_srq {
  PublicSrq() : ibv_srq{} {
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
  }
};

// Another context of the same device, with a domain, a thread domain and a queue of its own.
struct OtherContext {
  explicit OtherContext(engine::Engine& engine)
      : context(Context::make(engine)),
        pd(alloc_pd(*context)),
        td(alloc_td(*context, {})),
        cq(create_cq(*context, public_cq, 16, nullptr, 0)) {}
  ~OtherContext() {
    EXPECT_EQ(destroy_cq(cq), 0);
    EXPECT_EQ(dealloc_td(td), 0);
    EXPECT_EQ(dealloc_pd(pd), 0);
    const int events = context->async_descriptor();
    context.reset();
    close(events);
  }
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;

  OpenContext context;
  PublicCq public_cq;
  Pd* pd;
  Td* td;
  Cq* cq;
};

class VerbsTest : public testing::Test {
 protected:
  explicit VerbsTest(bool wants_frames = false)
      : fakes_{.wants_frames = wants_frames},
        engine_(engine::make_fake_parts(fakes_), upcalls()),
        context_(Context::make(engine_)) {
    pd_ = alloc_pd(*context_);
    cq_ = create_cq(*context_, public_cq_, 256, nullptr, 0);
  }
  ~VerbsTest() override {
    for (Qp* qp : qps_) EXPECT_EQ(destroy_qp(qp, qp->handles.front()->part), 0);
    for (Mr* mr : mrs_) EXPECT_EQ(dereg_mr(mr), 0);
    EXPECT_EQ(destroy_cq(cq_), 0);
    EXPECT_EQ(dealloc_pd(pd_), 0);
    const int events = context_->async_descriptor();
    context_.reset();
    close(events);
  }

  // Of the asynchronous events, as a program that polls for them sees it.
  [[nodiscard]] bool has_unread_event() const {
    pollfd events{context_->async_descriptor(), POLLIN, 0};
    return poll(&events, 1, 0) == 1;
  }

  static ibv_qp_init_attr usual_qp() {
    ibv_qp_init_attr a{};
    a.cap = {.max_send_wr = 16,
             .max_recv_wr = 16,
             .max_send_sge = 4,
             .max_recv_sge = 4,
             .max_inline_data = 64};
    a.qp_type = IBV_QPT_RC;
    return a;
  }
  Qp* make_qp(ibv_qp_init_attr a = usual_qp(), Srq* srq = nullptr) {
    public_qps_.push_back(std::make_unique<PublicQp>());
    Qp* qp = create_qp(*context_, {.pd = pd_, .send_cq = cq_, .receive_cq = cq_, .srq = srq},
                       *public_qps_.back(), a);
    if (qp != nullptr) qps_.push_back(qp);
    return qp;
  }
  void destroy(Qp* qp) {
    std::erase(qps_, qp);
    EXPECT_EQ(destroy_qp(qp, qp->handles.front()->part), 0);
  }
  Mr* make_mr(void* address, std::size_t length,
              int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC) {
    Mr* mr = reg_mr(*pd_, address, length, reinterpret_cast<std::uintptr_t>(address), access);
    if (mr != nullptr) mrs_.push_back(mr);
    return mr;
  }

  static int to_init(Qp& qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    return modify_qp(qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  static constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  static ibv_qp_attr rtr(const Qp& peer) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer.core.number.value;
    a.rq_psn = 0x1234;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    const Gid gid = engine::test_gid(1);
    std::copy(gid.bytes.begin(), gid.bytes.end(), a.ah_attr.grh.dgid.raw);
    return a;
  }
  static int to_rtr(Qp& qp, const Qp& peer) { return modify_qp(qp, rtr(peer), kRtrMask); }
  static int to_rts(Qp& qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.sq_psn = 0x1234;
    a.max_rd_atomic = 4;
    return modify_qp(qp, a,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  static int to_state(Qp& qp, ibv_qp_state state) {
    ibv_qp_attr a{};
    a.qp_state = state;
    return modify_qp(qp, a, IBV_QP_STATE);
  }
  void connect(Qp& a, Qp& b) {
    ASSERT_EQ(to_init(a) | to_init(b), 0);
    ASSERT_EQ(to_rtr(a, b) | to_rtr(b, a), 0);
    ASSERT_EQ(to_rts(a) | to_rts(b), 0);
  }

  // Until so many completions are there; the helper thread may make progress as well.
  std::vector<ibv_wc> wait_for(std::size_t count) {
    std::vector<ibv_wc> all;
    const Instant end = engine::monotonic_now() + milliseconds(10'000);
    while (all.size() < count && engine::monotonic_now() < end) {
      ibv_wc wc{};
      const int n = poll_cq(*cq_, 1, &wc);
      if (n < 0) break;
      if (n == 1) all.push_back(wc);
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }

  engine::FakeParts fakes_;
  engine::Engine engine_;
  OpenContext context_;
  Pd* pd_ = nullptr;
  PublicCq public_cq_;
  Cq* cq_ = nullptr;
  std::vector<std::unique_ptr<PublicQp>> public_qps_;
  std::vector<Qp*> qps_;
  std::vector<Mr*> mrs_;
};

// A work request with one SGE.
struct SendRequest : ibv_send_wr {
  SendRequest(ibv_wr_opcode what, void* address, std::uint32_t length, std::uint32_t lkey)
      : ibv_send_wr{}, sge{reinterpret_cast<std::uintptr_t>(address), length, lkey} {
    opcode = what;
    send_flags = IBV_SEND_SIGNALED;
    sg_list = &sge;
    num_sge = 1;
  }
  SendRequest(const SendRequest&) = delete;
  SendRequest& operator=(const SendRequest&) = delete;
  ibv_sge sge;
};
struct ReceiveRequest : ibv_recv_wr {
  ReceiveRequest(void* address, std::uint32_t length, std::uint32_t lkey)
      : ibv_recv_wr{}, sge{reinterpret_cast<std::uintptr_t>(address), length, lkey} {
    sg_list = &sge;
    num_sge = 1;
  }
  ReceiveRequest(const ReceiveRequest&) = delete;
  ReceiveRequest& operator=(const ReceiveRequest&) = delete;
  ibv_sge sge;
};

}  // namespace uroce::verbs
