// SPDX-License-Identifier: BSD-2-Clause
// What leaves a port, seen by others: net_pcap writes it to a file, tshark dissects it, and a
// bit-by-bit CRC of our own checks each ICRC. And what such a file says arrives, as from a peer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "datapath/dpdk_loader.h"
#include "unit/datapath/dpdk/frames.h"

namespace uroce::datapath {
namespace {

constexpr std::size_t kFileHeaderBytes = 24;
constexpr std::size_t kRecordHeaderBytes = 16;
constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kUdpBytes = 8;

using Octets = std::vector<std::uint8_t>;

// IBTA A17.3.3 by the book, one bit at a time: what routers may change counts as ones.
std::uint32_t slow_icrc(const Octets& frame, bool ipv4) {
  const std::size_t ip_bytes = ipv4 ? 20 : 40;
  Octets covered(8 + frame.size() - kEthernetBytes - 4, 0xff);
  std::copy(frame.begin() + kEthernetBytes, frame.end() - 4, covered.begin() + 8);
  std::uint8_t* const ip = covered.data() + 8;
  if (ipv4) {
    ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
  } else {
    ip[0] |= 0x0f;
    ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
  }
  ip[ip_bytes + 6] = ip[ip_bytes + 7] = 0xff;  // UDP checksum
  ip[ip_bytes + kUdpBytes + 4] = 0xff;         // FECN, BECN and what lies beside them
  std::uint32_t crc = 0xffff'ffff;
  for (const std::uint8_t byte : covered) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb8'8320 : 0);
  }
  return ~crc;
}

std::vector<Octets> read_frames(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const Octets all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<Octets> frames;
  for (std::size_t at = kFileHeaderBytes; at + kRecordHeaderBytes <= all.size();) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, &all[at + 8], sizeof bytes);
    at += kRecordHeaderBytes;
    frames.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                        all.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    at += bytes;
  }
  return frames;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> piece;
  while (const std::size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), bytes);
  }
  pclose(pipe);
  return text;
}

class DpdkCapture : public testing::Test {
 protected:
  DpdkCapture() : file_("/tmp/uroce-dpdk-capture-" + std::to_string(getpid()) + ".pcap") {}
  ~DpdkCapture() override { std::filesystem::remove(file_); }

  std::string file_;
  Gid own_ = ipv4(10, 0, 0, 1);
  Gid own_v6_{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
};

// Multicast needs no neighbour, and a capture file has none.
TEST_F(DpdkCapture, WhatIsSentIsWellFormedAndItsIcrcRight) {
  {
    auto port =
        open_dpdk({.spec = "net_pcap,tx_pcap=" + file_, .addresses = {{own_, 24}, {own_v6_, 64}}});
    ASSERT_TRUE(port) << port.error().message;
    for (const Gid& group : {ipv4(224, 0, 0, 7), Gid{{0xff, 0x02, 0, 0, 0, 7}}}) {
      Path path{.source = group.is_ipv4() ? own_ : own_v6_,
                .destination = group,
                .flow_label = 0x12345,
                .traffic_class = 0xa8};
      ASSERT_EQ(port->datapath->open_path(path, Qpn{2}), 0);
      for (const std::size_t bytes : {0u, 1u, 4096u, 3u * 4096u + 2u}) {
        const auto payload = make_payload(bytes);
        WriteRun run(path, payload, 4096, 7);
        ASSERT_TRUE(send_all(*port->datapath, run.frame));
      }
    }
  }
  const auto frames = read_frames(file_);
  ASSERT_EQ(frames.size(), 2u * (1 + 1 + 1 + 4));
  for (const Octets& frame : frames) {
    std::uint32_t icrc = 0;
    std::memcpy(&icrc, &frame[frame.size() - 4], sizeof icrc);
    EXPECT_EQ(icrc, slow_icrc(frame, frame[12] == 0x08)) << frame.size();
  }
  if (std::system("tshark --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs tshark";
  const std::string text = output_of("tshark -V -r " + file_ + " 2> /dev/null");
  EXPECT_EQ(text.find("Malformed"), std::string::npos);
  EXPECT_NE(text.find("RDMA WRITE First"), std::string::npos) << text.substr(0, 2000);
  EXPECT_NE(text.find("RDMA WRITE Last"), std::string::npos);
}

TEST_F(DpdkCapture, WhatArrivesIsCheckedToTheLastBit) {
  {
    auto sender = open_dpdk({.spec = "net_pcap,tx_pcap=" + file_, .addresses = {{own_, 24}}});
    ASSERT_TRUE(sender) << sender.error().message;
    Path path{.source = own_, .destination = ipv4(224, 0, 0, 7)};
    ASSERT_EQ(sender->datapath->open_path(path, Qpn{2}), 0);
    const auto payload = make_payload(64);
    WriteRun run(path, payload, 1024, 7);
    for (int i = 0; i < 64 + 20; ++i) ASSERT_TRUE(send_all(*sender->datapath, run.frame));
  }
  // In the n-th packet byte 14 + n is damaged: the IP header's, UDP's, BTH's, payload's ...
  const std::size_t record_bytes = kRecordHeaderBytes + 14 + 20 + 8 + 12 + 16 + 64 + 4;
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t n = 0; n < 84; ++n) {
      const auto at = static_cast<std::streamoff>(kFileHeaderBytes + n * record_bytes +
                                                  kRecordHeaderBytes + 14 + n);
      file.seekg(at);
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(at);
      file.put(byte);
    }
  }
  auto receiver = open_dpdk({.spec = "net_pcap,rx_pcap=" + file_, .addresses = {{own_, 24}}});
  ASSERT_TRUE(receiver) << receiver.error().message;
  Datapath& link = *receiver->datapath;
  Collector collector(link);
  const auto seen = [&] {
    const DatapathCounters& counters = link.counters();
    return counters.rx_packets + counters.rx_bad_icrc + counters.rx_truncated +
           counters.rx_not_roce;
  };
  ASSERT_TRUE(turn_until([&](Instant now) { collector.turn(now); }, [&] { return seen() == 84; }))
      << seen();
  // Only what the ICRC does not cover gets through: the UDP checksum (which nobody looks at) and
  // the BTH byte with FECN and BECN. IPv4's own fields have a checksum of their own.
  EXPECT_EQ(link.counters().rx_packets, 3u);
  EXPECT_GE(link.counters().rx_bad_icrc, 50u);
}

}  // namespace
}  // namespace uroce::datapath
