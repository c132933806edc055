// SPDX-License-Identifier: BSD-2-Clause
// Capture files in and out: classic pcap, Ethernet link type, this machine's byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace uroce::test {

using Frame = std::vector<std::byte>;

struct PcapFileHeader {
  std::uint32_t magic = 0xa1b2'c3d4;
  std::uint16_t version_major = 2, version_minor = 4;
  std::uint32_t zone = 0, accuracy = 0, snap_bytes = 65'535, link_type = 1;
};
static_assert(sizeof(PcapFileHeader) == 24);

struct PcapRecordHeader {
  std::uint32_t seconds = 0, fraction = 0, captured_bytes = 0, wire_bytes = 0;
};
static_assert(sizeof(PcapRecordHeader) == 16);

inline constexpr std::uint32_t kPcapMagicNanoseconds = 0xa1b2'3c4d;

// All frames of a file; throws where it is not there or is broken.
inline std::vector<Frame> read_pcap(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PcapFileHeader head;
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head) ||
      (head.magic != PcapFileHeader{}.magic && head.magic != kPcapMagicNanoseconds)) {
    throw std::runtime_error("not a readable pcap file: " + path);
  }
  std::vector<Frame> frames;
  for (PcapRecordHeader record; file.read(reinterpret_cast<char*>(&record), sizeof record);) {
    Frame frame(record.captured_bytes);
    if (!file.read(reinterpret_cast<char*>(frame.data()),
                   static_cast<std::streamsize>(frame.size()))) {
      throw std::runtime_error("pcap file ends inside a frame: " + path);
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

inline void write_pcap(const std::string& path, std::span<const Frame> frames) {
  std::ofstream file(path, std::ios::binary);
  const PcapFileHeader head;
  file.write(reinterpret_cast<const char*>(&head), sizeof head);
  for (const Frame& frame : frames) {
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    const PcapRecordHeader record = {.captured_bytes = bytes, .wire_bytes = bytes};
    file.write(reinterpret_cast<const char*>(&record), sizeof record);
    file.write(reinterpret_cast<const char*>(frame.data()),
               static_cast<std::streamsize>(frame.size()));
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace uroce::test
