// SPDX-License-Identifier: BSD-2-Clause
// What the client of verbs_peer asks of the server, always for all queue pairs at once.
#ifndef UROCE_TESTS_INTEROP_PEER_ASK_H
#define UROCE_TESTS_INTEROP_PEER_ASK_H

#include "peer.h"

enum asked {
  kGiveReceives,   // of `message.bytes`, one to each queue pair
  kTakeReceives,   // each must have completed as the opcode has it, with the data; of an unreliable
                   // service, which have: `value` and the answer's are sets of queue pairs
  kFillTarget,     // for a READ
  kLookAtTarget,   // after a WRITE
  kSetWords,       // for an atomic
  kLookAtWords,    // after it: `value` is the operation
  kBind,           // a type 2 window over the first slot's target; the answer is its key
  kUnbind,         // by a local invalidate
  kTellStatus,     // of the next completion
  kBreak,          // destroy the queue pairs
  kBreakInMidway,  // as soon as something has arrived in the target
  kBeginAgain,     // queue pairs anew
  kEnd,
};

enum word { kAdded, kSwapped, kUntouched };

struct ask {
  uint32_t what;  // enum asked
  uint32_t opcode;
  uint64_t value;
  struct message message;
};

struct answer {
  int32_t status;  // 0: as asked
  uint64_t value;
};

static inline int is_reliable(const struct end* end) { return end->plan.service == IBV_QPT_RC; }

static inline uint64_t all_qps(const struct end* end) { return UINT64_MAX >> (64 - end->plan.qps); }

enum { kAddend = 0x01020304 };

static inline uint64_t word_before(uint32_t operation, uint32_t qp) {
  return UINT64_C(0x1122334455667788) * (operation + 1) + qp;
}

static inline uint64_t word_after(enum word word, uint32_t operation, uint32_t qp) {
  const uint64_t before = word_before(operation, qp);
  if (word == kAdded) return before + kAddend;
  return word == kSwapped ? ~before : before;
}

static inline uint32_t immediate_of(uint32_t operation, uint32_t qp) {
  return 0xca000000 | operation << 8 | qp;
}

#endif
