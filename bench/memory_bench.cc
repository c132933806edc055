// SPDX-License-Identifier: BSD-2-Clause
// What an access to registered memory costs: the look-up alone, and a packet's worth of an SGE
// list.
#include <benchmark/benchmark.h>

#include <array>
#include <random>
#include <vector>

#include "memory/dma.h"
#include "memory/mr_table.h"
#include "memory/sge_cursor.h"

namespace uroce::memory {
namespace {

constexpr PdId kPd{1};

struct Regions {
  explicit Regions(std::size_t count) : slots(count * 2), table(slots) {
    std::mt19937 random(1);
    while (keys.size() < count) {
      const auto key = static_cast<std::uint32_t>(random());
      const MemoryRegion region{.iova = 0,
                                .length = memory.size(),
                                .base = memory.data(),
                                .pd = kPd,
                                .access = Access::kRemoteWrite,
                                .key = key};
      if (table.insert(region) == InsertOutcome::kInserted) keys.push_back(key);
    }
  }

  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  std::vector<MemoryRegion> slots;
  MrTable table;
  std::vector<std::uint32_t> keys;
};

void resolve(benchmark::State& state) {
  const Regions regions(static_cast<std::size_t>(state.range(0)));
  std::size_t i = 0;
  for (auto _ : state) {
    const RKey key{regions.keys[i++ & (regions.keys.size() - 1)]};
    benchmark::DoNotOptimize(
        regions.table.resolve(key, 64, 4096, Access::kRemoteWrite, {kPd, Qpn{0x11}}));
  }
}
BENCHMARK(resolve)->Arg(1)->Arg(64)->Arg(4096)->Arg(1 << 20);

// A message of 64 KiB in so many elements, taken by packets of 4 KiB.
void take_message(benchmark::State& state) {
  const Regions regions(64);
  const auto elements = static_cast<std::uint32_t>(state.range(0));
  std::vector<Sge> list(elements, Sge{0, 65536 / elements, LKey{regions.keys[0]}});
  std::array<ConstBytes, 16> pieces;
  for (auto _ : state) {
    SgeCursor cursor(list);
    while (
        cursor.take(4096, regions.table, kPd, Access::kNone, std::span<ConstBytes>(pieces)).bytes)
      benchmark::DoNotOptimize(pieces);
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(take_message)->Arg(1)->Arg(16)->Arg(64);

void rehash(benchmark::State& state) {
  Regions regions(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<MemoryRegion> larger(regions.slots.size());
    state.ResumeTiming();
    benchmark::DoNotOptimize(regions.table.rehash_into(larger));
    state.PauseTiming();
    regions.slots.swap(larger);
    state.ResumeTiming();
  }
}
BENCHMARK(rehash)->Arg(4096)->Arg(1 << 20)->Unit(benchmark::kMicrosecond);

void fetch_and_add_local(benchmark::State& state) {
  alignas(8) std::array<std::byte, 8> word{};
  for (auto _ : state) benchmark::DoNotOptimize(fetch_and_add(word.data(), 1));
}
BENCHMARK(fetch_and_add_local);

}  // namespace
}  // namespace uroce::memory

BENCHMARK_MAIN();
