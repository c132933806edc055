// SPDX-License-Identifier: BSD-2-Clause
#include "transport/data_frame.h"

namespace uroce::transport {

Gathered gather_elements(const HcaState& hca, const Qp& qp, const SendWqe& wqe,
                         std::uint64_t offset, std::uint32_t bytes, std::span<ConstBytes> out) {
  memory::SgeCursor cursor({wqe.sges(), wqe.sge_count});
  cursor.seek(offset);
  const auto taken = cursor.take(bytes, hca.regions, qp.pd, memory::Access::kNone, out);
  return {taken.pieces, taken.fault != memory::MemoryFault::kNone || taken.bytes != bytes};
}

Gathered gather_seldom(const HcaState& hca, const Qp& qp, const SendWqe& wqe, std::uint64_t offset,
                       std::uint32_t bytes, TxBurst& burst) {
  return gather(hca, qp, wqe, offset, bytes, burst);
}

}  // namespace uroce::transport
