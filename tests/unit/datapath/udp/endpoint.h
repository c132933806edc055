// SPDX-License-Identifier: BSD-2-Clause
// UDP datapaths on loopback, each an engine of its own in a directory of its own, and the frames
// they send each other.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datapath/directory/directory.h"
#include "datapath/udp/udp_datapath.h"
#include "support/temporary_folder.h"
#include "wire/build.h"
#include "wire/network.h"
#include "wire/parse.h"

namespace uroce::datapath::test {

using uroce::test::TemporaryFolder;

// Is bound by nobody, whatever the family and whether it is shared or not.
inline bool is_free(std::uint16_t port) {
  const int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const int also_ipv4 = 0;
  setsockopt(probe, IPPROTO_IPV6, IPV6_V6ONLY, &also_ipv4, sizeof(also_ipv4));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(port);
  const bool is_bound = bind(probe, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0;
  close(probe);
  return is_bound;
}

inline std::uint16_t first_free_port(unsigned from) {
  for (unsigned port = from; port < from + 1'000; ++port) {
    if (is_free(static_cast<std::uint16_t>(port))) return static_cast<std::uint16_t>(port);
  }
  return static_cast<std::uint16_t>(from);  // the tests will say why it cannot be
}

// A port of this test program's own, also for its children, so that tests may run beside each other
// and beside real users.
inline const std::uint16_t kTestPort =
    first_free_port(10'000 + static_cast<unsigned>(getpid()) % 20'000);
inline std::uint16_t test_port() { return kTestPort; }

inline Gid ipv4_loopback() { return wire::gid_of_ipv4(0x7f00'0001); }
inline Gid ipv6_loopback() {
  Gid gid;
  gid.bytes[15] = 1;
  return gid;
}

// An engine with one block of QPNs and a UDP datapath.
struct Endpoint {
  std::unique_ptr<Directory> directory;
  std::uint32_t block = 0;
  std::unique_ptr<UdpDatapath> link;

  Endpoint() = default;
  Endpoint(Endpoint&&) = default;
  // The link goes before the directory that it uses.
  Endpoint& operator=(Endpoint&& other) noexcept {
    link = std::move(other.link);
    directory = std::move(other.directory);
    block = other.block;
    return *this;
  }
  explicit Endpoint(const std::string& folder, UdpOptions options = {.port = test_port()}) {
    auto joined = Directory::join({.folder = folder, .device = "uroce0"});
    if (!joined) throw std::runtime_error(joined.error().message);
    directory = std::move(*joined);
    block = directory->claim_block().value();
    auto created = UdpDatapath::create(*directory, options);
    if (!created) throw std::runtime_error(created.error().message);
    link = std::move(*created);
  }

  [[nodiscard]] Qpn qpn(std::uint32_t i = 1) const { return {block * kQpnsPerBlock + i}; }

  Path path_to(Gid destination, Gid source) const {
    Path path;
    path.source = source;
    path.destination = destination;
    EXPECT_EQ(link->open_path(path, {}), 0);
    return path;
  }
};

inline std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  std::uint32_t state = 1;
  for (std::byte& byte : data) byte = static_cast<std::byte>((state = state * 69'069 + 1) >> 24);
  return data;
}

// A run of WRITE packets; `gather` must outlive the frame.
struct WriteRun {
  wire::Opcode opcode = wire::Opcode::kRcWriteOnly;
  std::uint32_t payload_bytes = 0;
  std::uint16_t path_mtu = 1024;
  Psn psn{100};
};

inline TxFrame make_frame(const Path& path, Qpn destination, const WriteRun& run,
                          const ConstBytes& gather) {
  TxFrame frame;
  frame.path = &path;
  frame.segment_bytes = run.path_mtu;
  frame.payload_bytes = run.payload_bytes;
  frame.packet_count = static_cast<std::uint16_t>(
      std::max<std::uint32_t>((run.payload_bytes + run.path_mtu - 1) / run.path_mtu, 1));
  frame.gather = &gather;
  frame.gather_count = 1;
  const wire::Bth bth = {.opcode = run.opcode, .destination = destination, .psn = run.psn};
  const wire::Reth reth = {.virtual_address = 0x1000, .rkey = {7}, .dma_bytes = run.payload_bytes};
  const wire::OpcodeInfo& info = wire::opcode_info(run.opcode);
  if (info.reth && info.immediate) {
    wire::build(frame, bth, reth, wire::Immediate{0xabcd});
  } else if (info.reth) {
    wire::build(frame, bth, reth);
  } else if (info.immediate) {
    wire::build(frame, bth, wire::Immediate{0xabcd});
  } else if (info.aeth) {
    wire::build(frame, bth, wire::Aeth{});
  } else {
    wire::build(frame, bth);
  }
  return frame;
}

// A received packet, copied.
struct Arrival {
  std::vector<std::byte> bytes;
  Gid source;
  Gid destination;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;

  [[nodiscard]] wire::PacketView parsed() const {
    RxPacket packet;
    packet.bytes = bytes;
    wire::PacketView view;
    EXPECT_EQ(wire::parse(packet, view), wire::DropReason::kNone);
    return view;
  }
};

// Receives until there are `count`, or nothing came for a second.
inline std::vector<Arrival> receive(Datapath& link, std::size_t count) {
  std::vector<Arrival> arrivals;
  std::array<RxPacket, 32> packets;
  while (arrivals.size() < count) {
    const std::size_t n = link.rx_burst(packets);
    for (std::size_t i = 0; i < n; ++i) {
      const RxPacket& packet = packets[i];
      arrivals.push_back({{packet.bytes.begin(), packet.bytes.end()},
                          *packet.source,
                          *packet.destination,
                          packet.hop_limit,
                          packet.traffic_class});
    }
    pollfd ready = {link.wakeup_descriptor(), POLLIN, 0};
    if (n == 0 && poll(&ready, 1, 1'000) == 0) break;
  }
  return arrivals;
}

inline std::vector<std::byte> payload_of(const std::vector<Arrival>& arrivals) {
  std::vector<std::byte> all;
  for (const Arrival& arrival : arrivals) {
    const auto payload = arrival.parsed().payload;
    all.insert(all.end(), payload.begin(), payload.end());
  }
  return all;
}

}  // namespace uroce::datapath::test
