// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/receive.h"

#include <rte_ether.h>

#include <algorithm>

#include "datapath/crc/fast_crc32.h"
#include "wire/icrc.h"
#include "wire/network.h"

namespace uroce::datapath {
namespace {

using Frames = Datapath::Frames;

constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kBurstBytes = 36 << 10;  // eight packets of path MTU 4096
// The longest answer: an echo of a full packet.
constexpr std::size_t kMaxControlBytes = 2'048;

// One piece of memory, whatever the driver delivered; empty when it cannot be made one: then it is
// longer than any packet of ours.
ConstBytes linear_bytes(rte_mbuf* mbuf) {
  if (mbuf->nb_segs != 1 && rte_pktmbuf_linearize(mbuf) != 0) return {};
  return {rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len};
}

// A driver may have put VLAN tags aside.
void restore_tags(std::span<rte_mbuf*> burst) {
  constexpr std::uint64_t kStripped = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  for (rte_mbuf*& mbuf : burst) {
    if ((mbuf->ol_flags & kStripped) != kStripped) continue;
    if (rte_vlan_insert(&mbuf) == 0) mbuf->ol_flags &= ~kStripped;
  }
}

bool icrc_is_right(const wire::NetworkView& view) {
  const std::uint32_t start = wire::icrc_start(fast_crc32, view.ip_header, view.udp_header);
  const ConstBytes covered = view.udp_payload.first(view.udp_payload.size() - wire::kIcrcBytes);
  return wire::icrc_of(fast_crc32, start, covered) == wire::load_icrc(view.udp_payload);
}

}  // namespace

Receiver::Receiver(Port& port, Resolver& resolver, Transmitter& transmitter, ReceiveOptions options,
                   DatapathCounters& counters)
    : port_(port),
      resolver_(resolver),
      transmitter_(transmitter),
      options_(std::move(options)),
      counters_(counters) {}

std::size_t Receiver::receive(Instant now, std::span<RxPacket> packets) {
  clear();
  const std::size_t wanted = std::min({packets.size(), lent_.size(), next_burst_});
  // Dropped packets use up the driver's burst but not the caller's: look again while nothing came
  // of it, so that 0 means that there is nothing; boundedly, since strangers may send faster.
  for (unsigned tries = 0; lent_count_ == 0 && tries < 4; ++tries) {
    std::array<rte_mbuf*, Port::kBurst> burst;
    const std::span room = std::span(burst).first(wanted);
    Loopback& loopback = transmitter_.loopback();
    // Half of the room at most, or a program that sends to a group would hear nothing else.
    std::size_t count = loopback.take(room.first((room.size() + 1) / 2));
    count += port_.receive(room.subspan(count));
    if (count == 0) break;
    choose_next_burst(burst[0]->pkt_len);
    if (frames_ != Frames::kNone) [[unlikely]]
      restore_tags(room.first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (i + 1 < count) rte_prefetch0(rte_pktmbuf_mtod(burst[i + 1], void*));
      if (look_at(now, burst[i], packets[lent_count_])) {
        lent_[lent_count_++] = burst[i];
      } else {
        rte_pktmbuf_free(burst[i]);
      }
    }
  }
  if (frames_ == Frames::kAll) [[unlikely]]
    show_frames(packets.first(lent_count_));
  return lent_count_;
}

// Long packets are few at a time: checked and copied out while they are in the first cache, and
// acknowledged soon.
void Receiver::choose_next_burst(std::size_t packet_bytes) {
  next_burst_ = std::max<std::size_t>(kBurstBytes / std::max<std::size_t>(packet_bytes, 1), 1);
}

void Receiver::clear() {
  rte_pktmbuf_free_bulk(lent_.data(), static_cast<unsigned>(lent_count_));
  lent_count_ = 0;
}

bool Receiver::look_at(Instant now, rte_mbuf* mbuf, RxPacket& packet) {
  const ConstBytes frame = linear_bytes(mbuf);
  wire::NetworkView view;
  switch (wire::parse_network(frame, view)) {
    case wire::NetworkDrop::kNone:
      break;
    case wire::NetworkDrop::kNotIp:
    case wire::NetworkDrop::kNotRoce:
      ++counters_.rx_not_roce;
      answer(now, frame);
      return lend_foreign(frame, packet);
    case wire::NetworkDrop::kBadIpHeader:
    case wire::NetworkDrop::kFragment:
      ++counters_.rx_not_roce;
      return lend_foreign(frame, packet);
    case wire::NetworkDrop::kTruncated:
    case wire::NetworkDrop::kBadUdpLength:
      ++counters_.rx_truncated;
      return lend_foreign(frame, packet);
  }
  if (!is_ours(view.destination)) {
    ++counters_.rx_not_roce;
    return lend_foreign(frame, packet);
  }
  if (!check(view)) return false;
  Addresses& addresses = addresses_[lent_count_];
  addresses = {view.source, view.destination};
  packet = RxPacket{.bytes = view.udp_payload.first(view.udp_payload.size() - wire::kIcrcBytes),
                    .detached_payload = {},
                    .source = &addresses.source,
                    .destination = &addresses.destination,
                    .flow_label = view.flow_label,
                    .traffic_class = view.traffic_class,
                    .hop_limit = view.hop_limit};
  ++counters_.rx_packets;
  counters_.rx_bytes += packet.bytes.size();
  return true;
}

void Receiver::show_frames(std::span<RxPacket> packets) const {
  for (std::size_t i = 0; i < packets.size(); ++i) {
    RxPacket& packet = packets[i];
    if (packet.bytes.empty()) continue;  // a foreign one, which shows all
    const ConstBytes frame = linear_bytes(lent_[i]);
    packet.frame_bytes_before = static_cast<std::uint16_t>(packet.bytes.data() - frame.data());
    packet.frame_bytes_behind =
        static_cast<std::uint16_t>(frame.size() - packet.bytes.size() - packet.frame_bytes_before);
  }
}

bool Receiver::lend_foreign(ConstBytes frame, RxPacket& packet) const {
  if (frames_ == Frames::kNone || frame.empty()) return false;
  packet = RxPacket{.bytes = frame.first(0),
                    .detached_payload = {},
                    .frame_bytes_behind = static_cast<std::uint16_t>(frame.size())};
  return true;
}

bool Receiver::check(const wire::NetworkView& view) {
  if (view.udp_payload.size() < kBthBytes + wire::kIcrcBytes) {
    ++counters_.rx_truncated;
    return false;
  }
  if (options_.verify_icrc && !icrc_is_right(view)) {
    ++counters_.rx_bad_icrc;
    return false;
  }
  return true;
}

void Receiver::answer(Instant now, ConstBytes frame) {
  std::array<std::byte, kMaxControlBytes> reply;
  const std::size_t bytes = resolver_.on_frame(now, frame, reply);
  if (bytes != 0) transmitter_.send_control(std::span(reply).first(bytes));
}

bool Receiver::is_ours(const Gid& address) const {
  return options_.addresses.empty() || address.is_multicast() ||
         std::ranges::find(options_.addresses, address) != options_.addresses.end();
}

}  // namespace uroce::datapath
