// SPDX-License-Identifier: BSD-2-Clause
// This thread's right to send raw packets.
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "posix/capability.h"

namespace uroce::verbs {

inline bool may_send_raw_packets() { return posix::has_capability(CAP_NET_RAW); }

// Given up for a while, if the thread has it.
class WithoutRawPackets {
 public:
  WithoutRawPackets() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_.data()), 0);
    auto reduced = before_;
    reduced[0].effective &= ~(1U << CAP_NET_RAW);
    EXPECT_EQ(syscall(SYS_capset, &header_, reduced.data()), 0);
  }
  ~WithoutRawPackets() { EXPECT_EQ(syscall(SYS_capset, &header_, before_.data()), 0); }
  WithoutRawPackets(const WithoutRawPackets&) = delete;
  WithoutRawPackets& operator=(const WithoutRawPackets&) = delete;

 private:
  __user_cap_header_struct header_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> before_{};
};

}  // namespace uroce::verbs
