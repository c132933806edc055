// SPDX-License-Identifier: BSD-2-Clause
// The emulated uverbs descriptor, and the contexts that the library's code runs in.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>

#include "support.h"

namespace uroce::kernel {
namespace {

constexpr char kNode[] = "/dev/infiniband/uverbs97";

struct Row {
  const char* scenario;
  const char* answer;
  const char* without_tree;  // null: not tried, or it depends on the host
};

constexpr Row kRows[] = {
    {"comp-channel", "channel", "ENOENT"},
    {"comp-channel of a duplicate", "channel", "ENOENT"},
    {"comp-channel in a forked child", "channel", "ENOENT"},
    {"comp-channel of a passed descriptor", "channel", nullptr},
    {"look-alikes", "untouched", "ENOENT"},
    {"bad addresses", "errors as without", "ENOENT"},
    {"no descriptors left", "EMFILE", "ENOENT"},
    {"errno", "kept", "ENOENT"},
    {"ioctl", "ENOTTY", "ENOENT"},
    {"async events", "channel", "ENOENT"},
    {"async events of a duplicate", "channel", "ENOENT"},
    {"ioctls of others", "untouched", "ENOENT"},
    {"netlink", "EPROTONOSUPPORT", nullptr},
    {"signal handler", "works", nullptr},
    {"vfork", "works", "failed"},
    {"cancel", "cancelled", "cancelled"},
    {"environment", "char 1:3", "ENOENT"},
    {"early", "found", "missing"},
};

void PrintTo(const Row& row, std::ostream* stream) { *stream << row.scenario; }

class Node : public testing::TestWithParam<Row> {};

TEST_P(Node, BehavesAsTheKernels) {
  const Tree tree;
  const Outcome outcome = run({KERNEL_PROBE, GetParam().scenario, kNode}, preloaded(tree));
  EXPECT_EQ(outcome.output, GetParam().answer);
  EXPECT_EQ(outcome.exit_status, 0);
}

TEST(NodeWithoutATree, IsAbsent) {
  for (const Row& row : kRows) {
    if (row.without_tree == nullptr) continue;
    EXPECT_EQ(run({KERNEL_PROBE, row.scenario, kNode}, preloaded()).output, row.without_tree)
        << row.scenario;
  }
}

std::string test_name(const testing::TestParamInfo<Row>& info) {
  std::string name = info.param.scenario;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Every, Node, testing::ValuesIn(kRows), test_name);

// A pipe is opened a second time through /proc; where that is not mounted a named one serves.
TEST(NodeWithoutProc, StillMakesChannels) {
  if (run({"unshare", "-m", "true"}, {}).exit_status != 0) {
    GTEST_SKIP() << "needs the right to make a mount namespace (root)";
  }
  const Tree tree;
  const std::string script = std::string("mount -t tmpfs none /proc && exec ") + KERNEL_PROBE +
                             " comp-channel " + kNode + " 2>&1";
  EXPECT_EQ(run({"unshare", "-m", "sh", "-c", script}, preloaded(tree)).output, "channel");
  EXPECT_EQ(run({"find", tree.path(), "-name", "event-channel*"}, {}).output, "");
}

}  // namespace
}  // namespace uroce::kernel
