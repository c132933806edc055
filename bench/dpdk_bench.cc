// SPDX-License-Identifier: BSD-2-Clause
// How fast a DPDK port carries runs of packets by itself: no transport, but with headers and ICRC
// built and verified, and received payload copied to its place as a transport would. A process at
// each end, or both on one thread to learn what a packet costs.
//
//   dpdk_bench SERVER_SPEC CLIENT_SPEC [PATH_MTU [SECONDS [one-thread]]]
//   dpdk_bench net_memif,role=server net_memif,role=client 4096 3
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "datapath/dpdk_loader.h"
#include "wire/build.h"
#include "wire/headers.h"

namespace {

using namespace uroce;
using namespace uroce::datapath;

constexpr std::uint16_t kRunPackets = 16;
// Gathered from and scattered to.
constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

Instant now() {
  return {std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)};
}

Gid address(std::uint8_t last) { return ipv4_mapped({10, 99, 0, last}); }

std::unique_ptr<Datapath> open(const char* spec, std::uint8_t own) {
  auto port = open_dpdk({.spec = spec, .addresses = {{address(own), 24}}});
  if (port) return std::move(port->datapath);
  std::fprintf(stderr, "%s\n", port.error().message.c_str());
  std::exit(1);
}

TxFrame make_run(const Path& path, std::uint16_t path_mtu, const ConstBytes& gather) {
  TxFrame frame;
  frame.path = &path;
  frame.packet_count = kRunPackets;
  frame.segment_bytes = path_mtu;
  frame.payload_bytes = std::uint32_t{path_mtu} * kRunPackets;
  frame.gather = &gather;
  frame.gather_count = 1;
  wire::build(frame, wire::Bth{.opcode = wire::Opcode::kRcWriteMiddle, .destination = Qpn{256}});
  return frame;
}

class Sender {
 public:
  Sender(const char* spec, std::uint16_t path_mtu) : link_(open(spec, 2)), path_mtu_(path_mtu) {
    if (link_->open_path(path_, Qpn{256}) != 0) std::exit(1);
  }

  void turn(Instant current) {
    std::array<RxPacket, 32> received;
    static_cast<void>(link_->rx_burst(received));  // answers ARP
    const std::size_t run_bytes = std::size_t{path_mtu_} * kRunPackets;
    const ConstBytes gather(memory_.data() + offset_, run_bytes);
    TxFrame frame = make_run(path_, path_mtu_, gather);
    if (link_->tx_burst({&frame, 1}) == 0) offset_ = (offset_ + run_bytes) % kMemoryBytes;
    link_->on_turn(current);
  }

 private:
  std::unique_ptr<Datapath> link_;
  std::uint16_t path_mtu_;
  Path path_{.source = address(2), .destination = address(1)};
  std::vector<std::byte> memory_ = std::vector<std::byte>(kMemoryBytes, std::byte{0x5a});
  std::size_t offset_ = 0;
};

class Receiver {
 public:
  explicit Receiver(const char* spec) : link_(open(spec, 1)) {}

  void turn(Instant current) {
    std::array<RxPacket, 32> packets;
    const std::size_t count = link_->rx_burst(packets);
    for (std::size_t i = 0; i < count; ++i) {
      const ConstBytes payload =
          packets[i].bytes.subspan(wire::opcode_info(wire::Opcode::kRcWriteMiddle).header_bytes);
      if (offset_ + payload.size() > memory_.size()) offset_ = 0;
      std::memcpy(memory_.data() + offset_, payload.data(), payload.size());
      offset_ += payload.size();
      payload_bytes_ += payload.size();
    }
    link_->on_turn(current);
  }

  [[nodiscard]] std::uint64_t payload_bytes() const { return payload_bytes_; }
  [[nodiscard]] std::uint64_t packets() const { return link_->counters().rx_packets; }
  [[nodiscard]] std::uint64_t bad() const { return link_->counters().rx_bad_icrc; }

 private:
  std::unique_ptr<Datapath> link_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kMemoryBytes);
  std::size_t offset_ = 0;
  std::uint64_t payload_bytes_ = 0;
};

// One turn of everything, until `time` has passed since the first packet; how long that was.
template <typename Turn>
Duration turn_for(Duration time, const Receiver& receiver, Turn turn) {
  Instant begin = Instant::never();
  for (;;) {
    const Instant current = now();
    turn(current);
    if (begin == Instant::never()) {
      if (receiver.packets() != 0) begin = current;
    } else if (time < current - begin) {
      return current - begin;
    }
  }
}

void print(const Receiver& receiver, double seconds, const char* clock) {
  std::printf("%.2f GB/s of payload, %.0f ns a packet (%s), %llu bad ICRC\n",
              static_cast<double>(receiver.payload_bytes()) / 1e9 / seconds,
              seconds * 1e9 / static_cast<double>(receiver.packets()), clock,
              static_cast<unsigned long long>(receiver.bad()));
}

void run_two_processes(char** specs, std::uint16_t path_mtu, Duration time) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (Sender sender(specs[1], path_mtu);;) sender.turn(now());
  }
  Receiver receiver(specs[0]);
  const Duration took = turn_for(time, receiver, [&](Instant current) { receiver.turn(current); });
  print(receiver, static_cast<double>(took.ns) / 1e9, "elapsed");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// Both ends in turn on one thread: what a packet costs in CPU time, sender and receiver together,
// which a busy machine does not distort.
void run_one_thread(char** specs, std::uint16_t path_mtu, Duration time) {
  Receiver receiver(specs[0]);
  Sender sender(specs[1], path_mtu);
  timespec begin{};
  static_cast<void>(turn_for(time, receiver, [&](Instant current) {
    sender.turn(current);
    receiver.turn(current);
    if (begin.tv_nsec == 0 && receiver.packets() != 0)
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  }));
  timespec end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  print(receiver,
        static_cast<double>(end.tv_sec - begin.tv_sec) +
            static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e9,
        "CPU time of both ends");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: dpdk_bench SERVER_SPEC CLIENT_SPEC [PATH_MTU [SECONDS [one-thread]]]\n");
    return 2;
  }
  const auto path_mtu = static_cast<std::uint16_t>(argc > 3 ? std::atoi(argv[3]) : 4096);
  const int seconds = argc > 4 ? std::atoi(argv[4]) : 3;
  const bool one_thread = argc > 5 && std::strcmp(argv[5], "one-thread") == 0;
  (one_thread ? run_one_thread : run_two_processes)(argv + 1, path_mtu,
                                                    milliseconds(1000) * seconds);
  return 0;
}
