// SPDX-License-Identifier: BSD-2-Clause
// The server's side: does as it is asked, and compares all that completes with what should have.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peer_ask.h"

enum { kWrong = 1000 };  // no completion status

static int wrong(const char* what, uint64_t got, uint64_t expected) {
  fprintf(stderr, "%s is %llx, not %llx\n", what, (unsigned long long)got,
          (unsigned long long)expected);
  return kWrong;
}

static void give_receive(struct end* end, const struct message* message) {
  struct ibv_sge pieces[kPiecesMax + 1] = {{.addr = (uintptr_t)slot(end, kSource, message->qp),
                                            .length = kGrhBytes,
                                            .lkey = end->mr->lkey}};
  const uint32_t before = end->plan.service == IBV_QPT_UD ? 1 : 0;  // the GRH
  const uint32_t count = before + lay_out(end, kLanding, message, pieces + before);
  struct ibv_recv_wr request = {.wr_id = message->qp, .sg_list = pieces, .num_sge = (int)count};
  struct ibv_recv_wr* bad = NULL;
  if (end->srq != NULL) {
    check(ibv_post_srq_recv(end->srq, &request, &bad), "ibv_post_srq_recv");
  } else {
    check(ibv_post_recv(end->qps[message->qp], &request, &bad), "ibv_post_recv");
  }
}

static int look_at_immediate(const struct ask* ask, const struct ibv_wc* completion, uint32_t qp) {
  const int due = ask->opcode == IBV_WR_SEND_WITH_IMM || ask->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const uint32_t expected = immediate_of(ask->message.operation, qp);
  if (!due) {
    return completion->wc_flags & IBV_WC_WITH_IMM ? wrong("wc_flags", completion->wc_flags, 0) : 0;
  }
  if (!(completion->wc_flags & IBV_WC_WITH_IMM)) return wrong("wc_flags", completion->wc_flags, 2);
  if (ntohl(completion->imm_data) == expected) return 0;
  return wrong("imm_data", ntohl(completion->imm_data), expected);
}

static int is_rxe(const struct end* end) {
  return strncmp(ibv_get_device_name(end->context->device), "rxe", 3) == 0;
}

static int look_at_invalidation(const struct end* end, const struct ask* ask,
                                const struct ibv_wc* completion) {
  if (ask->opcode != IBV_WR_SEND_WITH_INV) return 0;
  // rxe hands out the kernel's flag, which is 4 where libibverbs' is 8.
  const unsigned flags = IBV_WC_WITH_INV | (is_rxe(end) ? IBV_WC_IP_CSUM_OK : 0);
  if (!(completion->wc_flags & flags)) return wrong("wc_flags", completion->wc_flags, flags);
  if (completion->invalidated_rkey == ask->value) return 0;
  return wrong("invalidated_rkey", completion->invalidated_rkey, ask->value);
}

// A receive may have been taken by any queue pair when they share them: where it lies tells wr_id.
static int look_at_data(struct end* end, const struct ask* ask, const struct ibv_wc* completion,
                        uint32_t qp) {
  struct message message = ask->message;
  message.qp = qp;
  if (ask->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    return holds(end, kTarget, &message) ? 0 : kWrong;
  }
  if (end->plan.use_srq && completion->wr_id != qp) {
    memmove(slot(end, kSource, qp), slot(end, kLanding, (uint32_t)completion->wr_id),
            message.bytes);
    return holds(end, kSource, &message) ? 0 : kWrong;
  }
  return holds(end, kLanding, &message) ? 0 : kWrong;
}

static int look_at_receive(struct end* end, const struct ask* ask, const struct ibv_wc* completion,
                           uint32_t qp) {
  const int is_write = ask->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const enum ibv_wc_opcode opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (completion->opcode != opcode) return wrong("opcode", completion->opcode, opcode);
  const uint32_t grh = end->plan.service == IBV_QPT_UD ? kGrhBytes : 0;
  const uint32_t bytes = ask->message.bytes + grh;
  if (completion->byte_len != bytes) return wrong("byte_len", completion->byte_len, bytes);
  if (grh != 0 && completion->src_qp != end->peer.qpns[qp]) {
    return wrong("src_qp", completion->src_qp, end->peer.qpns[qp]);
  }
  int status = look_at_immediate(ask, completion, qp);
  if (status == 0) status = look_at_invalidation(end, ask, completion);
  return status != 0 ? status : look_at_data(end, ask, completion, qp);
}

// All of a reliable service; of another, what comes in time.
static struct answer take_receives(struct end* end, const struct ask* ask) {
  struct answer answer = {0, is_reliable(end) ? 0 : ask->value};
  while (answer.status == 0 && answer.value != all_qps(end)) {
    const struct ibv_wc completion =
        next_completion(end, is_reliable(end) ? kPatience : kUnreliablePatience);
    if ((int)completion.status == kStatusNone && !is_reliable(end)) break;
    answer.status = (int)completion.status;
    if (answer.status != 0) break;
    const uint32_t qp = qp_of(end, &completion);
    answer.status = look_at_receive(end, ask, &completion, qp);
    answer.value |= UINT64_C(1) << qp;
  }
  return answer;
}

static uint64_t* word_of(const struct end* end, uint32_t qp) {
  return (uint64_t*)(void*)slot(end, kTarget, qp);
}

static int look_at_words(const struct end* end, const struct ask* ask) {
  for (uint32_t qp = 0; qp < end->plan.qps; ++qp) {
    const uint64_t expected = word_after((enum word)ask->value, ask->message.operation, qp);
    if (*word_of(end, qp) != expected) return wrong("the word", *word_of(end, qp), expected);
  }
  return 0;
}

static void post_and_wait(struct end* end, struct ibv_send_wr* request, const char* what) {
  struct ibv_send_wr* bad = NULL;
  check(ibv_post_send(end->qps[0], request, &bad), what);
  const struct ibv_wc completion = next_completion(end, kPatience);
  if (completion.status == IBV_WC_SUCCESS) return;
  errno = EIO;
  fail(what);
}

static uint32_t bind_window(struct end* end, const struct ask* ask) {
  if (end->window != NULL) check(ibv_dealloc_mw(end->window), "ibv_dealloc_mw");
  end->window = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
  if (end->window == NULL) fail("ibv_alloc_mw");
  const uint32_t key = ibv_inc_rkey(end->window->rkey);
  struct ibv_send_wr request = {
      .opcode = IBV_WR_BIND_MW,
      .bind_mw = {.mw = end->window,
                  .rkey = key,
                  .bind_info = {.mr = end->mr,
                                .addr = (uintptr_t)slot(end, kTarget, 0),
                                .length = ask->message.bytes != 0 ? ask->message.bytes : 1,
                                .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}}};
  post_and_wait(end, &request, "bind");
  end->window->rkey = key;
  return key;
}

static void unbind_window(struct end* end) {
  struct ibv_send_wr request = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = end->window->rkey};
  post_and_wait(end, &request, "local invalidate");
}

// The destruction falls into the transfer: its first bytes are here and its last ones cannot be.
static void break_in_midway(struct end* end) {
  const volatile uint8_t* first = slot(end, kTarget, 0);
  const uint8_t before = *first;
  while (*first == before) {
    struct ibv_wc completion;
    if (ibv_poll_cq(end->cq, 1, &completion) != 0) fail("a completion in midway");
  }
  destroy_qps(end);
}

// For each queue pair in turn, until one has a status that is not 0.
static int for_each(struct end* end, const struct ask* ask) {
  struct message message = ask->message;
  int status = 0;
  for (message.qp = 0; message.qp < end->plan.qps && status == 0; ++message.qp) {
    switch ((enum asked)ask->what) {
      case kGiveReceives:
        give_receive(end, &message);
        break;
      case kFillTarget:
        fill(end, kTarget, &message);
        break;
      case kLookAtTarget:
        // Nothing tells either end when a WRITE of an unreliable connection has come.
        if (end->plan.service == IBV_QPT_UC) wait_for_end(end, kTarget, &message);
        status = holds(end, kTarget, &message) ? 0 : kWrong;
        break;
      case kSetWords:
        *word_of(end, message.qp) = word_before(message.operation, message.qp);
        break;
      default:
        return kWrong;
    }
  }
  return status;
}

static struct answer do_as_asked(struct end* end, const struct ask* ask) {
  struct answer answer = {0, 0};
  switch ((enum asked)ask->what) {
    case kLookAtWords:
      answer.status = look_at_words(end, ask);
      break;
    case kBind:
      answer.value = bind_window(end, ask);
      break;
    case kUnbind:
      unbind_window(end);
      break;
    case kTakeReceives:
      answer = take_receives(end, ask);
      break;
    case kTellStatus:
      answer.status = (int32_t)next_completion(end, 1).status;
      break;
    case kBreak:
      destroy_qps(end);
      break;
    case kBreakInMidway:
      break_in_midway(end);
      break;
    default:
      answer.status = for_each(end, ask);
      break;
  }
  return answer;
}

void run_server(struct end* end) {
  read_all(end->control, &end->plan, sizeof end->plan);
  establish(end);
  for (;;) {
    struct ask ask;
    read_all(end->control, &ask, sizeof ask);
    if (ask.what == kEnd) return;
    if (ask.what == kBeginAgain) {
      destroy_qps(end);
      establish(end);
      continue;
    }
    const struct answer answer = do_as_asked(end, &ask);
    write_all(end->control, &answer, sizeof answer);
  }
}
