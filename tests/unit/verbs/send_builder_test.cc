// SPDX-License-Identifier: BSD-2-Clause
// Posting by functions: what arrives, what is refused and when, and that nothing is half posted.
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

void to_rts_as_datagrams(Qp& qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qkey = 0x11;
  ASSERT_EQ(modify_qp(qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
  a.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(modify_qp(qp, a, IBV_QP_STATE), 0);
  a.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(modify_qp(qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct SendBuilderTest : VerbsTest {
  SendBuilderTest() {
    a_ = make_qp();
    b_ = make_qp();
    connect(*a_, *b_);
    from_ = make_mr(source_.data(), source_.size() * 8);
    to_ = make_mr(target_.data(), target_.size() * 8);
  }
  [[nodiscard]] RemoteAddress remote(std::size_t word = 0) const {
    return {to_->region.key, reinterpret_cast<std::uintptr_t>(&target_[word])};
  }
  [[nodiscard]] std::uint64_t local(std::size_t word = 0) const {
    return reinterpret_cast<std::uintptr_t>(&source_[word]);
  }
  void set_sge(std::uint32_t length, std::size_t word = 0) {
    wr_set_sge(*a_, from_->region.key, local(word), length);
  }
  static SendHead head(std::uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    return {.wr_id = wr_id, .flags = flags};
  }
  Qp* make_datagram_qp() {
    ibv_qp_init_attr attributes = usual_qp();
    attributes.qp_type = IBV_QPT_UD;
    Qp* const qp = make_qp(attributes);
    if (qp != nullptr) to_rts_as_datagrams(*qp);
    return qp;
  }
  void receive(std::uint64_t wr_id) {
    ReceiveRequest request(target_.data(), 64, to_->region.key);
    request.wr_id = wr_id;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(post_recv(*b_, &request, &bad), 0);
  }
  [[nodiscard]] std::uint32_t posted() { return a_->core.send_queue.next_post(); }

  std::array<std::uint64_t, 64> source_{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::uint64_t, 64> target_{};
  Qp* a_ = nullptr;
  Qp* b_ = nullptr;
  Mr* from_ = nullptr;
  Mr* to_ = nullptr;
};

TEST_F(SendBuilderTest, EveryOperationArrives) {
  receive(100);
  receive(101);
  receive(102);
  wr_start(*a_);
  wr_write(*a_, head(1), remote(8));
  set_sge(16);
  wr_write_immediate(*a_, head(2), remote(10), 0x1234);
  set_sge(8, 2);
  wr_send(*a_, head(3));
  set_sge(8);
  wr_send_immediate(*a_, head(4), 0x5678);
  set_sge(8, 1);
  wr_fetch_add(*a_, head(5), remote(8), 41);
  set_sge(8, 20);
  wr_compare_swap(*a_, head(6), remote(9), 2, 77);
  set_sge(8, 21);
  wr_read(*a_, head(7), remote(8));
  set_sge(16, 22);
  ASSERT_EQ(wr_complete(*a_), 0);
  const std::vector<ibv_wc> all = wait_for(10);
  std::uint64_t next = 1;
  for (const ibv_wc& wc : all) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
    if (wc.wr_id < 100) {
      EXPECT_EQ(wc.wr_id, next++);
    }
    if (wc.wr_id == 100) {
      EXPECT_EQ(wc.imm_data, 0x1234U);
    }
    if (wc.wr_id == 102) {
      EXPECT_EQ(wc.imm_data, 0x5678U);
    }
  }
  EXPECT_EQ(next, 8U);
  EXPECT_EQ(target_[8], 42U);
  EXPECT_EQ(target_[9], 77U);
  EXPECT_EQ(target_[10], 3U);
  EXPECT_EQ(target_[0], 2U);
  EXPECT_EQ(source_[20], 1U);
  EXPECT_EQ(source_[21], 2U);
  EXPECT_EQ(source_[22], 42U);
  EXPECT_EQ(source_[23], 77U);
}

TEST_F(SendBuilderTest, ListsAndInlineData) {
  std::array<std::uint64_t, 3> gone{11, 12, 13};
  wr_start(*a_);
  wr_write(*a_, head(1), remote());
  const std::array<ibv_sge, 2> list{ibv_sge{local(1), 8, from_->region.key},
                                    ibv_sge{local(0), 8, from_->region.key}};
  wr_set_sge_list(*a_, list);
  wr_write(*a_, head(2, IBV_SEND_SIGNALED | IBV_SEND_INLINE), remote(2));
  wr_set_inline_data(*a_, gone.data(), 8);
  wr_write(*a_, head(3), remote(3));
  const std::array<ibv_data_buf, 2> pieces{ibv_data_buf{&gone[1], 8}, ibv_data_buf{&gone[2], 8}};
  wr_set_inline_data_list(*a_, pieces);
  gone = {};
  ASSERT_EQ(wr_complete(*a_), 0);
  for (const ibv_wc& wc : wait_for(3)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  const std::array<std::uint64_t, 5> expected{2, 1, 11, 12, 13};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), target_.begin()));
}

// Without a setter there are no data; and what is not signalled does not complete.
TEST_F(SendBuilderTest, NoDataAndNoSignal) {
  wr_start(*a_);
  wr_write(*a_, head(1, 0), remote());
  wr_write(*a_, head(2), remote());
  ASSERT_EQ(wr_complete(*a_), 0);
  EXPECT_EQ(wait_for(1).front().wr_id, 2U);
  EXPECT_EQ(target_[0], 0U);
}

TEST_F(SendBuilderTest, WhatIsAbortedNeverWas) {
  wr_start(*a_);
  wr_write(*a_, head(1), remote());
  set_sge(8);
  wr_abort(*a_);
  EXPECT_EQ(posted(), 0U);
  wr_start(*a_);
  wr_write(*a_, head(2), remote(1));
  set_sge(8);
  ASSERT_EQ(wr_complete(*a_), 0);
  EXPECT_EQ(wait_for(1).front().wr_id, 2U);
  EXPECT_EQ(target_[0], 0U);
  EXPECT_EQ(target_[1], 1U);
}

// man ibv_wr_post: on failure the entire posting is aborted.
TEST_F(SendBuilderTest, OneMoreThanFitsPostsNone) {
  wr_start(*a_);
  for (std::uint64_t i = 0; i < 17; ++i) {
    wr_write(*a_, head(i), remote());
    set_sge(8);
  }
  EXPECT_EQ(wr_complete(*a_), ENOMEM);
  EXPECT_EQ(posted(), 0U);
  wr_start(*a_);
  for (std::uint64_t i = 0; i < 16; ++i) {
    wr_write(*a_, head(i), remote());
    set_sge(8);
  }
  EXPECT_EQ(wr_complete(*a_), 0);
  EXPECT_EQ(wait_for(16).back().wr_id, 15U);
}

TEST_F(SendBuilderTest, EachFaultIsToldAtTheEnd) {
  const std::array<ibv_sge, 5> five{};
  struct Case {
    const char* name;
    void (*build)(SendBuilderTest& t, const std::array<ibv_sge, 5>& five);
  };
  const Case cases[] = {
      {"more SGEs than the queue pair has",
       [](SendBuilderTest& t, const auto& list) {
         wr_send(*t.a_, head(1));
         wr_set_sge_list(*t.a_, list);
       }},
      {"a message above 2 GiB",
       [](SendBuilderTest& t, const auto&) {
         wr_send(*t.a_, head(1));
         t.set_sge(0x8000'0001);
       }},
      {"more inline data than the queue pair takes",
       [](SendBuilderTest& t, const auto&) {
         wr_send(*t.a_, head(1));
         wr_set_inline_data(*t.a_, t.source_.data(), 65);
       }},
      {"pieces of inline data whose sum wraps",
       [](SendBuilderTest& t, const auto&) {
         const ibv_data_buf pieces[] = {{t.source_.data(), SIZE_MAX}, {t.source_.data(), 2}};
         wr_send(*t.a_, head(1));
         wr_set_inline_data_list(*t.a_, pieces);
       }},
      {"inline data of a READ",
       [](SendBuilderTest& t, const auto&) {
         wr_read(*t.a_, head(1), t.remote());
         wr_set_inline_data(*t.a_, t.source_.data(), 8);
       }},
      {"an atomic without a place for its result",
       [](SendBuilderTest& t, const auto&) { wr_fetch_add(*t.a_, head(1), t.remote(), 1); }},
      {"the same, with another behind it",
       [](SendBuilderTest& t, const auto&) {
         wr_fetch_add(*t.a_, head(1), t.remote(), 1);
         wr_send(*t.a_, head(2));
       }},
      {"an atomic with too little room for it",
       [](SendBuilderTest& t, const auto&) {
         wr_compare_swap(*t.a_, head(1), t.remote(), 1, 2);
         t.set_sge(7);
       }},
      {"a flag that nothing here has",
       [](SendBuilderTest& t, const auto&) {
         wr_send(*t.a_, head(1, IBV_SEND_IP_CSUM));
         t.set_sge(8);
       }},
  };
  for (const Case& c : cases) {
    wr_start(*a_);
    wr_write(*a_, head(0), remote());
    set_sge(8);
    c.build(*this, five);
    wr_send(*a_, head(9));
    set_sge(8);
    EXPECT_EQ(wr_complete(*a_), EINVAL) << c.name;
    EXPECT_EQ(posted(), 0U) << c.name;
  }
}

TEST_F(SendBuilderTest, TheStateIsLookedAtInTheEnd) {
  Qp* const fresh = make_qp();
  wr_start(*fresh);
  wr_send(*fresh, head(1));
  EXPECT_EQ(wr_complete(*fresh), EINVAL);
  ASSERT_EQ(to_state(*a_, IBV_QPS_ERR), 0);
  wr_start(*a_);
  wr_send(*a_, head(2));
  EXPECT_EQ(wr_complete(*a_), 0);
  EXPECT_EQ(wait_for(1).front().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(SendBuilderTest, BothWaysOfPostingOnOneQueue) {
  for (std::uint64_t i = 0; i < 10; i += 2) {
    SendRequest request(IBV_WR_RDMA_WRITE, source_.data(), 8, from_->region.key);
    request.wr_id = i;
    request.wr.rdma = {remote().address, remote().rkey};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(post_send(*a_, &request, &bad), 0);
    wr_start(*a_);
    wr_write(*a_, head(i + 1), remote());
    set_sge(8);
    ASSERT_EQ(wr_complete(*a_), 0);
  }
  const std::vector<ibv_wc> all = wait_for(10);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].wr_id, i);
}

TEST_F(SendBuilderTest, ADatagramNeedsAnAddress) {
  Qp* const qp = make_datagram_qp();
  ASSERT_NE(qp, nullptr);
  ibv_ah_attr address = rtr(*b_).ah_attr;
  Ah* const ah = create_ah(*pd_, address);
  ASSERT_NE(ah, nullptr);
  for (ibv_ah* to : {static_cast<ibv_ah*>(nullptr), static_cast<ibv_ah*>(ah)}) {
    wr_start(*qp);
    wr_send(*qp, head(1));
    wr_set_target(*qp, ah, qp->core.number.value, 0x11);
    wr_send(*qp, head(2));
    if (to != nullptr) wr_set_target(*qp, to, qp->core.number.value, 0x11);
    EXPECT_EQ(wr_complete(*qp), to == nullptr ? EINVAL : 0);
  }
  EXPECT_EQ(wait_for(2).back().wr_id, 2U);
  wr_start(*a_);
  wr_send(*a_, head(3));
  wr_set_target(*a_, ah, qp->core.number.value, 0x11);
  EXPECT_EQ(wr_complete(*a_), EINVAL);
  destroy_ah(ah);
}

// As a handle may go that datagrams were posted through.
TEST_F(SendBuilderTest, AnAddressMayGoBeforeItsDatagramIsPosted) {
  Qp* const qp = make_datagram_qp();
  ASSERT_NE(qp, nullptr);
  ibv_ah_attr address = rtr(*b_).ah_attr;
  const auto close_unused = [&] { destroy_ah(create_ah(*pd_, address)); };
  const int before = fakes_.local->open_paths;
  enum class End { kPosted, kFaulty, kAborted };
  for (const End end : {End::kPosted, End::kFaulty, End::kAborted}) {
    Ah* const ah = create_ah(*pd_, address);
    ASSERT_NE(ah, nullptr);
    wr_start(*qp);
    wr_send(*qp, head(1));
    wr_set_target(*qp, ah, qp->core.number.value, 0x11);
    wr_set_target(*qp, ah, qp->core.number.value, 0x11);
    destroy_ah(ah);
    close_unused();
    EXPECT_EQ(fakes_.local->open_paths, before + 1);
    if (end == End::kAborted) {
      wr_abort(*qp);
    } else {
      if (end == End::kFaulty) wr_send(*qp, head(2));
      EXPECT_EQ(wr_complete(*qp), end == End::kFaulty ? EINVAL : 0);
    }
    if (end == End::kPosted) wait_for(1);
    close_unused();
    EXPECT_EQ(fakes_.local->open_paths, before);
  }
}

// Whichever way it is posted. (A parent domain is the domain that it was made of.)
TEST_F(SendBuilderTest, AnAddressOfAnotherDomainIsRefused) {
  Qp* const qp = make_datagram_qp();
  ASSERT_NE(qp, nullptr);
  Pd* const other = alloc_pd(*context_);
  ibv_pd parent_handle{};
  Pd* const parent = alloc_parent_domain(*context_, parent_handle, pd_, nullptr, {});
  ASSERT_NE(parent, nullptr);
  ibv_ah_attr address = rtr(*b_).ah_attr;
  for (Pd* const domain : {other, parent}) {
    Ah* const ah = create_ah(*domain, address);
    ASSERT_NE(ah, nullptr);
    const int expected = domain == other ? EINVAL : 0;
    wr_start(*qp);
    wr_send(*qp, head(1));
    wr_set_target(*qp, ah, qp->core.number.value, 0x11);
    EXPECT_EQ(wr_complete(*qp), expected);
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud = {ah, qp->core.number.value, 0x11};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(post_send(*qp, &request, &bad), expected);
    EXPECT_EQ(bad, expected == 0 ? nullptr : &request);
    EXPECT_EQ(wait_for(expected == 0 ? 2 : 0).size(), expected == 0 ? 2U : 0U);
    destroy_ah(ah);
    EXPECT_EQ(dealloc_pd(domain), 0);
  }
}

TEST(SendOperationsTest, OnlyWhatIsThere) {
  EXPECT_NE(send_operations(IBV_QPT_RC) & IBV_QP_EX_WITH_RDMA_READ, 0U);
  EXPECT_EQ(send_operations(IBV_QPT_RC) & IBV_QP_EX_WITH_TSO, 0U);
  EXPECT_EQ(send_operations(IBV_QPT_UC) & IBV_QP_EX_WITH_RDMA_READ, 0U);
  EXPECT_EQ(send_operations(IBV_QPT_UD),
            std::uint64_t{IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM});
  EXPECT_EQ(send_operations(IBV_QPT_RAW_PACKET), std::uint64_t{IBV_QP_EX_WITH_SEND});
  EXPECT_EQ(send_operations(IBV_QPT_DRIVER), 0U);
}

}  // namespace
}  // namespace uroce::verbs
