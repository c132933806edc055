// SPDX-License-Identifier: BSD-2-Clause
// Which listener a request is for: the one at its address, or else one for any address of the
// family.
#include "unit/cm/network.h"

namespace uroce::cm::test {
namespace {

class CmListener : public ::testing::Test {
 protected:
  ~CmListener() override {
    for (Listener& listener : listeners) Manager::stop_listening(listener);
  }
  Listener& listen(const ServiceAddress& address, std::uint64_t service = kService) {
    Listener& listener = listeners.emplace_back();
    listener.service_id = service;
    listener.address = address;
    manager.listen(listener);
    return listener;
  }
  // Where a request for that address comes to.
  const Listener* asked(const Gid& address, std::uint64_t service = kService,
                        std::uint32_t scope = 0) {
    host.asked = nullptr;
    ++next_id;
    Mad mad;
    mad.set(Attribute::kRequest, 1,
            make_request(next_id, service, {}, {.qpn = {next_id}, .ca_guid = 9},
                         {.source = {}, .destination = address, .is_ipv4 = address.is_ipv4()}, {}));
    Route route;
    route.scope = scope;
    manager.on_mad({}, route, mad);
    return host.asked;
  }

  struct Asked final : Host {
    void send(const Route&, const Mad&) override {}
    std::uint32_t new_local_id() override { return 1; }
    Connection* new_connection(Listener& listener) override {
      asked = &listener;
      return nullptr;
    }
    void on_event(Connection&, const Event&) override {}
    const Listener* asked = nullptr;
  };
  Asked host;
  Manager manager{host};
  std::deque<Listener> listeners;
  std::uint32_t next_id = 1;
};

TEST_F(CmListener, AtAnyAddressTakesAllFamilies) {
  const Listener& any = listen({});
  EXPECT_EQ(asked(ipv4(1)), &any);
  EXPECT_EQ(asked(ipv6(1)), &any);
}

// Two interfaces may have the same link-local address.
TEST_F(CmListener, OfAnInterfaceTakesWhatComesThere) {
  Gid gid = ipv6(1);
  gid.bytes[0] = 0xfe;
  gid.bytes[1] = 0x80;
  ServiceAddress address = ServiceAddress::at(gid);
  address.scope = 3;
  const Listener& of_third = listen(address);
  address.scope = 4;
  const Listener& of_fourth = listen(address);
  EXPECT_EQ(asked(gid, kService, 3), &of_third);
  EXPECT_EQ(asked(gid, kService, 4), &of_fourth);
  EXPECT_EQ(asked(gid, kService, 5), nullptr);
}

TEST_F(CmListener, OfAFamilyTakesNoOther) {
  const Listener& of_ipv4 = listen({.gid = {}, .family = Family::kIpv4});
  EXPECT_EQ(asked(ipv4(1)), &of_ipv4);
  EXPECT_EQ(asked(ipv6(1)), nullptr);
  const Listener& of_ipv6 = listen({.gid = {}, .family = Family::kIpv6});
  EXPECT_EQ(asked(ipv6(1)), &of_ipv6);
}

TEST_F(CmListener, AtAnAddressTakesNoOther) {
  const Listener& here = listen(ServiceAddress::at(ipv4(1)));
  EXPECT_EQ(asked(ipv4(1)), &here);
  EXPECT_EQ(asked(ipv4(2)), nullptr);
  EXPECT_EQ(asked(ipv6(1)), nullptr);
}

TEST_F(CmListener, AtAnAddressComesBeforeOneAtAny) {
  for (const bool any_is_first : {true, false}) {
    const Listener* any = any_is_first ? &listen({}) : nullptr;
    Listener& here = listen(ServiceAddress::at(ipv6(1)));
    if (any == nullptr) any = &listen({});
    EXPECT_EQ(asked(ipv6(1)), &here);
    EXPECT_EQ(asked(ipv6(2)), any);
    for (Listener& listener : listeners) Manager::stop_listening(listener);
  }
}

TEST_F(CmListener, OfAnotherServiceIsNotMeant) {
  listen({}, kService + 1);
  EXPECT_EQ(asked(ipv4(1)), nullptr);
}

TEST_F(CmListener, ThatHasStoppedIsNotMeant) {
  Manager::stop_listening(listen({}));
  EXPECT_EQ(asked(ipv4(1)), nullptr);
}

}  // namespace
}  // namespace uroce::cm::test
