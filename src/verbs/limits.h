// SPDX-License-Identifier: BSD-2-Clause
// What ibv_query_device promises per object; the numbers of objects are in engine/quota.h. Each is
// enforced where it is used, at the number and not near it.
#pragma once

#include <cstdint>

#include "transport/rc_requester.h"

namespace uroce::verbs {

inline constexpr std::uint32_t kWorkRequestsMax = 1'048'576;  // of a send or receive queue
inline constexpr std::uint32_t kSgesMax = 64;                 // TxBurst has room for as many
inline constexpr std::uint32_t kInlineBytesMax = 4096;
inline constexpr std::uint32_t kCqesMax = 4'194'303;
inline constexpr std::uint32_t kReadAtomicMax = transport::kReadAtomicMax;
inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 31;  // IBTA 9.4.3
inline constexpr std::uint32_t kRwqTableMax = 4'096;  // places of an indirection table
inline constexpr int kCompletionVectors = 1;

}  // namespace uroce::verbs
