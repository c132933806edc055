// SPDX-License-Identifier: BSD-2-Clause
// IBV_SEND_*, which differ from ours in their order.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "transport/work_request.h"

namespace uroce::verbs {

inline constexpr unsigned kKnownSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
static_assert(kKnownSendFlags == 0xf);

constexpr std::array<std::uint8_t, 16> make_send_flags() {
  namespace flag = transport::send_flag;
  std::array<std::uint8_t, 16> flags{};
  for (unsigned theirs = 0; theirs < flags.size(); ++theirs) {
    unsigned ours = 0;
    if ((theirs & IBV_SEND_SIGNALED) != 0) ours |= flag::kSignaled;
    if ((theirs & IBV_SEND_FENCE) != 0) ours |= flag::kFence;
    if ((theirs & IBV_SEND_SOLICITED) != 0) ours |= flag::kSolicited;
    if ((theirs & IBV_SEND_INLINE) != 0) ours |= flag::kInline;
    flags[theirs] = static_cast<std::uint8_t>(ours);
  }
  return flags;
}
// By what is known of IBV_SEND_*.
inline constexpr auto kSendFlags = make_send_flags();

}  // namespace uroce::verbs
