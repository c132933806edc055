// SPDX-License-Identifier: BSD-2-Clause
// Programs of the system with the library in front of them: the tree is theirs to see, and those
// that have nothing to do with RDMA do not notice.
#include <gtest/gtest.h>

#include "support.h"

namespace uroce::kernel {
namespace {

constexpr char kNode[] = "/dev/infiniband/uverbs97";

bool is_installed(const std::string& program) {
  return run({"sh", "-c", "command -v " + program}, {}).exit_status == 0;
}

class Programs : public testing::Test {
 protected:
  Outcome shell(const std::string& script) const {
    return run({"bash", "-c", script}, preloaded(tree));
  }
  const Tree tree;
};

TEST(Library, NeedsNothingButLibc) {
  if (!is_installed("readelf")) GTEST_SKIP() << "needs readelf";
  const std::string script = std::string("readelf -d ") + KERNEL_LIBRARY + " | grep NEEDED";
  const std::string needed = run({"sh", "-c", script}, {}).output;
  EXPECT_NE(needed.find("[libc.so.6]"), std::string::npos);
  EXPECT_EQ(needed.find('\n'), std::string::npos) << needed;
}

// And where the plug-in of libibverbs says who answers for rdma_cm.
TEST(Library, ShowsOnlyWhatItStandsInFrontOf) {
  if (!is_installed("nm")) GTEST_SKIP() << "needs nm";
  const std::string script =
      std::string("nm -D --defined-only ") + KERNEL_LIBRARY + " | grep -v ' T [a-z_0-9]*$'; true";
  EXPECT_EQ(run({"sh", "-c", script}, {}).output, "");
  const std::string names =
      std::string("nm -D --defined-only ") + KERNEL_LIBRARY + " | grep -o 'uroce.*'";
  EXPECT_EQ(run({"sh", "-c", names}, {}).output, "uroce_set_rdma_cm_provider");
}

TEST_F(Programs, ListTheDevice) {
  EXPECT_EQ(shell("ls /sys/class/infiniband").output, "uroce97");
  EXPECT_EQ(shell("ls -l /dev/infiniband | cut -c1-10,34- | tail -n1").output.substr(0, 10),
            "crw-rw-rw-");
  EXPECT_EQ(shell("find /dev/infiniband -type c").output, kNode);
  EXPECT_EQ(shell("find /sys/class/infiniband -name node_guid").output,
            "/sys/class/infiniband/uroce97/node_guid");
  EXPECT_EQ(shell("echo /sys/class/infiniband/*/node_t*").output,
            "/sys/class/infiniband/uroce97/node_type");
  EXPECT_EQ(shell("cd /sys/class/infiniband/uroce97 && pwd && cat node_type").output,
            "/sys/class/infiniband/uroce97\n1: CA");
  EXPECT_EQ(shell("read type < /sys/class/infiniband/uroce97/node_type; echo $type").output,
            "1: CA");
  EXPECT_EQ(shell("test -c /dev/infiniband/uverbs97 && echo yes").output, "yes");
}

TEST_F(Programs, PythonSeesTheDevice) {
  if (!is_installed("python3")) GTEST_SKIP() << "needs python3";
  const char* script =
      "import os, glob, stat, pathlib\n"
      "print(os.listdir('/sys/class/infiniband'), glob.glob('/dev/infiniband/uverbs*'),\n"
      "      stat.S_ISCHR(os.stat('/dev/infiniband/uverbs97').st_mode),\n"
      "      pathlib.Path('/sys/class/infiniband/uroce97/node_type').read_text().strip())\n";
  EXPECT_EQ(run({"python3", "-c", script}, preloaded(tree)).output,
            "['uroce97'] ['/dev/infiniband/uverbs97'] True 1: CA");
}

// A child without the environment is outside the tree, and works.
TEST_F(Programs, ChildrenWithAnEmptyEnvironmentSeeTheHost) {
  EXPECT_EQ(shell(std::string("env -i ") + KERNEL_PROBE + " stat " + kNode).output, "ENOENT");
}

TEST_F(Programs, StaticProgramsStillRun) {
  if (!is_installed("ldconfig") && !is_installed("/sbin/ldconfig"))
    GTEST_SKIP() << "needs ldconfig";
  EXPECT_EQ(shell("PATH=$PATH:/sbin ldconfig -p > /dev/null; echo $?").output, "0");
}

TEST_F(Programs, RunUnderValgrind) {
  if (!is_installed("valgrind")) GTEST_SKIP() << "needs valgrind";
  const Outcome outcome = run({"valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                               KERNEL_PROBE, "realpath allocating", kNode},
                              preloaded(tree));
  EXPECT_EQ(outcome.output, kNode);
  EXPECT_EQ(outcome.exit_status, 0);
}

TEST_F(Programs, RunUnderGdb) {
  if (!is_installed("gdb")) GTEST_SKIP() << "needs gdb";
  const Outcome outcome = run({"gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex",
                               "run", "--args", KERNEL_PROBE, "comp-channel", kNode},
                              preloaded(tree));
  EXPECT_NE(outcome.output.find("channel\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("exited normally"), std::string::npos) << outcome.output;
}

// gcc's AddressSanitizer runtime insists on being first unless told otherwise; it works behind us.
TEST_F(Programs, MayBeBuiltWithAddressSanitizer) {
  Arguments environment = preloaded(tree);
  environment.push_back("ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0");
  for (const char* scenario : {"comp-channel", "look-alikes", "signal handler"}) {
    const Outcome outcome = run({KERNEL_PROBE_ASAN, scenario, kNode}, environment);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  }
  EXPECT_EQ(run({KERNEL_PROBE_ASAN, "open", "/sys/class/infiniband/uroce97/node_type"}, environment)
                .output,
            "1: CA");
}

// Stock libibverbs, and a stock provider that takes devices by name (rxe): no part of ours but this
// library, so it is the enumeration and nothing else that is tried.
TEST_F(Programs, StockLibibverbsListsADeviceOfTheTree) {
  if (!is_installed("ibv_devices")) GTEST_SKIP() << "needs ibverbs-utils";
  tree.write("sys/class/infiniband_verbs/uverbs98/ibdev", "rxe97");
  tree.write("sys/class/infiniband_verbs/uverbs98/dev", "1:3");
  tree.write("sys/class/infiniband_verbs/uverbs98/abi_version", "2");
  tree.write("sys/class/infiniband/rxe97/node_type", "1: CA");
  tree.write("sys/class/infiniband/rxe97/node_guid", "0254:00ff:fe12:3456");
  tree.write("dev/infiniband/uverbs98", "");
  const std::string listed = run({"ibv_devices"}, preloaded(tree)).output;
  EXPECT_NE(listed.find("rxe97"), std::string::npos) << listed;
  EXPECT_NE(listed.find("025400fffe123456"), std::string::npos) << listed;
}

}  // namespace
}  // namespace uroce::kernel
