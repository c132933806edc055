// SPDX-License-Identifier: BSD-2-Clause
// What a port says of its interface: path MTU and rate. One place, so that `ibv_query_port` and
// the files of the device tree agree.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uroce::host {

// As in Linux (iboe_get_mtu): IPv6 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4.
inline constexpr std::uint32_t kRoceOverheadBytes = 96;

// The largest path MTU (256, 512, 1024, 2048, 4096) of which a packet fits the interface; 256 is
// the smallest there is.
constexpr std::uint16_t port_path_mtu(std::uint32_t interface_mtu_bytes) {
  for (const std::uint16_t mtu :
       {std::uint16_t{4096}, std::uint16_t{2048}, std::uint16_t{1024}, std::uint16_t{512}}) {
    if (interface_mtu_bytes >= mtu + kRoceOverheadBytes) return mtu;
  }
  return 256;
}

// IBTA PortInfo: LinkWidthActive 1 is 1X, 2 is 4X; LinkSpeedActive 1 SDR, 2 DDR, 4 QDR, 16 FDR,
// 32 EDR, 64 HDR, 128 NDR.
struct PortRate {
  std::uint32_t megabits_per_second;
  std::uint8_t active_width;
  std::uint8_t active_speed;
  std::string_view text;  // as in sysfs
};

inline constexpr std::array<PortRate, 9> kPortRates = {{
    {2'500, 1, 1, "2.5 Gb/sec (1X SDR)"},
    {5'000, 1, 2, "5 Gb/sec (1X DDR)"},
    {10'000, 2, 1, "10 Gb/sec (4X SDR)"},
    {25'000, 1, 32, "25 Gb/sec (1X EDR)"},
    {40'000, 2, 4, "40 Gb/sec (4X QDR)"},
    {50'000, 1, 64, "50 Gb/sec (1X HDR)"},
    {100'000, 2, 32, "100 Gb/sec (4X EDR)"},
    {200'000, 2, 64, "200 Gb/sec (4X HDR)"},
    {400'000, 2, 128, "400 Gb/sec (4X NDR)"},
}};

// The fastest row that the interface reaches; where nobody knows its speed (lo, virtual ones),
// 100 Gb/s.
constexpr const PortRate& port_rate(std::uint32_t megabits_per_second) {
  if (megabits_per_second == 0) return kPortRates[6];
  const PortRate* result = &kPortRates[0];
  for (const PortRate& rate : kPortRates) {
    if (rate.megabits_per_second <= megabits_per_second) result = &rate;
  }
  return *result;
}

}  // namespace uroce::host
