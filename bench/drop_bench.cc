// SPDX-License-Identifier: BSD-2-Clause
// What a flood costs: packets that nobody asked for, through one transport core on one thread, 32
// in a turn, with whatever answer each turn owes. There is no datapath and no ICRC; items per
// second are packets dropped per second and core. A kind that ends its connection is measured on
// the connection that it has ended.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "support/unwanted.h"

namespace {

using namespace uroce;
using namespace uroce::test;

constexpr Qpn kOurs{0x101};
constexpr Psn kFirst(100);
constexpr std::size_t kPacketsPerTurn = 32;

struct Victim {
  Victim() : endpoint(1 << 16), qp((endpoint.set_link(wire_link()), endpoint.add_qp(kOurs))) {
    endpoint.to_init(qp);
    endpoint.to_rtr(qp, {0x201}, kFirst);
    endpoint.to_rts(qp, kFirst);
  }
  // Without copying what is sent, as Endpoint::transmit does.
  void turn(const std::vector<RxPacket>& burst) {
    endpoint.hca.on_packets(endpoint.now, transport::kLocalLink, burst);
    for (frames.clear(); endpoint.hca.poll_transmit(endpoint.now, transport::kLocalLink, frames);) {
      frames.clear();
    }
    endpoint.hca.publish_completions(endpoint.now);
  }

  Endpoint endpoint;
  TestQp& qp;
  transport::TxBurst frames;
};

void drop(benchmark::State& state, std::size_t kind) {
  Victim victim;
  const Unwanted unwanted = unwanted_packets(victim.endpoint, kOurs, kFirst)[kind];
  const std::vector<RxPacket> burst(kPacketsPerTurn,
                                    received_from(unwanted, victim.qp.qp.attributes.path));
  for (auto _ : state) victim.turn(burst);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPacketsPerTurn));
}

}  // namespace

int main(int count, char** arguments) {
  for (std::size_t kind = 0; kind < kUnwantedNames.size(); ++kind) {
    benchmark::RegisterBenchmark(std::string(kUnwantedNames[kind]).c_str(),
                                 [kind](benchmark::State& state) { drop(state, kind); });
  }
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
