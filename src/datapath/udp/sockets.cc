// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/sockets.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "datapath/udp/port_owner.h"

namespace uroce::datapath::udp {
namespace {

constexpr int kReceiveBufferBytes = 4 << 20;
constexpr int kSendBufferBytes = 4 << 20;
constexpr std::uint16_t kSourcePortMin = 0xc000;
constexpr int kSourcePortAttempts = 64;

bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// What is asked for where the limits allow it, else what they allow.
void enlarge_buffer(int fd, int forced, int ordinary, int bytes) {
  if (!set_option(fd, SOL_SOCKET, forced, bytes)) set_option(fd, SOL_SOCKET, ordinary, bytes);
}

Error failure(const char* what) {
  const int error = errno;
  return {error, std::string("cannot ") + what + ": " + std::strerror(error)};
}

socklen_t any_address(sa_family_t family, std::uint16_t port, sockaddr_storage& address) {
  address = {};
  address.ss_family = family;
  if (family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
    return sizeof(sockaddr_in);
  }
  reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  return sizeof(sockaddr_in6);
}

int bind_to_port(int fd, sa_family_t family, std::uint16_t port) {
  sockaddr_storage address;
  const socklen_t bytes = any_address(family, port, address);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes);
}

// The address, hop limit and traffic class of what arrives come as ancillary data.
bool ask_for_addresses(int fd, sa_family_t family) {
  set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
  set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
  if (family == AF_INET) return set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
  set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
  set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  return set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

// Prime steps, so that two processes that start at the same port part ways at once.
std::uint16_t source_port(unsigned attempt) {
  const auto seed = static_cast<unsigned>(getpid());
  return static_cast<std::uint16_t>(kSourcePortMin + (seed * 97 + attempt * 1'031) % 0x4000);
}

int bind_to_source_port(int fd, sa_family_t family, std::uint16_t& port) {
  thread_local unsigned attempts = 0;
  for (int i = 0; i < kSourcePortAttempts; ++i) {
    port = source_port(attempts++);
    if (bind_to_port(fd, family, port) == 0) return 0;
    if (errno != EADDRINUSE) break;
  }
  return -1;
}

bool sends_segments(int fd, const sockaddr_in& to, int count) {
  constexpr int kSegmentBytes = 8;
  std::array<char, std::size_t{128} * kSegmentBytes> data{};
  return set_option(fd, SOL_UDP, UDP_SEGMENT, kSegmentBytes) &&
         sendto(fd, data.data(), static_cast<std::size_t>(count * kSegmentBytes), MSG_DONTWAIT,
                reinterpret_cast<const sockaddr*>(&to), sizeof to) >= 0;
}

}  // namespace

Result<ReceiveSocket> open_receive_socket(const UdpOptions& options) {
  ReceiveSocket result;
  constexpr int kType = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  result.descriptor = posix::Descriptor(socket(AF_INET6, kType, 0));
  if (!result.descriptor.is_open()) {
    result.family = AF_INET;
    result.descriptor = posix::Descriptor(socket(AF_INET, kType, 0));
  }
  const int fd = result.descriptor.get();
  if (fd < 0) return failure("open a UDP socket");
  if (result.family == AF_INET6) {
    if (!set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)) return failure("make a dual-stack socket");
    // Linux rxe sends no UDP checksums, over IPv6 neither.
    set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
  }
  if (!set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return failure("share the UDP port");
  if (!ask_for_addresses(fd, result.family)) return failure("receive destination addresses");
  // Of groups that the host is in (memberships.h); what sockets of IPv4 do by themselves.
  set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 1);
  enlarge_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, kReceiveBufferBytes);
  result.coalesces = set_option(fd, SOL_UDP, UDP_GRO, 1);
  if (bind_to_port(fd, result.family, options.port) != 0) {
    const int error = errno;
    return Error{error, explain_bind_failure(options.port, error)};
  }
  return result;
}

Result<SendingSocket> open_sending_socket(sa_family_t family) {
  SendingSocket result;
  result.descriptor =
      posix::Descriptor(socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = result.descriptor.get();
  if (fd < 0) return failure("open a UDP socket");
  const bool whole = family == AF_INET
                         ? set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
                         : set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
                               set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  if (!whole) return failure("forbid fragmentation");
  enlarge_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, kSendBufferBytes);
  set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);  // whatever is sent to it is nobody's
  if (bind_to_source_port(fd, family, result.port) != 0) return failure("bind a source port");
  return result;
}

std::size_t probe_segments_max() {
  const posix::Descriptor target(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const posix::Descriptor sender(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!set_option(sender.get(), SOL_UDP, UDP_SEGMENT, 8)) return 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(target.get(), generic, bytes) != 0) return 64;
  if (getsockname(target.get(), generic, &bytes) != 0) return 64;
  // Where loopback is down nothing can be tried; 64 is what every kernel with the option takes.
  return sends_segments(sender.get(), address, 128) ? 128 : 64;
}

}  // namespace uroce::datapath::udp
