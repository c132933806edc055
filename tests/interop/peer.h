// SPDX-License-Identifier: BSD-2-Clause
// One of the two ends of verbs_peer, in plain libibverbs, so that either may be over any provider.
// The client has the requests and says over TCP what the server is to do about each: give it
// receives, have its memory filled, look what has come. Every byte is compared with what must be
// there.
//
// Whatever fails that was not meant to ends the process with one line on standard error.
#ifndef UROCE_TESTS_INTEROP_PEER_H
#define UROCE_TESTS_INTEROP_PEER_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum {
  kQpsMax = 64,
  kAreaBytes = 8 << 20,  // rxe's largest message
  kGrhBytes = 40,
  kInlineBytes = 64,
  kPiecesMax = 3,
  kQkey = 0x11223344,
  kStatusNone = -1,  // no completion came
};

// What the client decides for both.
struct plan {
  uint32_t service;  // enum ibv_qp_type
  uint32_t mtu;      // in bytes
  uint32_t qps;
  uint32_t use_srq;
  uint32_t timeout;  // this and the rest as in ibv_qp_attr
  uint32_t retry_count;
  uint32_t rnr_retry;
};

// What each tells the other about itself.
struct introduction {
  union ibv_gid gid;
  uint64_t target;
  uint32_t target_key;
  uint32_t psn;  // the first one of the first queue pair; each has one more
  uint32_t qpns[kQpsMax];
};

// Where messages come from, what the peer may read and write, where receives end.
enum area { kSource, kTarget, kLanding, kAreas };

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_srq* srq;
  struct ibv_mr* mr;
  struct ibv_qp* qps[kQpsMax];
  struct ibv_ah* ah;  // of the peer, for datagrams
  struct ibv_mw* window;
  uint8_t* memory;
  int gid_index;
  int is_client;
  int control;  // TCP
  uint32_t sent_again;
  struct plan plan;
  struct introduction peer;
};

// Part of a message: which operation's, whose, how long, in how many pieces it lies in memory.
struct message {
  uint32_t operation;
  uint32_t qp;
  uint32_t bytes;
  uint32_t pieces;
};

static const double kPatience = 30;           // seconds until what must come has come
static const double kUnreliablePatience = 2;  // until what may be lost is sent again

double now(void);
_Noreturn void fail(const char* what);
// With errno from a call that returns it; 0 is no failure.
void check(int code, const char* what);

void open_device(struct end* end, const char* name, int gid_index);
// Queue pairs as `end->plan` has it, connected to the peer's; both ends do this at the same time.
void establish(struct end* end);
void destroy_qps(struct end* end);
void close_device(struct end* end);

// The next completion, or one with status kStatusNone after so long.
struct ibv_wc next_completion(struct end* end, double seconds);
uint32_t qp_of(const struct end* end, const struct ibv_wc* completion);

// The plan is exchanged; then the requests one after another, or what is asked about them.
void run_client(struct end* end, char** requests);
void run_server(struct end* end);

// Memory: each queue pair has a slot of each area.
uint32_t slot_bytes(const struct end* end);
uint8_t* slot(const struct end* end, enum area area, uint32_t qp);
// The pieces lie in memory in the order opposite to that of the message.
uint32_t lay_out(const struct end* end, enum area area, const struct message* message,
                 struct ibv_sge* pieces);
void fill(const struct end* end, enum area area, const struct message* message);
// Until the last byte is there or patience is at its end.
void wait_for_end(const struct end* end, enum area area, const struct message* message);
// 0, and a line on standard error, when it is anything else.
int holds(const struct end* end, enum area area, const struct message* message);

void exchange(int control, const void* own, void* peer, size_t bytes);
void write_all(int control, const void* data, size_t bytes);
void read_all(int control, void* data, size_t bytes);
int connect_to(const char* host, const char* port);
int accept_one(const char* port);

#endif
