// SPDX-License-Identifier: BSD-2-Clause
// What cannot be had is refused in one line that says why, and nothing reaches the terminal.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <utility>

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
  EXPECT_NE(message.find("net_memif: cannot be opened: "), std::string::npos) << message;
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

// A socket file: what a server listens on, or what a killed one left.
class SocketFile {
 public:
  explicit SocketFile(const char* name)
      : path_("/tmp/uroce-test-" + std::to_string(getpid()) + name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(path_, address.sun_path);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
  }
  ~SocketFile() {
    leave();
    unlink(path_.c_str());
  }
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  void leave() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  [[nodiscard]] std::string spec() const {
    return "net_memif,role=server,socket-abstract=no,socket=" + path_;
  }
  [[nodiscard]] bool exists() const { return access(path_.c_str(), F_OK) == 0; }

 private:
  std::string path_;
  int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
};

TEST(DpdkRefusal, ASocketFileThatAKilledServerLeftIsNoHindrance) {
  SocketFile file("stale.sock");
  file.leave();
  EXPECT_TRUE(file.exists());
  EXPECT_EQ(refusal(file.spec()), "opened");
}

TEST(DpdkRefusal, ASocketFileInUseStays) {
  const SocketFile file("used.sock");
  const std::string message = refusal(file.spec());
  EXPECT_NE(message.find("Address already in use"), std::string::npos) << message;
  EXPECT_TRUE(file.exists());
}

void drop_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0) _exit(2);
}

// In a process of its own: DPDK must not have been started with the capability.
TEST(DpdkRefusalDeathTest, AMissingCapabilityIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        drop_capabilities();
        std::cerr << refusal("net_af_packet,iface=lo") << std::flush;
        _exit(0);
      },
      testing::ExitedWithCode(0), "it needs CAP_NET_RAW");
}

}  // namespace
}  // namespace uroce::datapath
