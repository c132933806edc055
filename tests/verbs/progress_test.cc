// SPDX-License-Identifier: BSD-2-Clause
// Who makes progress: a process that sleeps serves its peers and costs nothing; one that exits does
// not fail them.
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "process.h"

namespace uroce::tests {
namespace {

double cpu_milliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

// Exchanges addresses and connects, with so many receives posted; the peer's address.
Address meet(Node& node, const Line& line, int receives = 0) {
  line.say(node.address());
  const Address peer = line.hear<Address>();
  EXPECT_EQ(node.connect(peer), 0);
  for (int i = 0; i < receives; ++i) EXPECT_EQ(node.receive(), 0);
  line.say(char{1});
  static_cast<void>(line.hear<char>());
  return peer;
}

// Until the other side has closed its line, without a system call that spins.
void sleep_until_closed(const Line& line) {
  char c = 0;
  while (read(line.in, &c, 1) > 0) {
  }
}

int sleeping_target(const Line& line) {
  Node node(1 << 20);
  if (!node.is_ready()) return 1;
  meet(node, line);
  sleep_until_closed(line);
  ibv_wc none{};
  if (ibv_poll_cq(node.cq, 1, &none) != 0) return 3;
  // What the helper thread wrote is ours when we have held the lock that it held. A poll only tries
  // to take it; a query waits for it.
  ibv_qp_attr state{};
  ibv_qp_init_attr made_with{};
  if (ibv_query_qp(node.qp, &state, IBV_QP_STATE, &made_with) != 0) return 4;
  return node.memory[100] == std::byte{0x5a} ? 0 : 2;
}

TEST(Progress, ATargetThatOnlySleepsIsWrittenTo) {
  Process target(sleeping_target);
  {
    Node node(1 << 20);
    ASSERT_TRUE(node.is_ready());
    node.memory.assign(node.memory.size(), std::byte{0x5a});
    const Address peer = meet(node, target.line);
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(node.write(peer, 65'536), 0);
      ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS);
    }
  }
  close(std::exchange(target.line.out, -1));
  EXPECT_EQ(target.wait(), 0);
}

// At most 10 ms of CPU in 10 s; here 3 s, in proportion, with a little for the reading itself.
constexpr double kIdleMilliseconds = 4.0;

// What else the machine does only adds to it, so the least of up to three windows counts.
int idle(const Line& line) {
  Node node;
  if (!node.is_ready()) return 1;
  meet(node, line);
  double least = std::numeric_limits<double>::infinity();
  for (int window = 0; window < 3 && least > kIdleMilliseconds; ++window) {
    const double before = cpu_milliseconds();
    pollfd closed{line.in, POLLIN, 0};
    static_cast<void>(poll(&closed, 1, 3'000));
    least = std::min(least, cpu_milliseconds() - before);
  }
  line.say(least);
  sleep_until_closed(line);  // the other may still measure
  return 0;
}

TEST(Progress, AnIdleConnectionCostsNothing) {
  Process a(idle);
  Process b(idle);
  // Each hears what the other says.
  for (int message = 0; message < 2; ++message) {
    if (message == 0) {
      const Address from_a = a.line.hear<Address>(), from_b = b.line.hear<Address>();
      a.line.say(from_b);
      b.line.say(from_a);
    } else {
      a.line.say(a.line.hear<char>());
      b.line.say(b.line.hear<char>());
    }
  }
  EXPECT_LE(a.line.hear<double>(), kIdleMilliseconds);
  EXPECT_LE(b.line.hear<double>(), kIdleMilliseconds);
}

// Exits in the instant in which it saw its last completion: no destroy, no close.
int vanishing_receiver(const Line& line) {
  auto* node = new Node;
  if (!node->is_ready()) return 1;
  meet(*node, line, 1);
  const ibv_wc wc = node->wait();
  _exit(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : 2);
}

TEST(Progress, AReceiverThatExitsAtItsLastCompletionDoesNotFailItsPeer) {
  for (int round = 0; round < 20; ++round) {
    Process receiver(vanishing_receiver);
    Node node;
    ASSERT_TRUE(node.is_ready());
    const Address peer = meet(node, receiver.line);
    ASSERT_EQ(node.write(peer, 64, true), 0);
    ASSERT_EQ(node.wait().status, IBV_WC_SUCCESS) << "round " << round;
    EXPECT_EQ(receiver.wait(), 0);
  }
}

}  // namespace
}  // namespace uroce::tests
