// SPDX-License-Identifier: BSD-2-Clause
// agent ADDRESS PORT: runs shell commands in the guest for ../run_in_guest.py, one a connection. It
// is the guest's first process, so it also collects whatever has lost its parent.
//
// The caller sends "LENGTH\n" and so many bytes of command, whose standard input, output and error
// the connection then is; after the output come a zero byte, the exit status as text, and the end.
// A caller who goes away ends the command and all it started.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kCommandBytesMax = 1 << 16, kNotFound = 127, kSignalled = 128 };

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int read_all(int connection, char* data, size_t bytes) {
  for (size_t got = 0; got < bytes;) {
    const ssize_t more = read(connection, data + got, bytes - got);
    if (more <= 0) return 0;
    got += (size_t)more;
  }
  return 1;
}

// The command, ended by a zero; NULL when the request is none.
static const char* read_request(int connection) {
  static char text[kCommandBytesMax + 1];
  size_t at = 0;
  do {
    if (at == 16 || !read_all(connection, text + at, 1)) return NULL;
  } while (text[at++] != '\n');
  const size_t length = strtoul(text, NULL, 10);
  if (length > kCommandBytesMax || !read_all(connection, text, length)) return NULL;
  text[length] = '\0';
  return text;
}

static _Noreturn void become(const char* command, int connection) {
  setsid();
  for (int descriptor = 0; descriptor < 3; ++descriptor) dup2(connection, descriptor);
  close(connection);
  execl("/bin/sh", "sh", "-c", command, (char*)NULL);
  _exit(kNotFound);
}

// Returns when the command has ended or the caller has gone.
static void wait_for_either(pid_t command, int connection) {
  const int process = (int)syscall(SYS_pidfd_open, command, 0);
  struct pollfd watched[] = {{.fd = process, .events = POLLIN},
                             {.fd = connection, .events = POLLRDHUP}};
  while (poll(watched, 2, -1) < 0 && errno == EINTR) {
  }
  close(process);
}

static void serve(int connection) {
  const char* text = read_request(connection);
  if (text == NULL) return;
  const pid_t command = fork();
  if (command < 0) return;
  if (command == 0) become(text, connection);
  wait_for_either(command, connection);
  int status = 0;
  if (waitpid(command, &status, WNOHANG) == 0) {
    kill(-command, SIGKILL);
    waitpid(command, &status, 0);
  }
  kill(-command, SIGKILL);  // what it left behind
  const int code = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
  dprintf(connection, "%c%d\n", '\0', code);
}

static int listen_on(const char* address, const char* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  if (inet_pton(AF_INET, address, &own.sin_addr) != 1) fail(address);
  if (bind(listener, (const struct sockaddr*)&own, sizeof own) != 0) fail("bind");
  if (listen(listener, SOMAXCONN) != 0) fail("listen");
  return listener;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  const int listener = listen_on(arguments[1], arguments[2]);
  puts("interop-guest: ready");
  fflush(stdout);
  for (;;) {
    const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (fork() == 0) {
      signal(SIGPIPE, SIG_DFL);
      signal(SIGCHLD, SIG_DFL);
      serve(connection);
      _exit(0);
    }
    close(connection);
  }
}
