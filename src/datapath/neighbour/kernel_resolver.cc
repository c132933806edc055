// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/kernel_resolver.h"

namespace uroce::datapath {
namespace {

// A question costs a few microseconds in the kernel and nothing on the wire: the kernel paces that.
// An answer is expected for a second: the kernel asks for three, but whoever waits holds up what
// the same queue pair has for others.
constexpr NeighbourTable::Timing kTiming{.reachable_for = milliseconds(1'000),
                                         .first_pause = milliseconds(1),
                                         .last_pause = milliseconds(250),
                                         .expected_for = milliseconds(1'000)};

// So that a thousand peers do not hold up a turn.
constexpr unsigned kQuestionsPerTurn = 16;

}  // namespace

KernelResolver::KernelResolver(unsigned interface_index, bool is_loopback)
    : Resolver(kTiming), tables_(interface_index), is_loopback_(is_loopback) {}

std::size_t KernelResolver::poll_frame(Instant now, Bytes) {
  now_ = now;
  for (unsigned i = 0; i < kQuestionsPerTurn; ++i) {
    const auto question = table_.poll_question(now);
    if (!question) break;
    look_up(now, question->address);
  }
  return 0;
}

int KernelResolver::find_next_hop(const Path& path, Gid& next_hop) {
  next_hop = path.destination;
  return is_loopback_ ? 0 : tables_.find_next_hop(path.destination, next_hop);
}

void KernelResolver::on_open(std::uint32_t) {
  while (const auto question = table_.poll_question(now_)) look_up(now_, question->address);
}

void KernelResolver::look_up(Instant now, const Gid& next_hop) {
  if (is_loopback_) {
    table_.on_answer(now, next_hop, MacAddress{});
  } else if (const auto mac = tables_.find_neighbour(next_hop)) {
    table_.on_answer(now, next_hop, *mac);
  } else {
    tables_.make_kernel_ask(next_hop);
  }
}

}  // namespace uroce::datapath
