// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/rwq_table.h"

#include <cerrno>
#include <new>

#include "engine/engine.h"
#include "verbs/failed.h"
#include "verbs/limits.h"
#include "verbs/wq.h"

namespace uroce::verbs {
namespace {

int check(const Context& context, const ibv_rwq_ind_table_init_attr& a) {
  if (context.engine().is_abandoned()) return EIO;
  if (!context.engine().has_raw_packets() || a.comp_mask != 0) return EOPNOTSUPP;
  const bool is_valid =
      a.ind_tbl != nullptr && a.log_ind_tbl_size < 32 && kRwqTableMax >> a.log_ind_tbl_size != 0;
  return is_valid ? 0 : EINVAL;
}

// False: one of them is none of this device's.
bool fill(RwqTable& table, ibv_wq* const* list, Wq* (*object_of)(ibv_wq*)) {
  for (std::size_t i = 0; i < table.size; ++i) {
    Wq* const wq = list[i] == nullptr ? nullptr : object_of(list[i]);
    if (wq == nullptr || &wq->context != &table.context) return false;
    table.wqs[i] = wq;
    table.cores[i] = &wq->core;
  }
  return true;
}

}  // namespace

RwqTable* create_rwq_table(Context& context, const ibv_rwq_ind_table_init_attr& attributes,
                           Wq* (*object_of)(ibv_wq*)) {
  if (const int error = check(context, attributes); error != 0) return failed(error);
  const std::size_t size = std::size_t{1} << attributes.log_ind_tbl_size;
  std::unique_ptr<RwqTable> table(new (std::nothrow) RwqTable(context, size));
  if (table == nullptr) return failed(ENOMEM);
  table->wqs.reset(new (std::nothrow) Wq*[size]);
  table->cores.reset(new (std::nothrow) transport::Qp*[size]);
  if (table->wqs == nullptr || table->cores == nullptr) return failed(ENOMEM);
  if (!fill(*table, attributes.ind_tbl, object_of)) return failed(EINVAL);
  if (!context.engine().quotas().rwq_tables.take()) return failed(ENOMEM);
  for (std::size_t i = 0; i < size; ++i) {
    table->wqs[i]->users.fetch_add(1, std::memory_order_relaxed);
  }
  table->begin();
  return table.release();
}

void RwqTable::leave_device() { context.engine().quotas().rwq_tables.give_back(); }

int destroy_rwq_table(RwqTable* table) {
  if (table->users.load(std::memory_order_acquire) != 0) return EBUSY;
  table->end();
  for (std::size_t i = 0; i < table->size; ++i) {
    table->wqs[i]->users.fetch_sub(1, std::memory_order_release);
  }
  delete table;
  return 0;
}

}  // namespace uroce::verbs
