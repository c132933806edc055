// SPDX-License-Identifier: BSD-2-Clause
// Parent domains: where rings come from, what is in use by what, and that their objects mix.
#include <cstdlib>
#include <map>

#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

// An application's allocator: dirty memory, and an account of it.
struct Account {
  std::map<void*, std::uint64_t> live;  // by type
  std::set<std::uint64_t> types_seen;
  enum class Mode { kGive, kRefuse, kLeave, kMisalign } mode = Mode::kGive;
  const ibv_pd* asked_as = nullptr;

  static void* alloc(ibv_pd* pd, void* self, std::size_t size, std::size_t alignment,
                     std::uint64_t type) {
    Account& account = *static_cast<Account*>(self);
    account.asked_as = pd;
    if (account.mode == Mode::kRefuse) return nullptr;
    if (account.mode == Mode::kLeave) return IBV_ALLOCATOR_USE_DEFAULT;
    auto* const memory = static_cast<char*>(std::aligned_alloc(alignment, size + alignment));
    std::fill(memory, memory + size, '\xa5');
    char* const given = account.mode == Mode::kMisalign ? memory + 8 : memory;
    account.live[given] = type;
    account.types_seen.insert(type);
    return given;
  }
  static void free(ibv_pd* /*pd*/, void* self, void* memory, std::uint64_t type) {
    Account& account = *static_cast<Account*>(self);
    EXPECT_EQ(account.live.at(memory), type);
    account.live.erase(memory);
    std::free(account.mode == Mode::kMisalign ? static_cast<char*>(memory) - 8 : memory);
  }
  ibv_parent_domain_init_attr attributes() {
    ibv_parent_domain_init_attr a{};
    a.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    a.alloc = alloc;
    a.free = free;
    a.pd_context = this;
    return a;
  }
};

class DomainTest : public VerbsTest {
 protected:
  Pd* make_domain(Td* td = nullptr) {
    return alloc_parent_domain(*context_, handle_, pd_, td, account_.attributes());
  }
  Account account_;
  ibv_pd handle_{};
};

TEST_F(DomainTest, RingsComeFromItsAllocatorAndGoBackThere) {
  Pd* const domain = make_domain();
  ASSERT_NE(domain, nullptr);
  PublicCq public_cq;
  Cq* const cq = create_cq(*context_, public_cq, 16, nullptr, 0, {.domain = domain});
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(account_.asked_as, &handle_);
  EXPECT_EQ(dealloc_pd(domain), EBUSY);
  ASSERT_EQ(resize_cq(*cq, 64), 0);
  EXPECT_EQ(account_.live.size(), 1U);
  PublicSrq public_srq;
  ibv_srq_attr srq_attributes{.max_wr = 8, .max_sge = 1, .srq_limit = 0};
  Srq* const srq = create_srq(*domain, public_srq, srq_attributes);
  ASSERT_NE(srq, nullptr);
  PublicQp public_qp;
  ibv_qp_init_attr attributes = usual_qp();
  Qp* const qp = create_qp(*context_, {.pd = domain, .send_cq = cq, .receive_cq = cq, .srq = srq},
                           public_qp, attributes);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(account_.live.size(), 3U);
  EXPECT_EQ(account_.types_seen, (std::set<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(destroy_qp(qp, qp->handles.front()->part), 0);
  EXPECT_EQ(destroy_srq(srq), 0);
  EXPECT_EQ(destroy_cq(cq), 0);
  EXPECT_TRUE(account_.live.empty());
  EXPECT_EQ(dealloc_pd(domain), 0);
}

// The memory was dirty; and regions and queue pairs of both domains are of one.
TEST_F(DomainTest, MessagesAsEver) {
  Pd* const domain = make_domain();
  PublicQp public_qp;
  ibv_qp_init_attr attributes = usual_qp();
  Qp* const a = create_qp(*context_, {.pd = domain, .send_cq = cq_, .receive_cq = cq_}, public_qp,
                          attributes);
  ASSERT_NE(a, nullptr);
  Qp* const b = make_qp();
  connect(*a, *b);
  std::array<std::uint64_t, 2> memory{5, 0};
  Mr* const mr = make_mr(memory.data(), sizeof(memory));
  SendRequest request(IBV_WR_RDMA_WRITE, memory.data(), 8, mr->region.key);
  request.wr.rdma = {reinterpret_cast<std::uintptr_t>(&memory[1]), mr->region.key};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*a, &request, &bad), 0);
  EXPECT_EQ(wait_for(1).front().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memory[1], 5U);
  EXPECT_EQ(destroy_qp(a, a->handles.front()->part), 0);
  EXPECT_EQ(dealloc_pd(domain), 0);
}

TEST_F(DomainTest, AnAllocatorMayRefuseOrLeaveItToUs) {
  Pd* const domain = make_domain();
  PublicCq handle;
  using Mode = Account::Mode;
  for (const Mode mode : {Mode::kRefuse, Mode::kMisalign}) {
    account_.mode = mode;
    EXPECT_EQ(create_cq(*context_, handle, 4, nullptr, 0, {.domain = domain}), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_TRUE(account_.live.empty());
  }
  account_.mode = Mode::kLeave;
  Cq* const cq = create_cq(*context_, handle, 4, nullptr, 0, {.domain = domain});
  ASSERT_NE(cq, nullptr);
  EXPECT_TRUE(account_.live.empty());
  EXPECT_EQ(destroy_cq(cq), 0);
  EXPECT_EQ(dealloc_pd(domain), 0);
}

TEST_F(DomainTest, WhatItIsMadeOfIsInUse) {
  Td* const td = alloc_td(*context_, {});
  ASSERT_NE(td, nullptr);
  Pd* const domain = make_domain(td);
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(dealloc_td(td), EBUSY);
  EXPECT_EQ(dealloc_pd(domain), 0);
  EXPECT_EQ(dealloc_td(td), 0);
}

TEST_F(DomainTest, WrongArguments) {
  const auto refused = [this](const ibv_parent_domain_init_attr& a, Pd* made_of) {
    errno = 0;
    return alloc_parent_domain(*context_, handle_, made_of, nullptr, a) == nullptr ? errno : 0;
  };
  ibv_parent_domain_init_attr a = account_.attributes();
  EXPECT_EQ(refused(a, nullptr), EINVAL);
  a.free = nullptr;
  EXPECT_EQ(refused(a, pd_), EINVAL);
  a = account_.attributes();
  a.comp_mask |= 1U << 31;
  EXPECT_EQ(refused(a, pd_), EINVAL);
  EXPECT_EQ(alloc_td(*context_, {.comp_mask = 1}), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(DomainTest, IsMadeOfWhatItsContextHas) {
  const OtherContext other(engine_);
  errno = 0;
  EXPECT_EQ(alloc_parent_domain(*context_, handle_, other.pd, nullptr, {}), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(alloc_parent_domain(*context_, handle_, pd_, other.td, {}), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace uroce::verbs
