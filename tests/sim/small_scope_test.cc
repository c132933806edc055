// SPDX-License-Identifier: BSD-2-Clause
// Every way in which little can go wrong with little: all losses among the first packets, each
// packet twice, each packet late by so much that one, two or three others overtake it.
#include <gtest/gtest.h>

#include <bit>

#include "sim/exchange.h"

namespace uroce::test {
namespace {

using transport::SendOperation;

struct Kind {
  const char* name;
  SendOperation operation;
  std::uint32_t packets_max;
};

class SmallScope : public testing::TestWithParam<Kind> {
 protected:
  // For requests of each length.
  template <typename Do>
  void for_each_length(Do&& act) {
    for (std::uint32_t packets = 1; packets <= GetParam().packets_max; ++packets) {
      act(ExchangeCase{GetParam().operation, packets, {}});
      if (HasFailure()) return;
    }
  }
  static void expect_right(const ExchangeCase& c, const ExchangeOutcome& outcome) {
    ASSERT_EQ(outcome.violation, "")
        << c.packets << " packets, losses " << std::hex << c.script.losses << ", repeated "
        << c.script.repeated << ", late " << c.script.late;
  }
};

TEST_P(SmallScope, EveryLoss) {
  constexpr unsigned kPackets = 10;
  constexpr int kTriesMax = 8;  // retry_cnt, and the first one
  for_each_length([](ExchangeCase c) {
    for (c.script.losses = 0; c.script.losses < 1U << kPackets; ++c.script.losses) {
      const ExchangeOutcome outcome = run_exchange(c);
      expect_right(c, outcome);
      if (HasFatalFailure()) return;
      if (std::popcount(c.script.losses) < kTriesMax) {
        ASSERT_EQ(outcome.failed, 0U) << "losses " << std::hex << c.script.losses;
      }
    }
  });
}

TEST_P(SmallScope, EveryPacketTwice) {
  for_each_length([](ExchangeCase c) {
    const unsigned packets = run_exchange(c).packets;
    for (c.script.repeated = 0; c.script.repeated < packets; ++c.script.repeated) {
      const ExchangeOutcome outcome = run_exchange(c);
      expect_right(c, outcome);
      if (HasFatalFailure()) return;
      ASSERT_EQ(outcome.failed, 0U) << "repeated " << c.script.repeated;
    }
  });
}

// The same with a loss elsewhere, so that the repeated packet belongs to an earlier try.
TEST_P(SmallScope, EveryPacketTwiceAndEveryOtherLost) {
  for_each_length([](ExchangeCase c) {
    constexpr unsigned kPackets = 12;
    for (unsigned lost = 0; lost < kPackets; ++lost) {
      c.script.losses = 1U << lost;
      for (c.script.repeated = 0; c.script.repeated < kPackets; ++c.script.repeated) {
        const ExchangeOutcome outcome = run_exchange(c);
        expect_right(c, outcome);
        if (HasFatalFailure()) return;
        ASSERT_EQ(outcome.failed, 0U);
      }
    }
  });
}

TEST_P(SmallScope, EveryPacketLate) {
  for_each_length([](ExchangeCase c) {
    const unsigned packets = run_exchange(c).packets;
    for (int overtaken_by = 1; overtaken_by <= 3; ++overtaken_by) {
      c.script.late_by = nanoseconds(kPacketSpacing.ns * (2 * overtaken_by + 1) / 2);
      for (c.script.late = 0; c.script.late < packets; ++c.script.late) {
        const ExchangeOutcome outcome = run_exchange(c);
        expect_right(c, outcome);
        if (HasFatalFailure()) return;
        ASSERT_EQ(outcome.failed, 0U) << "late " << c.script.late;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Rc, SmallScope,
    testing::Values(Kind{"Send", SendOperation::kSend, 4},
                    Kind{"SendWithImmediate", SendOperation::kSendWithImmediate, 4},
                    Kind{"Write", SendOperation::kWrite, 4},
                    Kind{"WriteWithImmediate", SendOperation::kWriteWithImmediate, 4},
                    Kind{"Read", SendOperation::kRead, 4},
                    Kind{"CompareSwap", SendOperation::kCompareSwap, 1},
                    Kind{"FetchAdd", SendOperation::kFetchAdd, 1}),
    [](const testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

}  // namespace
}  // namespace uroce::test
