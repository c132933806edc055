// SPDX-License-Identifier: BSD-2-Clause
// Answers to `ping` for a port that the kernel does not own: the first thing that a user tries.
#pragma once

#include <cstddef>

#include "datapath/neighbour/ethernet.h"
#include "uroce/ids.h"

namespace uroce::datapath {

// The answer to an ICMP or ICMPv6 echo request in `frame`, written to `reply`; 0 when there is
// none: something else, a fragment, damaged, or longer than `reply`. `destination` is set to the
// address that was asked; whether it is ours is the caller's to judge.
std::size_t build_echo_reply(ConstBytes frame, Bytes reply, Gid& destination);

}  // namespace uroce::datapath
