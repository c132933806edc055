// SPDX-License-Identifier: BSD-2-Clause
// The paths of address handles that are gone. A datagram that was posted is sent although its
// handle is destroyed meanwhile, so a path is closed when no posted datagram needs it any more;
// looked at whenever a handle is made or destroyed.
#pragma once

#include <mutex>

#include "engine/engine.h"

namespace uroce::verbs {

struct AhPath;

class UnusedPaths {
 public:
  // A list linked by AhPath::next, or null.
  void add(AhPath* paths);
  // Closes and frees those that nobody needs.
  void sweep(engine::Engine& engine);

 private:
  std::mutex mutex_;
  AhPath* paths_ = nullptr;
};

}  // namespace uroce::verbs
