// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/receiver.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "datapath/udp/control.h"
#include "datapath/udp/icrc_in_place.h"
#include "posix/uncancelled.h"
#include "wire/identification.h"
#include "wire/network.h"
#include "wire/opcode.h"

namespace uroce::datapath::udp {
namespace {

// From here on a datagram is a train, and the next ones probably are too.
constexpr std::size_t kTrainBytes = 16 << 10;

Gid gid_of(const in_addr& address) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  std::memcpy(gid.bytes.data() + 12, &address, sizeof address);
  return gid;
}

Gid gid_of(const in6_addr& address) {
  Gid gid;
  std::memcpy(gid.bytes.data(), &address, sizeof address);
  return gid;
}

// The values of ancillary data lie unaligned.
template <typename Value>
Value value_of(const cmsghdr* header) {
  Value value;
  std::memcpy(&value, CMSG_DATA(header), sizeof value);
  return value;
}

}  // namespace

struct Receiver::Buffers {
  alignas(64) std::array<std::array<std::byte, kBufferBytes>, kBuffersMax> data;
  std::array<mmsghdr, kBuffersMax> messages;
  std::array<iovec, kBuffersMax> pieces;
  std::array<sockaddr_storage, kBuffersMax> names;
  struct alignas(cmsghdr) Control {
    std::array<std::byte, kControlBytes> bytes;
  };
  std::array<Control, kBuffersMax> control;
};

Receiver::Receiver(int socket, bool verify_icrc, DatapathCounters& counters)
    : socket_(socket),
      verify_icrc_(verify_icrc),
      counters_(counters),
      buffers_(std::make_unique_for_overwrite<Buffers>()) {
  for (std::size_t i = 0; i < kBuffersMax; ++i) {
    buffers_->pieces[i] = {buffers_->data[i].data(), kBufferBytes};
    msghdr& message = buffers_->messages[i].msg_hdr;
    message = {};
    message.msg_name = &buffers_->names[i];
    message.msg_iov = &buffers_->pieces[i];
    message.msg_iovlen = 1;
    message.msg_control = buffers_->control[i].bytes.data();
  }
}

Receiver::~Receiver() = default;

bool Receiver::refill() {
  const posix::Uncancelled whole;
  prepare(batch_);
  current_ = filled_ = 0;
  const int count = recvmmsg(socket_, buffers_->messages.data(), static_cast<unsigned>(batch_),
                             MSG_DONTWAIT, nullptr);
  if (count <= 0) return false;
  filled_ = static_cast<std::size_t>(count);
  std::size_t longest = 0;
  for (std::size_t i = 0; i < filled_; ++i) {
    longest = std::max<std::size_t>(longest, buffers_->messages[i].msg_len);
  }
  batch_ = longest >= kTrainBytes ? kTrainsMax : kBuffersMax;
  open(0);
  return true;
}

// What the kernel overwrote in the last round.
void Receiver::prepare(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    msghdr& message = buffers_->messages[i].msg_hdr;
    message.msg_namelen = sizeof(sockaddr_storage);
    message.msg_controllen = kControlBytes;
  }
}

void Receiver::open(std::size_t i) {
  Datagram& datagram = datagrams_[i];
  datagram = {};
  msghdr& message = buffers_->messages[i].msg_hdr;
  datagram.bytes = datagram.segment_bytes = buffers_->messages[i].msg_len;
  const auto& name = buffers_->names[i];
  if (name.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(name);
    datagram.source = gid_of(ipv4.sin_addr);
    datagram.source_port = ntohs(ipv4.sin_port);
  } else {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(name);
    datagram.source = gid_of(ipv6.sin6_addr);
    datagram.source_port = ntohs(ipv6.sin6_port);
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    note(*c, datagram);
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    ++counters_.rx_truncated;
    datagram.taken_bytes = datagram.bytes;
  }
}

void Receiver::note(const cmsghdr& control, Datagram& datagram) {
  if (control.cmsg_level == SOL_UDP && control.cmsg_type == UDP_GRO) {
    datagram.segment_bytes = static_cast<std::size_t>(std::max(value_of<int>(&control), 1));
  } else if (control.cmsg_level == IPPROTO_IPV6 && control.cmsg_type == IPV6_PKTINFO) {
    datagram.destination = gid_of(value_of<in6_pktinfo>(&control).ipi6_addr);
  } else if (control.cmsg_level == IPPROTO_IP && control.cmsg_type == IP_PKTINFO) {
    datagram.destination = gid_of(value_of<in_pktinfo>(&control).ipi_addr);
  } else if (control.cmsg_level == IPPROTO_IP && control.cmsg_type == IP_TOS) {
    datagram.traffic_class = value_of<std::uint8_t>(&control);
  } else if (control.cmsg_level == IPPROTO_IP && control.cmsg_type == IP_TTL) {
    datagram.hop_limit = static_cast<std::uint8_t>(value_of<int>(&control));
  } else if (control.cmsg_level == IPPROTO_IPV6 && control.cmsg_type == IPV6_TCLASS) {
    datagram.traffic_class = static_cast<std::uint8_t>(value_of<int>(&control));
  } else if (control.cmsg_level == IPPROTO_IPV6 && control.cmsg_type == IPV6_HOPLIMIT) {
    datagram.hop_limit = static_cast<std::uint8_t>(value_of<int>(&control));
  }
}

bool Receiver::next(Received& received) {
  while (current_ < filled_) {
    Datagram& datagram = datagrams_[current_];
    const std::size_t left = datagram.bytes - datagram.taken_bytes;
    if (left == 0) {
      if (++current_ < filled_) open(current_);
      continue;
    }
    const std::size_t bytes = std::min(left, datagram.segment_bytes);
    std::byte* const start = buffers_->data[current_].data() + datagram.taken_bytes;
    received.is_first = datagram.next_index == 0;
    const bool is_accepted = accept(datagram, {start, bytes}, received);
    datagram.taken_bytes += bytes;
    ++datagram.next_index;
    if (is_accepted) return true;
  }
  return false;
}

bool Receiver::accept(const Datagram& datagram, Bytes bytes, Received& received) {
  received.is_control =
      bytes.size() >= sizeof(ControlHeader) && bytes[0] == std::byte{kControlOpcode};
  received.packet.bytes = bytes;
  received.packet.source = &datagram.source;
  received.packet.destination = &datagram.destination;
  received.packet.traffic_class = datagram.traffic_class;
  received.packet.hop_limit = datagram.hop_limit;
  if (received.is_control) return true;
  if (bytes.size() < wire::kBthBytes + wire::kIcrcBytes) {
    ++counters_.rx_not_roce;
    return false;
  }
  if (verify_icrc_ && !is_intact(datagram, bytes)) {
    ++counters_.rx_bad_icrc;
    return false;
  }
  received.packet.bytes = bytes.first(bytes.size() - wire::kIcrcBytes);
  ++counters_.rx_packets;
  counters_.rx_bytes += bytes.size();
  return true;
}

// The first guess at IPv4's identification is what Linux sends: the place in the train. The
// difference to what really was sent is linear, so what fits one guess fits the other.
bool Receiver::is_intact(const Datagram& datagram, Bytes bytes) {
  const Bytes covered = bytes.first(bytes.size() - wire::kIcrcBytes);
  const std::uint32_t start = flow_of(datagram).start(bytes.size(), datagram.next_index);
  const std::uint32_t computed = icrc_in_place(start, covered);
  const std::uint32_t arrived = wire::load_icrc(bytes);
  if (computed == arrived) return true;
  return datagram.destination.is_ipv4() &&
         wire::icrc_fit_identification(arrived, computed, covered.size()).fits;
}

const wire::IcrcFlow& Receiver::flow_of(const Datagram& datagram) {
  KnownFlow& known = known_flows_[datagram.source_port % kKnownFlows];
  if (known.source_port != datagram.source_port || known.source != datagram.source ||
      known.destination != datagram.destination) {
    known = {datagram.source, datagram.destination, datagram.source_port,
             wire::IcrcFlow(datagram.source, datagram.destination, datagram.source_port)};
  }
  return known.flow;
}

}  // namespace uroce::datapath::udp
