// SPDX-License-Identifier: BSD-2-Clause
// Identifiers whose address is resolved when the neighbour that leads there has answered, as
// rdma_resolve_addr has it; guarded by the agent's lock.
#pragma once

#include <optional>
#include <vector>

#include "cma/id.h"
#include "uroce/time.h"

namespace uroce::cma {

// The neighbour that the kernel would have to ask before it can send to `destination` from the
// device; it is asked. Nothing where none is needed, or nothing can be said: a device without an
// interface of the kernel's, or one that does not ask. ENETUNREACH, EHOSTUNREACH ...: the kernel
// says that no way leads there.
[[nodiscard]] int ask_neighbour(const Device& device, const Gid& destination,
                                std::optional<Gid>& next_hop);

class Neighbours {
 public:
  struct Wait {
    Id* id;
    Gid next_hop;
    Instant deadline;
    Address source_before;  // where nobody answers
    IdState state_before;
  };
  enum class Outcome : std::uint8_t { kAnswered, kSilent };

  void wait(const Wait& wait) { waits_.push_back(wait); }
  void forget(const Id& id);
  // `end(wait, outcome)` for those that wait no longer.
  template <typename End>
  void look(Instant now, End end);
  [[nodiscard]] Instant next_look(Instant now) const;

 private:
  // Many may wait for the same one: it is asked for once a look.
  struct Known {
    const Device* device = nullptr;
    Gid next_hop;
    bool has_answered = false;
  };
  [[nodiscard]] static bool has_answered(const Wait& wait, Known& known);

  std::vector<Wait> waits_;
};

template <typename End>
void Neighbours::look(Instant now, End end) {
  Known known;
  std::erase_if(waits_, [&](const Wait& wait) {
    const bool is_there = has_answered(wait, known);
    if (!is_there && now < wait.deadline) return false;
    end(wait, is_there ? Outcome::kAnswered : Outcome::kSilent);
    return true;
  });
}

}  // namespace uroce::cma
