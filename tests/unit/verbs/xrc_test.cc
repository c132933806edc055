// SPDX-License-Identifier: BSD-2-Clause
// XRC: domains that are shared by their file, shared receive queues with numbers, targets that
// several hold, and messages between them.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "support/few_descriptors.h"
#include "support/quiet_helper.h"
#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

class XrcTest : public VerbsTest {
 protected:
  XrcTest() : file_(memfd_create("domain", MFD_CLOEXEC)), xrcd_(open(O_CREAT)) {}
  ~XrcTest() override {
    for (Qp* qp : std::exchange(qps_, {})) EXPECT_EQ(destroy_qp(qp, qp->handles.front()->part), 0);
    if (srq_ != nullptr) {
      EXPECT_EQ(destroy_srq(srq_), 0);
    }
    EXPECT_EQ(close_xrcd(xrcd_), 0);
    ::close(file_);
  }

  [[nodiscard]] Xrcd* open(int flags, int file) const {
    return open_xrcd(*context_, {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                 .fd = file,
                                 .oflags = flags});
  }
  [[nodiscard]] Xrcd* open(int flags) const { return open(flags, file_); }

  Srq* make_srq() {
    ibv_srq_attr wanted{.max_wr = 16, .max_sge = 2, .srq_limit = 0};
    return srq_ = create_xrc_srq(*pd_, public_srq_, wanted, xrcd_, cq_);
  }
  Qp* make(ibv_qp_type type) {
    ibv_qp_init_attr a = usual_qp();
    a.qp_type = type;
    public_qps_.push_back(std::make_unique<PublicQp>());
    Qp* const qp =
        create_qp(*context_, {.pd = pd_, .send_cq = cq_, .xrcd = xrcd_}, *public_qps_.back(), a);
    if (qp != nullptr) qps_.push_back(qp);
    return qp;
  }
  // With the attributes of both halves, as programs have it.
  static void connect(Qp& qp, const Qp& peer) {
    ASSERT_EQ(to_init(qp), 0);
    ASSERT_EQ(to_rtr(qp, peer), 0);
    ASSERT_EQ(to_rts(qp), 0);
  }

  int file_;
  Xrcd* xrcd_;
  PublicSrq public_srq_;
  Srq* srq_ = nullptr;
};

TEST_F(XrcTest, ADomainIsSharedByItsFile) {
  Xrcd* const same = open(0);
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(same->domain.id, xrcd_->domain.id);
  for (const int flags : {0, O_CREAT, O_CREAT | O_EXCL}) {  // without a file, as the kernel has it
    Xrcd* const nobodys = open(flags, -1);
    ASSERT_NE(nobodys, nullptr);
    EXPECT_NE(nobodys->domain.id, xrcd_->domain.id);
    EXPECT_EQ(close_xrcd(nobodys), 0);
  }
  EXPECT_EQ(close_xrcd(same), 0);
}

// Nothing of the fixture is called meanwhile: UndefinedBehaviorSanitizer looks with a pipe whether
// an object is there.
int error_without_descriptors(Context& context, int file) {
  const ibv_xrcd_init_attr domain{.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                  .fd = file,
                                  .oflags = O_CREAT};
  const test::FewDescriptors none(0);
  return open_xrcd(context, domain) == nullptr ? errno : 0;
}

// Else the next file with its inode's number would be in the domain.
TEST_F(XrcTest, ADomainHoldsItsFile) {
  const auto descriptors_of = [](const struct stat& file) {
    return std::ranges::count_if(
        std::filesystem::directory_iterator("/proc/self/fd"), [&file](const auto& entry) {
          struct stat facts {};
          return stat(entry.path().c_str(), &facts) == 0 && facts.st_dev == file.st_dev &&
                 facts.st_ino == file.st_ino;
        });
  };
  const int file = memfd_create("deleted", MFD_CLOEXEC);
  EXPECT_EQ(error_without_descriptors(*context_, file), EMFILE);
  struct stat facts {};
  ASSERT_EQ(fstat(file, &facts), 0);
  Xrcd* const one = open(O_CREAT, file);
  Xrcd* const same = open(0, file);
  ASSERT_NE(same, nullptr);
  ::close(file);
  EXPECT_EQ(descriptors_of(facts), 1);
  EXPECT_EQ(close_xrcd(one), 0);
  EXPECT_EQ(descriptors_of(facts), 1);
  EXPECT_EQ(close_xrcd(same), 0);
  EXPECT_EQ(descriptors_of(facts), 0);
}

TEST_F(XrcTest, OpeningFailsWithTheKernelsErrors) {
  const int other = memfd_create("other", MFD_CLOEXEC);
  const auto expect = [](Xrcd* opened, int error) {
    EXPECT_EQ(opened, nullptr);
    EXPECT_EQ(errno, error);
  };
  expect(open(0, other), EAGAIN);
  expect(open(O_CREAT | O_EXCL), EINVAL);
  expect(open(O_EXCL), EINVAL);
  expect(open(O_EXCL, other), EAGAIN);
  expect(open(O_CREAT, 12'345), EBADF);
  expect(open_xrcd(*context_, {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT}),
         EINVAL);
  ::close(other);
}

TEST_F(XrcTest, ADomainIsBusyForWhomeverMadeSomethingWithIt) {
  ASSERT_NE(make_srq(), nullptr);
  Xrcd* const same = open(0);
  EXPECT_EQ(close_xrcd(xrcd_), EBUSY);
  EXPECT_EQ(close_xrcd(same), 0);
  EXPECT_EQ(close_xrcd(xrcd_), EBUSY);
}

TEST_F(XrcTest, ATargetOutlivesTheHandleOfItsMaker) {
  PublicQp creator, opener;
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_XRC_RECV;
  Xrcd* const makers = open(0);
  Qp* const qp = create_qp(*context_, {.xrcd = makers}, creator, a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(close_xrcd(makers), EBUSY);
  ASSERT_EQ(open_qp(*xrcd_, opener, qp->core.number.value), qp);
  EXPECT_EQ(destroy_qp(qp, creator), 0);
  EXPECT_EQ(close_xrcd(makers), 0);
  EXPECT_EQ(close_xrcd(xrcd_), EBUSY);
  EXPECT_EQ(destroy_qp(qp, opener), 0);
}

TEST_F(XrcTest, AnotherContextsTargetIsNotToBeOpened) {
  OpenContext other(Context::make(engine_));
  Xrcd* const theirs = open_xrcd(
      *other,
      {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = file_, .oflags = 0});
  ASSERT_NE(theirs, nullptr);
  Qp* const target = make(IBV_QPT_XRC_RECV);
  PublicQp part;
  EXPECT_EQ(open_qp(*theirs, part, target->core.number.value), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(close_xrcd(theirs), 0);
  const int events = other->async_descriptor();
  other.reset();
  ::close(events);
}

// In a forked child nothing works, and nothing is freed twice.
TEST_F(XrcTest, WhatAChildInheritsItCanDestroy) {
  PublicQp creator, opener;
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_XRC_RECV;
  ASSERT_NE(make_srq(), nullptr);
  Qp* const qp = create_qp(*context_, {.xrcd = xrcd_}, creator, a);
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(open_qp(*xrcd_, opener, qp->core.number.value), qp);
  test::wait_for_quiet_helpers();
  const pid_t child = fork();
  if (child == 0) {
    engine_.abandon_in_child();
    const bool is_destroyed = destroy_qp(qp, creator) == 0 && destroy_qp(qp, opener) == 0 &&
                              destroy_srq(srq_) == 0 && cq_->users.load() == 0;
    _exit(is_destroyed ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(destroy_qp(qp, creator), 0);
  EXPECT_EQ(destroy_qp(qp, opener), 0);
}

TEST_F(XrcTest, PartsThatAreMissingAreAnError) {
  ibv_srq_attr wanted{.max_wr = 16, .max_sge = 2, .srq_limit = 0};
  EXPECT_EQ(create_xrc_srq(*pd_, public_srq_, wanted, nullptr, cq_), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(create_xrc_srq(*pd_, public_srq_, wanted, xrcd_, nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  PublicQp part;
  ibv_qp_init_attr a = usual_qp();
  a.qp_type = IBV_QPT_XRC_RECV;
  EXPECT_EQ(create_qp(*context_, {.pd = pd_, .send_cq = cq_}, part, a), nullptr);
  EXPECT_EQ(errno, EINVAL);
  a.qp_type = IBV_QPT_XRC_SEND;
  EXPECT_EQ(create_qp(*context_, {.xrcd = xrcd_}, part, a), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(XrcTest, AnOrdinaryQpTakesNoQueueOfADomain) {
  ASSERT_NE(make_srq(), nullptr);
  EXPECT_EQ(make_qp(usual_qp(), srq_), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(XrcTest, AMessageArrivesInTheQueueThatItNames) {
  ASSERT_NE(make_srq(), nullptr);
  Qp* const target = make(IBV_QPT_XRC_RECV);
  Qp* const initiator = make(IBV_QPT_XRC_SEND);
  ASSERT_TRUE(target != nullptr && initiator != nullptr);
  connect(*target, *initiator);
  connect(*initiator, *target);
  std::array<char, 64> memory{"hello"};
  Mr* const mr = make_mr(memory.data(), memory.size());
  ReceiveRequest receive(&memory[32], 32, mr->region.key);
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(post_srq_recv(*srq_, &receive, &bad_receive), 0);
  SendRequest send(IBV_WR_SEND, memory.data(), 6, mr->region.key);
  send.qp_type.xrc.remote_srqn = srq_->core.number.value;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(post_send(*initiator, &send, &bad), 0);
  for (const ibv_wc& done : wait_for(2)) {
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    const Qp& of = done.opcode == IBV_WC_RECV ? *target : *initiator;
    EXPECT_EQ(done.qp_num, of.core.number.value);
  }
  EXPECT_STREQ(&memory[32], "hello");
}

TEST_F(XrcTest, TheHalfThatIsMissingTakesNoRequests) {
  Qp* const target = make(IBV_QPT_XRC_RECV);
  Qp* const initiator = make(IBV_QPT_XRC_SEND);
  connect(*target, *initiator);
  connect(*initiator, *target);
  SendRequest send(IBV_WR_SEND, nullptr, 0, 0);
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(post_send(*target, &send, &bad_send), EINVAL);
  ReceiveRequest receive(nullptr, 0, 0);
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(post_recv(*target, &receive, &bad_receive), EINVAL);
  EXPECT_EQ(post_recv(*initiator, &receive, &bad_receive), EINVAL);
}

TEST_F(XrcTest, ATargetEndsWithTheLastThatHasIt) {
  PublicQp creator, opener;
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_XRC_RECV;
  Qp* const qp = create_qp(*context_, {.xrcd = xrcd_}, creator, a);
  ASSERT_NE(qp, nullptr);
  const std::uint32_t number = qp->core.number.value;
  EXPECT_EQ(open_qp(*xrcd_, opener, number), qp);
  EXPECT_EQ(destroy_qp(qp, creator), 0);
  EXPECT_EQ(to_init(*qp), 0);
  EXPECT_EQ(destroy_qp(qp, opener), 0);
  EXPECT_EQ(open_qp(*xrcd_, opener, number), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(XrcTest, OnlyATargetOfTheDomainCanBeOpened) {
  Xrcd* const other = open(O_CREAT, -1);
  Qp* const target = make(IBV_QPT_XRC_RECV);
  Qp* const initiator = make(IBV_QPT_XRC_SEND);
  PublicQp part;
  EXPECT_EQ(open_qp(*other, part, target->core.number.value), nullptr);
  EXPECT_EQ(open_qp(*xrcd_, part, initiator->core.number.value), nullptr);
  EXPECT_EQ(open_qp(*xrcd_, part, 0x1ff'ffff), nullptr);
  EXPECT_EQ(close_xrcd(other), 0);
}

}  // namespace
}  // namespace uroce::verbs
