// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/loopback.h"

#include <algorithm>

namespace uroce::datapath {

void Loopback::add(const rte_mbuf* sent) {
  if (count_ == waiting_.size()) return;
  rte_mbuf* const copy = port_.copy(sent);
  if (copy != nullptr) waiting_[count_++] = copy;
}

std::size_t Loopback::take(std::span<rte_mbuf*> packets) {
  const std::size_t taken = std::min(count_, packets.size());
  std::copy_n(waiting_.begin(), taken, packets.begin());
  std::copy(waiting_.begin() + static_cast<std::ptrdiff_t>(taken),
            waiting_.begin() + static_cast<std::ptrdiff_t>(count_), waiting_.begin());
  count_ -= taken;
  return taken;
}

void Loopback::clear() {
  rte_pktmbuf_free_bulk(waiting_.data(), static_cast<unsigned>(count_));
  count_ = 0;
}

}  // namespace uroce::datapath
