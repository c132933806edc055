// SPDX-License-Identifier: BSD-2-Clause
// One file has many names: which of them lead into the tree, and which must not.
#include <gtest/gtest.h>

#include "support.h"

namespace uroce::kernel {
namespace {

class Path : public testing::Test {
 protected:
  std::string ask(const std::string& form, const std::string& path) const {
    return run({KERNEL_PROBE, form, path}, preloaded(tree)).output;
  }
  // The same from another working folder, which a shell goes to first.
  std::string ask_from(const std::string& folder, const std::string& form,
                       const std::string& path) const {
    const std::string script =
        "cd " + folder + " && exec " + KERNEL_PROBE + " '" + form + "' '" + path + "'";
    return run({"sh", "-c", script}, preloaded(tree)).output;
  }
  const Tree tree;
};

TEST_F(Path, MayHaveNeedlessSlashesAndDots) {
  EXPECT_EQ(ask("open", "/sys//class/infiniband/uroce97/node_type"), "1: CA");
  EXPECT_EQ(ask("open", "//sys/./class/./infiniband//uroce97/./node_type"), "1: CA");
  EXPECT_EQ(ask("stat", "/sys/class/infiniband/"), "folder");
  EXPECT_EQ(ask("stat", "/dev//infiniband/./uverbs97"), "char 1:3");
}

TEST_F(Path, MayGoUpWithinTheTree) {
  EXPECT_EQ(ask("open", "/sys/class/infiniband/uroce97/../uroce97/node_type"), "1: CA");
  EXPECT_EQ(ask("open", "/sys/class/infiniband_verbs/../infiniband/uroce97/node_type"), "1: CA");
  EXPECT_EQ(ask("open", "/sys/class/net/../infiniband/uroce97/node_type"), "1: CA");
  EXPECT_EQ(ask("stat", "/sys/class/infiniband/../../../dev/infiniband/uverbs97"), "char 1:3");
}

TEST_F(Path, MayLeaveTheTreeAgain) {
  EXPECT_EQ(ask("opendir", "/sys/class/infiniband/../net"), ask("opendir", "/sys/class/net"));
  EXPECT_EQ(ask("stat", "/dev/infiniband/../zero"), "char 1:5");
  EXPECT_EQ(ask("stat", "/dev/infiniband/.."), "folder");
  EXPECT_EQ(ask("stat", "/dev/infiniband/../.."), "folder");
}

// After a link `..` is the folder that the link's target is in, not the one that the text says.
TEST_F(Path, MayFollowALinkAndThenGoUp) {
  tree.write("sys/devices/card/numa_node", "1");
  tree.write("sys/devices/beside", "2");
  std::filesystem::create_symlink("../../../devices/card",
                                  tree.path() / "sys/class/infiniband/uroce97/device");
  EXPECT_EQ(ask("open", "/sys/class/infiniband/uroce97/device/numa_node"), "1");
  EXPECT_EQ(ask("open", "/sys/class/infiniband/uroce97/device/../beside"), "2");
}

TEST_F(Path, MayBeRelative) {
  EXPECT_EQ(ask_from("/sys/class", "open", "infiniband/uroce97/node_type"), "1: CA");
  EXPECT_EQ(ask_from("/sys/class/infiniband", "open", "uroce97/node_type"), "1: CA");
  EXPECT_EQ(ask_from("/sys/class/infiniband/uroce97", "open", "node_type"), "1: CA");
  EXPECT_EQ(ask_from("/dev/infiniband", "stat", "uverbs97"), "char 1:3");
  EXPECT_EQ(ask_from("/", "stat", "dev/infiniband/uverbs97"), "char 1:3");
  EXPECT_EQ(ask_from("/tmp", "stat", "infiniband/uverbs97"), "ENOENT");
}

TEST_F(Path, IsOursAtWholeComponentsOnly) {
  tree.write("sys/class/infiniband_other/file", "x");
  EXPECT_EQ(ask("open", "/sys/class/infiniband_other/file"), "ENOENT");
  EXPECT_EQ(ask("open", "/tmp/sys/class/infiniband/uroce97/node_type"), "ENOENT");
}

TEST_F(Path, IsTheRealOneWhereTheTreeHasNothing) {
  tree.write("dev/infiniband/kind97", "");  // listed, but nothing emulates it
  EXPECT_EQ(ask("open", "/dev/infiniband/kind97"), "ENOENT");
  EXPECT_EQ(ask("open", "/sys/class/infiniband/mlx97_0/node_type"), "ENOENT");
}

TEST_F(Path, LeadsToRealDevicesThroughLinksInTheTree) {
  std::filesystem::create_symlink("/dev/zero", tree.path() / "dev/infiniband/uverbs98");
  std::filesystem::create_symlink("/sys/class/net", tree.path() / "sys/class/infiniband/mlx97_0");
  EXPECT_EQ(ask("stat", "/dev/infiniband/uverbs98"), "char 1:5");
  EXPECT_EQ(ask("opendir", "/sys/class/infiniband"), "mlx97_0 uroce97");
  EXPECT_EQ(ask("opendir", "/sys/class/infiniband/mlx97_0"), ask("opendir", "/sys/class/net"));
}

TEST_F(Path, MayBeTooLong) {
  const std::string device = "/sys/class/infiniband/uroce97";
  EXPECT_EQ(ask("open", device + std::string(4000, '/') + "node_type"), "1: CA");
  EXPECT_EQ(ask("open", device + "/" + std::string(5000, 'x')), "ENAMETOOLONG");
  std::string deep = device;
  while (deep.size() < 4090) deep += "/x";
  EXPECT_EQ(ask("open", deep), "ENOENT");
}

TEST(TreeVariable, IsIgnoredUnlessItNamesAFolderInFull) {
  for (const std::string& value :
       {std::string(), std::string("relative"), "/" + std::string(5000, 'x')}) {
    Arguments environment = preloaded();
    environment.push_back("UROCE_TREE=" + value);
    EXPECT_EQ(run({KERNEL_PROBE, "stat", "/dev/infiniband/uverbs97"}, environment).output,
              "ENOENT");
  }
}

}  // namespace
}  // namespace uroce::kernel
