// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/fault_dice.h"

namespace uroce::datapath::tap {
namespace {

// With a burst beginning at a chance p behind each packet that is not in one, the share of packets
// lost is burst * p / (burst * p + 1 - p); this is that equation the other way round.
std::uint32_t chance_of_burst(const FaultSpec& spec) {
  const std::uint64_t kept = Prng::kMillion - spec.loss;
  const std::uint64_t parts = spec.burst * kept + spec.loss;
  return static_cast<std::uint32_t>((spec.loss * std::uint64_t{Prng::kMillion} + parts / 2) /
                                    parts);
}

}  // namespace

FaultDice::FaultDice(const FaultSpec& spec)
    : spec_(spec),
      loss_begins_(chance_of_burst(spec)),
      loss_(Prng(spec.seed).split(1)),
      duplicate_(Prng(spec.seed).split(2)),
      reorder_(Prng(spec.seed).split(3)),
      corrupt_(Prng(spec.seed).split(4)),
      delay_(Prng(spec.seed).split(5)) {}

FaultFate FaultDice::next() {
  FaultFate fate;
  if (spec_.packets != 0 && packets_ == spec_.packets) return fate;
  ++packets_;
  // All is drawn in any case, so that a packet's place alone decides what it meets with.
  const bool is_lost = draw_loss();
  const bool is_duplicate = duplicate_.chance(spec_.duplicate);
  if (is_lost) {
    fate.copies = 0;
  } else if (is_duplicate) {
    fate.copies = 2;
  }
  const bool is_late = reorder_.chance(spec_.reorder);
  const auto places = static_cast<std::uint8_t>(reorder_.between(1, kOvertakenByMax));
  if (is_late) fate.overtaken_by = places;
  fate.is_corrupt = corrupt_.chance(spec_.corrupt);
  const auto damage = static_cast<std::uint32_t>(corrupt_.next() >> 32);
  if (fate.is_corrupt) fate.damage = damage;
  fate.delay = draw_delay();
  return fate;
}

bool FaultDice::draw_loss() {
  const bool begins = loss_.chance(loss_begins_);
  if (left_of_burst_ != 0) {
    --left_of_burst_;
    return true;
  }
  if (begins) left_of_burst_ = spec_.burst - 1;
  return begins;
}

// Ranges are below 2^34 ns; drawn in steps of 16 ns they fit the generator's 32 bits.
Duration FaultDice::draw_delay() {
  constexpr std::int64_t kStep = 16;
  const std::int64_t steps = (spec_.delay_max.ns - spec_.delay_min.ns) / kStep;
  const std::uint32_t drawn = delay_.below(static_cast<std::uint32_t>(steps) + 1);
  return spec_.delay_min + nanoseconds(drawn * kStep);
}

}  // namespace uroce::datapath::tap
