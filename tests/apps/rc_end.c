// SPDX-License-Identifier: BSD-2-Clause
// See rc_end.h. The attributes are those of ibv_rc_pingpong, except what a test chooses.
#include "rc_end.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct numbers {
  union ibv_gid gid;
  uint64_t address;
  uint32_t key;
  uint32_t qpn;
};

void fail(const char* what) {
  fprintf(stderr, "rc_tool: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct addrinfo* resolve(const struct options* options) {
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* address = NULL;
  if (getaddrinfo(options->host, options->port, &hints, &address) != 0) fail("getaddrinfo");
  return address;
}

int listen_on(const char* port) {
  const struct options options = {.host = "0.0.0.0", .port = port};
  struct addrinfo* address = resolve(&options);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, address->ai_addr, address->ai_addrlen) != 0) fail("bind");
  if (listen(listener, 64) != 0) fail("listen");
  freeaddrinfo(address);
  return listener;
}

int connect_control(const struct options* options, int listener) {
  int control = -1;
  if (options->host == NULL) {
    do control = accept(listener, NULL, NULL);
    while (control < 0 && errno == EINTR);
    if (control < 0) fail("accept");
    return control;
  }
  struct addrinfo* address = resolve(options);
  control = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(control, address->ai_addr, address->ai_addrlen) != 0) {
    if (errno != EINTR) fail("connect");
    struct pollfd connected = {.fd = control, .events = POLLOUT};  // it goes on by itself
    while (poll(&connected, 1, -1) < 0 && errno == EINTR) {
    }
  }
  freeaddrinfo(address);
  return control;
}

static struct ibv_context* open_device(const char* name) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    if (name != NULL && strcmp(ibv_get_device_name(devices[i]), name) != 0) continue;
    struct ibv_context* context = ibv_open_device(devices[i]);
    if (context == NULL) fail("ibv_open_device");
    ibv_free_device_list(devices);
    return context;
  }
  errno = ENODEV;
  fail("device");
}

static void modify(struct rc_end* end, struct ibv_qp_attr* attributes, int mask) {
  const int code = ibv_modify_qp(end->qp, attributes, mask);
  if (code == 0) return;
  errno = code;
  fail("ibv_modify_qp");
}

static void to_init(struct rc_end* end) {
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                   .port_num = 1,
                                   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                      IBV_ACCESS_REMOTE_READ |
                                                      IBV_ACCESS_REMOTE_ATOMIC};
  modify(end, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

void open_end(struct rc_end* end, const struct options* options) {
  memset(end, 0, sizeof *end);
  end->control = -1;
  end->context = open_device(options->device);
  end->pd = ibv_alloc_pd(end->context);
  if (end->pd == NULL) fail("ibv_alloc_pd");
  if (options->use_events) {
    end->channel = ibv_create_comp_channel(end->context);
    if (end->channel == NULL) fail("ibv_create_comp_channel");
  }
  end->cq = ibv_create_cq(end->context, 2 * kQueueDepth, NULL, end->channel, 0);
  if (end->cq == NULL) fail("ibv_create_cq");
  end->buffer = calloc(1, kBufferBytes);
  end->mr = ibv_reg_mr(end->pd, end->buffer, kBufferBytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
  if (end->mr == NULL) fail("ibv_reg_mr");
  struct ibv_qp_init_attr attributes = {.send_cq = end->cq,
                                        .recv_cq = end->cq,
                                        .qp_type = IBV_QPT_RC,
                                        .sq_sig_all = 1,
                                        .cap = {.max_send_wr = kQueueDepth,
                                                .max_recv_wr = kQueueDepth,
                                                .max_send_sge = 1,
                                                .max_recv_sge = 1}};
  end->qp = ibv_create_qp(end->pd, &attributes);
  if (end->qp == NULL) fail("ibv_create_qp");
  to_init(end);
}

static void write_all(int control, const void* data, size_t bytes) {
  if (send(control, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) fail("peer");
}

static void read_all(int control, void* data, size_t bytes) {
  for (size_t got = 0; got < bytes;) {
    const ssize_t more = recv(control, (char*)data + got, bytes - got, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) fail("peer");
    got += (size_t)more;
  }
}

static void to_rts(struct rc_end* end, const struct options* options, const struct numbers* peer) {
  struct ibv_qp_attr attributes = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer->qpn,
      .max_dest_rd_atomic = 16,
      .min_rnr_timer = 12,
      .ah_attr = {
          .is_global = 1,
          .port_num = 1,
          .grh = {.dgid = peer->gid, .hop_limit = 64, .sgid_index = (uint8_t)options->gid_index}}};
  modify(end, &attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attributes = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                    .timeout = options->timeout,
                                    .retry_cnt = options->retry_count,
                                    .rnr_retry = 7,
                                    .max_rd_atomic = 16};
  modify(end, &attributes,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

void connect_end(struct rc_end* end, const struct options* options, int control) {
  end->control = control;
  struct numbers own = {
      .address = (uint64_t)(uintptr_t)end->buffer, .key = end->mr->rkey, .qpn = end->qp->qp_num};
  struct numbers peer;
  if (ibv_query_gid(end->context, 1, options->gid_index, &own.gid) != 0) fail("ibv_query_gid");
  write_all(control, &own, sizeof own);
  read_all(control, &peer, sizeof peer);
  end->peer_address = peer.address;
  end->peer_key = peer.key;
  to_rts(end, options, &peer);
  char ready = 1;  // so that nobody sends to a QP that is not there yet
  write_all(control, &ready, 1);
  read_all(control, &ready, 1);
}

void close_end(struct rc_end* end) {
  if (end->control >= 0) close(end->control);
  int code = ibv_destroy_qp(end->qp);
  if (code == 0) code = ibv_dereg_mr(end->mr);
  if (code == 0) code = ibv_destroy_cq(end->cq);
  if (code == 0 && end->channel != NULL) code = ibv_destroy_comp_channel(end->channel);
  if (code == 0) code = ibv_dealloc_pd(end->pd);
  if (code == 0) code = ibv_close_device(end->context);
  free(end->buffer);
  errno = code;
  if (code != 0) fail("closing");
}

void post_receive(struct rc_end* end) {
  struct ibv_sge element = {(uintptr_t)end->buffer, kBufferBytes, end->mr->lkey};
  struct ibv_recv_wr request = {.sg_list = &element, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  errno = ibv_post_recv(end->qp, &request, &bad);
  if (errno != 0) fail("ibv_post_recv");
}

void post(struct rc_end* end, enum ibv_wr_opcode opcode, uint32_t bytes) {
  struct ibv_sge element = {(uintptr_t)end->buffer, bytes, end->mr->lkey};
  struct ibv_send_wr request = {.sg_list = &element, .num_sge = 1, .opcode = opcode};
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic.remote_addr = end->peer_address;
    request.wr.atomic.rkey = end->peer_key;
    request.wr.atomic.compare_add = 1;
  } else {
    request.wr.rdma.remote_addr = end->peer_address;
    request.wr.rdma.rkey = end->peer_key;
  }
  struct ibv_send_wr* bad = NULL;
  errno = ibv_post_send(end->qp, &request, &bad);
  if (errno != 0) fail("ibv_post_send");
}

static int poll_once(struct rc_end* end, struct ibv_wc* completion) {
  const int count = ibv_poll_cq(end->cq, 1, completion);
  if (count < 0) fail("ibv_poll_cq");
  return count;
}

struct ibv_wc wait_completion(struct rc_end* end) {
  struct ibv_wc completion;
  for (;;) {
    if (poll_once(end, &completion) == 1) return completion;
    if (end->channel == NULL) continue;
    if (ibv_req_notify_cq(end->cq, 0) != 0) fail("ibv_req_notify_cq");
    // It may have come before the request for notification.
    if (poll_once(end, &completion) == 1) return completion;
    struct ibv_cq* cq = NULL;
    void* context = NULL;
    if (ibv_get_cq_event(end->channel, &cq, &context) == 0) {
      ibv_ack_cq_events(cq, 1);
    } else if (errno != EINTR) {
      fail("ibv_get_cq_event");
    }
  }
}
