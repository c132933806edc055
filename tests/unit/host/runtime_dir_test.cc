// SPDX-License-Identifier: BSD-2-Clause
#include "host/runtime_dir.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(RuntimeDirectory, ABaseThatIsMissingIsPassedOver) {
  const auto directory = open_runtime_directory({{"XDG_RUNTIME_DIR", "/nonexistent"}}, 2);
  ASSERT_TRUE(directory) << directory.error().message;
  EXPECT_EQ(directory->path, "/tmp/uroce-" + std::to_string(geteuid()));
  rmdir(directory->network_path.c_str());
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
  EXPECT_EQ(directory->path, "/tmp/uroce-0");
  rmdir(directory->network_path.c_str());
}

TEST(RuntimeDirectory, OneOpenToOthersIsClosed) {
  const test::TemporaryFolder base;
  const std::string path = base.path() + "/uroce";
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  ASSERT_TRUE(open_runtime_directory({{"XDG_RUNTIME_DIR", base.path()}}, 1));
  EXPECT_EQ(mode_of(path), 0700u);
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
