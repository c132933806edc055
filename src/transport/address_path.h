// SPDX-License-Identifier: BSD-2-Clause
// Where datagrams go: a path that an address handle opened. It stays as long as datagrams on their
// way need it, also when the application has destroyed the handle.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "uroce/packet.h"

namespace uroce::transport {

struct AddressPath {
  Path path;
  std::uint8_t link = 0;
  std::atomic<std::uint32_t> users{0};  // datagrams posted and not finished
};

struct DatagramTarget {
  AddressPath* path = nullptr;  // null: nobody is there, and the datagram is lost
  Qpn qpn;
  QKey qkey;
};

// IBTA 10.2.5: a Q_Key with this bit stands for the sending QP's own.
inline constexpr std::uint32_t kOwnQKey = 0x8000'0000;

}  // namespace uroce::transport
