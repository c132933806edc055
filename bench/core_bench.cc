// SPDX-License-Identifier: BSD-2-Clause
// What the transport core costs: a reliable connection between two cores on one thread, requester
// and responder together, from the post to the polled completion. There is no datapath and no ICRC;
// the responder's copy is in, and `copy_alone` is there to be subtracted.
//
// One item is one data packet; what its share of the acknowledgements costs is in.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/direct_pair.h"

namespace {

using namespace uroce;
using namespace uroce::test;
using transport::SendOperation;

constexpr std::uint16_t kPathMtu = 4096;
constexpr std::uint32_t kMessagesPerTurn = 16;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// As a datapath on a wire has it, where a frame is a packet or a run of them.
transport::LinkFacts link_with_runs_of(std::uint16_t packets) {
  return {.max_run_packets = packets, .max_run_bytes = std::uint32_t{kPathMtu} * packets};
}

void set_packets(benchmark::State& state, std::int64_t packets) {
  state.SetItemsProcessed(packets);
  state.counters["per_packet"] = benchmark::Counter(
      static_cast<double>(packets), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// `messages` posted at a time, then everything brought to its end.
void exchange(benchmark::State& state, SendOperation operation, std::uint32_t bytes,
              std::uint32_t messages, std::uint16_t run_packets) {
  DirectPair pair(link_with_runs_of(run_packets), {.path_mtu = kPathMtu}, kBufferBytes);
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < messages; ++i) {
      const std::size_t offset = std::size_t{i} * bytes;
      if (operation == SendOperation::kSend) pair.post_receive(offset, bytes);
      pair.post(operation, offset, bytes);
    }
    pair.finish();
  }
  const std::int64_t packets_each = (bytes + kPathMtu - 1) / kPathMtu;
  set_packets(state, state.iterations() * messages * packets_each);
}

// For counting instructions: a run that does not depend on the time it takes.
void fixed_iterations(benchmark::internal::Benchmark* benchmark) {
  if (const char* count = std::getenv("UROCE_BENCH_ITERATIONS")) {
    benchmark->Iterations(std::atoll(count));
  }
}

void write_4096(benchmark::State& state) {
  exchange(state, SendOperation::kWrite, kPathMtu, kMessagesPerTurn, 1);
}
BENCHMARK(write_4096)->Apply(fixed_iterations);

void write_8(benchmark::State& state) {
  exchange(state, SendOperation::kWrite, 8, kMessagesPerTurn, 1);
}
BENCHMARK(write_8)->Apply(fixed_iterations);

void send_4096(benchmark::State& state) {
  exchange(state, SendOperation::kSend, kPathMtu, kMessagesPerTurn, 1);
}
BENCHMARK(send_4096)->Apply(fixed_iterations);

// One at a time: no share in anybody's acknowledgement, burst or cache line.
void write_8_alone(benchmark::State& state) { exchange(state, SendOperation::kWrite, 8, 1, 1); }
BENCHMARK(write_8_alone)->Apply(fixed_iterations);

void write_65536(benchmark::State& state) {
  exchange(state, SendOperation::kWrite, 65536, 4, static_cast<std::uint16_t>(state.range(0)));
}
BENCHMARK(write_65536)->ArgName("run")->Arg(1)->Arg(16)->Apply(fixed_iterations);

// The copies of write_4096 (64 KiB in all) and of write_65536 (256 KiB), packet by packet, by the
// library's memcpy as in the core: of a length known here the compiler would make its own loop.
void copy_alone(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> from(kBufferBytes, std::byte{1});
  std::vector<std::byte> to(kBufferBytes);
  std::size_t packet_bytes = kPathMtu;
  benchmark::DoNotOptimize(packet_bytes);
  for (auto _ : state) {
    for (std::size_t offset = 0; offset < bytes; offset += packet_bytes) {
      std::memcpy(to.data() + offset, from.data() + offset, packet_bytes);
      benchmark::ClobberMemory();
    }
  }
  set_packets(state, state.iterations() * state.range(0) / kPathMtu);
}
BENCHMARK(copy_alone)->ArgName("bytes")->Arg(64 << 10)->Arg(256 << 10)->Apply(fixed_iterations);

}  // namespace

BENCHMARK_MAIN();
