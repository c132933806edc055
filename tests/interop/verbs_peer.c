// SPDX-License-Identifier: BSD-2-Clause
// verbs_peer -d DEVICE -x GID-INDEX -p PORT                                         the server
// verbs_peer -d DEVICE -x GID-INDEX [OPTIONS] -o "REQUEST..." -p PORT HOST          the client
//
// Every operation between two devices, whatever is below each, with all data compared. REQUEST is
// NAME[:BYTES]; kKinds in peer_client.c has the names. Options, for both sides:
//   -c RC | UC | UD   -m PATH-MTU   -q QUEUE-PAIRS   -s (shared receive queues)
//   -t TIMEOUT   -r RETRIES   -R RNR-RETRIES
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

enum { kRequestsMax = 256 };

struct arguments {
  const char* device;
  const char* port;
  int gid_index;
  char* requests[kRequestsMax + 1];
  struct plan plan;
};

static uint32_t service_of(const char* name) {
  if (strcmp(name, "UC") == 0) return IBV_QPT_UC;
  if (strcmp(name, "UD") == 0) return IBV_QPT_UD;
  return IBV_QPT_RC;
}

static void set_requests(struct arguments* arguments, char* text) {
  size_t count = 0;
  for (char* word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
    errno = E2BIG;
    if (count == kRequestsMax) fail("requests");
    arguments->requests[count++] = word;
  }
}

static int set_option(struct arguments* arguments, int option) {
  struct plan* plan = &arguments->plan;
  const uint32_t number = optarg != NULL ? (uint32_t)strtoul(optarg, NULL, 0) : 0;
  switch (option) {
    case 'd':
      arguments->device = optarg;
      break;
    case 'p':
      arguments->port = optarg;
      break;
    case 'x':
      arguments->gid_index = (int)number;
      break;
    case 'o':
      set_requests(arguments, optarg);
      break;
    case 'c':
      plan->service = service_of(optarg);
      break;
    case 'm':
      plan->mtu = number;
      break;
    case 'q':
      plan->qps = number;
      break;
    case 's':
      plan->use_srq = 1;
      break;
    case 't':
      plan->timeout = number;
      break;
    case 'r':
      plan->retry_count = number;
      break;
    case 'R':
      plan->rnr_retry = number;
      break;
    default:
      return 0;
  }
  return 1;
}

int main(int count, char** words) {
  static struct arguments arguments = {
      .plan = {.service = IBV_QPT_RC,
               .mtu = 1024,
               .qps = 1,
               .timeout = 16,  // 268 ms: the peer may be an emulated machine
               .retry_count = 7,
               .rnr_retry = 7}};
  int option = 0;
  while ((option = getopt(count, words, "d:p:x:o:c:m:q:st:r:R:")) != -1) {
    if (!set_option(&arguments, option)) return 2;
  }
  if (arguments.plan.qps == 0 || arguments.plan.qps > kQpsMax) return 2;
  static struct end end;
  const char* host = words[optind];
  end.is_client = host != NULL;
  open_device(&end, arguments.device, arguments.gid_index);
  end.control = host != NULL ? connect_to(host, arguments.port) : accept_one(arguments.port);
  if (end.is_client) {
    end.plan = arguments.plan;
    run_client(&end, arguments.requests);
  } else {
    run_server(&end);
  }
  close_device(&end);
  return 0;
}
