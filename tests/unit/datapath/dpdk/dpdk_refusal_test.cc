// SPDX-License-Identifier: BSD-2-Clause
// What cannot be had is refused in one line that says why, and nothing reaches the terminal.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datapath/dpdk_loader.h"

namespace uroce::datapath {
namespace {

std::string refusal(const std::string& spec) {
  const auto opened = open_dpdk({.spec = spec});
  if (opened) return "opened";
  EXPECT_EQ(opened.error().message.find('\n'), std::string::npos);
  return opened.error().message;
}

TEST(DpdkRefusal, AnUnknownDriverIsNamedWithTheKnownOnes) {
  EXPECT_NE(refusal("net_nonsense,iface=lo").find("net_af_packet"), std::string::npos);
}

TEST(DpdkRefusal, AMissingInterfaceIsNamed) {
  EXPECT_EQ(refusal("net_af_packet,iface=nosuch0"), "dpdk: interface nosuch0: No such device");
  EXPECT_NE(refusal("net_af_packet").find("say which interface"), std::string::npos);
}

TEST(DpdkRefusal, BadArgumentsOfADriverAreReported) {
  const std::string message = refusal("net_memif,role=neither");
  EXPECT_NE(message.find("net_memif: no such port: "), std::string::npos) << message;
}

TEST(DpdkRefusal, NothingIsWrittenToTheTerminal) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  static_cast<void>(refusal("net_memif,role=neither"));
  static_cast<void>(refusal("net_ring"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(DpdkRefusal, TheCallersAffinityStaysAsItWas) {
  cpu_set_t before;
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(refusal("net_ring"), "opened");
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(DpdkRefusal, AForkedChildCannotStartDpdkAgain) {
  auto parents = open_dpdk({.spec = "net_ring"});
  ASSERT_TRUE(parents) << parents.error().message;
  const pid_t child = fork();
  if (child == 0) {
    parents->datapath->abandon_in_child();
    parents->datapath.reset();
    const bool refused = refusal("net_ring").find("forked") != std::string::npos;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(DpdkRefusal, APortInUseNamesItsOwner) {
  const std::string spec = "net_memif,role=server,socket=uroce-test-" + std::to_string(getpid());
  auto first = open_dpdk({.spec = spec});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_NE(refusal(spec).find("in use by process " + std::to_string(getpid())), std::string::npos);
  first->datapath.reset();
  EXPECT_EQ(refusal(spec), "opened");
}

}  // namespace
}  // namespace uroce::datapath
