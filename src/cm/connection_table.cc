// SPDX-License-Identifier: BSD-2-Clause
#include "cm/connection_table.h"

namespace uroce::cm {
namespace {

// Peers choose half of these numbers, so none may lie in a bucket by its low bits alone.
std::size_t mixed(std::uint64_t guid, std::uint32_t number, std::size_t buckets) {
  std::uint64_t z = guid ^ (std::uint64_t{number} * 0x9e37'79b9'7f4a'7c15);
  z = (z ^ (z >> 31)) * 0xbf58'476d'1ce4'e5b9;
  return static_cast<std::size_t>(z >> 40) % buckets;
}

template <typename Bucket, typename IsIt>
Connection* find_in(Bucket& bucket, IsIt is_it) {
  Connection* at = bucket.front();
  while (at != nullptr && !is_it(*at)) at = bucket.next(*at);
  return at;
}

}  // namespace

void ConnectionTable::insert(Connection& connection) {
  by_id_[mixed(0, connection.local_id, kBuckets)].push_back(connection);
}

void ConnectionTable::insert_remote(Connection& connection) {
  const std::uint64_t guid = connection.remote.ca_guid;
  by_remote_[mixed(guid, connection.remote_id, kBuckets)].push_back(connection);
  by_qpn_[mixed(guid, connection.remote.qpn.value, kBuckets)].push_back(connection);
}

void ConnectionTable::erase(Connection& connection) {
  connection.id_hook.unlink();
  connection.remote_hook.unlink();
  connection.qpn_hook.unlink();
}

Connection* ConnectionTable::find(std::uint32_t local_id) {
  return find_in(by_id_[mixed(0, local_id, kBuckets)],
                 [local_id](const Connection& c) { return c.local_id == local_id; });
}

Connection* ConnectionTable::find_remote(std::uint64_t ca_guid, std::uint32_t remote_id) {
  return find_in(by_remote_[mixed(ca_guid, remote_id, kBuckets)], [=](const Connection& c) {
    return c.remote.ca_guid == ca_guid && c.remote_id == remote_id;
  });
}

Connection* ConnectionTable::find_qpn(std::uint64_t ca_guid, Qpn qpn) {
  return find_in(by_qpn_[mixed(ca_guid, qpn.value, kBuckets)], [=](const Connection& c) {
    return c.remote.ca_guid == ca_guid && c.remote.qpn == qpn;
  });
}

}  // namespace uroce::cm
