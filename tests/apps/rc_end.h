// SPDX-License-Identifier: BSD-2-Clause
// One end of one reliable connection, in plain libibverbs, for programs that show what perftest
// cannot: targets that sleep, peers that die, processes that fork. Numbers and keys are exchanged
// over a TCP connection, which also tells when the peer has gone.
//
// Every function ends the process with one line on standard error when it fails; only what a test
// wants to see fail comes back as a completion status.
#ifndef UROCE_TESTS_APPS_RC_END_H
#define UROCE_TESTS_APPS_RC_END_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum { kBufferBytes = 1 << 20, kQueueDepth = 64 };

struct options {
  const char* device;  // NULL: the first
  const char* port;
  const char* host;  // NULL: this is the server
  int gid_index;
  uint8_t timeout;  // as in ibv_qp_attr
  uint8_t retry_count;
  int use_events;
};

struct rc_end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_mr* mr;
  struct ibv_qp* qp;
  char* buffer;
  int control;  // TCP
  uint64_t peer_address;
  uint32_t peer_key;
};

_Noreturn void fail(const char* what);

int listen_on(const char* port);
// Connected to the peer: as the client when `options->host` is set, else the next of `listener`.
int connect_control(const struct options* options, int listener);

// The QP is in INIT then: receives may be posted.
void open_end(struct rc_end* end, const struct options* options);
// Exchanges over `control` and goes to RTS.
void connect_end(struct rc_end* end, const struct options* options, int control);
void close_end(struct rc_end* end);

void post_receive(struct rc_end* end);
// `bytes` from the start of the buffer, to the start of the peer's.
void post(struct rc_end* end, enum ibv_wr_opcode opcode, uint32_t bytes);
// Polls, or sleeps on the channel when there is one.
struct ibv_wc wait_completion(struct rc_end* end);

#endif
