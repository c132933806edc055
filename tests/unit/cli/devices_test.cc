// SPDX-License-Identifier: BSD-2-Clause
#include "cli/devices.h"

#include <gmock/gmock.h>

#include "unit/host/support.h"

namespace uroce::cli {
namespace {

using host::test::gid;
using testing::HasSubstr;

std::vector<ListedDevice> one_device() {
  ListedDevice listed;
  listed.device.name = "uroce0";
  listed.device.netdev = "eth0";
  listed.device.node_guid = 0x1;
  listed.device.mtu_bytes = 9000;
  listed.device.active = true;
  listed.gids = host::GidTable(std::vector{gid("fe80::1"), gid("10.0.0.1"), gid("fd00::1")});
  listed.gids.update(std::vector{gid("fe80::1"), gid("fd00::1")});
  return {listed};
}

TEST(Devices, TextShowsIndicesAsTheyAre) {
  const std::string text = devices_text(one_device());
  EXPECT_THAT(text, HasSubstr("uroce0  on eth0, active"));
  EXPECT_THAT(text, HasSubstr("path MTU 4096"));
  EXPECT_THAT(text, HasSubstr("0  RoCE v2  fe80::1\n"));
  EXPECT_THAT(text, HasSubstr("2  RoCE v2  fd00::1\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("10.0.0.1")));
}

TEST(Devices, WithoutAnAddressItSaysSo) {
  auto devices = one_device();
  devices[0].gids = {};
  devices[0].device.active = false;
  EXPECT_THAT(devices_text(devices), AllOf(HasSubstr("no GID"), HasSubstr("down")));
}

TEST(Devices, JsonIsWhatAParserWants) {
  auto devices = one_device();
  devices[0].device.netdev = "a\"b\\c";
  EXPECT_EQ(devices_json(devices),
            "[\n"
            "  {\"name\": \"uroce0\", \"netdev\": \"a\\\"b\\\\c\", \"state\": \"active\",\n"
            "    \"node_guid\": \"0000:0000:0000:0001\", \"mtu\": 9000, \"path_mtu\": 4096,\n"
            "    \"gids\": [\n"
            "      {\"index\": 0, \"type\": \"RoCE v2\", \"address\": \"fe80::1\", \"gid\": "
            "\"fe80:0000:0000:0000:0000:0000:0000:0001\", \"netdev\": \"a\\\"b\\\\c\"},\n"
            "      {\"index\": 2, \"type\": \"RoCE v2\", \"address\": \"fd00::1\", \"gid\": "
            "\"fd00:0000:0000:0000:0000:0000:0000:0001\", \"netdev\": \"a\\\"b\\\\c\"}]}\n"
            "]\n");
}

}  // namespace
}  // namespace uroce::cli
