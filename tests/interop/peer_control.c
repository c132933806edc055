// SPDX-License-Identifier: BSD-2-Clause
// The TCP connection over which two peers agree.
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

static int ready(int control) {
  const int on = 1;
  setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return control;
}

int connect_to(const char* host, const char* port) {
  const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* address = NULL;
  if (getaddrinfo(host, port, &hints, &address) != 0) fail(host);
  const int control = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(control, address->ai_addr, address->ai_addrlen) != 0) fail("connect");
  freeaddrinfo(address);
  return ready(control);
}

int accept_one(const char* port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  if (bind(listener, (const struct sockaddr*)&any, sizeof any) != 0) fail("bind");
  if (listen(listener, 1) != 0) fail("listen");
  const int control = accept(listener, NULL, NULL);
  if (control < 0) fail("accept");
  close(listener);
  return ready(control);
}

void write_all(int control, const void* data, size_t bytes) {
  if (send(control, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) fail("the peer has gone");
}

void read_all(int control, void* data, size_t bytes) {
  if (recv(control, data, bytes, MSG_WAITALL) == (ssize_t)bytes) return;
  errno = ECONNRESET;
  fail("the peer has gone");
}

void exchange(int control, const void* own, void* peer, size_t bytes) {
  write_all(control, own, bytes);
  read_all(control, peer, bytes);
}
