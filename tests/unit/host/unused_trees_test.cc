// SPDX-License-Identifier: BSD-2-Clause
#include "host/unused_trees.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/device_tree.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using testing::UnorderedElementsAre;

class UnusedTrees : public testing::Test {
 protected:
  UnusedTrees() {
    directory_ = *open_runtime_directory({{"UROCE_RUNTIME_DIR", base_.path() + "/run"}}, 9);
    processes_ = base_.path() + "/proc";
    EXPECT_TRUE(make_directories(processes_, 0700));
  }

  std::string prepare(const char* netdev) const {
    const Device device{.name = "uroce0", .netdev = netdev, .gids = {}};
    return *prepare_device_tree(directory_, {device});
  }
  static void make_old(const std::string& tree) {
    const timespec then{time(nullptr) - kKeptFor - 1, 0};
    const timespec times[] = {then, then};
    EXPECT_EQ(utimensat(AT_FDCWD, in_use_file(tree).c_str(), times, 0), 0);
  }
  void start_process_with(const std::string& tree) const {
    ASSERT_TRUE(make_directories(processes_ + "/4242", 0700));
    const std::string environment = std::string("HOME=/") + '\0' + "UROCE_TREE=" + tree + '\0';
    ASSERT_TRUE(write_file(processes_ + "/4242/environ", environment));
  }
  void clear() const { remove_unused_trees(directory_, processes_); }
  static bool is_there(const std::string& tree) {
    return access(in_use_file(tree).c_str(), F_OK) == 0;
  }

  test::TemporaryFolder base_;
  RuntimeDirectory directory_;
  std::string processes_;
};

TEST_F(UnusedTrees, AnOldOneGoesAndANewOneStays) {
  const std::string old_one = prepare("eth0"), new_one = prepare("eth1");
  make_old(old_one);
  clear();
  EXPECT_FALSE(is_there(old_one));
  EXPECT_TRUE(is_there(new_one));
}

TEST_F(UnusedTrees, NothingOfItIsLeft) {
  make_old(prepare("eth0"));
  clear();
  EXPECT_THAT(list_directory(directory_.network_path), UnorderedElementsAre("trees.lock"));
}

TEST_F(UnusedTrees, OneThatIsHeldStays) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  {
    const auto held = hold_device_tree(tree);
    ASSERT_TRUE(held);
    clear();
    EXPECT_TRUE(is_there(tree));
    EXPECT_TRUE(read_device_tree(*held));
  }
  clear();
  EXPECT_FALSE(is_there(tree));
}

TEST_F(UnusedTrees, OneThatAProgramWasStartedWithStays) {
  const std::string tree = prepare("eth0"), other = prepare("eth1");
  make_old(tree);
  make_old(other);
  start_process_with(tree);
  clear();
  EXPECT_TRUE(is_there(tree));
  EXPECT_FALSE(is_there(other));
}

TEST_F(UnusedTrees, OneThatIsPreparedAgainIsNewAgain) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  EXPECT_EQ(prepare("eth0"), tree);
  clear();
  EXPECT_TRUE(is_there(tree));
}

TEST_F(UnusedTrees, ThoseOfANamespaceThatIsGoneGoToo) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  const auto here = open_runtime_directory({{"UROCE_RUNTIME_DIR", base_.path() + "/run"}}, 10);
  remove_unused_trees(*here, processes_);
  EXPECT_FALSE(is_there(tree));
}

TEST_F(UnusedTrees, WhileAnotherChangesTreesNothingIsRemoved) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  const auto lock = lock_file(trees_lock_file(directory_.network_path), LockKind::kExclusive);
  clear();
  EXPECT_TRUE(is_there(tree));
}

TEST_F(UnusedTrees, ARemovalThatWasCutShortIsFinished) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  ASSERT_EQ(rename(tree.c_str(), (tree + ".old").c_str()), 0);
  clear();
  EXPECT_THAT(list_directory(directory_.network_path), UnorderedElementsAre("trees.lock"));
}

TEST_F(UnusedTrees, WhoComesTooLateFindsNothing) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  clear();
  EXPECT_FALSE(hold_device_tree(tree));
  EXPECT_EQ(prepare("eth0"), tree);
  EXPECT_TRUE(hold_device_tree(tree));
}

}  // namespace
}  // namespace uroce::host
