// SPDX-License-Identifier: BSD-2-Clause
#include "host/unused_trees.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "host/device_tree.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using testing::IsEmpty;
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
  static void make_file_old(const std::string& path) {
    const timespec then{time(nullptr) - kKeptFor - 1, 0};
    const timespec times[] = {then, then};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  static void make_old(const std::string& tree) { make_file_old(in_use_file(tree)); }
  void make_folder_old() const { make_file_old(trees_lock_file(directory_.network_path)); }
  void start_process_with(const std::string& tree) const {
    ASSERT_TRUE(make_directories(processes_ + "/4242", 0700));
    const std::string environment = std::string("HOME=/") + '\0' + "UROCE_TREE=" + tree + '\0';
    ASSERT_TRUE(write_file(processes_ + "/4242/environ", environment));
  }
  void clear() const { remove_unused_trees(directory_, processes_); }
  static bool is_there(const std::string& tree) {
    return access(in_use_file(tree).c_str(), F_OK) == 0;
  }

  static bool is_directory(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  }
  // Whoever waits for a lock has its file open, as its holder has.
  static void wait_until_somebody_waits_for(const std::string& file) {
    const auto is_waiting = [&] {
      const std::vector<std::string> descriptors = list_directory("/proc/self/fd");
      return std::ranges::count_if(descriptors, [&](const std::string& number) {
               std::error_code ignored;
               return std::filesystem::read_symlink("/proc/self/fd/" + number, ignored) == file;
             }) == 2;
    };
    while (!is_waiting()) std::this_thread::yield();
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

TEST_F(UnusedTrees, TheFolderOfANamespaceGoesWithItsLastTree) {
  const std::string tree = prepare("eth0");
  ASSERT_TRUE(write_file(directory_.network_path + "/directory", "of engines"));
  make_old(tree);
  clear();
  EXPECT_TRUE(is_directory(directory_.network_path)) << "it was used a moment ago";
  make_folder_old();
  clear();
  EXPECT_THAT(list_directory(directory_.path), IsEmpty());
}

TEST_F(UnusedTrees, TheFolderStaysWhileATreeOfItIsHeld) {
  const std::string tree = prepare("eth0");
  const auto held = hold_device_tree(tree);
  make_old(tree);
  make_folder_old();
  clear();
  EXPECT_TRUE(is_there(tree));
}

TEST_F(UnusedTrees, PreparingATreeMakesTheFolderNewAgain) {
  const std::string tree = prepare("eth0");
  make_folder_old();
  prepare("eth0");
  make_old(tree);
  clear();
  EXPECT_TRUE(is_directory(directory_.network_path));
}

// What waits for the lock of a folder that goes away meanwhile must not write into nowhere.
TEST_F(UnusedTrees, WhoWaitedForAFolderThatWentIsTold) {
  prepare("eth0");
  auto lock = lock_file(trees_lock_file(directory_.network_path), LockKind::kExclusive);
  ASSERT_TRUE(lock);
  std::thread waiting([&] {
    const Device device{.name = "uroce0", .netdev = "eth0", .gids = {}};
    const auto tree = prepare_device_tree(directory_, {device});
    ASSERT_FALSE(tree);
    EXPECT_THAT(tree.error().message, testing::HasSubstr("try again"));
  });
  wait_until_somebody_waits_for(trees_lock_file(directory_.network_path));
  ASSERT_EQ(rename(directory_.network_path.c_str(), (base_.path() + "/gone").c_str()), 0);
  lock->close();
  waiting.join();
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
  ASSERT_EQ(rename(tree.c_str(), (tree + ".old").c_str()), 0);
  ASSERT_EQ(unlink(in_use_file(tree + ".old").c_str()), 0);
  ASSERT_TRUE(make_directories(directory_.path + "/netns-7.old", 0700));
  clear();
  EXPECT_THAT(list_directory(directory_.path), UnorderedElementsAre("netns-9"));
  EXPECT_THAT(list_directory(directory_.network_path), UnorderedElementsAre("trees.lock"));
}

TEST_F(UnusedTrees, WhoComesTooLateFindsNothing) {
  const std::string tree = prepare("eth0");
  make_old(tree);
  clear();
  const auto held = hold_device_tree(tree);
  ASSERT_FALSE(held);
  EXPECT_THAT(held.error().message, testing::HasSubstr("start with `uroce run` again"));
  EXPECT_EQ(prepare("eth0"), tree);
  EXPECT_TRUE(hold_device_tree(tree));
}

}  // namespace
}  // namespace uroce::host
