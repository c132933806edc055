// SPDX-License-Identifier: BSD-2-Clause
// An independent decoder reads what we build: tshark names every opcode as we mean it and finds
// nothing malformed. (Its heuristics take short payloads for upper protocols, and then call them
// malformed; payloads here are long and of one byte.)
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/pcap.h"
#include "unit/wire/packets.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::wire {
namespace {

constexpr std::size_t kPayloadBytes = 1000;

Path make_path(bool ipv4) {
  Path path = {.source = gid_of_ipv4(0x0a5b'0002), .destination = gid_of_ipv4(0x0a5b'0003)};
  if (!ipv4) path.source.bytes[0] = path.destination.bytes[0] = 0xfd;
  return path;
}

test::Frame frame_of(const OpcodeInfo& info, bool ipv4) {
  const ByteVector payload(info.payload ? kPayloadBytes : 0, std::byte{0xee});
  const ByteVector packet = packet_bytes(sample_view(info.opcode), payload);
  const std::size_t udp_payload_bytes = packet.size() + kIcrcBytes;
  const Path path = make_path(ipv4);
  std::array<std::byte, kMaxNetworkHeaderBytes> headers;
  const std::size_t header_bytes =
      build_network(path, {}, static_cast<std::uint16_t>(udp_payload_bytes), 0, headers);
  const IcrcFlow flow(path.source, path.destination, path.udp_source_port);
  std::array<std::byte, kMaxTrailerBytes> trailer;
  const std::uint32_t icrc = icrc_of(crc32, flow.start(udp_payload_bytes), packet);
  const std::size_t trailer_bytes = icrc_trailer(crc32, icrc, 0, trailer);

  test::Frame frame = to_vector(std::span(headers).first(header_bytes));
  append(frame, packet);
  append(frame, std::span(trailer).first(trailer_bytes));
  return frame;
}

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  for (std::size_t n; (n = fread(part, 1, sizeof part, pipe)) != 0;) output.append(part, n);
  pclose(pipe);
  return output;
}

class Tshark : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v tshark >/dev/null 2>&1") != 0) GTEST_SKIP() << "tshark is missing";
    std::string name = std::filesystem::temp_directory_path() / "uroce-tshark-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // One line a frame, of the fields asked for, separated by "|".
  std::string dissect(const std::vector<test::Frame>& frames, const std::string& fields) {
    const std::string capture = folder_ / "frames.pcap";
    test::write_pcap(capture, frames);
    return output_of("tshark -n -r " + capture + " -T fields -E separator='|' " + fields +
                     " 2>/dev/null");
  }

  std::filesystem::path folder_;
};

std::vector<test::Frame> one_of_each(bool ipv4) {
  std::vector<test::Frame> frames;
  for (const OpcodeInfo& info : kOpcodes) {
    if (info.is_valid()) frames.push_back(frame_of(info, ipv4));
  }
  return frames;
}

TEST_F(Tshark, FindsNothingMalformed) {
  for (const bool ipv4 : {true, false}) {
    const std::string protocols = dissect(one_of_each(ipv4), "-e frame.protocols -e _ws.malformed");
    EXPECT_EQ(std::count(protocols.begin(), protocols.end(), '\n'), 64);
    EXPECT_EQ(protocols.find("alformed"), std::string::npos) << protocols;
    std::size_t at = 0, infiniband = 0;
    while ((at = protocols.find("udp:infiniband", at)) != std::string::npos) ++at, ++infiniband;
    EXPECT_EQ(infiniband, 64u);
  }
}

TEST_F(Tshark, ReadsTheFieldsThatWeWrote) {
  // Wireshark looks no further than the BTH into operations of annex 19, nor into XRC's.
  const auto is_read = [](const OpcodeInfo& info) {
    return info.kind != Kind::kFlush && info.kind != Kind::kAtomicWrite &&
           info.service != Service::kXrc;
  };
  std::string expected;
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.is_valid()) continue;
    expected += std::to_string(static_cast<unsigned>(info.opcode)) + "|0xa1b2c3|16702650|";
    const bool has_reth = info.reth && is_read(info);
    if (has_reth) expected += "0x0102030405060708";
    if (info.atomic_eth && is_read(info)) expected += "0x1112131415161718";
    expected += has_reth ? "|77|" : "||";
    if (info.aeth && is_read(info)) expected += "98";
    expected += info.deth ? "|0x00334455\n" : "|\n";
  }
  EXPECT_EQ(dissect(one_of_each(true),
                    "-e infiniband.bth.opcode -e infiniband.bth.destqp -e infiniband.bth.psn "
                    "-e infiniband.reth.va -e infiniband.reth.dmalen -e infiniband.aeth.syndrome "
                    "-e infiniband.deth.srcqp"),
            expected);
}

}  // namespace
}  // namespace uroce::wire
