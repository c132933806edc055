// SPDX-License-Identifier: BSD-2-Clause
// The text behind --fault. What is wrong is said; what is right is inside its limits and comes back
// from its own shortest form unchanged.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/prng.h"
#include "datapath/tap/fault_spec.h"
#include "fuzz/check.h"

namespace uroce::fuzz {
namespace {

using namespace datapath::tap;

void check_limits(const FaultSpec& spec) {
  for (const std::uint32_t rate : {spec.loss, spec.duplicate, spec.reorder, spec.corrupt}) {
    check(rate <= Prng::kMillion, "a rate is at most all");
  }
  check(spec.burst >= 1 && spec.burst <= kFaultBurstMax, "a burst is inside of its limits");
  check(Duration{} <= spec.delay_min && spec.delay_min <= spec.delay_max &&
            spec.delay_max <= kFaultDelayMax,
        "a delay is a range inside of its limits");
}

}  // namespace
}  // namespace uroce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace uroce;
  using namespace uroce::datapath::tap;
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  const Result<FaultSpec> spec = parse_fault_spec(text);
  if (!spec) {
    fuzz::check(!spec.error().message.empty(), "an error says something");
    return 0;
  }
  fuzz::check_limits(*spec);
  const std::string shortest = format_fault_spec(*spec);
  if (shortest.empty()) {
    fuzz::check(*spec == FaultSpec{}, "only what changes nothing is not worth a word");
    return 0;
  }
  const Result<FaultSpec> again = parse_fault_spec(shortest);
  fuzz::check(again && *again == *spec, "the shortest form says the same");
  return 0;
}
