// SPDX-License-Identifier: BSD-2-Clause
// What a program has of the communication manager (man rdma_create_id): an identifier, in a file
// from which its events come. Guarded by the agent's lock.
#pragma once

#include <rdma/rdma_user_cm.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cm/manager.h"
#include "cma/address.h"
#include "cma/device.h"
#include "cma/event_file.h"

namespace uroce::cma {

// Linux's for RoCE: a packet lives 2^18 * 4.096 us, and an acknowledgement takes twice that.
inline constexpr std::uint8_t kAckTimeout = 19;
// rdma_cm's own, for datagrams (RDMA_UDP_QKEY).
inline constexpr std::uint32_t kDatagramQKey = 0x0123'4567;

// As librdmacm numbers them (enum rdma_cm_event_type).
enum class EventType : std::uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kDeviceRemoval = 11,
  kMulticastJoin = 12,
  kTimeWaitExit = 15,
};

// A group that an identifier has joined; it has a number of its own among the identifiers.
struct Membership {
  std::uint32_t number = 0;
  std::uint64_t uid = 0;
  Gid group;
  std::uint32_t events_reported = 0;
};

enum class IdState : std::uint8_t {
  kIdle,
  kBound,
  kResolvingAddress,  // its neighbour is being asked
  kAddressResolved,
  kRouteResolved,
  kConnecting,  // or connected, or not any more: the connection's own state tells
  kListening,
  kRemoved,  // its device has lost its interface: it is only to be destroyed
};

struct Id {
  std::uint32_t number = 0;
  std::uint64_t uid = 0;  // the program's own; 0: it does not know of this connection yet
  EventFile* file = nullptr;
  rdma_ucm_port_space port_space = RDMA_PS_TCP;
  std::uint8_t qp_type = 0;
  IdState state = IdState::kIdle;
  bool is_infiniband = false;  // its addresses, and its port is none of IP
  bool is_active = false;      // has asked for its connection

  Address source;
  Address destination;
  cm::Route route;             // its GIDs are not the addresses where those are loopback ones
  Device* device = nullptr;    // once it is known
  std::uint32_t removals = 0;  // of the device's interface, when it was bound to it

  bool reuses_address = false;
  std::optional<bool> only_own_family;
  std::uint8_t type_of_service = 0;
  std::optional<std::uint8_t> ack_timeout;

  std::optional<std::uint32_t> claim;  // of its port, in the host's directory: named, or listens
  std::uint32_t qkey = 0;

  cm::Connection connection;
  cm::Listener listener;
  std::uint32_t backlog = 0;  // requests more that may wait to be read
  Id* waits_for = nullptr;    // the listener whose program has not read of it yet
  std::uint32_t events_reported = 0;
  std::vector<std::unique_ptr<Membership>> memberships;

  // Null: of none any more.
  void bind_to(Device* to) {
    device = to;
    route.device = to;
    removals = to == nullptr ? 0 : to->removals();
  }
  [[nodiscard]] bool is_datagram() const {
    return port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB || qp_type == IBV_QPT_UD;
  }
  [[nodiscard]] std::uint64_t service_id(std::uint16_t port) const {
    return std::uint64_t{port_space} << 16 | port;
  }
  // Where its port is its own.
  [[nodiscard]] ServiceAddress service_address() const {
    ServiceAddress address = ServiceAddress::at(source.gid);
    if (source.is_link_local()) address.scope = source.scope;
    if (!source.is_any()) return address;
    address.family = Family::kBoth;
    if (source.is_ipv4) address.family = Family::kIpv4;
    if (!source.is_ipv4 && only_own_family.value_or(false)) address.family = Family::kIpv6;
    return address;
  }
};

// An event of `id` to be filled further.
[[nodiscard]] PendingEvent event_for(Id& id, EventType kind, std::uint32_t status);
// The parameters of an event, as the kind of `id` has them.
void fill_parameters(const Id& id, std::span<const std::byte> data, rdma_ucm_event_resp& to);
// The way to the peer, which goes through a device of ours.
void fill_path(const cm::Route& route, ib_uverbs_ah_attr& to);

}  // namespace uroce::cma
