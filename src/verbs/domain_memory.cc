// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/domain_memory.h"

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>

namespace uroce::verbs {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

DomainMemory::DomainMemory(Pd* domain, std::size_t bytes, ResourceType type)
    : domain_(domain), type_(type) {
  if (domain_ != nullptr) domain_->users.fetch_add(1, std::memory_order_relaxed);
  const bool has_allocator = domain_ != nullptr && domain_->allocator.alloc != nullptr;
  if (!has_allocator || !ask(domain_->allocator, bytes)) own_ = engine::ZeroedMemory(bytes);
}

bool DomainMemory::ask(const Allocator& allocator, std::size_t bytes) {
  // Allocators have been seen that hand out piece after piece and trust that sizes keep alignment.
  const std::size_t whole_lines = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  void* const memory = allocator.alloc(allocator.handle, allocator.user_data, whole_lines,
                                       kAlignment, static_cast<std::uint64_t>(type_));
  if (memory == IBV_ALLOCATOR_USE_DEFAULT) return false;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0;
  if (memory != nullptr && !is_aligned) {
    allocator.free(allocator.handle, allocator.user_data, memory,
                   static_cast<std::uint64_t>(type_));
  }
  if (memory == nullptr || !is_aligned) return true;
  // It should be zeroes already; allocators have been seen that forget it.
  std::memset(memory, 0, bytes);
  given_ = {static_cast<std::byte*>(memory), bytes};
  return true;
}

DomainMemory::~DomainMemory() {
  if (domain_ == nullptr) return;
  const Allocator& allocator = domain_->allocator;
  if (!given_.empty()) {
    allocator.free(allocator.handle, allocator.user_data, given_.data(),
                   static_cast<std::uint64_t>(type_));
  }
  domain_->users.fetch_sub(1, std::memory_order_release);
}

}  // namespace uroce::verbs
