// SPDX-License-Identifier: BSD-2-Clause
#include "cli/run.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "host/files.h"
#include "unit/host/support.h"

namespace uroce::cli {
namespace {

using host::Environment;
using testing::EndsWith;
using testing::HasSubstr;

class RunEnvironment : public testing::Test {
 protected:
  RunEnvironment() {
    installation_.provider = "/opt/lib/liburoce-rdmav34.so";
    installation_.preload = "/opt/lib/liburoce-kernel.so";
    setup_.devices.resize(2);
    setup_.devices[0].netdev = "eth1";
    setup_.devices[1].netdev = "lo";
    setup_.config.all_netdevs = true;
    tree_ = {{"/run/uroce", "/run/uroce/netns-1"}, "/run/uroce/netns-1/tree-1"};
  }
  Environment made(const Environment& before, const std::string& sanitizer = "") const {
    return run_environment(before, setup_, tree_, installation_, sanitizer);
  }

  cli::Setup setup_;
  PreparedTree tree_;
  Installation installation_;
};

TEST_F(RunEnvironment, NamesTreeProviderAndPreload) {
  Environment e = made({{"HOME", "/root"}});
  EXPECT_EQ(e["UROCE_TREE"], "/run/uroce/netns-1/tree-1");
  EXPECT_EQ(e["SYSFS_PATH"], "/run/uroce/netns-1/tree-1/sys");
  EXPECT_EQ(e["RDMAV_DRIVERS"], "/opt/lib/liburoce");
  EXPECT_EQ(e["LD_PRELOAD"], "/opt/lib/liburoce-kernel.so");
  EXPECT_EQ(e["UROCE_RUNTIME_DIR"], "/run/uroce");
  EXPECT_EQ(e["HOME"], "/root");
}

TEST_F(RunEnvironment, TheChosenInterfacesAreNamed) {
  EXPECT_EQ(made({})["UROCE_NETDEV"], "eth1,lo");
}

TEST_F(RunEnvironment, WhatWasThereStaysAndNothingComesTwice) {
  Environment e = made({{"LD_PRELOAD", "libfoo.so libbar.so"}, {"RDMAV_DRIVERS", "/x/libother"}});
  EXPECT_EQ(e["LD_PRELOAD"], "libfoo.so:libbar.so:/opt/lib/liburoce-kernel.so");
  EXPECT_EQ(e["RDMAV_DRIVERS"], "/opt/lib/liburoce:/x/libother");
  EXPECT_EQ(made(e), e) << "a nested run changes nothing";
}

TEST_F(RunEnvironment, ASanitizersRuntimeComesFirst) {
  Environment e = made({{"LD_PRELOAD", "libfoo.so"}}, "libasan.so.8");
  EXPECT_EQ(e["LD_PRELOAD"], "libasan.so.8:libfoo.so:/opt/lib/liburoce-kernel.so");
}

TEST(Installation, IsFoundInABuildTreeAndBelowAPrefix) {
  const host::test::TemporaryFolder base;
  const std::string build = base.path() + "/build", prefix = base.path() + "/usr";
  ASSERT_TRUE(host::make_directories(build + "/lib", 0755));
  ASSERT_TRUE(host::write_file(build + "/lib/liburoce-rdmav34.so", ""));
  ASSERT_TRUE(host::write_file(build + "/lib/liburoce-kernel.so", ""));
  EXPECT_EQ(find_installation(build).provider, build + "/lib/liburoce-rdmav34.so");
  EXPECT_EQ(find_installation(build).preload, build + "/lib/liburoce-kernel.so");

  const std::string library = prefix + "/" UROCE_LIBDIR;
  ASSERT_TRUE(host::make_directories(library + "/uroce", 0755));
  ASSERT_TRUE(host::make_directories(library + "/libibverbs", 0755));
  ASSERT_TRUE(host::write_file(library + "/libibverbs/liburoce-rdmav34.so", ""));
  ASSERT_TRUE(host::write_file(library + "/uroce/liburoce-kernel.so", ""));
  const Installation installed = find_installation(prefix + "/bin");
  EXPECT_EQ(installed.provider, library + "/libibverbs/liburoce-rdmav34.so");
  EXPECT_EQ(installed.preload, library + "/uroce/liburoce-kernel.so");
  EXPECT_EQ(installed.dpdk_module, "");
}

// A program file with a mode, in a directory that PATH names.
class Program : public testing::Test {
 protected:
  ProgramFacts with_mode(mode_t mode) {
    const std::string path = base_.path() + "/tool";
    EXPECT_TRUE(host::write_file(path, "#!/bin/sh\n"));
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return examine_program("tool", {{"PATH", "/nonexistent:" + base_.path()}});
  }
  host::test::TemporaryFolder base_;
};

TEST_F(Program, IsLookedUpInPath) {
  EXPECT_EQ(with_mode(0755).path, base_.path() + "/tool");
  EXPECT_TRUE(with_mode(0755).is_executable);
  EXPECT_FALSE(with_mode(0644).is_executable);
  EXPECT_EQ(examine_program("no-such-tool", {{"PATH", base_.path()}}).path, "");
  EXPECT_EQ(examine_program(base_.path(), {}).path, "") << "a directory is no program";
}

TEST_F(Program, AScriptIsNoElfFile) {
  const ProgramFacts facts = with_mode(0755);
  EXPECT_FALSE(facts.elf);
  EXPECT_EQ(why_not_preloadable(facts), "");
}

TEST_F(Program, RightsKeepPreloadsOut) {
  ProgramFacts facts = with_mode(0755);
  facts.is_setuid = true;
  EXPECT_EQ(why_not_preloadable(facts), "is setuid or setgid");
  facts = with_mode(0755);
  facts.has_file_capabilities = true;
  EXPECT_EQ(why_not_preloadable(facts), "has file capabilities");
}

TEST(Elf, ThisTestIsDynamicAndNeedsLibc) {
  const auto facts = read_elf("/proc/self/exe");
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->is_our_machine);
  EXPECT_TRUE(facts->is_dynamic);
  EXPECT_THAT(facts->needed, testing::Contains(testing::StartsWith("libc.so")));
}

TEST(Elf, SanitizerRuntimesAreRecognised) {
  EXPECT_EQ(sanitizer_runtime({true, true, {"libc.so.6", "libasan.so.8"}}), "libasan.so.8");
  EXPECT_EQ(sanitizer_runtime({true, true, {"libc.so.6"}}), "");
}

// Whatever stands in the file: no crash, and nothing believed that is not in it.
TEST(Elf, TornFilesAreReadAsFarAsTheyGo) {
  const host::test::TemporaryFolder base;
  const std::string whole = host::read_file("/proc/self/exe").value_or("").substr(0, 4096);
  const std::string path = base.path() + "/torn";
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    ASSERT_TRUE(host::write_file(path, whole.substr(0, size)));
    const auto facts = read_elf(path);
    EXPECT_EQ(facts.has_value(), size >= 64) << size;
  }
  std::string wild = whole;
  for (std::size_t i = 64; i < wild.size(); ++i) wild[i] = static_cast<char>(0xff);
  ASSERT_TRUE(host::write_file(path, wild));
  EXPECT_TRUE(read_elf(path));
  EXPECT_FALSE(read_elf(base.path() + "/none"));
}

}  // namespace
}  // namespace uroce::cli
