// SPDX-License-Identifier: BSD-2-Clause
// How much data gets through a link that loses packets: one connection that keeps a number of
// requests of 1 MiB outstanding for a while of virtual time. The table of it is kept in
// tests/sim/goodput.md, so that what a change of the transport costs or brings is seen.
#pragma once

#include <cstdint>
#include <string>

#include "transport/work_request.h"
#include "uroce/time.h"

namespace uroce::sim {

struct GoodputCase {
  transport::SendOperation operation = transport::SendOperation::kWrite;
  std::uint16_t path_mtu = 1024;
  Duration round_trip = microseconds(100);
  std::uint32_t outstanding = 8;
  std::uint32_t loss = 0;  // per million
};

inline constexpr std::uint64_t kGoodputBitsPerSecond = 10'000'000'000;
inline constexpr std::uint32_t kGoodputMessageBytes = 1 << 20;

struct Goodput {
  std::uint64_t bytes = 0;
  Duration elapsed{};
  std::uint64_t packets_sent = 0;  // both ways
  bool is_broken = false;          // the connection failed
  [[nodiscard]] double bits_per_second() const {
    return elapsed.ns == 0 ? 0 : static_cast<double>(bytes) * 8e9 / static_cast<double>(elapsed.ns);
  }
};

[[nodiscard]] Goodput measure_goodput(const GoodputCase& the_case);
// What a transport would reach that sends each lost packet once more and never waits for more than
// the round trip that a request takes.
[[nodiscard]] double ideal_bits_per_second(const GoodputCase& the_case);

// The whole table, as markdown.
[[nodiscard]] std::string goodput_table();

}  // namespace uroce::sim
