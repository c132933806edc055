// SPDX-License-Identifier: BSD-2-Clause
// Eight threads that make, use and destroy objects of one device as chance has it, for
// UROCE_STORM_SECONDS (5), drawn from UROCE_STORM_SEED: each connects to what another thread has
// just now, which may be gone in mid-flight. Whatever the peers do, a verb with right arguments
// succeeds, and each request that was posted has one completion once its queue pair is in error.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "node.h"

namespace uroce::tests {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 8;
constexpr std::uint32_t kBytes = 64 * 1024;
constexpr int kDepth = 64;
constexpr std::uint32_t kQKey = 0x1234;

std::chrono::seconds duration() {
  const char* seconds = std::getenv("UROCE_STORM_SECONDS");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 5);
}

// What each thread has last said about itself.
class Board {
 public:
  void put(std::size_t thread, const Address& address) {
    const std::lock_guard guard(lock_);
    addresses_[thread] = address;
  }
  Address get(std::size_t thread) {
    const std::lock_guard guard(lock_);
    return addresses_[thread];
  }

 private:
  std::mutex lock_;
  std::array<Address, kThreads> addresses_{};
};

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(engine_() % end); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

// One queue pair and what belongs to it, from its making to its end.
class Life {
 public:
  Life(ibv_context* context, Chance& chance, std::vector<std::byte>& memory)
      : context_(context), chance_(chance), memory_(memory) {}

  void make() {
    ASSERT_NE(pd_ = ibv_alloc_pd(context_), nullptr);
    if (chance_.one_in(2)) {
      ASSERT_NE(channel_ = ibv_create_comp_channel(context_), nullptr);
    }
    ASSERT_NE(cq_ = ibv_create_cq(context_, 3 * kDepth, nullptr, channel_, 0), nullptr);
    register_memory();
    if (chance_.one_in(2)) make_srq();
    static constexpr std::array kTypes{IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq_;
    a.srq = srq_;
    a.qp_type = kTypes[chance_.below(kTypes.size())];
    a.cap = {.max_send_wr = kDepth,
             .max_recv_wr = kDepth,
             .max_send_sge = 2,
             .max_recv_sge = 1,
             .max_inline_data = 64};
    ASSERT_NE(qp_ = ibv_create_qp(pd_, &a), nullptr);
  }
  [[nodiscard]] Address address() const {
    Address a{.qpn = qp_->qp_num,
              .gid = {},
              .memory = reinterpret_cast<std::uintptr_t>(memory_.data()),
              .rkey = mr_->rkey};
    EXPECT_EQ(ibv_query_gid(context_, 1, 0, &a.gid), 0);
    return a;
  }

  void connect(const Address& to) {
    peer_ = to;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kQKey;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    modify(a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud() ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = to.qpn;
    a.max_dest_rd_atomic = a.max_rd_atomic = 4;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = to.gid;
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    modify(a, is_ud()
                  ? 0
                  : connected | (is_rc() ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 8;
    a.retry_cnt = a.rnr_retry = 3;
    modify(a, IBV_QP_SQ_PSN | (is_rc() ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                             IBV_QP_MAX_QP_RD_ATOMIC
                                       : 0));
    if (is_ud()) {
      ASSERT_NE(ah_ = ibv_create_ah(pd_, &a.ah_attr), nullptr);
    }
  }

  // Some of everything.
  void work() {
    for (std::uint32_t turns = chance_.below(40); turns > 0; --turns) {
      if (chance_.one_in(20)) register_again();
      if (chance_.one_in(20)) resize();
      if (chance_.one_in(4)) ask_for_notification();
      if (chance_.one_in(4)) poll();
      if (chance_.one_in(2)) receive();
      if (chance_.one_in(2)) send();
    }
    for (std::uint32_t turns = chance_.below(200); turns > 0; --turns) poll();
  }

  // Every request that was posted comes to its end. What is posted to an SRQ stays there.
  void drain() {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    modify(a, 0);
    const auto end = Clock::now() + std::chrono::seconds(30);
    const auto waiting = [this] { return sends_ + (srq_ == nullptr ? receives_ : 0); };
    while (waiting() > 0 && Clock::now() < end) poll();
    EXPECT_EQ(waiting(), 0);
  }

  [[nodiscard]] std::uint64_t successes() const { return successes_; }

  void destroy() {
    EXPECT_EQ(ah_ != nullptr ? ibv_destroy_ah(ah_) : 0, 0) << "AH";
    EXPECT_EQ(qp_ != nullptr ? ibv_destroy_qp(qp_) : 0, 0) << "QP";
    EXPECT_EQ(srq_ != nullptr ? ibv_destroy_srq(srq_) : 0, 0) << "SRQ";
    EXPECT_EQ(cq_ != nullptr ? ibv_destroy_cq(cq_) : 0, 0) << "CQ";
    EXPECT_EQ(channel_ != nullptr ? ibv_destroy_comp_channel(channel_) : 0, 0) << "channel";
    EXPECT_EQ(mr_ != nullptr ? ibv_dereg_mr(mr_) : 0, 0) << "MR";
    EXPECT_EQ(pd_ != nullptr ? ibv_dealloc_pd(pd_) : 0, 0) << "PD";
  }

 private:
  [[nodiscard]] bool is_rc() const { return qp_->qp_type == IBV_QPT_RC; }
  [[nodiscard]] bool is_ud() const { return qp_->qp_type == IBV_QPT_UD; }

  void modify(ibv_qp_attr& attributes, int mask) {
    // A peer's NAK may have put it into error on the way.
    const int error = ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | mask);
    ibv_qp_attr now{};
    ibv_qp_init_attr init{};
    if (error == 0) return;
    EXPECT_EQ(ibv_query_qp(qp_, &now, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(now.qp_state, IBV_QPS_ERR) << strerror(error) << ", type " << qp_->qp_type;
  }
  void register_memory() {
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC);
    ASSERT_NE(mr_, nullptr);
  }
  void make_srq() {
    ibv_srq_init_attr a{};
    a.attr = {.max_wr = kDepth, .max_sge = 1, .srq_limit = 0};
    ASSERT_NE(srq_ = ibv_create_srq(pd_, &a), nullptr);
  }
  // With requests under way that use the former key: they end with an error.
  void register_again() {
    ASSERT_EQ(ibv_dereg_mr(mr_), 0);
    register_memory();
  }
  void resize() {
    ASSERT_EQ(ibv_resize_cq(cq_, static_cast<int>(3 * kDepth + chance_.below(100))), 0);
    if (srq_ == nullptr) return;
    ibv_srq_attr a{.max_wr = kDepth + chance_.below(100), .max_sge = 0, .srq_limit = 0};
    ASSERT_EQ(ibv_modify_srq(srq_, &a, IBV_SRQ_MAX_WR), 0);
  }
  void ask_for_notification() { ASSERT_EQ(ibv_req_notify_cq(cq_, 0), 0); }
  void receive() {
    if (receives_ == kDepth) return;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), kBytes / 2, mr_->lkey};
    ibv_recv_wr request{}, *bad = nullptr;
    request.wr_id = 1;
    request.sg_list = &sge;
    request.num_sge = 1;
    ASSERT_EQ(srq_ != nullptr ? ibv_post_srq_recv(srq_, &request, &bad)
                              : ibv_post_recv(qp_, &request, &bad),
              0);
    ++receives_;
  }
  void send() {
    if (sends_ == kDepth) return;
    static constexpr std::array kOpcodes{IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                         IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                         IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    const std::uint32_t kinds = is_ud() ? 2 : is_rc() ? kOpcodes.size() : 4;
    ibv_send_wr request{}, *bad = nullptr;
    request.opcode = kOpcodes[chance_.below(kinds)];
    const bool is_atomic = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()),
                is_atomic ? 8 : chance_.below(is_ud() ? 1024 : kBytes / 2), mr_->lkey};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (is_ud()) {
      request.wr.ud = {.ah = ah_, .remote_qpn = peer_.qpn, .remote_qkey = kQKey};
    } else if (is_atomic) {
      request.wr.atomic = {
          .remote_addr = peer_.memory, .compare_add = 1, .swap = 0, .rkey = peer_.rkey};
    } else {
      request.wr.rdma = {.remote_addr = peer_.memory, .rkey = peer_.rkey};
    }
    ASSERT_EQ(ibv_post_send(qp_, &request, &bad), 0);
    ++sends_;
  }
  void poll() {
    std::array<ibv_wc, 16> completions{};
    const int count = ibv_poll_cq(cq_, completions.size(), completions.data());
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = completions[static_cast<std::size_t>(i)];
      EXPECT_EQ(wc.qp_num, qp_->qp_num);
      --(wc.wr_id == 1 ? receives_ : sends_);
      if (wc.status == IBV_WC_SUCCESS) ++successes_;
    }
    EXPECT_GE(sends_, 0);
    EXPECT_GE(receives_, 0);
  }

  ibv_context* context_;
  Chance& chance_;
  std::vector<std::byte>& memory_;
  Address peer_;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_ah* ah_ = nullptr;
  int sends_ = 0, receives_ = 0;  // without a completion yet
  std::uint64_t successes_ = 0;
};

struct Count {
  std::uint64_t lives = 0, successes = 0;
};

void live(ibv_context* context, Board& board, std::size_t thread, std::uint64_t seed,
          Clock::time_point end, Count& count) {
  Chance chance(seed + thread);
  std::vector<std::byte> memory(kBytes);
  for (; Clock::now() < end && !testing::Test::HasFailure(); ++count.lives) {
    Life life(context, chance, memory);
    life.make();
    if (testing::Test::HasFatalFailure()) return;
    board.put(thread, life.address());
    // Another's queue pair answers to its own peer; one's own to oneself.
    const Address peer = board.get(chance.below(kThreads));
    life.connect(peer.qpn != 0 && chance.one_in(2) ? peer : life.address());
    life.work();
    if (chance.one_in(2)) life.drain();
    count.successes += life.successes();
    life.destroy();
  }
}

// Reads what the device tells, as an application does, until it is told to stop.
void take_events(ibv_context* context, Board& board, int stop) {
  // What poll() saw goes with its object when that is destroyed before it is read.
  ASSERT_EQ(fcntl(context->async_fd, F_SETFL, O_NONBLOCK), 0);
  for (;;) {
    std::array<pollfd, 2> files{{{context->async_fd, POLLIN, 0}, {stop, POLLIN, 0}}};
    ASSERT_GT(::poll(files.data(), files.size(), -1), 0);
    if (files[1].revents != 0) return;
    ibv_async_event event{};
    if (ibv_get_async_event(context, &event) != 0) continue;
    // The pipe orders this behind the making of the object; ThreadSanitizer sees only locks.
    (void)board.get(0);
    ibv_ack_async_event(&event);
  }
}

TEST(Storm, OfEightThreadsOnOneDevice) {
  ibv_context* context = open_first_device();
  ASSERT_NE(context, nullptr);
  const char* const chosen = std::getenv("UROCE_STORM_SEED");
  const std::uint64_t seed =
      chosen != nullptr ? std::strtoull(chosen, nullptr, 0) : std::random_device()();
  std::cout << "UROCE_STORM_SEED=" << seed << '\n' << std::flush;
  Board board;
  std::array<Count, kThreads> counts{};
  const int stop = eventfd(0, EFD_CLOEXEC);
  std::thread events(take_events, context, std::ref(board), stop);
  std::vector<std::thread> threads;
  const auto end = Clock::now() + duration();
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back(live, context, std::ref(board), i, seed, end, std::ref(counts[i]));
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t one = 1;
  EXPECT_EQ(write(stop, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  events.join();
  close(stop);
  Count all;
  for (const Count& count : counts) {
    all.lives += count.lives;
    all.successes += count.successes;
  }
  EXPECT_GT(all.successes, 0U);
  std::cout << all.lives << " queue pairs, " << all.successes << " successful requests\n";
  EXPECT_EQ(ibv_close_device(context), 0);
}

}  // namespace
}  // namespace uroce::tests
