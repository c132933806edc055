// SPDX-License-Identifier: BSD-2-Clause
// Which identifiers of this process have which port, and ports for those that ask for any. A port
// may be had more than once, as long as no two connections have both addresses and both ports in
// common. What other processes hold by name stands in the host's directory; ports that were only
// drawn stand in no table of the host's, of which there are more than it has room for: each process
// draws in a slice of the range first, that of its slot, and so seldom as another one does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/prng.h"
#include "cma/id.h"

namespace uroce::cma {

class PortTable {
 public:
  // With the port of its source, which stays until it is erased; what has none is not in here.
  void insert(const Id& id);
  void erase(const Id& id);

  // May `id` have the port of its source by name? 0 or an errno.
  [[nodiscard]] int check(const Id& id, bool to_listen) const;
  // A port with which `id` is told from all others. Nothing: there is none left.
  [[nodiscard]] std::optional<std::uint16_t> choose(const Id& id, std::uint32_t slot,
                                                    Prng& random) const;

 private:
  struct Range {
    std::uint32_t first, count;
  };
  [[nodiscard]] bool is_unique(const Id& id, std::uint16_t port) const;
  [[nodiscard]] std::optional<std::uint16_t> first_unique(const Id& id, Range range,
                                                          std::uint32_t offset) const;

  std::multimap<std::uint64_t, const Id*> by_service_;
};

}  // namespace uroce::cma
