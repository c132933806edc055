// SPDX-License-Identifier: BSD-2-Clause
// What really leaves an interface, after the kernel has cut the trains: captured in a network
// namespace of its own, and checked by tests/support/check_icrc.py, which shares no code with us.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "endpoint.h"
#include "support/pcap.h"

namespace uroce::datapath::test {
namespace {

constexpr int kPassed = 0, kFailed = 1, kUnprivileged = 2;

// A veth pair whose other end nobody listens at; it goes with the namespace, and that with the
// process.
bool set_up_namespace() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  return std::system(
             "ip link set lo up && ip link add veth0 type veth peer name veth1 && ip link set "
             "veth1 up && "
             "ip link set veth0 mtu 9000 up && ip addr add 10.9.0.1/24 dev veth0 && "
             "ip -6 addr add fd09::1/64 dev veth0 nodad && "
             "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev veth0 && "
             "ip -6 neigh add fd09::2 lladdr 02:00:00:00:00:02 dev veth0") == 0;
}

bool shows_every_packet() { return std::system("ethtool -K veth0 tx-udp-segmentation off") == 0; }

// Everything that leaves an interface from now on.
class Capture {
 public:
  explicit Capture(const char* interface)
      : descriptor_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    const int bytes = 64 << 20;
    setsockopt(descriptor_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    EXPECT_EQ(bind(descriptor_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }

  // The RoCE packets among it.
  [[nodiscard]] std::vector<uroce::test::Frame> packets() const {
    std::vector<uroce::test::Frame> frames;
    std::vector<std::byte> buffer(1 << 16);
    for (;;) {
      const ssize_t bytes = recv(descriptor_.get(), buffer.data(), buffer.size(), 0);
      if (bytes < 0) return frames;
      uroce::test::Frame frame(buffer.begin(), buffer.begin() + bytes);
      wire::NetworkView view;
      if (wire::parse_network(frame, view) == wire::NetworkDrop::kNone) frames.push_back(frame);
    }
  }

 private:
  posix::Descriptor descriptor_;
};

Gid gid_of(const char* ipv6) {
  Gid gid;
  inet_pton(AF_INET6, ipv6, gid.bytes.data());
  return gid;
}

std::uint16_t identification_of(const uroce::test::Frame& frame) {
  return wire::load<Be16>(frame.data() + wire::kEthernetHeaderBytes + 4).get();
}

// Every path MTU and several lengths, as one frame each; returns the number of packets.
std::size_t send_all(Endpoint& endpoint, const Path& path) {
  const auto data = pattern(64 << 10);
  std::size_t packets = 0;
  for (const std::uint16_t path_mtu : {std::uint16_t{256}, std::uint16_t{512}, std::uint16_t{1024},
                                       std::uint16_t{2048}, std::uint16_t{4096}}) {
    for (const std::uint32_t bytes : {0u, 1u, 255u, 4'097u, 16'383u, 60'000u}) {
      const ConstBytes gather(data.data(), bytes);
      const WriteRun run = {wire::Opcode::kRcWriteOnlyImmediate, bytes, path_mtu};
      TxFrame frame = make_frame(path, {0x123}, run, gather);
      EXPECT_EQ(endpoint.link->tx_burst({&frame, 1}), 0u);
      packets += frame.packet_count;
    }
  }
  return packets;
}

void check_family(Endpoint& endpoint, const std::string& folder, Gid source, Gid destination) {
  const Path path = endpoint.path_to(destination, source);
  const Capture capture("veth0");
  const std::size_t sent = send_all(endpoint, path);
  const auto frames = capture.packets();
  EXPECT_EQ(frames.size(), sent);
  if (source.is_ipv4()) {
    // Otherwise the kernel was given no trains to number, and this proves nothing.
    EXPECT_TRUE(
        std::ranges::any_of(frames, [](const auto& f) { return identification_of(f) > 30; }));
  }
  const std::string file = folder + "/capture.pcap";
  uroce::test::write_pcap(file, frames);
  const std::string checker = std::string(UROCE_TEST_DATA) + "/../support/check_icrc.py";
  EXPECT_EQ(std::system(("python3 " + checker + " " + file + " > /dev/null").c_str()), 0);
}

int check_icrcs() {
  if (!set_up_namespace() || !shows_every_packet()) return kUnprivileged;
  const TemporaryFolder folder;
  Endpoint endpoint(folder.path(), {.interface = "veth0", .interface_mtu = 9'000});
  check_family(endpoint, folder.path(), wire::gid_of_ipv4(0x0a09'0001),
               wire::gid_of_ipv4(0x0a09'0002));
  check_family(endpoint, folder.path(), gid_of("fd09::1"), gid_of("fd09::2"));
  EXPECT_EQ(endpoint.link->counters().tx_errors, 0u);
  return testing::Test::HasFailure() ? kFailed : kPassed;
}

// Without its source address the kernel takes neither a train nor a packet.
int check_trains_come_back() {
  if (!set_up_namespace()) return kUnprivileged;
  const TemporaryFolder folder;
  Endpoint endpoint(folder.path(), {.interface = "veth0", .interface_mtu = 9'000});
  const Path path = endpoint.path_to(gid_of("fd09::2"), gid_of("fd09::1"));
  const Capture capture("veth0");
  const auto data = pattern(8 << 10);
  const auto send = [&] {
    const ConstBytes gather(data);
    TxFrame frame = make_frame(path, {0x123}, {.payload_bytes = 8 << 10}, gather);
    EXPECT_EQ(endpoint.link->tx_burst({&frame, 1}), 0u);
    return capture.packets().size();
  };
  const std::size_t trains = send();  // whole, as the device is given them
  EXPECT_LT(trains, 8u);
  EXPECT_EQ(std::system("ip -6 addr del fd09::1/64 dev veth0"), 0);
  EXPECT_EQ(send(), 0u);
  EXPECT_EQ(send(), 0u);
  EXPECT_EQ(endpoint.link->counters().tx_errors, 16u);
  EXPECT_EQ(std::system("ip -6 addr add fd09::1/64 dev veth0 nodad"), 0);
  EXPECT_EQ(send(), trains);
  return testing::Test::HasFailure() ? kFailed : kPassed;
}

void run_in_child(int (*check)()) {
  const pid_t child = fork();
  if (child == 0) _exit(check());
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kUnprivileged) {
    GTEST_SKIP() << "needs the right to make a network namespace, iproute2 and ethtool";
  }
  EXPECT_EQ(WEXITSTATUS(status), kPassed);
}

TEST(Capture, EveryPacketOnTheWireHasTheRightIcrc) { run_in_child(check_icrcs); }

TEST(Capture, TrainsComeBackWithTheAddress) { run_in_child(check_trains_come_back); }

}  // namespace
}  // namespace uroce::datapath::test
