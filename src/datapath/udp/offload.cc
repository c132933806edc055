// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/offload.h"

#include <net/if.h>

#include "posix/interface.h"

namespace uroce::datapath::udp {

// Where nobody can tell, the interface cuts.
bool kernel_cuts_trains(const std::string& interface) {
  if ((posix::interface_flags(interface) & IFF_LOOPBACK) != 0) return true;
  return posix::driver_of(interface) == "veth" ||
         posix::is_offload_on(interface, "tx-udp-segmentation") == false;
}

}  // namespace uroce::datapath::udp
