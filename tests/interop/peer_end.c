// SPDX-License-Identifier: BSD-2-Clause
// Device, memory and queue pairs of a peer.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "peer.h"

// The PSNs wrap within the first messages.
enum { kCqes = 1024, kRequests = 8, kClientPsn = 0xfffff5, kServerPsn = 0xfffffb };

void fail(const char* what) {
  fprintf(stderr, "verbs_peer: %s: %s\n", what, strerror(errno));
  exit(1);
}

void check(int code, const char* what) {
  if (code == 0) return;
  errno = code;
  fail(what);
}

void open_device(struct end* end, const char* name, int gid_index) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  for (int i = 0; i < count && end->context == NULL; ++i) {
    if (strcmp(ibv_get_device_name(devices[i]), name) == 0) {
      end->context = ibv_open_device(devices[i]);
    }
  }
  if (end->context == NULL) fail(name);
  ibv_free_device_list(devices);
  end->gid_index = gid_index;
  end->pd = ibv_alloc_pd(end->context);
  if (end->pd == NULL) fail("ibv_alloc_pd");
  end->cq = ibv_create_cq(end->context, kCqes, NULL, NULL, 0);
  if (end->cq == NULL) fail("ibv_create_cq");
  const size_t bytes = (size_t)kAreas * kAreaBytes;
  end->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (end->memory == MAP_FAILED) fail("mmap");
  end->mr = ibv_reg_mr(end->pd, end->memory, bytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
  if (end->mr == NULL) fail("ibv_reg_mr");
}

static void create_srq(struct end* end) {
  struct ibv_srq_init_attr attributes = {
      .attr = {.max_wr = kQpsMax * kRequests, .max_sge = kPiecesMax}};
  end->srq = ibv_create_srq(end->pd, &attributes);
  if (end->srq == NULL) fail("ibv_create_srq");
}

static void create_qp(struct end* end, uint32_t number) {
  struct ibv_qp_init_attr attributes = {.send_cq = end->cq,
                                        .recv_cq = end->cq,
                                        .srq = end->srq,
                                        .qp_type = end->plan.service,
                                        .sq_sig_all = 1,
                                        .cap = {.max_send_wr = kRequests,
                                                .max_recv_wr = kRequests,
                                                .max_send_sge = kPiecesMax,
                                                .max_recv_sge = kPiecesMax + 1,
                                                .max_inline_data = kInlineBytes}};
  end->qps[number] = ibv_create_qp(end->pd, &attributes);
  if (end->qps[number] == NULL) fail("ibv_create_qp");
}

static int access_flags(const struct end* end) {
  if (end->plan.service == IBV_QPT_UC) return IBV_ACCESS_REMOTE_WRITE;
  return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

static void to_init(struct end* end, struct ibv_qp* qp) {
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                   .port_num = 1,
                                   .qkey = kQkey,
                                   .qp_access_flags = (unsigned)access_flags(end)};
  const int of_service = end->plan.service == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  check(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | of_service),
        "to INIT");
}

static enum ibv_mtu mtu_of(uint32_t bytes) {
  for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    if (UINT32_C(128) << mtu == bytes) return (enum ibv_mtu)mtu;
  }
  errno = EINVAL;
  fail("path MTU");
}

static struct ibv_ah_attr path_to_peer(const struct end* end) {
  return (struct ibv_ah_attr){
      .is_global = 1,
      .port_num = 1,
      .grh = {.dgid = end->peer.gid, .hop_limit = 64, .sgid_index = (uint8_t)end->gid_index}};
}

static void to_rtr(struct end* end, uint32_t number) {
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
                                   .path_mtu = mtu_of(end->plan.mtu),
                                   .dest_qp_num = end->peer.qpns[number],
                                   .rq_psn = (end->peer.psn + number) & 0xffffff,
                                   .max_dest_rd_atomic = 16,
                                   .min_rnr_timer = 12,
                                   .ah_attr = path_to_peer(end)};
  int mask = IBV_QP_STATE;
  if (end->plan.service != IBV_QPT_UD) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  }
  if (end->plan.service == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  check(ibv_modify_qp(end->qps[number], &attributes, mask), "to RTR");
}

static void to_rts(struct end* end, uint32_t number, uint32_t psn) {
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTS,
                                   .sq_psn = (psn + number) & 0xffffff,
                                   .timeout = (uint8_t)end->plan.timeout,
                                   .retry_cnt = (uint8_t)end->plan.retry_count,
                                   .rnr_retry = (uint8_t)end->plan.rnr_retry,
                                   .max_rd_atomic = 16};
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (end->plan.service == IBV_QPT_RC) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  check(ibv_modify_qp(end->qps[number], &attributes, mask), "to RTS");
}

void establish(struct end* end) {
  struct introduction own = {.target = (uintptr_t)slot(end, kTarget, 0),
                             .target_key = end->mr->rkey,
                             .psn = end->is_client ? kClientPsn : kServerPsn};
  check(ibv_query_gid(end->context, 1, end->gid_index, &own.gid), "ibv_query_gid");
  if (end->plan.use_srq) create_srq(end);
  for (uint32_t i = 0; i < end->plan.qps; ++i) {
    create_qp(end, i);
    to_init(end, end->qps[i]);
    own.qpns[i] = end->qps[i]->qp_num;
  }
  exchange(end->control, &own, &end->peer, sizeof own);
  for (uint32_t i = 0; i < end->plan.qps; ++i) {
    to_rtr(end, i);
    to_rts(end, i, own.psn);
  }
  if (end->plan.service == IBV_QPT_UD) {
    struct ibv_ah_attr path = path_to_peer(end);
    end->ah = ibv_create_ah(end->pd, &path);
    if (end->ah == NULL) fail("ibv_create_ah");
  }
  char ready = 1;  // so that nobody sends to a queue pair that is not there yet
  exchange(end->control, &ready, &ready, 1);
}

void destroy_qps(struct end* end) {
  if (end->window != NULL) check(ibv_dealloc_mw(end->window), "ibv_dealloc_mw");
  for (uint32_t i = 0; i < end->plan.qps; ++i) {
    if (end->qps[i] != NULL) check(ibv_destroy_qp(end->qps[i]), "ibv_destroy_qp");
    end->qps[i] = NULL;
  }
  if (end->srq != NULL) check(ibv_destroy_srq(end->srq), "ibv_destroy_srq");
  if (end->ah != NULL) check(ibv_destroy_ah(end->ah), "ibv_destroy_ah");
  end->srq = NULL;
  end->ah = NULL;
  end->window = NULL;
  struct ibv_wc late;
  while (ibv_poll_cq(end->cq, 1, &late) > 0) {
  }
}

void close_device(struct end* end) {
  destroy_qps(end);
  check(ibv_dereg_mr(end->mr), "ibv_dereg_mr");
  check(ibv_destroy_cq(end->cq), "ibv_destroy_cq");
  check(ibv_dealloc_pd(end->pd), "ibv_dealloc_pd");
  check(ibv_close_device(end->context), "ibv_close_device");
}

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct ibv_wc next_completion(struct end* end, double seconds) {
  const double deadline = now() + seconds;
  struct ibv_wc completion;
  for (;;) {
    const int count = ibv_poll_cq(end->cq, 1, &completion);
    if (count < 0) fail("ibv_poll_cq");
    if (count == 1) return completion;
    if (now() > deadline) break;
  }
  memset(&completion, 0, sizeof completion);
  completion.status = (enum ibv_wc_status)kStatusNone;
  return completion;
}

uint32_t qp_of(const struct end* end, const struct ibv_wc* completion) {
  for (uint32_t i = 0; i < end->plan.qps; ++i) {
    if (end->qps[i] != NULL && end->qps[i]->qp_num == completion->qp_num) return i;
  }
  errno = ENOENT;
  fail("a completion of another queue pair");
}
