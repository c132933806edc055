// SPDX-License-Identifier: BSD-2-Clause
// Two processes, a port each, joined by what the driver offers: a shared memory interface, a packet
// socket on each end of a veth pair, or on lo. The peer sends runs; what arrives is compared byte
// by byte. Neighbours are found by ARP of our own or the kernel's. Network tests run in namespaces
// of their own, which end with the processes.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "datapath/dpdk_loader.h"
#include "unit/datapath/dpdk/frames.h"

namespace uroce::datapath {
namespace {

constexpr std::uint32_t kRuns = 20;

// A process with a pipe as its standard input; it ends when that is closed.
class Peer {
 public:
  // `prefix`: shell code run first, in the same process; may wait for a line ("read line").
  explicit Peer(const std::string& prefix, const std::string& arguments) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[0], STDIN_FILENO);
      close(ends[0]);
      close(ends[1]);
      const std::string command = prefix + "exec " + UROCE_TEST_PEER + " " + arguments;
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(ends[0]);
    input_ = ends[1];
  }
  ~Peer() { finish(); }

  void say(const std::string& line) const {
    EXPECT_EQ(write(input_, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  int finish() {
    if (pid_ <= 0) return status_;
    close(input_);
    waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }
  [[nodiscard]] std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int status_ = -1;
};

bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

// Greets until the peer has begun, then collects its runs.
void exchange(const DpdkPort& port, const Gid& own, const Gid& other, std::uint16_t mtu) {
  Datapath& link = *port.datapath;
  ASSERT_EQ(link.capabilities().max_path_mtu, mtu);
  Path path{.source = own, .destination = other};
  ASSERT_EQ(link.open_path(path, Qpn{2}), 0);
  const auto expected = make_payload(16u * mtu - 5);
  const auto hello = make_payload(40);
  Collector collector(link);
  Instant next_hello;
  const auto turn = [&](Instant now) {
    if (collector.psns.empty() && next_hello < now) {
      next_hello = now + milliseconds(20);
      WriteRun greeting(path, hello, mtu, 1);
      link.tx_burst({&greeting.frame, 1});
    }
    collector.turn(now);
  };
  ASSERT_TRUE(turn_until(turn, [&] { return collector.psns.size() >= kRuns * 16; }))
      << collector.psns.size() << " packets arrived, bad ICRC " << link.counters().rx_bad_icrc
      << ", not RoCE " << link.counters().rx_not_roce << ", truncated "
      << link.counters().rx_truncated << ", tx " << link.counters().tx_packets << ", tx errors "
      << link.counters().tx_errors;
  EXPECT_EQ(collector.unparsable, 0u);
  EXPECT_EQ(collector.source, other);
  for (std::uint32_t i = 0; i < kRuns * 16; ++i) ASSERT_EQ(collector.psns[i], i);
  ASSERT_EQ(collector.payload.size(), kRuns * expected.size());
  for (std::uint32_t i = 0; i < kRuns; ++i) {
    ASSERT_TRUE(
        std::equal(expected.begin(), expected.end(),
                   collector.payload.begin() + static_cast<std::ptrdiff_t>(i * expected.size())));
  }
  EXPECT_EQ(link.counters().rx_bad_icrc, 0u);
}

class DpdkPair : public testing::Test {
 protected:
  // In a network namespace that ends with this process; false without the privilege.
  static bool enter_own_network() { return geteuid() == 0 && unshare(CLONE_NEWNET) == 0; }

  // Memory of DPDK is a process's for good, so what follows holds for one test in a process.
  Gid own_ = ipv4(10, 9, 8, 1);
  Gid other_ = ipv4(10, 9, 8, 2);
};

TEST_F(DpdkPair, MemifJoinsTwoProcessesUnprivileged) {
  const std::string socket = "uroce-test-" + std::to_string(getpid());
  Peer peer("", "net_memif,role=client,socket=" + socket + " 10.9.8.2 10.9.8.1 20");
  auto port =
      open_dpdk({.spec = "net_memif,role=server,socket=" + socket, .addresses = {{own_, 24}}});
  ASSERT_TRUE(port) << port.error().message;
  exchange(*port, own_, other_, 4096);
  EXPECT_EQ(peer.finish(), 0);
}

// Each end of a veth pair in a network namespace and a process of its own.
void join_over_veth(const std::string& driver, std::uint16_t link_mtu, std::uint16_t path_mtu) {
  const Gid own = ipv4(10, 9, 8, 1);
  const Gid other = ipv4(10, 9, 8, 2);
  const std::string mtu = " mtu " + std::to_string(link_mtu) + " ";
  // The peer's shell is replaced by one in a namespace of its own, then waits for its interface.
  Peer peer(
      "exec unshare -n sh -c 'read ready; ip addr add 10.9.8.2/24 dev "
      "vb; ip link set vb up; ",
      driver + ",iface=vb 10.9.8.2 10.9.8.1 20'");
  const std::string other_network = "/proc/" + peer.pid() + "/ns/net";
  std::error_code error;
  ASSERT_TRUE(turn_until([](Instant) {},
                         [&] {
                           return std::filesystem::read_symlink(other_network, error) !=
                                  std::filesystem::read_symlink("/proc/thread-self/ns/net", error);
                         }));
  ASSERT_TRUE(run("ip link add va" + mtu + "type veth peer name vb" + mtu + "netns " + peer.pid() +
                  " && ip addr add 10.9.8.1/24 dev va && ip link set va up"));
  peer.say("ready\n");
  auto port = open_dpdk({.spec = driver + ",iface=va", .addresses = {{own, 24}}});
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_TRUE(port->kernel_owned);
  EXPECT_EQ(port->mtu_bytes, link_mtu);
  exchange(*port, own, other, path_mtu);
  EXPECT_EQ(peer.finish(), 0);
}

TEST_F(DpdkPair, AfPacketJoinsTwoNamespacesOverVeth) {
  if (!enter_own_network()) GTEST_SKIP() << "needs root for a network namespace";
  join_over_veth("net_af_packet", 9000, 4096);
}

TEST_F(DpdkPair, AfXdpJoinsTwoNamespacesOverVeth) {
  if (!enter_own_network()) GTEST_SKIP() << "needs root for a network namespace";
  join_over_veth("net_af_xdp", 3498, 2048);
}

TEST_F(DpdkPair, AfPacketOnLoSeesEveryPacketOnce) {
  if (!enter_own_network()) GTEST_SKIP() << "needs root for a network namespace";
  ASSERT_TRUE(run("ip link set lo up"));
  Peer peer("", "net_af_packet,iface=lo 127.0.0.2 127.0.0.1 20");
  own_ = ipv4(127, 0, 0, 1);
  auto port = open_dpdk({.spec = "net_af_packet,iface=lo", .addresses = {{own_, 8}}});
  ASSERT_TRUE(port) << port.error().message;
  exchange(*port, own_, ipv4(127, 0, 0, 2), 4096);
  EXPECT_EQ(peer.finish(), 0);
}

// The kernel has the other end of a tap: its ping and its ARP are answered, and our question by it.
TEST_F(DpdkPair, TapAnswersTheKernelsPingAndWakesUp) {
  if (!enter_own_network()) GTEST_SKIP() << "needs root for a network namespace";
  if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "needs /dev/net/tun";
  auto port = open_dpdk({.spec = "net_tap,iface=utap0", .addresses = {{own_, 24}}});
  ASSERT_TRUE(port) << port.error().message;
  Datapath& link = *port->datapath;
  ASSERT_TRUE(run("ip addr add 10.9.8.2/24 dev utap0 && ip link set utap0 up"));
  EXPECT_GE(link.wakeup_descriptor(), 0);
  const pid_t ping = fork();
  if (ping == 0) {
    execlp("ping", "ping", "-q", "-c", "3", "-i", "0.2", "10.9.8.1", nullptr);
    _exit(127);
  }
  Path path{.source = own_, .destination = other_};
  ASSERT_EQ(link.open_path(path, Qpn{2}), 0);
  Collector collector(link);
  int status = -1;
  ASSERT_TRUE(turn_until([&](Instant now) { collector.turn(now); },
                         [&] { return waitpid(ping, &status, WNOHANG) == ping; }));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto hello = make_payload(40);
  WriteRun greeting(path, hello, 1024, 1);
  EXPECT_EQ(link.tx_burst({&greeting.frame, 1}), 0u);
  EXPECT_EQ(link.counters().tx_errors, 0u);  // the kernel has told its MAC
}

// With hugepages where there are enough; the number that was configured before is restored.
class Hugepages {
 public:
  Hugepages() {
    std::ifstream(kFile) >> before_;
    std::ofstream(kFile) << before_ + 64;
  }
  ~Hugepages() { std::ofstream(kFile) << before_; }
  [[nodiscard]] static unsigned long free_pages() {
    unsigned long pages = 0;
    std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> pages;
    return pages;
  }

 private:
  static constexpr const char* kFile = "/proc/sys/vm/nr_hugepages";
  unsigned long before_ = 0;
};

TEST_F(DpdkPair, HugepagesAreUsedWhereThereAreEnough) {
  const Hugepages pages;
  const unsigned long before = Hugepages::free_pages();
  if (before < 64) GTEST_SKIP() << "needs to set the number of hugepages";
  const std::string socket = "uroce-test-" + std::to_string(getpid());
  Peer peer("", "net_memif,role=client,socket=" + socket + " 10.9.8.2 10.9.8.1 20");
  auto port =
      open_dpdk({.spec = "net_memif,role=server,socket=" + socket, .addresses = {{own_, 24}}});
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_LT(Hugepages::free_pages(), before);
  exchange(*port, own_, other_, 4096);
  EXPECT_EQ(peer.finish(), 0);
}

}  // namespace
}  // namespace uroce::datapath
