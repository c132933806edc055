// SPDX-License-Identifier: BSD-2-Clause
// A fork with the device open: what the child inherited fails cleanly, what it opens works, and the
// parent does not notice.
#include <cerrno>
#include <memory>
#include <vector>

#include "process.h"
#include "support/quiet_helper.h"

namespace uroce::tests {
namespace {

// A write from the node to itself.
int loop_once(Node& node) {
  const Address self = node.address();
  if (node.connect(self) != 0 || node.write(self, 64) != 0) return 1;
  return node.wait().status == IBV_WC_SUCCESS ? 0 : 2;
}

int check_inherited(Node& inherited) {
  ibv_wc wc{};
  if (ibv_poll_cq(inherited.cq, 1, &wc) >= 0) return 10;
  if (ibv_alloc_pd(inherited.context) != nullptr || errno != EIO) return 11;
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  if (ibv_modify_qp(inherited.qp, &error, IBV_QP_STATE) != EIO) return 12;
  if (ibv_req_notify_cq(inherited.cq, 0) != EIO) return 13;
  if (inherited.write({}, 1) == 0) return 14;
  return 0;
}

TEST(Fork, TheChildStartsAfreshAndTheParentGoesOn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer knows no threads in the child of a program with threads";
#endif
  Node parent;
  ASSERT_TRUE(parent.is_ready());
  test::wait_for_quiet_helpers();
  Process child([&parent](const Line&) {
    if (const int failed = check_inherited(parent); failed != 0) return failed;
    Node own;
    return own.is_ready() ? loop_once(own) : 20;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(loop_once(parent), 0);
}

TEST(Fork, TheParentOutlivesAChildThatDestroysWhatItInherited) {
  auto parent = std::make_unique<Node>();
  ASSERT_TRUE(parent->is_ready());
  test::wait_for_quiet_helpers();
  Process child([&parent](const Line&) {
    parent.reset();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(loop_once(*parent), 0);
}

// P76: a region of some bytes between others of the heap takes no page from the child, whose malloc
// goes on with it.
TEST(Fork, ARegionInsideOfTheHeapLeavesTheHeapToTheChild) {
  Node node;
  ASSERT_TRUE(node.is_ready());
  constexpr std::size_t kBytes = 100;
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;
  const auto before = std::make_unique<std::vector<char>>(kBytes, 'b');
  const auto registered = std::make_unique<std::vector<char>>(kBytes, 'r');
  const auto behind = std::make_unique<std::vector<char>>(kBytes, 'e');
  ibv_mr* const mr = ibv_reg_mr(node.pd, registered->data(), kBytes, kAccess);
  ASSERT_NE(mr, nullptr);
  test::wait_for_quiet_helpers();
  Process child([&](const Line&) {
    const bool is_there =
        before->back() == 'b' && registered->back() == 'r' && behind->back() == 'e';
    for (std::size_t bytes = 1; bytes < (64U << 10); bytes += bytes / 4 + 1) {
      const std::vector<char> more(bytes, 'm');
      if (more.back() != 'm') return 2;
    }
    return is_there ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(loop_once(node), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace uroce::tests
