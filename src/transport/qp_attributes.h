// SPDX-License-Identifier: BSD-2-Clause
// What ibv_modify_qp sets, in our types. The mask bits have the values of ibv_qp_attr_mask and the
// states those of ibv_qp_state (asserted in verbs/translate).
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/psn.h"
#include "memory/access.h"
#include "transport/service.h"
#include "uroce/packet.h"

namespace uroce::transport {

enum class QpState : std::uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };
inline constexpr std::size_t kQpStateCount = 7;

namespace qp_attribute {
inline constexpr std::uint32_t kState = 1U << 0;
inline constexpr std::uint32_t kCurrentState = 1U << 1;
inline constexpr std::uint32_t kEnableSqdNotify = 1U << 2;
inline constexpr std::uint32_t kAccessFlags = 1U << 3;
inline constexpr std::uint32_t kPKeyIndex = 1U << 4;
inline constexpr std::uint32_t kPort = 1U << 5;
inline constexpr std::uint32_t kQKey = 1U << 6;
inline constexpr std::uint32_t kAddressVector = 1U << 7;
inline constexpr std::uint32_t kPathMtu = 1U << 8;
inline constexpr std::uint32_t kTimeout = 1U << 9;
inline constexpr std::uint32_t kRetryCount = 1U << 10;
inline constexpr std::uint32_t kRnrRetry = 1U << 11;
inline constexpr std::uint32_t kReceivePsn = 1U << 12;
inline constexpr std::uint32_t kMaxReadAtomic = 1U << 13;  // as requester
inline constexpr std::uint32_t kAlternatePath = 1U << 14;
inline constexpr std::uint32_t kMinRnrTimer = 1U << 15;
inline constexpr std::uint32_t kSendPsn = 1U << 16;
inline constexpr std::uint32_t kMaxDestReadAtomic = 1U << 17;  // as responder
inline constexpr std::uint32_t kPathMigrationState = 1U << 18;
inline constexpr std::uint32_t kCapabilities = 1U << 19;
inline constexpr std::uint32_t kDestinationQpn = 1U << 20;
inline constexpr std::uint32_t kRateLimit = 1U << 25;
}  // namespace qp_attribute

struct QpAttributes {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  bool sqd_notify = false;
  memory::Access access = memory::Access::kNone;
  std::uint16_t pkey_index = 0;
  std::uint8_t port = 1;
  QKey qkey;
  Path path;              // from the address vector, opened by the engine
  std::uint8_t link = 0;  // which of the device's links carries it
  std::uint8_t sgid_index = 0;
  std::uint8_t service_level = 0;  // a VLAN's priority on the wire, and we tag nothing
  std::uint16_t path_mtu = 256;    // bytes
  std::uint8_t timeout = 0;        // 4.096 us << timeout; 0: wait for ever
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;  // 7: without end
  Psn receive_psn;
  Psn send_psn;
  std::uint8_t max_read_atomic = 0;
  std::uint8_t max_dest_read_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  Qpn destination_qpn;
};

}  // namespace uroce::transport
