// SPDX-License-Identifier: BSD-2-Clause
// From a QPN to its QP: one table a block of 256 QPNs, found by the block's number. The engine
// hands in the memory when it claims a block. The shared receive queues of XRC have their numbers
// out of the same blocks, so that they too are of one process only.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "uroce/ids.h"

namespace uroce::transport {

struct Qp;
struct Srq;

// A QP, an SRQ or nobody: the lowest bit of an address is free to tell which.
class NumberOwner {
 public:
  void set(Qp* qp) { value_ = std::bit_cast<std::uintptr_t>(qp); }
  void set(Srq* srq) { value_ = std::bit_cast<std::uintptr_t>(srq) | kIsSrq; }
  void clear() { value_ = 0; }
  [[nodiscard]] Qp* qp() const { return is_srq() ? nullptr : std::bit_cast<Qp*>(value_); }
  [[nodiscard]] Srq* srq() const {
    return is_srq() ? std::bit_cast<Srq*>(value_ & ~kIsSrq) : nullptr;
  }

 private:
  static constexpr std::uintptr_t kIsSrq = 1;
  [[nodiscard]] bool is_srq() const { return (value_ & kIsSrq) != 0; }

  std::uintptr_t value_ = 0;
};

using QpBlock = std::array<NumberOwner, kQpnsPerBlock>;
inline constexpr std::size_t kQpBlockCount = std::size_t{1} << 16;

class Demux {
 public:
  // `blocks`: kQpBlockCount null pointers, of which only the touched pages cost memory.
  void set_memory(std::span<QpBlock*> blocks) { blocks_ = blocks; }
  void add_block(std::uint32_t block, QpBlock& memory) { blocks_[block] = &memory; }
  void remove_block(std::uint32_t block) { blocks_[block] = nullptr; }

  void insert(Qpn number, Qp& qp) { slot(number).set(&qp); }
  void insert(Qpn number, Srq& srq) { slot(number).set(&srq); }
  void erase(Qpn number) { slot(number).clear(); }
  // Null when no QP has this number. `number` is 24 bits.
  [[nodiscard]] Qp* find(Qpn number) const {
    const QpBlock* block = blocks_[qpn_block(number)];
    return block == nullptr ? nullptr : (*block)[number.value % kQpnsPerBlock].qp();
  }
  // Null when no SRQ of XRC has it.
  [[nodiscard]] Srq* find_srq(Qpn number) const {
    const QpBlock* block = blocks_[qpn_block(number)];
    return block == nullptr ? nullptr : (*block)[number.value % kQpnsPerBlock].srq();
  }

 private:
  [[nodiscard]] NumberOwner& slot(Qpn number) const {
    return (*blocks_[qpn_block(number)])[number.value % kQpnsPerBlock];
  }

  std::span<QpBlock*> blocks_;
};

}  // namespace uroce::transport
