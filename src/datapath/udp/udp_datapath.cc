// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/udp_datapath.h"

#include "wire/bth.h"
#include "wire/path_mtu.h"

namespace uroce::datapath {
namespace {

constexpr int kRefillsMax = 4;  // in one rx_burst, while all that comes is damaged or not ours

constexpr std::uint16_t kRunPacketsMax = 256;
constexpr std::uint32_t kRunBytesMax = 60 << 10;  // whole packets of any path MTU, one train

// Unread payload that a socket of 212,992 bytes (net.core.rmem_max of many kernels, which it counts
// twice) holds while it is being drained, measured: 141,000 bytes as packets of 1,024, 290,000 and
// more as trains.
constexpr std::uint32_t kWindowOfPackets = 128 << 10;
constexpr std::uint32_t kWindowOfTrains = 256 << 10;

DatapathCapabilities capabilities_of(const UdpOptions& options, const udp::RouteTable& routes) {
  const bool as_trains = routes.segments_max(AF_INET) > 1;
  return {.name = "udp",
          .max_path_mtu = wire::path_mtu_of(options.interface_mtu),
          .max_run_packets = kRunPacketsMax,
          .max_run_bytes = kRunBytesMax,
          .peer_window_bytes = as_trains ? kWindowOfTrains : kWindowOfPackets,
          .trusted_memory = false,
          .bits_per_second = options.bits_per_second};
}

}  // namespace

Result<std::unique_ptr<UdpDatapath>> UdpDatapath::create(Directory& directory,
                                                         const UdpOptions& options) {
  Result<std::unique_ptr<udp::Group>> group = udp::Group::open(directory, options.port);
  if (!group) return group.error();
  Result<udp::ReceiveSocket> socket = (*group)->enter(options);
  if (!socket) return socket.error();
  return std::unique_ptr<UdpDatapath>(
      new UdpDatapath(std::move(*group), std::move(*socket), options));
}

UdpDatapath::UdpDatapath(std::unique_ptr<udp::Group> group, udp::ReceiveSocket socket,
                         const UdpOptions& options)
    : group_(std::move(group)),
      socket_(std::move(socket)),
      counters_(options.counters != nullptr ? *options.counters : own_counters_),
      routes_(options),
      memberships_(options.interface),
      receiver_(socket_.descriptor.get(), options.verify_icrc, counters_),
      sender_(routes_, counters_),
      capabilities_(capabilities_of(options, routes_)) {}

UdpDatapath::~UdpDatapath() {
  if (!socket_.descriptor.is_open()) return;
  group_->leave([this] {
    drain();
    socket_.descriptor.close();
  });
}

// What was steered to us for others before the program changed.
void UdpDatapath::drain() {
  constexpr int kRefillsOfDrainMax = 1'000;
  udp::Received received;
  for (int i = 0; i < kRefillsOfDrainMax; ++i) {
    while (receiver_.next(received)) {
      if (!received.is_control) is_deliverable(received);
    }
    if (!receiver_.refill()) return;
  }
}

int UdpDatapath::open_path(Path& path, Qpn) { return routes_.open(path); }

void UdpDatapath::close_path(Path& path) { routes_.close(path); }

std::size_t UdpDatapath::rx_burst(std::span<RxPacket> packets) {
  std::size_t count = take(packets);
  for (int i = 0; count == 0 && i < kRefillsMax && receiver_.refill(); ++i) count = take(packets);
  return count;
}

std::size_t UdpDatapath::take(std::span<RxPacket> packets) {
  std::size_t count = 0;
  udp::Received received;
  while (count < packets.size() && receiver_.next(received)) {
    if (is_deliverable(received)) packets[count++] = received.packet;
  }
  return count;
}

// Every process on the port has got it: there is nothing to pass on, and no QP's number in it.
bool UdpDatapath::is_for_a_group(const udp::Received& received) {
  const wire::BthWords bth = wire::load_bth(received.packet.bytes.data());
  if (wire::from_words(bth).destination == kMulticastQpn) return true;
  ++counters_.rx_not_roce;
  return false;
}

bool UdpDatapath::is_deliverable(udp::Received& received) {
  if (received.is_control && !group_->unwrap(received.packet)) return false;
  if (received.packet.destination->is_multicast()) return is_for_a_group(received);
  if (group_->is_for_us(received.packet.bytes)) return true;
  // Passed on once only: what comes from another member does not go round.
  if (received.is_control || !group_->pass_on(received.packet)) ++counters_.rx_misdelivered;
  // The others of a train followed its first, which may have come from another QP of the peer.
  if (received.is_first) group_->suspect_order();
  return false;
}

std::size_t UdpDatapath::tx_burst(std::span<TxFrame> frames) { return sender_.send(frames); }

void UdpDatapath::on_turn(Instant now) { group_->on_turn(now); }

int UdpDatapath::wakeup_descriptor() const { return socket_.descriptor.get(); }

// What is still in the socket makes it readable; what is in our own buffers does not.
bool UdpDatapath::arm_wakeup() { return receiver_.is_drained(); }

void UdpDatapath::abandon_in_child() {
  socket_.descriptor.close();
  routes_.close_descriptors();
  memberships_.close_descriptors();
  group_->abandon_in_child();
}

}  // namespace uroce::datapath
