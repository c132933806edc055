// SPDX-License-Identifier: BSD-2-Clause
// An indirection table of receive work queues (man ibv_create_rwq_ind_table): a power of two of
// places, each with a queue; one queue may have several.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/qp.h"
#include "verbs/context.h"

namespace uroce::verbs {

struct Wq;

struct RwqTable final : Made {
  RwqTable(Context& owner, std::size_t places) : Made(Kind::kRwqTable, owner), size(places) {}

  [[nodiscard]] std::span<transport::Qp* const> queues() const { return {cores.get(), size}; }

  std::size_t size;
  std::unique_ptr<Wq*[]> wqs;
  std::unique_ptr<transport::Qp*[]> cores;  // theirs
  std::atomic<std::uint32_t> users{0};      // QPs

 private:
  void leave_device() override;
};

// Null, and errno. `object_of` says what stands behind a public queue.
[[nodiscard]] RwqTable* create_rwq_table(Context& context,
                                         const ibv_rwq_ind_table_init_attr& attributes,
                                         Wq* (*object_of)(ibv_wq*));
// 0, or EBUSY.
[[nodiscard]] int destroy_rwq_table(RwqTable* table);

}  // namespace uroce::verbs
