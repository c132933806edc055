// SPDX-License-Identifier: BSD-2-Clause
// What the kernel says of a network interface through its ioctls; needs no privilege to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace uroce::posix {

// IFF_UP and its like (<net/if.h>): none where there is no such interface.
[[nodiscard]] unsigned interface_flags(const std::string& interface);
// "veth"; empty when the kernel does not know.
[[nodiscard]] std::string driver_of(const std::string& interface);
// Megabits per second; 0 when the driver does not know.
[[nodiscard]] std::uint32_t link_speed(const std::string& interface);

// Whether an offload is on, by the name that `ethtool -k` gives it: "tx-udp-segmentation".
// Nothing when the kernel or the driver does not know it.
[[nodiscard]] std::optional<bool> is_offload_on(const std::string& interface,
                                                std::string_view feature);

}  // namespace uroce::posix
