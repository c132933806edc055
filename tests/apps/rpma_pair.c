// SPDX-License-Identifier: BSD-2-Clause
// The steps of librpma's examples in one pair of programs: the server offers a region by its
// descriptor in the private data of the connection; the client reads it, writes to it, flushes,
// sets 8 bytes atomically, reads all back and compares, and sends the server a message, which says
// so.
//
//   rpma_pair server ADDRESS PORT      rpma_pair client ADDRESS PORT
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBytes = 64 * 1024, kHalf = kBytes / 2, kMessage = 64 };
static const char kDone[kMessage] = "the client is satisfied";

struct end {
  struct rpma_peer* peer;
  struct rpma_conn* connection;
  struct rpma_mr_local* region;
  unsigned char* memory;
};

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rpma_pair: wrong: %s\n", what);
  exit(1);
}

static void done(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "rpma_pair: %s: %s\n", what, rpma_err_2str(result));
  exit(1);
}

static void open_end(struct end* e, const char* address, enum rpma_util_ibv_context_type side) {
  struct ibv_context* context = NULL;
  done(rpma_utils_get_ibv_context(address, side, &context), "no device for the address");
  done(rpma_peer_new(context, &e->peer), "peer");
  e->memory = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), 2L * kBytes);
  require(e->memory != NULL, "no memory");
  memset(e->memory, 0, kBytes + kMessage);
  const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                    RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                    RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;
  done(rpma_mr_reg(e->peer, e->memory, kBytes + kMessage, usage, &e->region), "region");
}

static void expect_event(struct end* e, enum rpma_conn_event wanted) {
  enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
  done(rpma_conn_next_event(e->connection, &event), "event");
  require(event == wanted, rpma_utils_conn_event_2str(event));
}

// Sleeps until the next completion, which has to be that of `operation`.
static void complete(struct end* e, const void* operation) {
  struct rpma_cq* queue = NULL;
  done(rpma_conn_get_cq(e->connection, &queue), "queue");
  struct ibv_wc wc;
  int result;
  while ((result = rpma_cq_get_wc(queue, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
    done(rpma_cq_wait(queue), "waiting for a completion");
  }
  done(result, "completion");
  require(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  require(wc.wr_id == (uint64_t)(uintptr_t)operation, "another operation's completion");
}

static void close_end(struct end* e) {
  done(rpma_conn_delete(&e->connection), "deleting the connection");
  done(rpma_mr_dereg(&e->region), "deregistering");
  done(rpma_peer_delete(&e->peer), "deleting the peer");
  free(e->memory);
}

static void serve(const char* address, const char* port) {
  struct end e;
  open_end(&e, address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
  for (int i = 0; i < kHalf; ++i) e.memory[i] = (unsigned char)(i * 7);
  unsigned char descriptor[64];
  size_t descriptor_bytes = 0;
  done(rpma_mr_get_descriptor_size(e.region, &descriptor_bytes), "size of the descriptor");
  require(descriptor_bytes <= sizeof descriptor, "a long descriptor");
  done(rpma_mr_get_descriptor(e.region, descriptor), "descriptor");
  struct rpma_conn_private_data offer = {descriptor, (uint8_t)descriptor_bytes};

  struct rpma_ep* listening = NULL;
  struct rpma_conn_req* request = NULL;
  done(rpma_ep_listen(e.peer, address, port, &listening), "listening");
  done(rpma_ep_next_conn_req(listening, NULL, &request), "request");
  done(rpma_conn_req_recv(request, e.region, kBytes, kMessage, kDone), "receive");
  done(rpma_conn_req_connect(&request, &offer, &e.connection), "accepting");
  expect_event(&e, RPMA_CONN_ESTABLISHED);
  complete(&e, kDone);
  require(memcmp(e.memory + kBytes, kDone, kMessage) == 0, "the message");
  require(e.memory[kHalf] == 0xa5 && e.memory[kBytes - 1] == 0xa5, "what was written");
  expect_event(&e, RPMA_CONN_CLOSED);
  done(rpma_conn_disconnect(e.connection), "disconnecting");
  close_end(&e);
  done(rpma_ep_shutdown(&listening), "no longer listening");
}

static void use(struct end* e, struct rpma_mr_remote* remote) {
  const int always = RPMA_F_COMPLETION_ALWAYS, on_error = RPMA_F_COMPLETION_ON_ERROR;
  done(rpma_read(e->connection, e->region, 0, remote, 0, kHalf, always, e), "read");
  complete(e, e);
  for (int i = 0; i < kHalf; ++i) require(e->memory[i] == (unsigned char)(i * 7), "what was read");

  memset(e->memory + kHalf, 0xa5, kHalf);
  done(rpma_write(e->connection, remote, kHalf, e->region, kHalf, kHalf, on_error, NULL), "write");
  done(rpma_flush(e->connection, remote, kHalf, kHalf, RPMA_FLUSH_TYPE_VISIBILITY, always, remote),
       "flush");
  complete(e, remote);
  const char eight[8] = "8 bytes";
  done(rpma_atomic_write(e->connection, remote, 0, eight, always, eight), "atomic write");
  complete(e, eight);

  memset(e->memory, 0, kBytes);
  done(rpma_read(e->connection, e->region, 0, remote, 0, kBytes, always, e), "reading it back");
  complete(e, e);
  require(memcmp(e->memory, eight, sizeof eight) == 0, "what was set");
  for (int i = kHalf; i < kBytes; ++i) require(e->memory[i] == 0xa5, "what was read back");
}

static void ask(const char* address, const char* port) {
  struct end e;
  open_end(&e, address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
  struct rpma_conn_req* request = NULL;
  done(rpma_conn_req_new(e.peer, address, port, NULL, &request), "request");
  done(rpma_conn_req_connect(&request, NULL, &e.connection), "connecting");
  expect_event(&e, RPMA_CONN_ESTABLISHED);
  struct rpma_conn_private_data offer = {NULL, 0};
  done(rpma_conn_get_private_data(e.connection, &offer), "private data");
  struct rpma_mr_remote* remote = NULL;
  done(rpma_mr_remote_from_descriptor(offer.ptr, offer.len, &remote), "descriptor");
  use(&e, remote);
  memcpy(e.memory + kBytes, kDone, kMessage);
  done(rpma_send(e.connection, e.region, kBytes, kMessage, RPMA_F_COMPLETION_ALWAYS, kDone),
       "sending");
  complete(&e, kDone);
  done(rpma_mr_remote_delete(&remote), "forgetting the region");
  done(rpma_conn_disconnect(e.connection), "disconnecting");
  expect_event(&e, RPMA_CONN_CLOSED);
  close_end(&e);
}

int main(int count, char** words) {
  require(count == 4, "usage: rpma_pair server|client ADDRESS PORT");
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
  (strcmp(words[1], "server") == 0 ? serve : ask)(words[2], words[3]);
  printf("rpma_pair: %s: well\n", words[1]);
  return 0;
}
