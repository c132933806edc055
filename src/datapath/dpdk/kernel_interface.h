// SPDX-License-Identifier: BSD-2-Clause
// The kernel's side of an interface that a packet socket shares with it: what it is, and a socket
// on port 4791 that keeps the kernel from answering our packets with "port unreachable".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "datapath/neighbour/address.h"

namespace uroce::datapath {

struct KernelInterface {
  std::string name;
  unsigned index = 0;
  std::uint16_t mtu_bytes = 0;  // at most 65,535: lo has 65,536
  bool is_loopback = false;
};

// Its addresses, of both families.
[[nodiscard]] std::vector<InterfaceAddress> addresses_of(const KernelInterface& interface);

[[nodiscard]] Result<KernelInterface> find_kernel_interface(std::string_view name);

// Holds UDP port 4791 of one interface, for both families, and drops all that arrives there. Any
// number of processes may (SO_REUSEPORT); where somebody else has the port, it is held already.
class HeldPort {
 public:
  explicit HeldPort(const std::string& interface_name);
  ~HeldPort() { release(); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  void release();

 private:
  std::vector<int> descriptors_;
};

// While held, an interface hears what other stations are sent. The kernel counts its holders, and
// lets go for a process that ends.
class PromiscuousInterface {
 public:
  PromiscuousInterface() = default;
  ~PromiscuousInterface() { release(); }
  PromiscuousInterface(const PromiscuousInterface&) = delete;
  PromiscuousInterface& operator=(const PromiscuousInterface&) = delete;

  // Where it may not be had, what comes anyway comes.
  void hold(unsigned interface_index);
  void release();

 private:
  int descriptor_ = -1;
};

}  // namespace uroce::datapath
