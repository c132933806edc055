// SPDX-License-Identifier: BSD-2-Clause
// What the wire costs per packet: parse, build, expanding a run, and the ICRC, portable and
// ISA-L's.
#include <benchmark/benchmark.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/identification.h"
#include "wire/network.h"
#include "wire/parse.h"
#include "wire/run.h"

namespace {

using namespace uroce;
using namespace uroce::wire;

std::uint32_t isal_crc32(std::uint32_t seed, const std::byte* data, std::size_t bytes) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(data), bytes);
}

std::vector<std::byte> bytes_of(const TxFrame& frame) {
  std::vector<std::byte> bytes(frame.headers().size() + frame.payload_bytes);
  std::copy_n(frame.header.begin(), frame.header_bytes, bytes.begin());
  return bytes;
}

void parse_packet(benchmark::State& state, const TxFrame& frame) {
  const std::vector<std::byte> bytes = bytes_of(frame);
  RxPacket packet;
  packet.bytes = bytes;
  PacketView view;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse(packet, view));
    benchmark::ClobberMemory();
  }
}

void ParseWriteOnly(benchmark::State& state) {
  TxFrame frame;
  frame.payload_bytes = 1024;
  build(frame, Bth{.opcode = Opcode::kRcWriteOnly}, Reth{});
  parse_packet(state, frame);
}
BENCHMARK(ParseWriteOnly);

void ParseAcknowledge(benchmark::State& state) {
  TxFrame frame;
  build(frame, Bth{.opcode = Opcode::kRcAcknowledge}, Aeth{});
  parse_packet(state, frame);
}
BENCHMARK(ParseAcknowledge);

void BuildWriteOnly(benchmark::State& state) {
  TxFrame frame;
  frame.payload_bytes = 1024;
  std::uint32_t psn = 0;
  for (auto _ : state) {
    ++psn;
    build(frame,
          Bth{.opcode = pick_opcode(Service::kRc, Kind::kWrite, Place::kOnly),
              .destination = {17},
              .ack_request = true,
              .psn = Psn(psn)},
          Reth{.virtual_address = psn, .rkey = {psn}, .dma_bytes = 1024});
    benchmark::DoNotOptimize(frame);
  }
}
BENCHMARK(BuildWriteOnly);

void RunHeadersOfAMiddle(benchmark::State& state) {
  TxFrame frame;
  frame.packet_count = 16;
  frame.segment_bytes = 4096;
  frame.payload_bytes = 16 * 4096;
  build(frame, Bth{.opcode = Opcode::kRcWriteOnly}, Reth{});
  std::array<std::byte, kMaxHeaderBytes> out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(run_headers(frame, 7, out));
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(RunHeadersOfAMiddle);

IcrcFlow make_flow() { return {gid_of_ipv4(0x0a00'0001), gid_of_ipv4(0x0a00'0002), 0xc123}; }

void IcrcFlowStart(benchmark::State& state) {
  const IcrcFlow flow = make_flow();
  std::uint16_t identification = 0;
  for (auto _ : state) benchmark::DoNotOptimize(flow.start(1056, ++identification));
}
BENCHMARK(IcrcFlowStart);

void icrc_of_packet(benchmark::State& state, Crc32Function crc) {
  const IcrcFlow flow = make_flow();
  const std::vector<std::byte> packet(kBthBytes + static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(icrc_of(crc, flow.start(packet.size() + kIcrcBytes), packet));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void IcrcPortable(benchmark::State& state) { icrc_of_packet(state, crc32); }
BENCHMARK(IcrcPortable)->Arg(64)->Arg(1024)->Arg(4096);

void IcrcIsal(benchmark::State& state) { icrc_of_packet(state, isal_crc32); }
BENCHMARK(IcrcIsal)->Arg(64)->Arg(1024)->Arg(4096);

void FitIdentification(benchmark::State& state) {
  std::uint32_t received = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(icrc_fit_identification(++received, 0x1234'5678, 1036));
  }
}
BENCHMARK(FitIdentification);

void NetworkBuild(benchmark::State& state) {
  const Path path = {.source = gid_of_ipv4(0x0a00'0001), .destination = gid_of_ipv4(0x0a00'0002)};
  std::array<std::byte, kMaxNetworkHeaderBytes> out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(build_network(path, {}, 1056, 0, out));
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(NetworkBuild);

void NetworkParse(benchmark::State& state) {
  const Path path = {.source = gid_of_ipv4(0x0a00'0001), .destination = gid_of_ipv4(0x0a00'0002)};
  std::array<std::byte, kMaxNetworkHeaderBytes + 1056> frame{};
  build_network(path, {}, 1056, 0, std::span(frame).first<kMaxNetworkHeaderBytes>());
  NetworkView view;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse_network(frame, view));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(NetworkParse);

}  // namespace

BENCHMARK_MAIN();
