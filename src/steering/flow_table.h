// SPDX-License-Identifier: BSD-2-Clause
// Which queue pairs a frame is for (man ibv_create_flow). Memory of the flows is the caller's, in
// the table from insert() to erase().
//
//   - A sniffer sees every frame, and takes it from nobody.
//   - What RoCE owns is for RoCE and sniffers alone.
//   - Of the rules that match, those of the best priority (the lowest number) take the frame, each
//   a
//     copy. A rule that does not trap takes its copy and lets the frame pass to the next priority.
//   - What no rule has taken is for the defaults: all of it, or what goes to groups.
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "steering/frame_key.h"

namespace uroce::steering {

enum class FlowKind : std::uint8_t { kRule, kAllDefault, kMulticastDefault, kSniffer };

struct Flow {
  FlowKind kind = FlowKind::kRule;
  bool traps = true;
  std::uint16_t priority = 0;
  Pattern pattern;         // of a rule
  void* target = nullptr;  // whose frames they are, to whom it concerns
  ListHook hook;           // in FlowTable
};

class FlowTable {
 public:
  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  [[nodiscard]] bool has_sniffers() const { return !of(FlowKind::kSniffer).empty(); }

  void insert(Flow& flow);
  void erase(Flow& flow);

  // `give(flow)` for each flow that takes a copy of the frame. False: none does.
  template <typename Give>
  bool dispatch(const FrameKey& key, bool is_roce, const Give& give) {
    const bool is_sniffed = give_all(FlowKind::kSniffer, give);
    if (is_roce) return is_sniffed;
    bool is_given = false;
    if (!apply_rules(key, give, is_given)) {
      is_given |= give_all(FlowKind::kAllDefault, give);
      if (key.is_multicast()) is_given |= give_all(FlowKind::kMulticastDefault, give);
    }
    return is_given || is_sniffed;
  }

 private:
  using Flows = List<Flow, &Flow::hook>;

  [[nodiscard]] Flows& of(FlowKind kind) { return flows_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Flows& of(FlowKind kind) const {
    return flows_[static_cast<std::size_t>(kind)];
  }

  template <typename Give>
  bool give_all(FlowKind kind, const Give& give) {
    Flows& flows = of(kind);
    for (Flow* f = flows.front(); f != nullptr; f = flows.next(*f)) give(*f);
    return !flows.empty();
  }

  // True: one of them has taken the frame, and it goes no further.
  template <typename Give>
  bool apply_rules(const FrameKey& key, const Give& give, bool& is_given) {
    Flows& rules = of(FlowKind::kRule);
    bool is_trapped = false;
    std::uint16_t priority = 0;
    for (Flow* f = rules.front(); f != nullptr; f = rules.next(*f)) {
      if (is_trapped && f->priority != priority) break;
      if (!f->pattern.matches(key)) continue;
      priority = f->priority;
      is_trapped |= f->traps;
      is_given = true;
      give(*f);
    }
    return is_trapped;
  }

  std::array<Flows, 4> flows_;  // by kind; rules by priority, and then as they came
  std::uint32_t count_ = 0;
};

}  // namespace uroce::steering
