// SPDX-License-Identifier: BSD-2-Clause
// One process owns a DPDK port. Most drivers find out late, or never, that another process has the
// same memif socket or NIC; so the first one claims the name, and a second gets told who has it.
//
// The claim is a listening socket in the abstract name space: it is per network namespace like the
// ports, leaves no file, and goes with the process however that ends.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace uroce::datapath {

class PortClaim {
 public:
  // An empty identity is claimed by anybody.
  [[nodiscard]] static Result<std::unique_ptr<PortClaim>> take(const std::string& identity);
  explicit PortClaim(int descriptor) : descriptor_(descriptor) {}
  ~PortClaim() { release(); }
  PortClaim(const PortClaim&) = delete;
  PortClaim& operator=(const PortClaim&) = delete;

  void release();

 private:
  int descriptor_;
};

}  // namespace uroce::datapath
