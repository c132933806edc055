// SPDX-License-Identifier: BSD-2-Clause
// What lies where in a peer's memory, and what it has to be: a byte of a message is a function of
// the operation, the queue pair and its place, so that no mistake about any of them stays unseen.
#include <stdio.h>

#include "peer.h"

static uint8_t expected_byte(const struct message* message, uint32_t at) {
  const uint32_t place = at ^ (at >> 8) ^ (at >> 16);
  return (uint8_t)(place + 31 * message->operation + 7 * message->qp);
}

uint32_t slot_bytes(const struct end* end) { return kAreaBytes / end->plan.qps & ~UINT32_C(63); }

uint8_t* slot(const struct end* end, enum area area, uint32_t qp) {
  return end->memory + (size_t)area * kAreaBytes + (size_t)qp * slot_bytes(end);
}

uint32_t lay_out(const struct end* end, enum area area, const struct message* message,
                 struct ibv_sge* pieces) {
  if (message->bytes == 0) return 0;
  const uint32_t wanted = area == kTarget ? 1 : message->pieces;  // keys know no pieces
  const uint32_t count = message->bytes < wanted ? 1 : wanted;
  uint64_t next = (uintptr_t)slot(end, area, message->qp) + message->bytes;
  uint32_t left = message->bytes;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = i + 1 == count ? left : message->bytes / count;
    next -= length;
    left -= length;
    pieces[i] = (struct ibv_sge){.addr = next, .length = length, .lkey = end->mr->lkey};
  }
  return count;
}

void fill(const struct end* end, enum area area, const struct message* message) {
  struct ibv_sge pieces[kPiecesMax];
  const uint32_t count = lay_out(end, area, message, pieces);
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t* data = (uint8_t*)(uintptr_t)pieces[i].addr;
    for (uint32_t j = 0; j < pieces[i].length; ++j) data[j] = expected_byte(message, at++);
  }
}

void wait_for_end(const struct end* end, enum area area, const struct message* message) {
  struct ibv_sge pieces[kPiecesMax];
  const uint32_t count = lay_out(end, area, message, pieces);
  if (count == 0) return;
  const struct ibv_sge* last = &pieces[count - 1];
  const volatile uint8_t* data = (const volatile uint8_t*)(uintptr_t)last->addr;
  const double deadline = now() + kPatience;
  while (data[last->length - 1] != expected_byte(message, message->bytes - 1) && now() < deadline) {
  }
}

int holds(const struct end* end, enum area area, const struct message* message) {
  struct ibv_sge pieces[kPiecesMax];
  const uint32_t count = lay_out(end, area, message, pieces);
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* data = (const uint8_t*)(uintptr_t)pieces[i].addr;
    for (uint32_t j = 0; j < pieces[i].length; ++j, ++at) {
      if (data[j] == expected_byte(message, at)) continue;
      fprintf(stderr, "operation %u, queue pair %u: byte %u of %u is %02x, not %02x\n",
              message->operation, message->qp, at, message->bytes, data[j],
              expected_byte(message, at));
      return 0;
    }
  }
  return 1;
}
