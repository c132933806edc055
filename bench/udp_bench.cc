// SPDX-License-Identifier: BSD-2-Clause
// The bare UDP datapath between two processes on loopback, without the transport: WRITEs of 64 KiB
// at two path MTUs with an acknowledgement each, and the round trip of a packet of 8 bytes. Both
// ends compute ICRCs, and the receiver copies payloads to where a responder would.
//
//   udp_bench [SECONDS [IP-FAMILY [PATH-MTU]]]     default: 2 seconds, 4, everything
//
// To be read beside `iperf3 -l 1M` of the same minute.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "datapath/directory/directory.h"
#include "datapath/udp/udp_datapath.h"
#include "wire/build.h"
#include "wire/network.h"
#include "wire/parse.h"

namespace {

using namespace uroce;
using namespace uroce::datapath;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMessageBytes = 64 << 10;
constexpr std::uint16_t kPort = 14'791;  // beside whoever uses the real one

struct End {
  std::unique_ptr<Directory> directory;
  std::unique_ptr<UdpDatapath> link;
  Path path;
  Qpn own, peer;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "udp_bench: %s\n", message.c_str());
  std::_Exit(1);
}

template <typename T>
T take(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}

void stay_on_processor(std::size_t processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// The first to join gets block 1, the second block 2.
End open_end(const std::string& folder, bool is_ipv4, bool is_second) {
  End end;
  end.directory = take(Directory::join({.folder = folder, .device = "bench"}));
  const std::uint32_t block = end.directory->claim_block().value();
  end.link = take(UdpDatapath::create(*end.directory, {.port = kPort}));
  Gid address = wire::gid_of_ipv4(0x7f00'0001);
  if (!is_ipv4) {
    address = {};
    address.bytes[15] = 1;
  }
  end.path.source = end.path.destination = address;
  if (const int error = end.link->open_path(end.path, {}); error != 0) fail(std::strerror(error));
  end.own = {block * kQpnsPerBlock};
  end.peer = {(is_second ? block - 1 : block + 1) * kQpnsPerBlock};
  return end;
}

TxFrame write_frame(const End& end, Psn psn, std::uint16_t path_mtu, const ConstBytes& payload) {
  TxFrame frame;
  frame.path = &end.path;
  frame.segment_bytes = path_mtu;
  frame.payload_bytes = static_cast<std::uint32_t>(payload.size());
  frame.packet_count = static_cast<std::uint16_t>((payload.size() + path_mtu - 1) / path_mtu);
  frame.gather = &payload;
  frame.gather_count = 1;
  wire::build(frame,
              wire::Bth{.opcode = wire::Opcode::kRcWriteOnly,
                        .destination = end.peer,
                        .ack_request = true,
                        .psn = psn},
              wire::Reth{.dma_bytes = frame.payload_bytes});
  return frame;
}

void send_acknowledge(End& end, Psn psn) {
  TxFrame frame;
  frame.path = &end.path;
  wire::build(
      frame, wire::Bth{.opcode = wire::Opcode::kRcAcknowledge, .destination = end.peer, .psn = psn},
      wire::Aeth{});
  end.link->tx_burst({&frame, 1});
}

// Copies what arrives and acknowledges where asked to, until killed.
[[noreturn]] void serve(End& end) {
  std::vector<std::byte> memory(1 << 20);
  std::size_t at = 0;
  std::array<RxPacket, 32> packets;
  wire::PacketView view;
  for (std::uint64_t turn = 0;; ++turn) {
    const std::size_t count = end.link->rx_burst(packets);
    for (std::size_t i = 0; i < count; ++i) {
      if (wire::parse(packets[i], view) != wire::DropReason::kNone) continue;
      if (at + view.payload.size() > memory.size()) at = 0;
      std::memcpy(memory.data() + at, view.payload.data(), view.payload.size());
      at += view.payload.size();
      if (view.bth.ack_request) send_acknowledge(end, view.bth.psn);
    }
    if (count == 0) end.link->on_turn({static_cast<std::int64_t>(turn)});
  }
}

// How many acknowledgements came.
unsigned poll_acknowledges(End& end) {
  std::array<RxPacket, 32> packets;
  return static_cast<unsigned>(end.link->rx_burst(packets));
}

void measure_writes(End& end, std::uint16_t path_mtu, double seconds) {
  const std::vector<std::byte> memory(1 << 20, std::byte{0x5a});
  const unsigned window = end.link->capabilities().peer_window_bytes / kMessageBytes;
  const auto start = Clock::now();
  const auto stop = start + std::chrono::duration<double>(seconds);
  auto last_progress = start;
  unsigned outstanding = 0;
  std::uint64_t messages = 0, lost = 0;
  Psn psn;
  for (auto now = start; now < stop; now = Clock::now()) {
    while (outstanding < window) {
      const ConstBytes payload =
          ConstBytes(memory).subspan((messages + outstanding) % 16 * kMessageBytes, kMessageBytes);
      TxFrame frame = write_frame(end, psn, path_mtu, payload);
      if (end.link->tx_burst({&frame, 1}) != 0) break;
      psn += frame.packet_count;
      ++outstanding;
    }
    const unsigned done = std::min(poll_acknowledges(end), outstanding);
    messages += done;
    outstanding -= done;
    if (done != 0) last_progress = now;
    if (now - last_progress > std::chrono::milliseconds(20)) {
      lost += outstanding;
      outstanding = 0;
      last_progress = now;
    }
  }
  const std::chrono::duration<double> spent = Clock::now() - start;
  const double bytes = static_cast<double>(messages) * kMessageBytes;
  std::printf("write 64 KiB, path MTU %4u: %6.2f GB/s, %5.2f million packets/s, %llu lost\n",
              path_mtu, bytes / spent.count() / 1e9, bytes / path_mtu / spent.count() / 1e6,
              static_cast<unsigned long long>(lost));
}

void measure_round_trip(End& end, double seconds) {
  const std::array<std::byte, 8> memory{};
  const ConstBytes payload = memory;
  const auto start = Clock::now();
  const auto stop = start + std::chrono::duration<double>(seconds);
  std::uint64_t round_trips = 0;
  auto now = start;
  for (; now < stop; now = Clock::now()) {
    TxFrame frame = write_frame(end, Psn(static_cast<std::uint32_t>(round_trips)), 1024, payload);
    end.link->tx_burst({&frame, 1});
    while (poll_acknowledges(end) == 0 && Clock::now() < stop) {
    }
    ++round_trips;
  }
  const std::chrono::duration<double, std::micro> spent = now - start;
  std::printf("write 8 B and its acknowledgement: %.2f us\n",
              spent.count() / static_cast<double>(round_trips));
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const bool is_ipv4 = argc <= 2 || std::atoi(argv[2]) == 4;
  std::string folder = std::filesystem::temp_directory_path() / "uroce-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) fail("no temporary folder");
  End end = open_end(folder, is_ipv4, false);
  const pid_t server = fork();
  if (server == 0) {
    end.link->abandon_in_child();
    end.directory->abandon_in_child();
    stay_on_processor(1);
    End other = open_end(folder, is_ipv4, true);
    serve(other);
  }
  stay_on_processor(0);
  while (end.directory->slots().size() < 2) usleep(1'000);
  usleep(50'000);
  end.link->on_turn({1});
  const int only = argc > 3 ? std::atoi(argv[3]) : 0;
  for (const std::uint16_t path_mtu : {std::uint16_t{4096}, std::uint16_t{1024}}) {
    if (only == 0 || only == path_mtu) measure_writes(end, path_mtu, seconds);
  }
  if (only == 0) measure_round_trip(end, seconds);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  std::filesystem::remove_all(folder);
}
