// SPDX-License-Identifier: BSD-2-Clause
// What is known of an identifier: its device, its addresses, its path.
#include <infiniband/verbs.h>

#include <cstring>

#include "base/byte_order.h"
#include "cma/agent.h"

namespace uroce::cma {
namespace {

constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};  // devices are told apart by their GUIDs
constexpr std::uint8_t kExactly = 2;                   // of a selector
constexpr std::uint8_t kRate = 16;                     // 100 Gbit/s
constexpr std::uint8_t kPacketLifetime = 18;           // Linux's for RoCE

bool has_path(const Id& id) {
  return id.device != nullptr && !id.route.destination.is_zero() &&
         (id.state == IdState::kRouteResolved || id.state == IdState::kConnecting);
}

// IBTA 15.2.5.16, as an SA gives it.
struct PathRecord {
  Be64 service_id;
  Gid destination;
  Gid source;
  Be16 destination_lid;
  Be16 source_lid;
  Be32 flow_and_hops;
  std::uint8_t traffic_class = 0;
  std::uint8_t reversible_and_count = 0x81;
  Be16 pkey;
  Be16 service_level;
  std::uint8_t mtu = 0;
  std::uint8_t rate = kExactly << 6 | kRate;
  std::uint8_t packet_lifetime = kExactly << 6 | kPacketLifetime;
  std::uint8_t preference = 0;
  std::array<std::uint8_t, 6> reserved{};
};
static_assert(sizeof(PathRecord) == sizeof ib_path_rec_data::path_rec);

void fill_gids(const Id& id, rdma_ucm_query_addr_resp& to) {
  to.src_size = static_cast<std::uint16_t>(to_sockaddr_ib(
      id.route.source, cm::kDefaultPkey, id.service_id(id.source.port), &to.src_addr));
  to.dst_size = static_cast<std::uint16_t>(to_sockaddr_ib(
      id.route.destination, cm::kDefaultPkey, id.service_id(id.destination.port), &to.dst_addr));
}

}  // namespace

void Agent::query_route(const Id& id, rdma_ucm_query_route_resp& to) const {
  to = {};
  to.ibdev_index = kNoIndex;
  to_sockaddr(id.source, &to.src_addr);
  to_sockaddr(id.destination, &to.dst_addr);
  if (id.device == nullptr) return;
  to.node_guid = to_big(id.device->node_guid());
  to.port_num = 1;
  ib_user_path_rec& path = to.ib_route[0];
  std::memcpy(path.sgid, id.route.source.bytes.data(), sizeof path.sgid);
  std::memcpy(path.dgid, id.route.destination.bytes.data(), sizeof path.dgid);
  path.pkey = to_big(cm::kDefaultPkey);
  if (!has_path(id)) return;
  to.num_paths = 1;
  path.reversible = 1;
  path.mtu = id.device->path_mtu();
  path.hop_limit = id.route.hop_limit;
  path.traffic_class = id.route.traffic_class;
  path.numb_path = 1;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kExactly;
  path.rate = kRate;
  path.packet_life_time = kPacketLifetime;
}

void Agent::query_addresses(const Id& id, rdma_ucm_query_addr_resp& to) const {
  to = {};
  to.ibdev_index = kNoIndex;
  if (id.is_infiniband) {
    fill_gids(id, to);
  } else {
    to.src_size = static_cast<std::uint16_t>(to_sockaddr(id.source, &to.src_addr));
    to.dst_size = static_cast<std::uint16_t>(to_sockaddr(id.destination, &to.dst_addr));
  }
  if (id.device == nullptr) return;
  to.node_guid = to_big(id.device->node_guid());
  to.port_num = 1;
  to.pkey = cm::kDefaultPkey;
}

void Agent::query_gids(const Id& id, rdma_ucm_query_addr_resp& to) const {
  query_addresses(id, to);
  fill_gids(id, to);
}

std::optional<ib_path_rec_data> Agent::query_path(const Id& id) const {
  if (!has_path(id)) return std::nullopt;
  PathRecord record;
  record.destination = id.route.destination;
  record.source = id.route.source;
  record.flow_and_hops = Be32(id.route.flow_label << 8 | id.route.hop_limit);
  record.traffic_class = id.route.traffic_class;
  record.pkey = Be16(cm::kDefaultPkey);
  record.mtu = static_cast<std::uint8_t>(kExactly << 6 | id.device->path_mtu());
  ib_path_rec_data data{};
  data.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  std::memcpy(data.path_rec, &record, sizeof record);
  return data;
}

}  // namespace uroce::cma
