// SPDX-License-Identifier: BSD-2-Clause
// QP numbers of one device in one process, out of the blocks that the host's directory gives it.
//
// A freed number is used again as late as possible, because packets for its former QP may still be
// on their way: fresh numbers first, then the one freed longest ago, but only while enough lie in
// between; else another block is claimed. Blocks go back when the device is closed. The caller
// serialises.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "transport/demux.h"
#include "uroce/ids.h"

namespace uroce::engine {

// Where blocks come from: the directory, or a test's own list.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual std::optional<std::uint32_t> claim_block() = 0;
  virtual void release_block(std::uint32_t block) = 0;
  // In a forked child: closes what it holds; the parent keeps it.
  virtual void abandon_in_child() = 0;
};

class QpnAllocator {
 public:
  // How many other numbers are freed before one is used again, while blocks are to be had.
  static constexpr std::size_t kRestAtLeast = 128;

  explicit QpnAllocator(BlockSource& source) : source_(source) {}
  ~QpnAllocator();
  QpnAllocator(const QpnAllocator&) = delete;
  QpnAllocator& operator=(const QpnAllocator&) = delete;

  struct Allocation {
    Qpn number;
    // Not null when the number is the first of a block that the demux does not know yet.
    transport::QpBlock* new_block = nullptr;
  };
  // Nothing when every block of the host is taken.
  [[nodiscard]] std::optional<Allocation> allocate();
  void release(Qpn number) { resting_.push_back(number); }

 private:
  struct Block {
    std::uint32_t number = 0;
    std::unique_ptr<transport::QpBlock> slots;
  };
  [[nodiscard]] Allocation reuse_oldest();

  BlockSource& source_;
  std::vector<Block> blocks_;
  std::uint32_t used_of_last_ = kQpnsPerBlock;  // numbers of the newest block given out
  std::deque<Qpn> resting_;
};

}  // namespace uroce::engine
