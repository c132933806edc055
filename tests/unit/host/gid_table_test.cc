// SPDX-License-Identifier: BSD-2-Clause
#include "host/gid_table.h"

#include <gmock/gmock.h>

#include "unit/host/support.h"

namespace uroce::host {
namespace {

using test::gid;
using testing::ElementsAre;

std::vector<Gid> first(const GidTable& table, std::size_t count) {
  return {table.slots().begin(), table.slots().begin() + static_cast<std::ptrdiff_t>(count)};
}

InterfaceAddress has(const char* address) { return {.address = {gid(address), 64}}; }

TEST(GidTable, LinkLocalThenIPv4ThenGlobal) {
  const std::vector<InterfaceAddress> addresses = {
      has("2001:db8::1"), has("10.0.0.1"), has("fe80::1"), has("10.0.0.2"), has("2001:db8::2")};
  EXPECT_THAT(gids_in_order(addresses),
              ElementsAre(gid("fe80::1"), gid("10.0.0.1"), gid("10.0.0.2"), gid("2001:db8::1"),
                          gid("2001:db8::2")));
}

TEST(GidTable, LoopbackHasItsTwoAddresses) {
  const std::vector<InterfaceAddress> addresses = {has("::1"), has("127.0.0.1")};
  EXPECT_THAT(gids_in_order(addresses), ElementsAre(gid("127.0.0.1"), gid("::1")));
}

TEST(GidTable, AnAddressThatCannotBeUsedYetIsNoGid) {
  InterfaceAddress pending = has("fe80::1");
  pending.usable = false;
  const std::vector<InterfaceAddress> addresses = {pending, has("10.0.0.1"), has("10.0.0.1")};
  EXPECT_THAT(gids_in_order(addresses), ElementsAre(gid("10.0.0.1")));
}

TEST(GidTable, AnIndexNeverMoves) {
  GidTable table(std::vector{gid("fe80::1"), gid("10.0.0.1"), gid("2001:db8::1")});
  EXPECT_TRUE(table.update(std::vector{gid("fe80::1"), gid("2001:db8::1")}));
  EXPECT_THAT(first(table, 3), ElementsAre(gid("fe80::1"), Gid{}, gid("2001:db8::1")));
  EXPECT_TRUE(table.update(
      std::vector{gid("fe80::1"), gid("10.0.0.7"), gid("10.0.0.8"), gid("2001:db8::1")}));
  EXPECT_THAT(first(table, 5), ElementsAre(gid("fe80::1"), gid("10.0.0.7"), gid("2001:db8::1"),
                                           gid("10.0.0.8"), Gid{}));
  EXPECT_EQ(table.find(gid("2001:db8::1")), 2u);
}

TEST(GidTable, NothingChangesWhenTheSameAddressesComeInAnotherOrder) {
  GidTable table(std::vector{gid("10.0.0.1"), gid("10.0.0.2")});
  EXPECT_FALSE(table.update(std::vector{gid("10.0.0.2"), gid("10.0.0.1")}));
  EXPECT_EQ(table.find(gid("10.0.0.1")), 0u);
}

TEST(GidTable, OneSlotStaysEmpty) {
  std::vector<Gid> many;
  for (int i = 0; i < 300; ++i) {
    Gid g = gid("10.0.0.0");
    g.bytes[14] = static_cast<std::uint8_t>(i >> 8);
    g.bytes[15] = static_cast<std::uint8_t>(i);
    many.push_back(g);
  }
  GidTable table(many);
  EXPECT_EQ(std::ranges::count(table.slots(), Gid{}), 1);
  EXPECT_TRUE(table.slots().back().is_zero());
}

TEST(GidTable, TheZeroGidIsNowhere) { EXPECT_FALSE(GidTable().find(Gid{})); }

}  // namespace
}  // namespace uroce::host
