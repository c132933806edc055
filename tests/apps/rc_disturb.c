// SPDX-License-Identifier: BSD-2-Clause
#define _GNU_SOURCE
#include "rc_disturb.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rc_end.h"

static volatile sig_atomic_t alarms;
static cpu_set_t pinned_to;

static void on_alarm(int number) {
  (void)number;
  ++alarms;
}

static int is(const char* name, const char* wanted) {
  return name != NULL && strcmp(name, wanted) == 0;
}

// The first of those that we may run on.
static cpu_set_t one_cpu(void) {
  cpu_set_t allowed, set;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail("sched_getaffinity");
  CPU_ZERO(&set);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &set);
    break;
  }
  return set;
}

static void start_alarms(void) {
  const struct sigaction action = {.sa_handler = on_alarm};  // without SA_RESTART
  const struct itimerval each = {{0, 500}, {0, 500}};
  sigaction(SIGALRM, &action, NULL);
  if (setitimer(ITIMER_REAL, &each, NULL) != 0) fail("setitimer");
}

void disturb_before_open(const char* name) {
  if (is(name, "pin")) {
    pinned_to = one_cpu();
    if (sched_setaffinity(0, sizeof pinned_to, &pinned_to) != 0) fail("sched_setaffinity");
  }
  if (is(name, "block-signals")) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
  }
  if (is(name, "alarms")) start_alarms();
  if (is(name, "fork-init")) {
    errno = ibv_fork_init();
    if (errno != 0) fail("ibv_fork_init");
  }
}

void disturb_after_open(const char* name, char** arguments) {
  if (is(name, "child-stays") && fork() == 0) {
    for (;;) pause();
  }
  if (!is(name, "exec")) return;
  int count = 0;
  for (char** argument = arguments; *argument != NULL; ++argument) {
    if (strcmp(*argument, "--disturb") == 0) {
      ++argument;  // and its value
    } else {
      arguments[count++] = *argument;
    }
  }
  arguments[count] = NULL;
  execv("/proc/self/exe", arguments);
  fail("execv");
}

static void wait_for(pid_t child) {
  int status = 0;
  pid_t ended = 0;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended != child || status != 0) fail("child");
}

void disturb_between(const char* name, int round) {
  const int exits = is(name, "fork") || is(name, "fork-init");
  const int closes = is(name, "fork-close");
  if ((!exits && !closes) || round % 8 != 0) return;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    if (exits) exit(0);  // with every handler that a library has registered
    closefrom(3);
    execl("/bin/true", "true", NULL);
    _exit(127);
  }
  wait_for(child);
}

void check_disturbance(const char* name) {
  errno = 0;
  if (is(name, "alarms") && alarms == 0) fail("no alarm was handled");
  if (is(name, "pin")) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || !CPU_EQUAL(&set, &pinned_to)) {
      fail("affinity");
    }
  }
  if (is(name, "block-signals")) {
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    if (!sigismember(&mask, SIGUSR1) || !sigismember(&mask, SIGALRM)) fail("signal mask");
  }
}
