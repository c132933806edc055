// SPDX-License-Identifier: BSD-2-Clause
#include "steering/flow_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "support/ethernet.h"

namespace uroce::steering {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct NamedFlow : Flow {
  std::string name;
};

class FlowTableTest : public testing::Test {
 protected:
  NamedFlow& add(const std::string& name, FlowKind kind, std::uint16_t priority = 0) {
    NamedFlow& flow = flows_.emplace_back();
    flow.kind = kind;
    flow.priority = priority;
    flow.name = name;
    table_.insert(flow);
    return flow;
  }
  // Matches by the EtherType alone.
  NamedFlow& add_rule(const std::string& name, std::uint16_t type, std::uint16_t priority = 0) {
    NamedFlow& flow = add(name, FlowKind::kRule, priority);
    flow.pattern.value.ether_type.set(type);
    flow.pattern.mask.ether_type.set(0xffff);
    return flow;
  }
  std::vector<std::string> takers(std::uint16_t type, bool is_roce = false,
                                  const test::Mac& to = test::kMacB) {
    std::vector<std::string> names;
    const FrameKey key = classify(test::FrameBuilder(to, test::kMacA).type(type).bytes());
    const bool is_given = table_.dispatch(key, is_roce, [&](const Flow& flow) {
      names.push_back(static_cast<const NamedFlow&>(flow).name);
    });
    EXPECT_EQ(is_given, !names.empty());
    return names;
  }

  std::deque<NamedFlow> flows_;
  FlowTable table_;
};

TEST_F(FlowTableTest, WithoutAFlowThereIsNobody) {
  EXPECT_TRUE(table_.is_empty());
  EXPECT_THAT(takers(1), IsEmpty());
}

TEST_F(FlowTableTest, ARuleTakesWhatMatchesAndNothingElse) {
  add_rule("one", 1);
  EXPECT_THAT(takers(1), ElementsAre("one"));
  EXPECT_THAT(takers(2), IsEmpty());
  EXPECT_FALSE(table_.is_empty());
}

TEST_F(FlowTableTest, TheLowestNumberWinsHoweverTheyCame) {
  for (const std::uint16_t priority : std::initializer_list<std::uint16_t>{5, 1, 9, 0, 65535}) {
    add_rule(std::to_string(priority), 1, priority);
  }
  EXPECT_THAT(takers(1), ElementsAre("0"));
  table_.erase(flows_[3]);
  EXPECT_THAT(takers(1), ElementsAre("1"));
}

TEST_F(FlowTableTest, EqualsTakeACopyEach) {
  add_rule("first", 1, 3);
  add_rule("second", 1, 3);
  add_rule("worse", 1, 4);
  EXPECT_THAT(takers(1), ElementsAre("first", "second"));
}

TEST_F(FlowTableTest, ARuleThatDoesNotTrapLetsPass) {
  add_rule("sees", 1, 0).traps = false;
  add_rule("takes", 1, 1);
  add_rule("too late", 1, 2);
  add("default", FlowKind::kAllDefault);
  EXPECT_THAT(takers(1), ElementsAre("sees", "takes"));
  add_rule("sees 2", 2, 0).traps = false;
  EXPECT_THAT(takers(2), ElementsAre("sees 2", "default"));
}

TEST_F(FlowTableTest, DefaultsTakeWhatNoRuleHas) {
  add("all", FlowKind::kAllDefault);
  add("groups", FlowKind::kMulticastDefault);
  add_rule("rule", 1, 65535);
  EXPECT_THAT(takers(1), ElementsAre("rule"));
  EXPECT_THAT(takers(2), ElementsAre("all"));
  EXPECT_THAT(takers(2, false, test::kGroupMac), ElementsAre("all", "groups"));
}

TEST_F(FlowTableTest, ASnifferSeesAllAndTakesItFromNobody) {
  add_rule("rule", 1);
  EXPECT_FALSE(table_.has_sniffers());
  NamedFlow& sniffer = add("sniffer", FlowKind::kSniffer);
  EXPECT_TRUE(table_.has_sniffers());
  EXPECT_THAT(takers(1), ElementsAre("sniffer", "rule"));
  EXPECT_THAT(takers(2), ElementsAre("sniffer"));
  table_.erase(sniffer);
  EXPECT_FALSE(table_.has_sniffers());
}

TEST_F(FlowTableTest, WhatRoceOwnsIsForSniffersAlone) {
  add_rule("rule", 1);
  add("all", FlowKind::kAllDefault);
  EXPECT_THAT(takers(1, true), IsEmpty());
  add("sniffer", FlowKind::kSniffer);
  EXPECT_THAT(takers(1, true), ElementsAre("sniffer"));
}

}  // namespace
}  // namespace uroce::steering
