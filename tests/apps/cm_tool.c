// SPDX-License-Identifier: BSD-2-Clause
// Connects through librdmacm as often as wanted, and stands still where it is told to.
//
//   cm_tool serve PORT [HOLD]               accepts whoever comes, for ever
//   cm_tool connect ADDRESS PORT COUNT [HOLD]
//       COUNT times: connects, sends a message, disconnects; then prints the rate, and how many
//       descriptors and KiB of memory it had after a tenth of them and has now
//   cm_tool resolve ADDRESS MILLISECONDS    prints what becomes of rdma_resolve_addr
//   cm_tool reopen ADDRESS PORT COUNT       COUNT times: takes PORT from a channel that it has just
//                                           closed, and uses a channel that it opens then
//   cm_tool unread ADDRESS                  says which of two channels is readable while an event
//                                           goes unread from one to the other, and to its end
//   cm_tool watch ADDRESS PORT              says which of four identifiers hear that the interface
//                                           with ADDRESS was deleted, and what they are good for
//                                           then; on a line of input once more
//   cm_tool infiniband GID PKEY             prints how far that leads as a struct sockaddr_ib
//
// HOLD is a step of `serve` (listening, request, accepted, established) or of `connect` (resolved,
// routed, connecting, established, sent): there it prints "holds at STEP" and waits to be killed.
// What either hears of is printed: "event RDMA_CM_EVENT_...", once it holds or COUNT is 1.
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kPatience = 2000 };  // milliseconds to resolve an address or a route

static const char* hold = "";
static bool is_talkative;

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "cm_tool: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void step(const char* name) {
  if (strcmp(name, hold) != 0) return;
  printf("holds at %s\n", name);
  fflush(stdout);
  for (;;) pause();
}

// Of a connection, on either side.
struct end {
  struct rdma_cm_id* id;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_mr* mr;
  char message[64];
};

static void make_end(struct end* end, struct rdma_cm_id* id) {
  end->id = id;
  id->context = end;
  end->pd = ibv_alloc_pd(id->verbs);
  end->cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
  if (end->pd == NULL || end->cq == NULL) fail("PD and CQ");
  end->mr = ibv_reg_mr(end->pd, end->message, sizeof end->message, IBV_ACCESS_LOCAL_WRITE);
  if (end->mr == NULL) fail("ibv_reg_mr");
  struct ibv_qp_init_attr attributes = {
      .send_cq = end->cq,
      .recv_cq = end->cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
  if (rdma_create_qp(id, end->pd, &attributes) != 0) fail("rdma_create_qp");
  struct ibv_sge sge = {(uintptr_t)end->message, sizeof end->message, end->mr->lkey};
  struct ibv_recv_wr request = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;
  if (ibv_post_recv(id->qp, &request, &bad) != 0) fail("ibv_post_recv");
}

static void end_end(struct end* end) {
  rdma_destroy_qp(end->id);
  if (ibv_dereg_mr(end->mr) != 0 || ibv_destroy_cq(end->cq) != 0 || ibv_dealloc_pd(end->pd) != 0) {
    fail("destroying");
  }
  if (rdma_destroy_id(end->id) != 0) fail("rdma_destroy_id");
}

static struct rdma_cm_event* next_event(struct rdma_event_channel* channel) {
  struct rdma_cm_event* event = NULL;
  if (rdma_get_cm_event(channel, &event) != 0) fail("rdma_get_cm_event");
  if (is_talkative) {
    printf("event %s, status %d\n", rdma_event_str(event->event), event->status);
    fflush(stdout);
  }
  return event;
}

// The event is to be this one; any other ends the program with status 3.
static void expect(struct rdma_event_channel* channel, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = next_event(channel);
  if (event->event != type) {
    fprintf(stderr, "cm_tool: %s, status %d, instead of %s\n", rdma_event_str(event->event),
            event->status, rdma_event_str(type));
    exit(3);
  }
  rdma_ack_cm_event(event);
}

static struct rdma_conn_param parameters(void) {
  return (struct rdma_conn_param){
      .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
}

static void answer(struct rdma_cm_id* id) {
  step("request");
  struct end* end = calloc(1, sizeof *end);
  if (end == NULL) fail("calloc");
  make_end(end, id);
  struct rdma_conn_param wanted = parameters();
  if (rdma_accept(id, &wanted) != 0) fail("rdma_accept");
  step("accepted");
}

static void finish(struct rdma_cm_id* id) {
  struct end* end = id->context;
  end_end(end);
  free(end);
}

static void serve(const char* port) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id* listening = NULL;
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
  if (channel == NULL) fail("rdma_create_event_channel");
  if (rdma_create_id(channel, &listening, NULL, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  if (rdma_bind_addr(listening, (struct sockaddr*)&any) != 0) fail("rdma_bind_addr");
  if (rdma_listen(listening, 1024) != 0) fail("rdma_listen");
  printf("listens\n");
  fflush(stdout);
  step("listening");
  for (;;) {
    struct rdma_cm_event* event = next_event(channel);
    struct rdma_cm_id* id = event->id;
    const enum rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) answer(id);
    if (type == RDMA_CM_EVENT_ESTABLISHED) step("established");
    const bool is_over = type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_UNREACHABLE ||
                         type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_CONNECT_ERROR;
    if (is_over) finish(id);
  }
}

static void say(struct end* end) {
  struct ibv_sge sge = {(uintptr_t)end->message, sizeof end->message, end->mr->lkey};
  struct ibv_send_wr request = {.sg_list = &sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED},
                     *bad = NULL;
  if (ibv_post_send(end->id->qp, &request, &bad) != 0) fail("ibv_post_send");
  struct ibv_wc wc = {0};
  while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
  }
  if (wc.status == IBV_WC_SUCCESS) return;
  fprintf(stderr, "cm_tool: the message: %s\n", ibv_wc_status_str(wc.status));
  if (!is_talkative) exit(4);  // else the event says it, too
}

static void connect_once(struct rdma_event_channel* channel, struct sockaddr_in6* to) {
  struct rdma_cm_id* id = NULL;
  if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  if (rdma_resolve_addr(id, NULL, (struct sockaddr*)to, kPatience) != 0) fail("rdma_resolve_addr");
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  step("resolved");
  if (rdma_resolve_route(id, kPatience) != 0) fail("rdma_resolve_route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  step("routed");
  struct end end = {0};
  make_end(&end, id);
  struct rdma_conn_param wanted = parameters();
  if (rdma_connect(id, &wanted) != 0) fail("rdma_connect");
  step("connecting");
  expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  step("established");
  say(&end);
  step("sent");
  if (is_talkative) expect(channel, RDMA_CM_EVENT_DISCONNECTED);  // the peer's doing
  if (rdma_disconnect(id) != 0) fail("rdma_disconnect");
  if (!is_talkative) expect(channel, RDMA_CM_EVENT_DISCONNECTED);
  end_end(&end);
}

static int descriptors(void) {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (folder != NULL && readdir(folder) != NULL) ++count;
  if (folder != NULL) closedir(folder);
  return count;
}

static long resident_kib(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long pages = 0;
  if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) fail("/proc/self/statm");
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void connect_often(struct sockaddr_in6* to, int count) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == NULL) fail("rdma_create_event_channel");
  struct timespec begun, ended;
  int files = 0;
  long memory = 0;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int i = 0; i < count; ++i) {
    if (i == count / 10) {
      files = descriptors();
      memory = resident_kib();
    }
    connect_once(channel, to);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  const double seconds =
      (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
  printf("%d connections, %.0f a second; descriptors %d and %d, KiB %ld and %ld\n", count,
         count / seconds, files, descriptors(), memory, resident_kib());
  rdma_destroy_event_channel(channel);
}

static void resolve(struct sockaddr_in6* to, int milliseconds) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id* id = NULL;
  if (channel == NULL) fail("rdma_create_event_channel");
  if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  if (rdma_resolve_addr(id, NULL, (struct sockaddr*)to, milliseconds) != 0) {
    fail("rdma_resolve_addr");
  }
  rdma_ack_cm_event(next_event(channel));
  if (rdma_destroy_id(id) != 0) fail("rdma_destroy_id");
  rdma_destroy_event_channel(channel);
}

static struct rdma_cm_id* make_id(struct rdma_event_channel* channel) {
  struct rdma_cm_id* id = NULL;
  if (channel == NULL) fail("rdma_create_event_channel");
  if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  return id;
}

// A file of the closed channel ends at once, since the port is wanted, and the new one may get its
// descriptor, of which the manager's thread is about to hear that it was closed.
static void reopen_often(struct sockaddr_in6* at, int count) {
  for (int i = 0; i < count; ++i) {
    struct rdma_event_channel* closed = rdma_create_event_channel();
    struct rdma_event_channel* open = rdma_create_event_channel();
    if (rdma_bind_addr(make_id(closed), (struct sockaddr*)at) != 0) fail("rdma_bind_addr");
    struct rdma_cm_id* heir = make_id(open);
    rdma_destroy_event_channel(closed);
    if (rdma_bind_addr(heir, (struct sockaddr*)at) != 0) fail("rdma_bind_addr again");
    struct rdma_event_channel* new = rdma_create_event_channel();
    for (int turns = 0; turns < 20; ++turns) sched_yield();
    if (rdma_destroy_id(make_id(new)) != 0 || rdma_destroy_id(heir) != 0) fail("rdma_destroy_id");
    rdma_destroy_event_channel(new);
    rdma_destroy_event_channel(open);
  }
  printf("%d times\n", count);
}

static bool is_readable(const struct rdma_event_channel* channel, int milliseconds) {
  struct pollfd end = {.fd = channel->fd, .events = POLLIN};
  return poll(&end, 1, milliseconds) == 1;
}

static void leave_unread(struct sockaddr_in6* to) {
  struct rdma_event_channel* first = rdma_create_event_channel();
  struct rdma_event_channel* second = rdma_create_event_channel();
  if (second == NULL) fail("rdma_create_event_channel");
  struct rdma_cm_id* id = make_id(first);
  const char* const names[] = {"none", "first", "second", "both"};
  if (rdma_resolve_addr(id, NULL, (struct sockaddr*)to, kPatience) != 0) fail("rdma_resolve_addr");
  if (!is_readable(first, kPatience)) fail("no event");
  if (rdma_migrate_id(id, second) != 0) fail("rdma_migrate_id");
  printf("migrated: %s", names[is_readable(first, 0) + 2 * is_readable(second, 0)]);
  if (rdma_destroy_id(id) != 0) fail("rdma_destroy_id");
  printf(", destroyed: %s\n", names[is_readable(first, 0) + 2 * is_readable(second, 0)]);
  rdma_destroy_event_channel(second);
  rdma_destroy_event_channel(first);
}

static void bind_at(struct rdma_cm_id* id, struct sockaddr_in6* at) {
  if (rdma_bind_addr(id, (struct sockaddr*)at) != 0) fail("rdma_bind_addr");
}

// Three of a device that will lose its interface, and one of none. What each is told, and what can
// be done with it then.
static void watch(struct sockaddr_in6* at) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  const char* const names[] = {"bound", "listening", "resolved", "anywhere"};
  struct rdma_cm_id* ids[4];
  struct sockaddr_in6 any = {.sin6_family = AF_INET6}, any_port = *at;
  any_port.sin6_port = 0;
  for (int i = 0; i < 4; ++i) {
    ids[i] = make_id(channel);
    ids[i]->context = (void*)(uintptr_t)names[i];
  }
  bind_at(ids[0], &any_port);
  bind_at(ids[1], at);
  if (rdma_listen(ids[1], 4) != 0) fail("rdma_listen");
  if (rdma_resolve_addr(ids[2], NULL, (struct sockaddr*)at, kPatience) != 0) {
    fail("rdma_resolve_addr");
  }
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  bind_at(ids[3], &any);
  if (rdma_listen(ids[3], 4) != 0) fail("rdma_listen");
  printf("watches\n");
  fflush(stdout);
  for (int told = 0; told < 3; ++told) {
    struct rdma_cm_event* event = NULL;
    if (rdma_get_cm_event(channel, &event) != 0) fail("rdma_get_cm_event");
    printf("%s: %s, status %d\n", (const char*)event->id->context, rdma_event_str(event->event),
           event->status);
    fflush(stdout);
    rdma_ack_cm_event(event);
  }
  printf("afterwards:");
  if (rdma_listen(ids[0], 4) != 0) printf(" rdma_listen: %s", strerror(errno));
  if (rdma_resolve_route(ids[2], kPatience) != 0)
    printf(", rdma_resolve_route: %s", strerror(errno));
  printf(is_readable(channel, 0) ? ", more events\n" : "\n");
  fflush(stdout);
  for (int i = 0; i < 4; ++i) {
    if (rdma_destroy_id(ids[i]) != 0) fail("rdma_destroy_id");
  }
  rdma_destroy_event_channel(channel);
}

static const char* outcome(int result) { return result == 0 ? "0" : strerror(errno); }

// How far an address of InfiniBand leads.
static void try_infiniband(const struct sockaddr_in6* gid, const char* pkey) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id *bound = make_id(channel), *caller = make_id(channel);
  struct sockaddr_ib at = {.sib_family = AF_IB,
                           .sib_pkey = htons((uint16_t)strtoul(pkey, NULL, 0))};
  memcpy(&at.sib_addr, &gid->sin6_addr, sizeof at.sib_addr);
  printf("bind: %s\n", outcome(rdma_bind_addr(bound, (struct sockaddr*)&at)));
  const int resolved = rdma_resolve_addr(caller, NULL, (struct sockaddr*)&at, kPatience);
  printf("resolve: %s\n", outcome(resolved));
  if (resolved == 0) {
    rdma_ack_cm_event(next_event(channel));
    const struct sockaddr* source = rdma_get_local_addr(caller);
    printf("family: %s\n", source->sa_family == AF_IB ? "AF_IB" : "another");
    printf("route: %s\n", outcome(rdma_resolve_route(caller, kPatience)));
    struct rdma_conn_param wanted = parameters();
    wanted.qp_num = 1;
    printf("connect: %s\n", outcome(rdma_connect(caller, &wanted)));
  }
  if (rdma_destroy_id(bound) != 0 || rdma_destroy_id(caller) != 0) fail("rdma_destroy_id");
  rdma_destroy_event_channel(channel);
}

// An IPv4 address as Linux maps it, or an IPv6 address.
static struct sockaddr_in6 address_of(const char* text, const char* port) {
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
  char mapped[INET6_ADDRSTRLEN + 8];
  snprintf(mapped, sizeof mapped, "::ffff:%s", text);
  if (inet_pton(AF_INET6, strchr(text, ':') ? text : mapped, &to.sin6_addr) != 1) {
    errno = EINVAL;
    fail(text);
  }
  return to;
}

static int usage(void) {
  fprintf(stderr,
          "usage: cm_tool serve PORT [HOLD] | connect ADDRESS PORT COUNT [HOLD] | "
          "resolve ADDRESS MILLISECONDS | reopen ADDRESS PORT COUNT | unread ADDRESS | "
          "watch ADDRESS PORT | infiniband GID PKEY\n");
  return 2;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (argc >= 3 && strcmp(what, "serve") == 0) {
    hold = argc > 3 ? argv[3] : "";
    is_talkative = argc > 3;
    serve(argv[2]);
  } else if (argc >= 5 && strcmp(what, "connect") == 0) {
    hold = argc > 5 ? argv[5] : "";
    is_talkative = argc > 5;
    struct sockaddr_in6 to = address_of(argv[2], argv[3]);
    connect_often(&to, atoi(argv[4]));
  } else if (argc == 4 && strcmp(what, "resolve") == 0) {
    is_talkative = true;
    struct sockaddr_in6 to = address_of(argv[2], "1");
    resolve(&to, atoi(argv[3]));
  } else if (argc == 5 && strcmp(what, "reopen") == 0) {
    struct sockaddr_in6 at = address_of(argv[2], argv[3]);
    reopen_often(&at, atoi(argv[4]));
  } else if (argc == 3 && strcmp(what, "unread") == 0) {
    struct sockaddr_in6 to = address_of(argv[2], "1");
    leave_unread(&to);
  } else if (argc == 4 && strcmp(what, "watch") == 0) {
    struct sockaddr_in6 at = address_of(argv[2], argv[3]);
    do watch(&at);
    while (getchar() != EOF);
  } else if (argc == 4 && strcmp(what, "infiniband") == 0) {
    is_talkative = true;
    const struct sockaddr_in6 gid = address_of(argv[2], "0");
    try_infiniband(&gid, argv[3]);
  } else {
    return usage();
  }
  return 0;
}
