// SPDX-License-Identifier: BSD-2-Clause
#include "host/addresses.h"

#include <gmock/gmock.h>

#include "unit/host/support.h"

namespace uroce::host {
namespace {

using test::gid;
using testing::ElementsAre;

TEST(Addresses, IPv4BecomesAMappedGid) {
  EXPECT_EQ(format_gid(gid("192.0.2.2")), "0000:0000:0000:0000:0000:ffff:c000:0202");
  EXPECT_TRUE(gid("192.0.2.2").is_ipv4());
  EXPECT_EQ(format_address(gid("192.0.2.2")), "192.0.2.2");
}

TEST(Addresses, GidTextSurvivesTheWayThroughAFile) {
  for (const char* text : {"fe80::1", "10.1.2.3", "2001:db8::ffff", "::"}) {
    EXPECT_EQ(parse_gid(format_gid(gid(text)) + "\n"), gid(text)) << text;
  }
}

TEST(Addresses, PrefixLengthBelongsToTheFamily) {
  EXPECT_EQ(parse_prefix_address("10.0.0.1/24"), (PrefixAddress{gid("10.0.0.1"), 24}));
  EXPECT_EQ(parse_prefix_address("fd00::1/64"), (PrefixAddress{gid("fd00::1"), 64}));
  for (const char* wrong : {"10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "fd00::1/129", "10.0.0/24",
                            "10.0.0.1/2x", "10.0.0.1/-1", "::/64", "/24", ""}) {
    EXPECT_FALSE(parse_prefix_address(wrong)) << wrong;
  }
}

TEST(Addresses, OnlyFe80IsLinkLocal) {
  EXPECT_TRUE(gid("fe80::1").is_link_local());
  EXPECT_TRUE(gid("febf::1").is_link_local());
  EXPECT_FALSE(gid("fec0::1").is_link_local());
  EXPECT_FALSE(gid("169.254.1.1").is_link_local());
}

TEST(Addresses, HardwareNumbersAreWrittenAsInSysfs) {
  EXPECT_EQ(format_mac({0x02, 0xfc, 0, 0, 0, 0x01}), "02:fc:00:00:00:01");
  EXPECT_EQ(format_guid(0x00fc'00ff'fe00'0001), "00fc:00ff:fe00:0001");
}

TEST(Addresses, SplitLeavesEmptyPiecesOut) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "b"));
  EXPECT_TRUE(split("", ',').empty());
  EXPECT_EQ(join(split("a,b", ','), ":"), "a:b");
}

}  // namespace
}  // namespace uroce::host
