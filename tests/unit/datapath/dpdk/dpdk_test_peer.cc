// SPDX-License-Identifier: BSD-2-Clause
// The other process of a two-process test: opens a port, sends what it is told and answers what it
// must until its standard input ends. Exit status 0: everything was accepted.
//
//   dpdk_test_peer SPEC OWN PEER RUNS      IPv4 addresses, all in one /24
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "datapath/dpdk_loader.h"
#include "unit/datapath/dpdk/frames.h"

namespace {

using namespace uroce;
using namespace uroce::datapath;

Gid parse_ipv4(const char* text) {
  std::array<std::uint8_t, 4> bytes{};
  if (inet_pton(AF_INET, text, bytes.data()) != 1) exit(2);
  return ipv4_mapped(bytes);
}

bool input_ended() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char byte = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const Gid own = parse_ipv4(argv[2]);
  auto port = open_dpdk({.spec = argv[1], .addresses = {{own, 24}}});
  if (!port) {
    std::fprintf(stderr, "%s\n", port.error().message.c_str());
    return 3;
  }
  Datapath& link = *port->datapath;
  Path path{.source = own, .destination = parse_ipv4(argv[3])};
  if (link.open_path(path, Qpn{2}) != 0) return 4;
  const std::uint16_t mtu = link.capabilities().max_path_mtu;
  const auto payload = make_payload(16u * mtu - 5);
  Collector collector(link);
  // The neighbour may not be known yet, which costs packets: begin when the other side was heard.
  if (!turn_until([&](Instant now) { collector.turn(now); },
                  [&] { return !collector.psns.empty(); })) {
    return 5;
  }
  const auto runs = static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10));
  for (std::uint32_t i = 0; i < runs; ++i) {
    WriteRun run(path, payload, mtu, i * 16);
    if (!send_all(link, run.frame)) return 6;
    collector.turn(real_now());
  }
  while (!input_ended()) collector.turn(real_now());
  return link.counters().rx_bad_icrc == 0 ? 0 : 7;
}
