// SPDX-License-Identifier: BSD-2-Clause
// The rings of an object: from the allocator of the parent domain that it belongs to, if there is
// one and it wants to (man ibv_alloc_parent_domain), else our own. As long as there is such memory
// the domain is in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/zeroed_memory.h"
#include "verbs/pd.h"

namespace uroce::verbs {

// What an allocator is told that it allocates for; the codes are ours to give.
enum class ResourceType : std::uint64_t { kCq = 1, kQp = 2, kSrq = 3, kWq = 4 };

class DomainMemory {
 public:
  DomainMemory() = default;
  // Empty when there is no memory. `domain` may be null.
  DomainMemory(Pd* domain, std::size_t bytes, ResourceType type);
  ~DomainMemory();
  DomainMemory(DomainMemory&& other) noexcept { swap(*this, other); }
  DomainMemory& operator=(DomainMemory&& other) noexcept {
    swap(*this, other);
    return *this;
  }

  explicit operator bool() const { return own_ || !given_.empty(); }
  [[nodiscard]] std::span<std::byte> bytes() const {
    return given_.empty() ? own_.bytes() : given_;
  }

  friend void swap(DomainMemory& a, DomainMemory& b) noexcept {
    swap(a.own_, b.own_);
    std::swap(a.given_, b.given_);
    std::swap(a.domain_, b.domain_);
    std::swap(a.type_, b.type_);
  }

 private:
  // False: the allocator leaves it to us.
  bool ask(const Allocator& allocator, std::size_t bytes);

  engine::ZeroedMemory own_;
  std::span<std::byte> given_;
  Pd* domain_ = nullptr;
  ResourceType type_{};
};

}  // namespace uroce::verbs
