// SPDX-License-Identifier: BSD-2-Clause
// uroce-sim: runs seeds, one or for hours, and says which of them found something.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "sim/capture.h"
#include "sim/command_line.h"
#include "sim/goodput.h"
#include "sim/simulation.h"

namespace {

using namespace uroce::sim;
using Clock = std::chrono::steady_clock;

struct Sum {
  unsigned long long seeds = 0, violated = 0, packets = 0, lost = 0, requests = 0;
};

void run_seed(std::uint64_t seed, const Spectators& spectators, Sum& sum) {
  const Outcome outcome = simulate(draw_scenario(seed), spectators);
  ++sum.seeds;
  sum.packets += outcome.packets;
  sum.lost += outcome.lost;
  sum.requests += outcome.requests;
  if (spectators.trace != nullptr) {
    std::printf("hash %016llx\n", static_cast<unsigned long long>(outcome.hash));
  }
  if (outcome.violation.empty()) return;
  ++sum.violated;
  std::printf("seed %llu: %s\n  replay: %s\n", static_cast<unsigned long long>(seed),
              outcome.violation.c_str(), replay_command(seed).c_str());
  std::fflush(stdout);
}

Sum run(const CommandLine& line, const Spectators& spectators) {
  Sum sum;
  const Clock::time_point start = Clock::now();
  const auto is_over = [&] {
    if (line.hours == 0) return sum.seeds == line.count;
    return Clock::now() - start >= std::chrono::hours(line.hours);
  };
  while (!is_over()) run_seed(line.seed + sum.seeds, spectators, sum);
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  std::printf(
      "%llu seeds from %llu, %llu with something wrong; %llu requests, %llu packets (%llu lost), "
      "%.0f packets a second\n",
      sum.seeds, static_cast<unsigned long long>(line.seed), sum.violated, sum.requests,
      sum.packets, sum.lost, static_cast<double>(sum.packets) / elapsed.count());
  return sum;
}

// The exit status.
int run_seen(const CommandLine& line) {
  Spectators spectators{.trace = line.has_trace ? stdout : nullptr};
  if (line.pcap == nullptr) return run(line, spectators).violated == 0 ? 0 : 1;
  const auto is_broken = [&line] {
    std::fprintf(stderr, "uroce-sim: %s: %s\n", line.pcap, std::strerror(errno));
    return 2;
  };
  std::FILE* const file = std::fopen(line.pcap, "wb");
  if (file == nullptr) return is_broken();
  Capture capture(file);
  spectators.capture = &capture;
  const Sum sum = run(line, spectators);
  const bool is_whole = capture.finish();
  if (std::fclose(file) != 0 || !is_whole) return is_broken();
  return sum.violated == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const CommandLine line = parse_command_line({argv + 1, static_cast<std::size_t>(argc - 1)});
  if (line.wrong != nullptr) {
    std::fprintf(stderr, "uroce-sim: %s: not understood; try --help\n", line.wrong);
    return 2;
  }
  if (line.has_goodput) {
    std::fputs(goodput_table().c_str(), stdout);
  } else if (line.has_help || !line.has_seed) {
    std::fputs(kHelp, line.has_help ? stdout : stderr);
    return line.has_help ? 0 : 2;
  } else {
    return run_seen(line);
  }
  return 0;
}
