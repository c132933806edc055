// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/neighbour/kernel_tables.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace uroce::datapath {
namespace {

constexpr std::uint16_t kDiscardPort = 9;
constexpr std::size_t kReplyBytes = 4096;

ConstBytes address_bytes(const Gid& gid) {
  const auto all = std::as_bytes(std::span(gid.bytes));
  return gid.is_ipv4() ? all.subspan(12) : all;
}

// A request of one fixed header and attributes behind it.
template <typename Header>
class Request {
 public:
  Request(std::uint16_t type, const Header& header) {
    head()->nlmsg_len = NLMSG_LENGTH(sizeof(Header));
    head()->nlmsg_type = type;
    head()->nlmsg_flags = NLM_F_REQUEST;
    std::memcpy(NLMSG_DATA(head()), &header, sizeof header);
  }

  void add(std::uint16_t type, ConstBytes value) {
    const rtattr attribute{static_cast<std::uint16_t>(RTA_LENGTH(value.size())), type};
    std::byte* const at = bytes_.data() + NLMSG_ALIGN(head()->nlmsg_len);
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), value.data(), value.size());
    head()->nlmsg_len = NLMSG_ALIGN(head()->nlmsg_len) + RTA_ALIGN(attribute.rta_len);
  }

  [[nodiscard]] ConstBytes bytes() { return {bytes_.data(), head()->nlmsg_len}; }

 private:
  nlmsghdr* head() { return reinterpret_cast<nlmsghdr*>(bytes_.data()); }
  alignas(nlmsghdr) std::array<std::byte, 128> bytes_{};
};

// One answer: its fixed header and its attributes.
class Reply {
 public:
  // 0, or an errno: the kernel's, or that of the socket.
  int receive(int socket, ConstBytes request) {
    // What an earlier question left behind after a time-out must not be taken for this answer.
    while (recv(socket, bytes_.data(), bytes_.size(), MSG_DONTWAIT) > 0) {
    }
    if (send(socket, request.data(), request.size(), 0) < 0) return errno;
    const ssize_t got = recv(socket, bytes_.data(), bytes_.size(), 0);
    if (got < 0) return errno;
    if (!NLMSG_OK(head(), static_cast<std::uint32_t>(got))) return EPROTO;
    if (head()->nlmsg_type != NLMSG_ERROR) return 0;
    if (head()->nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr))) return EPROTO;
    const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(head()));
    return error->error == 0 ? EPROTO : -error->error;
  }

  template <typename Header>
  [[nodiscard]] const Header* header() const {
    return head()->nlmsg_len >= NLMSG_LENGTH(sizeof(Header))
               ? static_cast<const Header*>(NLMSG_DATA(head()))
               : nullptr;
  }

  // The value of an attribute; empty when it is not there.
  template <typename Header>
  [[nodiscard]] ConstBytes attribute(std::uint16_t type) const {
    const auto at = NLMSG_SPACE(sizeof(Header));
    if (head()->nlmsg_len < at) return {};
    std::size_t left = head()->nlmsg_len - at;
    const auto* attribute = reinterpret_cast<const rtattr*>(bytes_.data() + at);
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
      if (attribute->rta_type == type) {
        return {static_cast<const std::byte*>(RTA_DATA(attribute)), RTA_PAYLOAD(attribute)};
      }
    }
    return {};
  }

 private:
  [[nodiscard]] const nlmsghdr* head() const {
    return reinterpret_cast<const nlmsghdr*>(bytes_.data());
  }
  alignas(nlmsghdr) std::array<std::byte, kReplyBytes> bytes_{};
};

bool to_gid(ConstBytes address, Gid& gid) {
  if (address.size() == 4) {
    std::array<std::uint8_t, 4> ipv4;
    std::memcpy(ipv4.data(), address.data(), 4);
    gid = ipv4_mapped(ipv4);
    return true;
  }
  if (address.size() != gid.bytes.size()) return false;
  std::memcpy(gid.bytes.data(), address.data(), address.size());
  return true;
}

// The neighbour's entry, in `reply`. 0, or an errno: ENOENT where there is none.
int look_up(int netlink, unsigned interface_index, const Gid& next_hop, Reply& reply) {
  ndmsg neighbour{};
  neighbour.ndm_family = next_hop.is_ipv4() ? AF_INET : AF_INET6;
  neighbour.ndm_ifindex = static_cast<int>(interface_index);
  Request<ndmsg> request(RTM_GETNEIGH, neighbour);
  request.add(NDA_DST, address_bytes(next_hop));
  if (const int error = reply.receive(netlink, request.bytes()); error != 0) return error;
  return reply.header<ndmsg>() == nullptr ? EPROTO : 0;
}

}  // namespace

KernelTables::KernelTables(unsigned interface_index)
    : interface_index_(interface_index),
      netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  // The kernel answers within the send call; the time-out only keeps a surprise from hanging us.
  const timeval limit{.tv_sec = 0, .tv_usec = 100'000};
  static_cast<void>(setsockopt(netlink_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
}

KernelTables::~KernelTables() { close_descriptors(); }

void KernelTables::close_descriptors() {
  if (netlink_ >= 0) close(netlink_);
  netlink_ = -1;
}

int KernelTables::find_next_hop(const Gid& destination, Gid& next_hop) const {
  const bool ipv4 = destination.is_ipv4();
  rtmsg route{};
  route.rtm_family = ipv4 ? AF_INET : AF_INET6;
  route.rtm_dst_len = ipv4 ? 32 : 128;
  Request<rtmsg> request(RTM_GETROUTE, route);
  request.add(RTA_DST, address_bytes(destination));
  request.add(RTA_OIF, std::as_bytes(std::span(&interface_index_, 1)));
  Reply reply;
  if (const int error = reply.receive(netlink_, request.bytes()); error != 0) return error;
  const auto* found = reply.header<rtmsg>();
  if (found == nullptr || found->rtm_type != RTN_UNICAST) return EHOSTUNREACH;
  if (to_gid(reply.attribute<rtmsg>(RTA_GATEWAY), next_hop)) return 0;
  // An IPv4 route by way of an IPv6 router: family, then the address.
  const ConstBytes via = reply.attribute<rtmsg>(RTA_VIA);
  if (via.size() > 2 && to_gid(via.subspan(2), next_hop)) return 0;
  next_hop = destination;
  return 0;
}

std::optional<MacAddress> KernelTables::find_neighbour(const Gid& next_hop) const {
  Reply reply;
  if (look_up(netlink_, interface_index_, next_hop, reply) != 0) return std::nullopt;
  if ((reply.header<ndmsg>()->ndm_state & (NUD_FAILED | NUD_INCOMPLETE)) != 0) return std::nullopt;
  const ConstBytes told = reply.attribute<ndmsg>(NDA_LLADDR);
  MacAddress mac;
  if (told.size() != sizeof mac) return std::nullopt;
  std::memcpy(&mac, told.data(), sizeof mac);
  return mac;
}

bool KernelTables::is_reachable(const Gid& next_hop) const {
  constexpr unsigned kValid =
      NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
  Reply reply;
  const int error = look_up(netlink_, interface_index_, next_hop, reply);
  if (error != 0) return error != ENOENT;
  return (reply.header<ndmsg>()->ndm_state & kValid) != 0;
}

void KernelTables::make_kernel_ask(const Gid& next_hop) const {
  const bool ipv4 = next_hop.is_ipv4();
  const int probe = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return;
  char name[IF_NAMESIZE];
  if (if_indextoname(interface_index_, name) != nullptr) {
    // Refused to ordinary users before Linux 5.7; the route then decides alone.
    static_cast<void>(setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, name,
                                 static_cast<socklen_t>(std::strlen(name))));
  }
  // Whatever this answers, the next look into the table tells.
  if (ipv4) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = to_big(kDiscardPort);
    std::memcpy(&to.sin_addr, address_bytes(next_hop).data(), 4);
    static_cast<void>(sendto(probe, nullptr, 0, 0, reinterpret_cast<sockaddr*>(&to), sizeof to));
  } else {
    sockaddr_in6 to{};
    to.sin6_family = AF_INET6;
    to.sin6_port = to_big(kDiscardPort);
    to.sin6_scope_id = next_hop.is_link_local() ? interface_index_ : 0;
    std::memcpy(&to.sin6_addr, next_hop.bytes.data(), 16);
    static_cast<void>(sendto(probe, nullptr, 0, 0, reinterpret_cast<sockaddr*>(&to), sizeof to));
  }
  close(probe);
}

}  // namespace uroce::datapath
