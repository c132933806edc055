// SPDX-License-Identifier: BSD-2-Clause
// The client's side: each request goes out on all queue pairs at once, and when it has completed,
// the server is asked whether what should have happened there has. A request that has to fail
// prints with which status it did on either side, and what comes after it has new queue pairs.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer_ask.h"

// How a request differs from the plain one of its opcode.
enum {
  kInline = 1 << 0,
  kPieces = 1 << 1,
  kAdds = 1 << 2,          // an atomic changes the word as word_after has it: kAdded,
  kSwaps = 1 << 3,         // kSwapped, or not
  kWindow = 1 << 4,        // goes through a window
  kWrongKey = 1 << 5,      // from here on, the request fails
  kBeyond = 1 << 6,        // the end of what the key allows
  kUnaligned = 1 << 7,     // atomic
  kShortReceive = 1 << 8,  // half of what is sent
  kNoReceive = 1 << 9,
  kInvalidated = 1 << 10,  // the window's key, by a SEND
  kUnbound = 1 << 11,      // the window's key, by its owner
  kBroken = 1 << 12,       // the server has destroyed its queue pairs before
  kMidway = 1 << 13,       // it does it meanwhile
  kFails = kWrongKey | kBeyond | kUnaligned | kShortReceive | kNoReceive | kInvalidated | kUnbound |
           kBroken | kMidway,
  kLateReceive = 1 << 14,
  kAbandoned = 1 << 15,  // our queue pairs are destroyed in the middle of it
};

struct kind {
  const char* name;
  enum ibv_wr_opcode opcode;
  uint32_t flags;
};

static const struct kind kKinds[] = {
    {"send", IBV_WR_SEND, 0},
    {"send_imm", IBV_WR_SEND_WITH_IMM, 0},
    {"send_inline", IBV_WR_SEND, kInline},
    {"send_sge", IBV_WR_SEND, kPieces},
    {"write", IBV_WR_RDMA_WRITE, 0},
    {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0},
    {"write_inline", IBV_WR_RDMA_WRITE, kInline},
    {"write_sge", IBV_WR_RDMA_WRITE, kPieces},
    {"read", IBV_WR_RDMA_READ, 0},
    {"read_sge", IBV_WR_RDMA_READ, kPieces},
    {"add", IBV_WR_ATOMIC_FETCH_AND_ADD, kAdds},
    {"swap", IBV_WR_ATOMIC_CMP_AND_SWP, kSwaps},
    {"compare", IBV_WR_ATOMIC_CMP_AND_SWP, 0},
    {"window_write", IBV_WR_RDMA_WRITE, kWindow},
    {"window_write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, kWindow},
    {"send_invalidate", IBV_WR_SEND_WITH_INV, kWindow},
    {"late_send", IBV_WR_SEND, kLateReceive},
    {"late_write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, kLateReceive},
    {"abandoned_write", IBV_WR_RDMA_WRITE, kAbandoned},
    {"abandoned_read", IBV_WR_RDMA_READ, kAbandoned},
    {"wrong_key_write", IBV_WR_RDMA_WRITE, kWrongKey},
    {"wrong_key_write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, kWrongKey},
    {"wrong_key_read", IBV_WR_RDMA_READ, kWrongKey},
    {"wrong_key_add", IBV_WR_ATOMIC_FETCH_AND_ADD, kWrongKey},
    {"beyond_write", IBV_WR_RDMA_WRITE, kBeyond},
    {"beyond_read", IBV_WR_RDMA_READ, kBeyond},
    {"unaligned_add", IBV_WR_ATOMIC_FETCH_AND_ADD, kUnaligned},
    {"long_send", IBV_WR_SEND, kShortReceive},
    {"never_send", IBV_WR_SEND, kNoReceive},
    {"window_read", IBV_WR_RDMA_READ, kWindow | kWrongKey},  // it may only be written
    {"window_beyond", IBV_WR_RDMA_WRITE, kWindow | kBeyond},
    {"window_invalidated", IBV_WR_RDMA_WRITE, kWindow | kInvalidated},
    {"window_unbound", IBV_WR_RDMA_WRITE, kWindow | kUnbound},
    {"broken_send", IBV_WR_SEND, kBroken},
    {"broken_write", IBV_WR_RDMA_WRITE, kBroken},
    {"broken_read", IBV_WR_RDMA_READ, kBroken},
    {"midway_write", IBV_WR_RDMA_WRITE, kMidway},
};

static const struct kind* kind_of(const char* name, size_t length) {
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    if (strncmp(kKinds[i].name, name, length) == 0 && kKinds[i].name[length] == '\0') {
      return &kKinds[i];
    }
  }
  errno = EINVAL;
  fail(name);
}

static int takes_receive(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static int is_atomic(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

enum { kSendAgainMax = 10 };  // times

// One request of the command line, under way.
struct step {
  const struct kind* kind;
  struct message message;
  uint32_t window_key;
};

static struct answer ask(struct end* end, const struct step* step, enum asked what,
                         uint64_t value) {
  const struct ask ask = {
      .what = what, .opcode = step->kind->opcode, .value = value, .message = step->message};
  struct answer answer = {0};
  write_all(end->control, &ask, sizeof ask);
  if (what != kBeginAgain && what != kEnd) read_all(end->control, &answer, sizeof answer);
  return answer;
}

static uint64_t demand(struct end* end, const struct step* step, enum asked what, uint64_t value) {
  const struct answer answer = ask(end, step, what, value);
  const int status = answer.status;
  if (status == 0) return answer.value;
  errno = EPROTO;
  fprintf(stderr, "verbs_peer: %s of %u bytes, operation %u: the server has %d\n", step->kind->name,
          step->message.bytes, step->message.operation, status);
  fail(step->kind->name);
}

static void give_receives(struct end* end, const struct step* step) {
  struct step given = *step;
  if (step->kind->flags & kShortReceive) given.message.bytes /= 2;
  demand(end, &given, kGiveReceives, 0);
}

static void prepare(struct end* end, struct step* step) {
  const struct kind* kind = step->kind;
  if (kind->flags & kWindow) step->window_key = (uint32_t)ask(end, step, kBind, 0).value;
  if (kind->opcode == IBV_WR_RDMA_READ) demand(end, step, kFillTarget, 0);
  if (is_atomic(kind->opcode)) demand(end, step, kSetWords, 0);
  // Where a request without a receive fails, one is there to be flushed.
  const int shows_failure = (kind->flags & kFails) && !(kind->flags & (kBroken | kMidway));
  if ((takes_receive(kind->opcode) || shows_failure) &&
      !(kind->flags & (kNoReceive | kLateReceive | kInvalidated))) {
    give_receives(end, step);
  }
  if (kind->flags & kBroken) demand(end, step, kBreak, 0);
  if (kind->flags & kUnbound) demand(end, step, kUnbind, 0);
}

static void set_remote(const struct end* end, const struct step* step,
                       struct ibv_send_wr* request) {
  const uint32_t flags = step->kind->flags;
  uint64_t address = end->peer.target + (uint64_t)step->message.qp * slot_bytes(end);
  uint32_t key = flags & kWindow ? step->window_key : end->peer.target_key;
  // The landing lies behind the target in the same region, a window ends with the message.
  if (flags & kBeyond) address += flags & kWindow ? 1 : 2 * (uint64_t)kAreaBytes - 1;
  if (flags & kUnaligned) address += 4;
  if ((flags & kWrongKey) && !(flags & kWindow)) key ^= 0xff00;
  if (!is_atomic(step->kind->opcode)) {
    request->wr.rdma.remote_addr = address;
    request->wr.rdma.rkey = key;
    return;
  }
  const uint64_t before = word_before(step->message.operation, step->message.qp);
  request->wr.atomic.remote_addr = address;
  request->wr.atomic.rkey = key;
  if (step->kind->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request->wr.atomic.compare_add = kAddend;
  } else {
    request->wr.atomic.compare_add = flags & kSwaps ? before : before + 1;
    request->wr.atomic.swap = ~before;
  }
}

static void post(struct end* end, const struct step* step) {
  const struct kind* kind = step->kind;
  struct ibv_sge pieces[kPiecesMax];
  struct ibv_send_wr request = {
      .wr_id = step->message.qp, .opcode = kind->opcode, .sg_list = pieces};
  request.num_sge = (int)lay_out(end, kSource, &step->message, pieces);
  if (kind->flags & kInline) request.send_flags = IBV_SEND_INLINE;
  if (kind->opcode == IBV_WR_SEND_WITH_INV) {
    request.invalidate_rkey = step->window_key;
  } else {
    request.imm_data = htonl(immediate_of(step->message.operation, step->message.qp));
  }
  if (end->plan.service == IBV_QPT_UD) {
    request.wr.ud.ah = end->ah;
    request.wr.ud.remote_qpn = end->peer.qpns[step->message.qp];
    request.wr.ud.remote_qkey = kQkey;
  } else if (kind->opcode != IBV_WR_SEND && kind->opcode != IBV_WR_SEND_WITH_IMM &&
             kind->opcode != IBV_WR_SEND_WITH_INV) {
    set_remote(end, step, &request);
  }
  struct ibv_send_wr* bad = NULL;
  check(ibv_post_send(end->qps[step->message.qp], &request, &bad), "ibv_post_send");
}

static int brings_data(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
}

static void post_all(struct end* end, struct step* step) {
  for (uint32_t qp = 0; qp < end->plan.qps; ++qp) {
    step->message.qp = qp;
    if (brings_data(step->kind->opcode)) {
      memset(slot(end, kSource, qp), 0, step->message.bytes);
    } else {
      fill(end, kSource, &step->message);
    }
    post(end, step);
  }
}

// The first status that is not 0.
static int collect(struct end* end) {
  int status = 0;
  for (uint32_t i = 0; i < end->plan.qps; ++i) {
    const struct ibv_wc completion = next_completion(end, kPatience);
    if (status == 0) status = (int)completion.status;
  }
  return status;
}

static const char* name_of(int status) {
  return status == kStatusNone ? "nothing" : ibv_wc_status_str((enum ibv_wc_status)status);
}

static _Noreturn void fail_with(const char* when, const struct step* step, int status) {
  fprintf(stderr, "%s of %u bytes, operation %u, %s: %s\n", step->kind->name, step->message.bytes,
          step->message.operation, when, name_of(status));
  errno = EIO;
  fail(step->kind->name);
}

// Nothing tells when a message of an unreliable service was lost: what has not arrived in time is
// sent again, and counted.
static void expect_receives(struct end* end, struct step* step) {
  uint64_t arrived = demand(end, step, kTakeReceives, is_reliable(end) ? step->window_key : 0);
  for (int left = kSendAgainMax; !is_reliable(end) && arrived != all_qps(end); --left) {
    if (left == 0) fail_with("for ever", step, kStatusNone);
    for (uint32_t qp = 0; qp < end->plan.qps; ++qp) {
      if (arrived >> qp & 1) continue;
      step->message.qp = qp;
      post(end, step);
      const int status = (int)next_completion(end, kPatience).status;
      if (status != 0) fail_with("sent again", step, status);
      ++end->sent_again;
    }
    arrived = demand(end, step, kTakeReceives, arrived);
  }
}

static void expect_data(struct end* end, struct step* step) {
  const struct kind* kind = step->kind;
  for (uint32_t qp = 0; qp < end->plan.qps && brings_data(kind->opcode); ++qp) {
    step->message.qp = qp;
    uint64_t word = 0;
    memcpy(&word, slot(end, kSource, qp), sizeof word);
    const int right = kind->opcode == IBV_WR_RDMA_READ
                          ? holds(end, kSource, &step->message)
                          : word == word_before(step->message.operation, qp);
    if (right) continue;
    errno = EILSEQ;
    fail(kind->name);
  }
  if (kind->opcode == IBV_WR_RDMA_WRITE) demand(end, step, kLookAtTarget, 0);
  if (takes_receive(kind->opcode)) expect_receives(end, step);
  if (is_atomic(kind->opcode)) {
    const uint32_t flags = kind->flags;
    demand(end, step, kLookAtWords,
           flags & kAdds ? kAdded : (flags & kSwaps ? kSwapped : kUntouched));
  }
}

static void begin_again(struct end* end, const struct step* step) {
  ask(end, step, kBeginAgain, 0);
  destroy_qps(end);
  establish(end);
}

// SEND with invalidate takes the window away before the request comes.
static void invalidate(struct end* end, const struct step* step) {
  static const struct kind kSendInvalidate = {"send_invalidate", IBV_WR_SEND_WITH_INV, 0};
  struct step send = *step;
  send.kind = &kSendInvalidate;
  give_receives(end, &send);
  post_all(end, &send);
  if (collect(end) != 0) fail("send_invalidate");
  demand(end, &send, kTakeReceives, send.window_key);
  give_receives(end, step);
}

static void run_failing(struct end* end, struct step* step) {
  const uint32_t flags = step->kind->flags;
  struct answer answer = {kStatusNone, 0};
  if (flags & kInvalidated) invalidate(end, step);
  if (flags & kMidway) {
    const struct ask asked = {.what = kBreakInMidway};
    write_all(end->control, &asked, sizeof asked);
  }
  post_all(end, step);
  const int status = collect(end);
  if (flags & kMidway) {
    read_all(end->control, &answer, sizeof answer);
    answer.status = kStatusNone;
  } else if (!(flags & (kBroken | kNoReceive))) {
    answer = ask(end, step, kTellStatus, 0);
  }
  printf("%s: requester: %s; responder: %s\n", step->kind->name, name_of(status),
         name_of(answer.status));
  begin_again(end, step);
}

static void run_good(struct end* end, struct step* step) {
  post_all(end, step);
  if (step->kind->flags & kLateReceive) {
    const int status = (int)next_completion(end, 0.03).status;
    if (status != kStatusNone) fail_with("without a receive", step, status);
    give_receives(end, step);
  }
  const int status = collect(end);
  if (status != 0) fail_with("at the end", step, status);
  expect_data(end, step);
}

static void run_request(struct end* end, const char* text, uint32_t operation) {
  const size_t length = strcspn(text, ":");
  struct step step = {.kind = kind_of(text, length),
                      .message = {.operation = operation, .bytes = 64}};
  if (text[length] == ':') step.message.bytes = (uint32_t)strtoul(text + length + 1, NULL, 0);
  if (is_atomic(step.kind->opcode)) step.message.bytes = sizeof(uint64_t);
  step.message.pieces = step.kind->flags & kPieces ? kPiecesMax : 1;
  if (step.message.bytes > slot_bytes(end)) {
    errno = EMSGSIZE;
    fail(text);
  }
  prepare(end, &step);
  if (step.kind->flags & kAbandoned) {
    post_all(end, &step);
    begin_again(end, &step);
  } else if (step.kind->flags & kFails) {
    run_failing(end, &step);
  } else {
    run_good(end, &step);
  }
}

void run_client(struct end* end, char** requests) {
  write_all(end->control, &end->plan, sizeof end->plan);
  establish(end);
  uint32_t operation = 0;
  for (char** request = requests; *request != NULL; ++request) {
    run_request(end, *request, ++operation);
  }
  const struct ask over = {.what = kEnd};
  write_all(end->control, &over, sizeof over);
  printf("%u requests on %u queue pairs, all as they should be", operation, end->plan.qps);
  printf(end->sent_again != 0 ? "; %u messages were lost and sent again\n" : "\n", end->sent_again);
}
