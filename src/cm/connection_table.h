// SPDX-License-Identifier: BSD-2-Clause
// Connections by their own identifier, and by whom they are with: the same request twice, and a
// queue pair number that comes again while we still hold a connection with its former owner, are
// found so (IBTA 12.9.8.3).
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "cm/connection.h"

namespace uroce::cm {

class ConnectionTable {
 public:
  void insert(Connection& connection);
  // Once the peer's identifier, GUID and QPN are known.
  void insert_remote(Connection& connection);
  static void erase(Connection& connection);

  // Null where there is none.
  [[nodiscard]] Connection* find(std::uint32_t local_id);
  [[nodiscard]] Connection* find_remote(std::uint64_t ca_guid, std::uint32_t remote_id);
  // With that queue pair of the peer's.
  [[nodiscard]] Connection* find_qpn(std::uint64_t ca_guid, Qpn qpn);

 private:
  static constexpr std::size_t kBuckets = 4096;
  using ById = List<Connection, &Connection::id_hook>;
  using ByRemote = List<Connection, &Connection::remote_hook>;
  using ByQpn = List<Connection, &Connection::qpn_hook>;

  std::array<ById, kBuckets> by_id_;
  std::array<ByRemote, kBuckets> by_remote_;
  std::array<ByQpn, kBuckets> by_qpn_;
};

}  // namespace uroce::cm
