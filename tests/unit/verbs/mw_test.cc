// SPDX-License-Identifier: BSD-2-Clause
// Memory windows as an application has them: between two queue pairs of one engine.
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

constexpr int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
constexpr unsigned kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class MwTest : public VerbsTest {
 protected:
  MwTest() {
    handle_pd_.context = nullptr;
    owner_ = make_qp();
    peer_ = make_qp();
    connect(*owner_, *peer_);
    mr_ = make_mr(memory_.data(), sizeof memory_, kBindable);
    source_ = make_mr(source_memory_.data(), sizeof source_memory_);
    public_mr_.lkey = mr_->region.key;
  }
  ~MwTest() override {
    for (Mw* mw : mws_) dealloc_mw(mw);
  }

  void connect_uc(Qp& a, Qp& b) {
    constexpr int kRtr =
        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    ibv_qp_attr rts{};
    rts.qp_state = IBV_QPS_RTS;
    for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      ibv_qp_attr init{};
      init.qp_state = IBV_QPS_INIT;
      init.port_num = 1;
      init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
      ASSERT_EQ(modify_qp(*from, init,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                0);
      ASSERT_EQ(modify_qp(*from, rtr(*to), kRtr), 0);
      ASSERT_EQ(modify_qp(*from, rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    }
  }
  Mw* make_mw(ibv_mw_type type) {
    Mw* mw = alloc_mw(*pd_, handle_pd_, type);
    if (mw != nullptr) mws_.push_back(mw);
    return mw;
  }
  void dealloc(Mw* mw) {
    std::erase(mws_, mw);
    dealloc_mw(mw);
  }
  ibv_mw_bind_info all(unsigned access = kRemote) {
    return {&public_mr_, reinterpret_cast<std::uintptr_t>(memory_.data()), sizeof memory_, access};
  }
  int bind1(Mw& mw, const ibv_mw_bind_info& info) {
    return bind_mw(*owner_, mw, {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = info});
  }
  static ibv_send_wr request2(Mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_BIND_MW;
    request.send_flags = IBV_SEND_SIGNALED;
    request.bind_mw = {.mw = &mw, .rkey = rkey, .bind_info = info};
    return request;
  }
  static ibv_send_wr invalidation(const Mw& mw) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_LOCAL_INV;
    request.send_flags = IBV_SEND_SIGNALED;
    request.invalidate_rkey = mw.rkey;
    return request;
  }
  int bind2(Mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
    ibv_send_wr request = request2(mw, rkey, info);
    ibv_send_wr* bad = nullptr;
    return post_send(*owner_, &request, &bad);
  }
  ibv_wc_status one() {
    const std::vector<ibv_wc> done = wait_for(1);
    last_ = done.empty() ? ibv_wc{} : done[0];
    return last_.status;
  }
  ibv_wc_status write_through(std::uint32_t rkey, std::uint64_t offset = 0) {
    SendRequest write(IBV_WR_RDMA_WRITE, source_memory_.data(), 8, source_->region.key);
    write.wr.rdma.rkey = rkey;
    write.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory_.data()) + offset;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*peer_, &write, &bad), 0);
    return one();
  }

  std::array<std::byte, 64> memory_{};
  std::array<std::byte, 64> source_memory_{};
  ibv_pd handle_pd_{};
  ibv_mr public_mr_{};
  Qp* owner_ = nullptr;
  Qp* peer_ = nullptr;
  Mr* mr_ = nullptr;
  Mr* source_ = nullptr;
  std::vector<Mw*> mws_;
  ibv_wc last_{};
};

TEST_F(MwTest, Type1HasANewKeyWithEachBinding) {
  Mw* mw = make_mw(IBV_MW_TYPE_1);
  const std::uint32_t first = mw->rkey;
  ASSERT_EQ(bind1(*mw, all()), 0);
  EXPECT_EQ(mw->rkey, ibv_inc_rkey(first));
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(last_.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(write_through(mw->rkey), IBV_WC_SUCCESS);
  const std::uint32_t former = mw->rkey;
  ASSERT_EQ(bind1(*mw, all()), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(write_through(mw->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write_through(former), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, Type1IsUnboundByABindingOfNoLength) {
  Mw* mw = make_mw(IBV_MW_TYPE_1);
  ASSERT_EQ(bind1(*mw, all()) | bind1(*mw, {}), 0);
  wait_for(2);
  EXPECT_EQ(write_through(mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, Type2HasTheKeyThatTheApplicationChose) {
  Mw* mw = make_mw(IBV_MW_TYPE_2);
  const std::uint32_t key = (mw->rkey & ~0xffU) | 0x42;
  ASSERT_EQ(bind2(*mw, key, all()), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(write_through(key), IBV_WC_SUCCESS);
  dealloc(mw);
  EXPECT_EQ(write_through(key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, LocalInvalidateEndsType2) {
  Mw* mw = make_mw(IBV_MW_TYPE_2);
  ibv_send_wr bind = request2(*mw, mw->rkey, all());
  ibv_send_wr invalidate = invalidation(*mw);
  bind.next = &invalidate;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*owner_, &bind, &bad), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(last_.opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(write_through(mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(MwTest, SendWithInvalidateTellsTheReceiverWhichKeyIsGone) {
  Mw* mw = make_mw(IBV_MW_TYPE_2);
  ASSERT_EQ(bind2(*mw, mw->rkey, all()), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  ReceiveRequest receive(source_memory_.data() + 32, 32, source_->region.key);
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(post_recv(*owner_, &receive, &bad_receive), 0);
  SendRequest send(IBV_WR_SEND_WITH_INV, source_memory_.data(), 8, source_->region.key);
  send.invalidate_rkey = mw->rkey;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*peer_, &send, &bad), 0);
  bool is_told = false;
  for (const ibv_wc& done : wait_for(2)) {
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    if (done.opcode != IBV_WC_RECV) continue;
    is_told = done.wc_flags == IBV_WC_WITH_INV && done.invalidated_rkey == mw->rkey;
  }
  EXPECT_TRUE(is_told);
  EXPECT_EQ(write_through(mw->rkey), IBV_WC_REM_ACCESS_ERR);
}

// Case P69.
TEST_F(MwTest, ARegionWithABoundWindowIsBusy) {
  Mw* mw = make_mw(IBV_MW_TYPE_1);
  ASSERT_EQ(bind1(*mw, all()), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(dereg_mr(mr_), EBUSY);
  EXPECT_EQ(rereg_mr(*mr_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kBindable), EBUSY);
  dealloc(mw);
  std::erase(mrs_, mr_);
  EXPECT_EQ(dereg_mr(mr_), 0);
}

// Case P65 and IBTA 10.6.7.2.
TEST_F(MwTest, ABindingThatIsNotAllowedIsABindError) {
  Mw* mw = make_mw(IBV_MW_TYPE_1);
  public_mr_.lkey = source_->region.key;  // without IBV_ACCESS_MW_BIND
  ASSERT_EQ(bind1(*mw, all()), 0);
  EXPECT_EQ(one(), IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(owner_->core.state.load(), transport::QpState::kErr);
}

TEST_F(MwTest, WhatMakesNoSenseIsRefusedWhenItIsPosted) {
  Mw* type1 = make_mw(IBV_MW_TYPE_1);
  Mw* type2 = make_mw(IBV_MW_TYPE_2);
  EXPECT_EQ(bind1(*type2, all()), EINVAL);
  EXPECT_EQ(bind2(*type1, 1, all()), EINVAL);
  EXPECT_EQ(bind1(*type1, all(1U << 30)), EINVAL);
  EXPECT_EQ(bind1(*type1, {nullptr, 1, 1, 0}), EINVAL);
  errno = 0;
  EXPECT_EQ(alloc_mw(*pd_, handle_pd_, static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// Case P68, IBTA o10-37.2.31.
TEST_F(MwTest, TheDeviceHasType2BAndNot2A) {
  ibv_device_attr_ex attributes{};
  ASSERT_EQ(query_device_ex(*context_, attributes, sizeof attributes), 0);
  const unsigned flags = attributes.orig_attr.device_cap_flags;
  EXPECT_NE(flags & IBV_DEVICE_MEM_WINDOW, 0U);
  EXPECT_NE(flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0U);
  EXPECT_EQ(flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A, 0U);
  EXPECT_GT(attributes.orig_attr.max_mw, 0);
}

TEST_F(MwTest, UnreliableConnectionsBindThemToo) {
  ibv_qp_init_attr a = usual_qp();
  a.qp_type = IBV_QPT_UC;
  Qp* uc = make_qp(a);
  Qp* uc_peer = make_qp(a);
  ASSERT_NE(uc_peer, nullptr);
  connect_uc(*uc, *uc_peer);
  Mw* mw = make_mw(IBV_MW_TYPE_2);
  ibv_send_wr bind = request2(*mw, mw->rkey, all());
  ibv_send_wr invalidate = invalidation(*mw);
  bind.next = &invalidate;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*uc, &bind, &bad), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(last_.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  EXPECT_EQ(last_.opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(post_send(*uc, &invalidate, &bad), 0);  // it is free: nothing to do
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
}

TEST_F(MwTest, AnAtomicWriteWritesItsWord) {
  Mr* target = make_mr(memory_.data(), sizeof memory_);
  source_memory_[0] = std::byte{0x79};
  for (const bool is_inline : {false, true}) {
    const auto offset = is_inline ? 32U : 24U;
    SendRequest write(IBV_WR_ATOMIC_WRITE, source_memory_.data(), 8, source_->region.key);
    if (is_inline) write.send_flags |= IBV_SEND_INLINE;
    write.wr.rdma.rkey = target->region.key;
    write.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory_.data()) + offset;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(post_send(*peer_, &write, &bad), 0);
    EXPECT_EQ(one(), IBV_WC_SUCCESS);
    EXPECT_EQ(last_.opcode, IBV_WC_ATOMIC_WRITE);
    EXPECT_EQ(memory_[offset], std::byte{0x79});
  }
  SendRequest half(IBV_WR_ATOMIC_WRITE, source_memory_.data(), 4, source_->region.key);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(post_send(*peer_, &half, &bad), EINVAL);
}

TEST_F(MwTest, AZeroBasedWindowIsAddressedFromItsStart) {
  Mw* mw = make_mw(IBV_MW_TYPE_2);
  ASSERT_EQ(bind2(*mw, mw->rkey, all(kRemote | IBV_ACCESS_ZERO_BASED)), 0);
  EXPECT_EQ(one(), IBV_WC_SUCCESS);
  source_memory_[0] = std::byte{0x77};
  const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
  EXPECT_EQ(write_through(mw->rkey, 8 - start), IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[8], std::byte{0x77});
}

TEST_F(MwTest, AZeroBasedRegionIsAddressedFromItsStart) {
  Mr* zero = reg_mr(*pd_, memory_.data(), sizeof memory_, 0,
                    kBindable | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(zero, nullptr);
  mrs_.push_back(zero);
  source_memory_[0] = std::byte{0x78};
  const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
  EXPECT_EQ(write_through(zero->region.key, 16 - start), IBV_WC_SUCCESS);
  EXPECT_EQ(memory_[16], std::byte{0x78});
}

}  // namespace
}  // namespace uroce::verbs
