// SPDX-License-Identifier: BSD-2-Clause
// Who cuts a UDP_SEGMENT train into packets: the kernel, which numbers them 0, 1, 2 ... in the
// IPv4 identification that the ICRC covers, or an engine in the interface, of which nobody knows.
#pragma once

#include <string>

namespace uroce::datapath::udp {

// True for interfaces without such an engine, and for lo and veth: they hand a train over whole, to
// a kernel that cuts it.
[[nodiscard]] bool kernel_cuts_trains(const std::string& interface);

}  // namespace uroce::datapath::udp
