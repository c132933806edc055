// SPDX-License-Identifier: BSD-2-Clause
// From a QPN to its QP: one table a block of 256 QPNs, found by the block's number. The engine
// hands in the memory when it claims a block.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "uroce/ids.h"

namespace uroce::transport {

struct Qp;

using QpBlock = std::array<Qp*, kQpnsPerBlock>;
inline constexpr std::size_t kQpBlockCount = std::size_t{1} << 16;

class Demux {
 public:
  // `blocks`: kQpBlockCount null pointers, of which only the touched pages cost memory.
  void set_memory(std::span<QpBlock*> blocks) { blocks_ = blocks; }
  void add_block(std::uint32_t block, QpBlock& memory) { blocks_[block] = &memory; }
  void remove_block(std::uint32_t block) { blocks_[block] = nullptr; }

  void insert(Qpn number, Qp& qp) { slot(number) = &qp; }
  void erase(Qpn number) { slot(number) = nullptr; }
  // Null when nobody has this number. `number` is 24 bits.
  [[nodiscard]] Qp* find(Qpn number) const {
    QpBlock* block = blocks_[qpn_block(number)];
    return block == nullptr ? nullptr : (*block)[number.value % kQpnsPerBlock];
  }

 private:
  [[nodiscard]] Qp*& slot(Qpn number) const {
    return (*blocks_[qpn_block(number)])[number.value % kQpnsPerBlock];
  }

  std::span<QpBlock*> blocks_;
};

}  // namespace uroce::transport
