// SPDX-License-Identifier: BSD-2-Clause
// What the driver of an interface says through the ethtool ioctl; needs no privilege to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace uroce::host {

// Megabits per second; 0 when the driver does not know.
[[nodiscard]] std::uint32_t link_speed(const std::string& interface);

// Whether an offload is on, by the name that `ethtool -k` gives it: "tx-udp-segmentation".
// Nothing when the kernel or the driver does not know it.
[[nodiscard]] std::optional<bool> is_offload_on(const std::string& interface,
                                                std::string_view feature);

}  // namespace uroce::host
