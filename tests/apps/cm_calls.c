// SPDX-License-Identifier: BSD-2-Clause
// Single calls of librdmacm, and what they answer. An ADDRESS is of IPv4 or IPv6, with %INTERFACE
// behind it where it needs one, or -, which is none.
//
//   cm_calls resolve SOURCE PORT DESTINATION COUNT
//       COUNT identifiers from there to port 7000, all kept, or fewer where one fails; says how
//       many were resolved, how many ports they have, and of the last port and device
//   cm_calls bind ADDRESS PORT [ADDRESS PORT ...]      in one process, all kept
//   cm_calls listen ADDRESS PORT [ADDRESS PORT ...]    the same, listening
//   cm_calls fallback SOURCE DESTINATION    listens with what could not connect
//   cm_calls option NAME ADDRESS PORT [ADDRESS PORT]
//       binds, then sets reuse or afonly; a process of its own does so in the other order, with the
//       second address if there is one. Then the option is taken back, and set while listening.
//   cm_calls after COMMAND DESTINATION      resolves, once the device is open and COMMAND has run
//   cm_calls accept ADDRESS         more private data than there is room for, then again
//   cm_calls established ADDRESS    what the sides of a connection are told of it
//   cm_calls disconnect ADDRESS     identifiers that have no connection to end
//   cm_calls join ADDRESS GROUP     twice
//   cm_calls limit ADDRESS          reads an event without a descriptor left
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPort = 7000, kPatience = 2000 };

static struct rdma_event_channel* channel;

static _Noreturn void fail(const char* what) {
  fprintf(stderr, "cm_calls: %s: %s\n", what, strerror(errno));
  exit(1);
}

// What `result` of a call means, in words.
static const char* told(int result) { return result == 0 ? "done" : strerror(errno); }

static struct sockaddr_storage address_of(const char* text, int port) {
  struct sockaddr_storage storage = {0};
  char address[INET6_ADDRSTRLEN];
  snprintf(address, sizeof address, "%.*s", (int)strcspn(text, "%"), text);
  const char* interface = strchr(text, '%');
  if (strchr(text, ':') != NULL) {
    struct sockaddr_in6* six = (struct sockaddr_in6*)&storage;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    if (interface != NULL) six->sin6_scope_id = if_nametoindex(interface + 1);
    if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) return storage;
  } else {
    struct sockaddr_in* four = (struct sockaddr_in*)&storage;
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) return storage;
  }
  errno = EINVAL;
  fail(text);
}

static struct rdma_cm_id* make_id(enum rdma_port_space space) {
  struct rdma_cm_id* id = NULL;
  if (rdma_create_id(channel, &id, NULL, space) != 0) fail("rdma_create_id");
  return id;
}

static int bind_to(struct rdma_cm_id* id, const char* address, int port) {
  struct sockaddr_storage at = address_of(address, port);
  return rdma_bind_addr(id, (struct sockaddr*)&at);
}

static const char* device_of(const struct rdma_cm_id* id) {
  return id->verbs != NULL ? id->verbs->device->name : "none";
}

// Copies what it says, and whom it is for; it is acknowledged.
static struct rdma_cm_event next_event(void) {
  struct rdma_cm_event* event = NULL;
  if (rdma_get_cm_event(channel, &event) != 0) fail("rdma_get_cm_event");
  const struct rdma_cm_event copy = *event;
  rdma_ack_cm_event(event);
  return copy;
}

static struct rdma_cm_event expect(enum rdma_cm_event_type type) {
  const struct rdma_cm_event event = next_event();
  if (event.event == type) return event;
  fprintf(stderr, "cm_calls: %s, status %d, instead of %s\n", rdma_event_str(event.event),
          event.status, rdma_event_str(type));
  exit(3);
}

static int begin_to_resolve(struct rdma_cm_id* id, const char* source, int port,
                            const char* destination) {
  struct sockaddr_storage to = address_of(destination, kPort), from = {0};
  if (strcmp(source, "-") != 0) from = address_of(source, port);
  return rdma_resolve_addr(id, from.ss_family != 0 ? (struct sockaddr*)&from : NULL,
                           (struct sockaddr*)&to, kPatience);
}

static void resolve(char** arguments) {
  const int count = atoi(arguments[3]);
  int resolved = 0, ports = 0;
  static bool is_used[1 << 16];
  for (int i = 0; i < count; ++i) {
    struct rdma_cm_id* id = make_id(RDMA_PS_TCP);
    const int result = begin_to_resolve(id, arguments[0], atoi(arguments[1]), arguments[2]);
    if (result != 0) {
      printf("rdma_resolve_addr: %s\n", told(result));
      break;
    }
    const struct rdma_cm_event event = next_event();
    if (event.event != RDMA_CM_EVENT_ADDR_RESOLVED) {
      printf("%s, status %d\n", rdma_event_str(event.event), event.status);
      break;
    }
    ++resolved;
    bool* const seen = &is_used[ntohs(rdma_get_src_port(id))];
    if (!*seen) ++ports;
    *seen = true;
    if (i == count - 1) {
      printf("from port %d of %s\n", ntohs(rdma_get_src_port(id)), device_of(id));
    }
  }
  printf("%d resolved, %d ports\n", resolved, ports);
}

static void bind_all(char** arguments, int count, bool listens) {
  for (int i = 0; i + 1 < count; i += 2) {
    struct rdma_cm_id* id = make_id(RDMA_PS_TCP);
    int result = bind_to(id, arguments[i], atoi(arguments[i + 1]));
    if (result == 0 && listens) result = rdma_listen(id, 1);
    printf("%s: %s, device %s\n", arguments[i], told(result), device_of(id));
  }
}

static void fall_back(char** arguments) {
  struct rdma_cm_id* id = make_id(RDMA_PS_TCP);
  if (begin_to_resolve(id, arguments[0], 0, arguments[1]) == 0) {
    printf("%s\n", rdma_event_str(next_event().event));
  }
  const int result = rdma_listen(id, 1);
  printf("rdma_listen: %s, %s port, device %s\n", told(result),
         rdma_get_src_port(id) != 0 ? "a" : "no", device_of(id));
}

static int set(struct rdma_cm_id* id, const char* option, int value) {
  const int name = strcmp(option, "reuse") == 0 ? RDMA_OPTION_ID_REUSEADDR : RDMA_OPTION_ID_AFONLY;
  return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof value);
}

static void set_option(char** arguments, int count, char** again) {
  const char* const option = arguments[0];
  struct rdma_cm_id* id = make_id(RDMA_PS_TCP);
  const char* const is_other = getenv("CM_CALLS_OTHER");
  if (is_other != NULL) {
    if (set(id, option, 1) != 0) fail("rdma_set_option");
    const int at = count > 3 ? 3 : 1;
    printf("the other process: %s\n", told(bind_to(id, arguments[at], atoi(arguments[at + 1]))));
    return;
  }
  if (bind_to(id, arguments[1], atoi(arguments[2])) != 0) fail("rdma_bind_addr");
  if (set(id, option, 1) != 0) fail("rdma_set_option");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("CM_CALLS_OTHER", "1", 1);
    execv(again[0], again);
    _exit(127);
  }
  if (waitpid(child, NULL, 0) != child) fail("waitpid");
  printf("taken back: %s\n", told(set(id, option, 0)));
  if (rdma_listen(id, 1) != 0) fail("rdma_listen");
  printf("while listening: %s\n", told(set(id, option, 1)));
}

static void resolve_after(const char* command, const char* destination) {
  struct rdma_cm_id* id = make_id(RDMA_PS_TCP);
  if (system(command) != 0) fail(command);
  const int result = begin_to_resolve(id, "-", 0, destination);
  printf("%s\n", result == 0 ? rdma_event_str(next_event().event) : strerror(errno));
}

// A client that is about to connect to a server, and the server's side of it.
static void connect_to(enum rdma_port_space space, const char* address, struct rdma_cm_id** client,
                       struct rdma_cm_id** server) {
  struct rdma_cm_id* listening = make_id(space);
  if (bind_to(listening, address, kPort) != 0 || rdma_listen(listening, 1) != 0) fail("listening");
  *client = make_id(space);
  if (begin_to_resolve(*client, "-", 0, address) != 0) fail("rdma_resolve_addr");
  expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(*client, kPatience) != 0) fail("rdma_resolve_route");
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  struct rdma_conn_param wanted = {.qp_num = 77};
  if (rdma_connect(*client, &wanted) != 0) fail("rdma_connect");
  *server = expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
}

static void accept_too_much(const char* address) {
  struct rdma_cm_id *client, *server;
  connect_to(RDMA_PS_TCP, address, &client, &server);
  const char data[200] = {0};
  struct rdma_conn_param wanted = {
      .qp_num = 78, .private_data = data, .private_data_len = sizeof data};
  printf("too much: %s\n", told(rdma_accept(server, &wanted)));
  const struct rdma_cm_event event = next_event();
  printf("the client: %s, status %d\n", rdma_event_str(event.event), event.status);
  wanted.private_data_len = 0;
  printf("again: %s\n", told(rdma_accept(server, &wanted)));
}

static void establish(const char* address) {
  struct rdma_cm_id *client, *server;
  connect_to(RDMA_PS_TCP, address, &client, &server);
  struct rdma_conn_param wanted = {.qp_num = 78};
  if (rdma_accept(server, &wanted) != 0) fail("rdma_accept");
  expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  if (rdma_establish(client) != 0) fail("rdma_establish");
  const struct rdma_cm_event event = expect(RDMA_CM_EVENT_ESTABLISHED);
  printf("the server: QP %u, %d bytes\n", event.param.conn.qp_num,
         event.param.conn.private_data_len);
  printf("noted: %s\n", told(rdma_notify(server, IBV_EVENT_COMM_EST)));
}

static void disconnect(const char* address) {
  struct rdma_cm_id *client, *server;
  printf("idle: %s\n", told(rdma_disconnect(make_id(RDMA_PS_UDP))));
  connect_to(RDMA_PS_UDP, address, &client, &server);
  printf("asking: %s\n", told(rdma_disconnect(client)));
  struct rdma_conn_param wanted = {.qp_num = 78};
  if (rdma_accept(server, &wanted) != 0) fail("rdma_accept");
  expect(RDMA_CM_EVENT_ESTABLISHED);
  printf("client: %s\n", told(rdma_disconnect(client)));
  printf("server: %s\n", told(rdma_disconnect(server)));
  struct rdma_cm_id* listening = make_id(RDMA_PS_TCP);
  if (bind_to(listening, address, 0) != 0 || rdma_listen(listening, 1) != 0) fail("rdma_listen");
  printf("listening: %s\n", told(rdma_disconnect(listening)));
}

static void join(const char* address, const char* group) {
  struct rdma_cm_id* id = make_id(RDMA_PS_UDP);
  struct sockaddr_storage to = address_of(group, 0);
  int contexts[2];
  if (bind_to(id, address, 0) != 0) fail("rdma_bind_addr");
  for (int i = 0; i < 2; ++i) {
    const int result = rdma_join_multicast(id, (struct sockaddr*)&to, &contexts[i]);
    printf("joining: %s\n", told(result));
    if (result != 0) return;
    const struct rdma_cm_event event = expect(RDMA_CM_EVENT_MULTICAST_JOIN);
    printf("%s context\n", event.param.ud.private_data == &contexts[i] ? "own" : "another's");
  }
  for (int i = 0; i < 2; ++i) {
    printf("leaving: %s\n", told(rdma_leave_multicast(id, (struct sockaddr*)&to)));
  }
}

static void read_at_the_limit(const char* address) {
  struct rdma_cm_id* id = make_id(RDMA_PS_TCP);
  if (bind_to(id, address, 0) != 0) fail("rdma_bind_addr");  // else the device is yet to be opened
  if (begin_to_resolve(id, "-", 0, address) != 0) fail("rdma_resolve_addr");
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) fail("setrlimit");
  printf("%s\n", rdma_event_str(next_event().event));
}

int main(int argc, char** argv) {
  const char* const what = argc > 2 ? argv[1] : "";
  channel = rdma_create_event_channel();
  if (channel == NULL) fail("rdma_create_event_channel");
  if (argc == 6 && strcmp(what, "resolve") == 0) {
    resolve(argv + 2);
  } else if (argc >= 4 && (strcmp(what, "bind") == 0 || strcmp(what, "listen") == 0)) {
    bind_all(argv + 2, argc - 2, strcmp(what, "listen") == 0);
  } else if (argc == 4 && strcmp(what, "fallback") == 0) {
    fall_back(argv + 2);
  } else if (argc >= 5 && strcmp(what, "option") == 0) {
    set_option(argv + 2, argc - 2, argv);
  } else if (argc == 4 && strcmp(what, "after") == 0) {
    resolve_after(argv[2], argv[3]);
  } else if (argc == 3 && strcmp(what, "accept") == 0) {
    accept_too_much(argv[2]);
  } else if (argc == 3 && strcmp(what, "established") == 0) {
    establish(argv[2]);
  } else if (argc == 3 && strcmp(what, "disconnect") == 0) {
    disconnect(argv[2]);
  } else if (argc == 4 && strcmp(what, "join") == 0) {
    join(argv[2], argv[3]);
  } else if (argc == 3 && strcmp(what, "limit") == 0) {
    read_at_the_limit(argv[2]);
  } else {
    fprintf(stderr, "usage: see the top of cm_calls.c\n");
    return 2;
  }
  return 0;
}
