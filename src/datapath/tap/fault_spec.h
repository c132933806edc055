// SPDX-License-Identifier: BSD-2-Clause
// What a bad network does to packets, as a user writes it: one line of text for `uroce run --fault`
// and for the simulator. What befalls a certain packet is drawn from it by fault_dice.h.
//
//   loss=1%,dup=0.1%,reorder=2%,delay=50us..2ms,corrupt=0.01%,seed=7
//
// Rates are a percentage or a fraction of 1, as fine as one in a million. `delay` is one time or a
// range, in ns, us, ms or s; delayed packets keep their order, because only `reorder` changes it.
// `burst` packets are lost at a time, with `loss` still the share of all. After `packets` packets
// the network is good.
//
//   Result<FaultSpec> spec = parse_fault_spec(text);
//   if (!spec) complain(spec.error().message);  // one line, without the text as a whole
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "uroce/time.h"

namespace uroce::datapath::tap {

struct FaultSpec {
  // Out of a million packets.
  std::uint32_t loss = 0;
  std::uint32_t duplicate = 0;
  std::uint32_t reorder = 0;
  std::uint32_t corrupt = 0;
  std::uint32_t burst = 1;
  Duration delay_min{};
  Duration delay_max{};
  std::uint64_t packets = 0;  // 0: for ever
  std::uint64_t seed = 1;

  [[nodiscard]] constexpr bool delays() const { return delay_max.ns != 0; }
  // Anything can happen at all.
  [[nodiscard]] constexpr bool is_active() const {
    return (loss | duplicate | reorder | corrupt) != 0 || delays();
  }
  friend constexpr bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

inline constexpr std::uint32_t kFaultBurstMax = 1'000;
inline constexpr Duration kFaultDelayMax = milliseconds(10'000);

// "off" is a network without faults.
[[nodiscard]] Result<FaultSpec> parse_fault_spec(std::string_view text);

// The shortest text that is parsed to the same; empty where there are no faults.
[[nodiscard]] std::string format_fault_spec(const FaultSpec& spec);

}  // namespace uroce::datapath::tap
