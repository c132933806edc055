// SPDX-License-Identifier: BSD-2-Clause
// What befalls each packet of one direction of a link, drawn from a FaultSpec. The same spec gives
// the same fates in the same order, on every machine; and each kind of fault draws from numbers of
// its own, so that more of one does not move the others.
//
//   FaultDice dice(spec);
//   const FaultFate fate = dice.next();          // of the next packet
//   if (fate.is_lost() || fate.is_corrupt) ...
//
// A fate says what happens, not how: delays are relative to the packet's arrival, and who carries
// them out sees to it that a delayed packet overtakes none but the held (`overtaken_by`).
#pragma once

#include <cstdint>

#include "base/prng.h"
#include "datapath/tap/fault_spec.h"
#include "uroce/time.h"

namespace uroce::datapath::tap {

struct FaultFate {
  std::uint8_t copies = 1;        // 0: lost; 2: duplicated
  bool is_corrupt = false;        // damaged so that its ICRC is wrong
  std::uint8_t overtaken_by = 0;  // held back until so many later packets have been delivered
  std::uint32_t damage = 0;       // of a corrupt one: any number, to choose the bit that flips
  Duration delay{};

  [[nodiscard]] constexpr bool is_lost() const { return copies == 0; }
  friend constexpr bool operator==(const FaultFate&, const FaultFate&) = default;
};

// So far a packet falls back at most.
inline constexpr std::uint8_t kOvertakenByMax = 4;

class FaultDice {
 public:
  explicit FaultDice(const FaultSpec& spec);

  [[nodiscard]] FaultFate next();

 private:
  [[nodiscard]] bool draw_loss();
  [[nodiscard]] Duration draw_delay();

  FaultSpec spec_;
  std::uint32_t loss_begins_;  // chance in a million that a packet outside a burst begins one
  std::uint32_t left_of_burst_ = 0;
  std::uint64_t packets_ = 0;
  Prng loss_, duplicate_, reorder_, corrupt_, delay_;
};

}  // namespace uroce::datapath::tap
