// SPDX-License-Identifier: BSD-2-Clause
// The receiving side from one other engine (or our own): its ring, as offered by it.
#pragma once

#include <cstdint>

#include "datapath/directory/directory.h"
#include "datapath/shm/control_socket.h"
#include "datapath/shm/ring.h"
#include "datapath/shm/ring_memory.h"

namespace uroce::datapath::shm {

class Inbound {
 public:
  enum class Opened : std::uint8_t { kYes, kBefore, kNot };
  // Takes the descriptor in any case. kBefore: the same ring was offered once more. kNot: what was
  // offered is no ring, or cannot be mapped.
  [[nodiscard]] Opened open(const ControlSocket::Received& received);
  void close() { memory_ = RingMemory(); }
  [[nodiscard]] bool is_open() const { return memory_.data_bytes() != 0; }

  [[nodiscard]] SlotHandle from() const { return from_; }
  [[nodiscard]] RingReader& reader() { return reader_; }
  [[nodiscard]] bool has_news() const { return reader_.has_news(); }

  bool is_lent = false;  // what the last rx_burst handed out lies here

 private:
  SlotHandle from_;
  RingMemory memory_;
  RingReader reader_;
};

}  // namespace uroce::datapath::shm
