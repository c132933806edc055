// SPDX-License-Identifier: BSD-2-Clause
// rc_tool MODE [--device NAME] [--gid N] [--timeout N] [--retries N] [--events] [--operation OP]
//              [--bytes N] [--seconds S] [--count N] [--connections N] [--disturb NAME] -p PORT
//              [HOST]
//
// With HOST it is the client. Modes, by what each side does once connected:
//   sleep   blocks in a system call until the peer has gone: served by nobody but the stack
//   poll    polls its CQ until the peer has gone
//   drive   write, read or fetch_add against the peer for SECONDS; prints "rate N" a second, or
//           "status N" of the first completion that failed, and ends with 3
//   ping    client: COUNT messages, each must come back with every byte one higher
//   echo    server: does that for each of CONNECTIONS, in a child of its own
//   exit    server: COUNT connections, each child receives one message and ends at that moment;
//           client: COUNT connections, one message each, which must complete well
// "ready" on standard output says that the connection is up. --disturb: see rc_disturb.h; "own"
// forks in the middle of a ping a child that pings on a context of its own.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rc_disturb.h"
#include "rc_end.h"

enum { kFailedCompletion = 3 };

struct run {
  struct options options;
  const char* mode;
  const char* operation;
  const char* disturb;
  uint32_t bytes;
  double seconds;
  int count;
  int connections;
  char** arguments;
};

static void report_ready(void) {
  puts("ready");
  fflush(stdout);
}

static void check(const struct ibv_wc* completion) {
  if (completion->status == IBV_WC_SUCCESS) return;
  printf("status %d %s\n", completion->status, ibv_wc_status_str(completion->status));
  fflush(stdout);
  _exit(kFailedCompletion);  // whatever became of the peer, this ends
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static enum ibv_wr_opcode opcode_of(const char* operation) {
  if (strcmp(operation, "write") == 0) return IBV_WR_RDMA_WRITE;
  if (strcmp(operation, "read") == 0) return IBV_WR_RDMA_READ;
  if (strcmp(operation, "fetch_add") == 0) return IBV_WR_ATOMIC_FETCH_AND_ADD;
  errno = EINVAL;
  fail(operation);
}

// The peer sends nothing more on the control connection; that it is readable means that it ended.
static int peer_has_gone(struct rc_end* end, int flags) {
  char byte;
  const ssize_t got = recv(end->control, &byte, 1, flags);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static void run_sleep(const struct run* run, struct rc_end* end) {
  (void)run;
  while (!peer_has_gone(end, 0)) {
  }
}

static void run_poll(const struct run* run, struct rc_end* end) {
  (void)run;
  struct ibv_wc completion;
  for (unsigned turn = 0;; ++turn) {
    if (ibv_poll_cq(end->cq, 1, &completion) != 0) check(&completion);
    if (turn % 4096 == 0 && peer_has_gone(end, MSG_DONTWAIT)) return;
  }
}

static void run_drive(const struct run* run, struct rc_end* end) {
  const enum ibv_wr_opcode opcode = opcode_of(run->operation);
  const int depth = 16;
  for (int i = 0; i < depth; ++i) post(end, opcode, run->bytes);
  const double began = now();
  double elapsed = 0;
  long done = 0;
  while ((elapsed = now() - began) < run->seconds) {
    const struct ibv_wc completion = wait_completion(end);
    check(&completion);
    ++done;
    post(end, opcode, run->bytes);
  }
  printf("rate %.0f\n", (double)done / elapsed);
  for (int i = 0; i < depth; ++i) {
    const struct ibv_wc completion = wait_completion(end);
    check(&completion);
  }
}

static void wait_for_both(struct rc_end* end) {
  for (int i = 0; i < 2; ++i) {
    const struct ibv_wc completion = wait_completion(end);
    check(&completion);
  }
}

static void one_ping(const struct run* run, struct rc_end* end, int round) {
  for (uint32_t i = 0; i < run->bytes; ++i) end->buffer[i] = (char)(i + (uint32_t)round);
  post_receive(end);
  post(end, IBV_WR_SEND, run->bytes);
  wait_for_both(end);
  for (uint32_t i = 0; i < run->bytes; ++i) {
    if (end->buffer[i] == (char)(i + (uint32_t)round + 1)) continue;
    errno = EILSEQ;
    fail("wrong byte");
  }
}

static void ping_on_own_context(const struct run* run);

static pid_t fork_own(const struct run* run) {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child != 0) return child;
  ping_on_own_context(run);
  exit(0);
}

static void run_ping(const struct run* run, struct rc_end* end) {
  pid_t child = 0;
  for (int round = 0; round < run->count; ++round) {
    disturb_between(run->disturb, round);
    if (round == run->count / 2 && run->disturb != NULL && strcmp(run->disturb, "own") == 0) {
      child = fork_own(run);
    }
    one_ping(run, end, round);
  }
  check_disturbance(run->disturb);
  int status = 0;
  if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) fail("child's ping");
}

static void ping_on_own_context(const struct run* run) {
  struct run own = *run;
  own.disturb = NULL;
  struct rc_end end;
  open_end(&end, &own.options);
  connect_end(&end, &own.options, connect_control(&own.options, -1));
  run_ping(&own, &end);
  close_end(&end);
}

static void echo(const struct run* run, struct rc_end* end) {
  for (int round = 0; round < run->count; ++round) {
    struct ibv_wc completion;
    do {
      completion = wait_completion(end);
      check(&completion);
    } while (completion.opcode != IBV_WC_RECV);
    for (uint32_t i = 0; i < run->bytes; ++i) ++end->buffer[i];
    post_receive(end);
    post(end, IBV_WR_SEND, run->bytes);
  }
}

static void serve_one(const struct run* run, int control) {
  struct rc_end end;
  disturb_before_open(run->disturb);
  open_end(&end, &run->options);
  post_receive(&end);
  connect_end(&end, &run->options, control);
  if (strcmp(run->mode, "exit") == 0) {
    const struct ibv_wc completion = wait_completion(&end);
    _exit(completion.status == IBV_WC_SUCCESS ? 0 : kFailedCompletion);
  }
  echo(run, &end);
  while (!peer_has_gone(&end, 0)) {
  }
  close_end(&end);
}

static int serve_in_children(const struct run* run, int connections) {
  const int listener = listen_on(run->options.port);
  for (int i = 0; i < connections; ++i) {
    const int control = connect_control(&run->options, listener);
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
      close(listener);
      serve_one(run, control);
      exit(0);
    }
    close(control);
  }
  int failures = 0;
  for (int i = 0, status = 0; i < connections; ++i) {
    if (wait(&status) < 0 || status != 0) ++failures;
  }
  return failures == 0 ? 0 : 1;
}

static int leave_and_leave(const struct run* run) {
  for (int round = 0; round < run->count; ++round) {
    struct rc_end end;
    open_end(&end, &run->options);
    connect_end(&end, &run->options, connect_control(&run->options, -1));
    post(&end, IBV_WR_SEND, run->bytes);
    const struct ibv_wc completion = wait_completion(&end);
    if (completion.status != IBV_WC_SUCCESS) fprintf(stderr, "in round %d: ", round);
    check(&completion);
    close_end(&end);
  }
  return 0;
}

static int run_connected(const struct run* run,
                         void (*function)(const struct run*, struct rc_end*)) {
  const int listener = run->options.host == NULL ? listen_on(run->options.port) : -1;
  struct rc_end end;
  disturb_before_open(run->disturb);
  open_end(&end, &run->options);
  disturb_after_open(run->disturb, run->arguments);
  connect_end(&end, &run->options, connect_control(&run->options, listener));
  report_ready();
  function(run, &end);
  close_end(&end);
  return 0;
}

static int run_mode(const struct run* run) {
  if (strcmp(run->mode, "sleep") == 0) return run_connected(run, run_sleep);
  if (strcmp(run->mode, "poll") == 0) return run_connected(run, run_poll);
  if (strcmp(run->mode, "drive") == 0) return run_connected(run, run_drive);
  if (strcmp(run->mode, "ping") == 0) return run_connected(run, run_ping);
  if (strcmp(run->mode, "echo") == 0) return serve_in_children(run, run->connections);
  if (strcmp(run->mode, "exit") == 0) {
    return run->options.host != NULL ? leave_and_leave(run) : serve_in_children(run, run->count);
  }
  errno = EINVAL;
  fail(run->mode);
}

static const struct option kOptions[] = {
    {"device", required_argument, NULL, 'd'},  {"gid", required_argument, NULL, 'g'},
    {"timeout", required_argument, NULL, 't'}, {"retries", required_argument, NULL, 'r'},
    {"events", no_argument, NULL, 'e'},        {"operation", required_argument, NULL, 'o'},
    {"bytes", required_argument, NULL, 's'},   {"seconds", required_argument, NULL, 'D'},
    {"count", required_argument, NULL, 'n'},   {"connections", required_argument, NULL, 'c'},
    {"disturb", required_argument, NULL, 'x'}, {NULL, 0, NULL, 0}};

static int set_option(struct run* run, int option) {
  switch (option) {
    case 'd':
      run->options.device = optarg;
      return 1;
    case 'p':
      run->options.port = optarg;
      return 1;
    case 'g':
      run->options.gid_index = atoi(optarg);
      return 1;
    case 't':
      run->options.timeout = (uint8_t)atoi(optarg);
      return 1;
    case 'r':
      run->options.retry_count = (uint8_t)atoi(optarg);
      return 1;
    case 'e':
      run->options.use_events = 1;
      return 1;
    case 'o':
      run->operation = optarg;
      return 1;
    case 's':
      run->bytes = (uint32_t)atoi(optarg);
      return 1;
    case 'D':
      run->seconds = atof(optarg);
      return 1;
    case 'n':
      run->count = atoi(optarg);
      return 1;
    case 'c':
      run->connections = atoi(optarg);
      return 1;
    case 'x':
      run->disturb = optarg;
      return 1;
    default:
      return 0;
  }
}

int main(int count, char** arguments) {
  char* copy[64] = {NULL};  // getopt_long moves words about
  for (int i = 0; i < count && i < 63; ++i) copy[i] = arguments[i];
  struct run run = {.options = {.port = "18515", .timeout = 14, .retry_count = 7},
                    .operation = "write",
                    .bytes = 4096,
                    .seconds = 1,
                    .count = 100,
                    .connections = 1,
                    .arguments = copy};
  int option = 0;
  while ((option = getopt_long(count, arguments, "d:p:g:t:r:eo:s:D:n:c:x:", kOptions, NULL)) !=
         -1) {
    if (!set_option(&run, option)) return 2;
  }
  if (optind >= count) return 2;
  run.mode = arguments[optind];
  run.options.host = arguments[optind + 1];
  if (run.bytes > kBufferBytes) return 2;
  return run_mode(&run);
}
