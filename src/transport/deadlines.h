// SPDX-License-Identifier: BSD-2-Clause
// The QPs that wait for a point in time, soonest first: a binary heap of QPs in memory of the
// engine.
//
// A deadline that moves later (every ACK does that) only changes the QP; the heap keeps the older,
// earlier key and puts the QP back when that one is due. So progress costs a store, and an idle QP
// costs one early look.
#pragma once

#include <cstdint>
#include <span>

#include "uroce/time.h"

namespace uroce::transport {

struct Qp;

class Deadlines {
 public:
  // `heap` has room for every QP of the device and is not shrunk; what it held moves along.
  void set_memory(std::span<Qp*> heap);

  // The QP's deadline becomes `when`; never() takes it away.
  void set(Qp& qp, Instant when);
  void remove(Qp& qp);
  // A QP whose deadline has come, which is thereby unset; null when there is none.
  [[nodiscard]] Qp* pop_due(Instant now);
  // No deadline is before this.
  [[nodiscard]] Instant next() const;

 private:
  void place(std::uint32_t index, Qp& qp);
  void sift_up(std::uint32_t index);
  void sift_down(std::uint32_t index);
  void take_out(std::uint32_t index);

  std::span<Qp*> heap_;
  std::uint32_t count_ = 0;
};

}  // namespace uroce::transport
