// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/fault_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace uroce::datapath::tap {
namespace {

FaultSpec parsed(const std::string& text) {
  const Result<FaultSpec> spec = parse_fault_spec(text);
  EXPECT_TRUE(spec) << text << ": " << spec.error().message;
  return spec ? *spec : FaultSpec{};
}

TEST(FaultSpec, ReadsEveryKey) {
  const FaultSpec expected{.loss = 10'000,
                           .duplicate = 1'000,
                           .reorder = 20'000,
                           .corrupt = 100,
                           .burst = 3,
                           .delay_min = microseconds(50),
                           .delay_max = milliseconds(2),
                           .packets = 12,
                           .seed = 7};
  EXPECT_EQ(parsed("loss=1%,dup=0.1%,reorder=2%,delay=50us..2ms,corrupt=0.01%,seed=7,burst=3,"
                   "packets=12"),
            expected);
}

TEST(FaultSpec, TakesRatesAsPercentOrFraction) {
  EXPECT_EQ(parsed("loss=5%").loss, 50'000u);
  EXPECT_EQ(parsed("loss=0.05").loss, 50'000u);
  EXPECT_EQ(parsed("loss=0.0001%").loss, 1u);
  EXPECT_EQ(parsed("loss=0.000001").loss, 1u);
  EXPECT_EQ(parsed("loss=100%").loss, 1'000'000u);
  EXPECT_EQ(parsed("loss=1").loss, 1'000'000u);
  EXPECT_EQ(parsed("loss=0").loss, 0u);
  EXPECT_EQ(parsed("loss=1.50000000%").loss, 15'000u);
}

TEST(FaultSpec, TakesTimesInEveryUnit) {
  EXPECT_EQ(parsed("delay=1500ns").delay_max, nanoseconds(1'500));
  EXPECT_EQ(parsed("delay=1.5us").delay_min, nanoseconds(1'500));
  EXPECT_EQ(parsed("delay=0us..10s").delay_max, milliseconds(10'000));
  EXPECT_EQ(parsed("delay=2ms..2ms").delay_min, milliseconds(2));
}

TEST(FaultSpec, IgnoresBlanksBetween) {
  EXPECT_EQ(parsed(" loss = 1 % , delay = 1 us .. 2 us "), parsed("loss=1%,delay=1us..2us"));
}

TEST(FaultSpec, OffIsNoFault) {
  EXPECT_EQ(parsed("off"), FaultSpec{});
  EXPECT_FALSE(parsed("off").is_active());
  EXPECT_FALSE(parsed("seed=3,loss=0%").is_active());
  EXPECT_TRUE(parsed("delay=1ns").is_active());
}

struct BadSpec {
  const char* text;
  std::string message;
};

class FaultSpecTrouble : public testing::TestWithParam<BadSpec> {};

TEST_P(FaultSpecTrouble, IsOneClearLine) {
  const Result<FaultSpec> spec = parse_fault_spec(GetParam().text);
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().message, GetParam().message);
}

const std::string kRate = ": expected a rate such as 1% or 0.01, no finer than one in a million";
const std::string kTime = ": expected a time with its unit, such as 50us, 2ms or 50us..2ms";
const std::string kUnknown =
    " is no kind of fault; there are loss, burst, dup, reorder, delay, corrupt, packets, seed";

INSTANTIATE_TEST_SUITE_P(
    All, FaultSpecTrouble,
    testing::ValuesIn(std::vector<BadSpec>{
        {"", "''" + kUnknown},
        {"lost=1%", "'lost'" + kUnknown},
        {"loss=1%,", "''" + kUnknown},
        {"loss", "loss: expected loss=VALUE"},
        {"loss=", "loss=" + kRate},
        {"loss=%", "loss=%" + kRate},
        {"loss=x%", "loss=x%" + kRate},
        {"loss=-1%", "loss=-1%" + kRate},
        {"loss=.5", "loss=.5" + kRate},
        {"loss=1e-3", "loss=1e-3" + kRate},
        {"loss=1.2.3%", "loss=1.2.3%" + kRate},
        {"loss=0.00001%", "loss=0.00001%" + kRate},
        {"loss=99999999999999999999%", "loss=99999999999999999999%" + kRate},
        {"loss=101%", "loss=101%: above 100%"},
        {"loss=5", "loss=5: above 1, which is 100%; for a percentage write 5%"},
        {"loss=1%,loss=2%", "loss is given twice"},
        {"delay=2ms..50us", "delay=2ms..50us: the range is backwards"},
        {"delay=50", "delay=50" + kTime},
        {"delay=us", "delay=us" + kTime},
        {"delay=1ms..", "delay=1ms.." + kTime},
        {"delay=0.5ns", "delay=0.5ns" + kTime},
        {"delay=11s", "delay=11s: longer than 10s"},
        {"burst=0", "burst=0: expected a number from 1 to 1000"},
        {"burst=1001", "burst=1001: expected a number from 1 to 1000"},
        {"seed=seven", "seed=seven: expected a whole number"},
        {"seed=99999999999999999999", "seed=99999999999999999999: expected a whole number"},
        {"packets=1.5", "packets=1.5: expected a whole number"},
    }));

TEST(FaultSpec, TextAndSpecAreTheSame) {
  for (const char* text : {"loss=5%", "loss=0.0001%", "loss=100%,burst=2,seed=7", "dup=12.34%",
                           "delay=1us..1500ns", "delay=3s", "delay=0ns..10us",
                           "reorder=2%,corrupt=0.01%,packets=100", "burst=5,seed=499999"}) {
    EXPECT_EQ(format_fault_spec(parsed(text)), text);
  }
  EXPECT_EQ(format_fault_spec(parsed("off")), "");
}

}  // namespace
}  // namespace uroce::datapath::tap
