// SPDX-License-Identifier: BSD-2-Clause
#include "host/runtime_dir.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "host/files.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(RuntimeDirectory, IsBelowXdgRuntimeDirAndPrivate) {
  const test::TemporaryFolder base;
  const auto directory = open_runtime_directory({{"XDG_RUNTIME_DIR", base.path()}}, 77);
  ASSERT_TRUE(directory) << directory.error().message;
  EXPECT_EQ(directory->path, base.path() + "/uroce");
  EXPECT_EQ(directory->network_path, base.path() + "/uroce/netns-77");
  EXPECT_EQ(mode_of(directory->path), 0700u);
  EXPECT_EQ(mode_of(directory->network_path), 0700u);
}

TEST(RuntimeDirectory, OurOwnVariableWins) {
  const test::TemporaryFolder base;
  const std::string own = base.path() + "/mine";
  const auto directory =
      open_runtime_directory({{"XDG_RUNTIME_DIR", base.path()}, {"UROCE_RUNTIME_DIR", own}}, 1);
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->path, own);
}

// With /run and /tmp of its own, for as long as `body` runs. False without the right to that.
bool with_own_run_and_tmp(const std::function<void()>& body) {
  bool made = false;
  std::thread([&] {
    made = unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", "/run", "tmpfs", 0, nullptr) == 0 &&
           mount("none", "/tmp", "tmpfs", 0, nullptr) == 0;
    if (made) body();
  }).join();
  return made;
}

std::string path_with(const char* xdg_runtime_dir) {
  const auto directory = open_runtime_directory({{"XDG_RUNTIME_DIR", xdg_runtime_dir}}, 2);
  return directory ? directory->path : directory.error().message;
}

TEST(RuntimeDirectory, ABaseThatIsMissingIsPassedOver) {
  const bool tried = with_own_run_and_tmp([] {
    const std::string fallback = "/tmp/uroce-" + std::to_string(geteuid());
    EXPECT_EQ(path_with("/nonexistent"), fallback);
    EXPECT_EQ(path_with(""), fallback);
  });
  if (!tried) GTEST_SKIP() << "needs the right to mount a tmpfs in a namespace of its own";
}

// As XDG_RUNTIME_DIR says in the same user's other programs.
TEST(RuntimeDirectory, OfTheUsersLoginIsUsedAlsoWhereTheVariableIsMissing) {
  const bool tried = with_own_run_and_tmp([] {
    const std::string base = "/run/user/" + std::to_string(geteuid());
    ASSERT_TRUE(make_directories(base, 0700));
    EXPECT_EQ(path_with(""), base + "/uroce");
    EXPECT_EQ(path_with(base.c_str()), base + "/uroce");
    EXPECT_EQ(path_with("/nonexistent"), base + "/uroce");
  });
  if (!tried) GTEST_SKIP() << "needs the right to mount a tmpfs in a namespace of its own";
}

TEST(RuntimeDirectory, ASymbolicLinkIsRefused) {
  const test::TemporaryFolder base;
  ASSERT_EQ(symlink("/tmp", (base.path() + "/uroce").c_str()), 0);
  const auto directory = open_runtime_directory({{"XDG_RUNTIME_DIR", base.path()}}, 1);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is a symbolic link"));
}

TEST(RuntimeDirectory, AnotherUsersIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  const test::TemporaryFolder base;
  const std::string path = base.path() + "/uroce";
  ASSERT_TRUE(make_directories(path, 0777));
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  const auto directory = open_runtime_directory({{"UROCE_RUNTIME_DIR", path}}, 1);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("belongs to user 12345"));
}

TEST(RuntimeDirectory, SudosCallersBaseIsPassedOver) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  const test::TemporaryFolder base;
  ASSERT_EQ(chown(base.path().c_str(), 12345, 12345), 0);
  const auto directory = open_runtime_directory({{"XDG_RUNTIME_DIR", base.path()}}, 1);
  ASSERT_TRUE(directory) << directory.error().message;
  EXPECT_NE(directory->path, base.path() + "/uroce");
  rmdir(directory->network_path.c_str());
}

TEST(RuntimeDirectory, OneOpenToOthersIsRefusedAndLeftAsItIs) {
  const test::TemporaryFolder base;
  const std::string path = base.path() + "/shared";
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  const auto directory = open_runtime_directory({{"UROCE_RUNTIME_DIR", path}}, 1);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, testing::HasSubstr("can be entered by others"));
  EXPECT_EQ(mode_of(path), 0755u);
}

TEST(RuntimeDirectory, AFileInTheWaySaysSo) {
  const test::TemporaryFolder base;
  ASSERT_TRUE(write_file(base.path() + "/uroce", ""));
  const auto directory = open_runtime_directory({{"XDG_RUNTIME_DIR", base.path()}}, 1);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is not a directory"));
}

}  // namespace
}  // namespace uroce::host
