// SPDX-License-Identifier: BSD-2-Clause
// Whose a port is inside of a process, and which one is drawn.
#include "cma/port_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <vector>

#include "wire/network.h"

namespace uroce::cma {
namespace {

constexpr std::size_t kEphemeralCount = 28'232;
constexpr std::uint32_t kSlices = 29;

Address ipv4(unsigned last, std::uint16_t port = 0) {
  return {.gid = last == 0 ? Gid{} : wire::gid_of_ipv4(0x0a00'0000 + last), .port = port};
}
Address any_ipv6(std::uint16_t port) { return {.gid = {}, .is_ipv4 = false, .port = port}; }

class PortTableTest : public testing::Test {
 protected:
  Id& make(const Address& source, const Address& destination = {}) {
    Id& id = *ids_.emplace_back(std::make_unique<Id>());
    id.source = source;
    id.destination = destination;
    return id;
  }
  // One that has drawn its port. 0: there was none.
  std::uint16_t draw(const Address& source, const Address& destination, std::uint32_t slot = 0) {
    Id& id = make(source, destination);
    id.source.port = table.choose(id, slot, random).value_or(0);
    if (id.source.port != 0) table.insert(id);
    return id.source.port;
  }
  int check(const Address& source) { return table.check(make(source), false); }

  PortTable table;
  Prng random{7};

 private:
  std::vector<std::unique_ptr<Id>> ids_;
};

TEST_F(PortTableTest, AsManyConnectionsToOnePlaceAsThereArePortsAndNoTwoAlike) {
  std::set<std::uint16_t> ports;
  for (std::size_t i = 0; i < kEphemeralCount; ++i) {
    const std::uint16_t port = draw(ipv4(1), ipv4(2, 7000));
    ASSERT_TRUE(ports.insert(port).second) << port << " after " << i;
  }
  EXPECT_GE(*ports.begin(), 32'768);
  EXPECT_LE(*ports.rbegin(), 60'999);
  EXPECT_EQ(draw(ipv4(1), ipv4(2, 7000)), 0);
  // To another port, to another host, or from another address they may be had again.
  EXPECT_NE(draw(ipv4(1), ipv4(2, 7001)), 0);
  EXPECT_NE(draw(ipv4(1), ipv4(3, 7000)), 0);
  EXPECT_NE(draw(ipv4(4), ipv4(2, 7000)), 0);
}

TEST_F(PortTableTest, ProcessesDrawWhereNoOtherDoesAtFirst) {
  std::set<std::uint16_t> ports;
  for (std::uint32_t slot = 0; slot < kSlices; ++slot) {
    PortTable of_the_process;
    for (int i = 0; i < 900; ++i) {
      Id& id = make(ipv4(1), ipv4(2, 7000));
      id.source.port = of_the_process.choose(id, slot, random).value_or(0);
      of_the_process.insert(id);
      ASSERT_TRUE(ports.insert(id.source.port).second) << id.source.port << " in slot " << slot;
    }
  }
}

TEST_F(PortTableTest, APortThatIsGivenBackIsFree) {
  Id& id = make(ipv4(1, 7000));
  table.insert(id);
  EXPECT_EQ(check(ipv4(1, 7000)), EADDRINUSE);
  table.erase(id);
  EXPECT_EQ(check(ipv4(1, 7000)), 0);
  table.erase(id);
}

TEST_F(PortTableTest, AnAddressIsInUseAndAnyIsNotAvailable) {
  table.insert(make(ipv4(1, 7000)));
  table.insert(make(ipv4(0, 7001)));
  EXPECT_EQ(check(ipv4(1, 7000)), EADDRINUSE);
  EXPECT_EQ(check(ipv4(2, 7000)), 0);
  EXPECT_EQ(check(ipv4(0, 7000)), EADDRNOTAVAIL);
  EXPECT_EQ(check(ipv4(1, 7001)), EADDRNOTAVAIL);
  EXPECT_EQ(check(ipv4(0, 7001)), EADDRNOTAVAIL);
  EXPECT_EQ(check(any_ipv6(7001)), EADDRNOTAVAIL);
}

TEST_F(PortTableTest, InterfacesHaveLinkLocalAddressesOfTheirOwn) {
  Gid gid;
  gid.bytes[0] = 0xfe;
  gid.bytes[1] = 0x80;
  gid.bytes[15] = 1;
  const auto at = [&gid](std::uint32_t scope) {
    return Address{.gid = gid, .is_ipv4 = false, .port = 7000, .scope = scope};
  };
  table.insert(make(at(3)));
  EXPECT_EQ(check(at(4)), 0);
  EXPECT_EQ(check(at(3)), EADDRINUSE);
}

TEST_F(PortTableTest, SpacesAreApart) {
  table.insert(make(ipv4(1, 7000)));
  Id& other = make(ipv4(1, 7000));
  other.port_space = RDMA_PS_UDP;
  EXPECT_EQ(table.check(other, false), 0);
}

TEST_F(PortTableTest, WhoBothShareHaveItUntilOneListens) {
  Id& first = make(ipv4(1, 7000));
  Id& second = make(ipv4(1, 7000));
  first.reuses_address = true;
  table.insert(first);
  EXPECT_EQ(table.check(second, false), EADDRINUSE);
  second.reuses_address = true;
  EXPECT_EQ(table.check(second, false), 0);
  table.insert(second);
  EXPECT_EQ(table.check(second, true), EADDRINUSE);
  table.erase(second);
  first.state = IdState::kListening;
  EXPECT_EQ(table.check(second, false), EADDRINUSE);
}

// Somebody may come to it from anywhere.
TEST_F(PortTableTest, WhatWasNamedIsNotDrawn) {
  for (std::uint16_t port = 32'768; port < 60'999; ++port) table.insert(make(ipv4(0, port)));
  EXPECT_EQ(draw(ipv4(1), ipv4(2, 7000)), 60'999);
  EXPECT_EQ(draw(ipv4(1), ipv4(2, 7000)), 0);
}

}  // namespace
}  // namespace uroce::cma
