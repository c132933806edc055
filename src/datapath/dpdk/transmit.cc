// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/transmit.h"

#include <algorithm>
#include <cstring>

#include "datapath/crc/fast_crc32.h"
#include "wire/icrc.h"
#include "wire/run.h"

namespace uroce::datapath {
namespace {

// Packets built before the driver gets them: its copy finds them in the first cache, and the peer
// can begin.
constexpr std::size_t kBuiltAheadMax = 8;

std::byte* bytes_of(rte_mbuf* mbuf) { return rte_pktmbuf_mtod(mbuf, std::byte*); }

void set_bytes(rte_mbuf* mbuf, std::size_t bytes) {
  mbuf->data_len = static_cast<std::uint16_t>(bytes);
  mbuf->pkt_len = static_cast<std::uint32_t>(bytes);
}

// Copies and sums each piece while it is in the cache.
std::uint32_t copy_payload(wire::PayloadCursor& from, std::byte* to, std::size_t bytes,
                           std::uint32_t state) {
  while (bytes != 0) {
    const ConstBytes piece = from.take(bytes);
    std::memcpy(to, piece.data(), piece.size());
    state = fast_crc32(state, to, piece.size());
    to += piece.size();
    bytes -= piece.size();
  }
  return state;
}

void build_packet(rte_mbuf* mbuf, const TxFrame& frame, unsigned index,
                  const wire::LinkAddresses& link, const wire::IcrcFlow& flow,
                  wire::PayloadCursor& payload) {
  const std::uint32_t payload_bytes = wire::run_payload_bytes(frame, index);
  const std::uint32_t packet_bytes = wire::run_packet_bytes(frame, index);
  const auto udp_payload_bytes = static_cast<std::uint16_t>(packet_bytes + wire::kIcrcBytes);
  std::byte* const start = bytes_of(mbuf);
  std::byte* at = start + wire::build_network(*frame.path, link, udp_payload_bytes, 0,
                                              std::span<std::byte, wire::kMaxNetworkHeaderBytes>(
                                                  start, wire::kMaxNetworkHeaderBytes));
  const std::size_t header_bytes =
      wire::run_headers(frame, index, std::span<std::byte, kMaxHeaderBytes>(at, kMaxHeaderBytes));
  std::uint32_t state =
      wire::icrc_headers(fast_crc32, flow.start(udp_payload_bytes), {at, header_bytes});
  at += header_bytes;
  state = copy_payload(payload, at, payload_bytes, state);
  at += payload_bytes;
  at +=
      wire::icrc_trailer(fast_crc32, state, packet_bytes - header_bytes - payload_bytes,
                         std::span<std::byte, wire::kMaxTrailerBytes>(at, wire::kMaxTrailerBytes));
  set_bytes(mbuf, static_cast<std::size_t>(at - start));
}

}  // namespace

std::size_t Transmitter::send(std::span<TxFrame> frames) {
  bool full = !flush();
  std::size_t refused = 0;
  for (TxFrame& frame : frames) {
    if (frame.path == nullptr) [[unlikely]] {
      full = full || !copy_frame(frame);
      frame.refused = full;
      refused += full ? 1 : 0;
      continue;
    }
    wire::LinkAddresses link{.source = port_.mac(), .destination = {}};
    const bool is_known = resolver_.find(*frame.path, link.destination);
    // Waits for the neighbour's answer: what nobody repeats would be lost with the first packet.
    frame.refused = !is_known && resolver_.is_expected(*frame.path);
    if (frame.refused) {
      ++refused;
      continue;
    }
    if (!is_sendable(frame) || !is_known) {
      counters_.tx_errors += frame.packet_count;
      continue;
    }
    full = full || !build_frame(frame, link);
    frame.refused = full;
    refused += full ? 1 : 0;
    if (waiting_end_ - waiting_begin_ >= kBuiltAheadMax) flush();
  }
  flush();
  counters_.tx_refused += refused;
  return refused;
}

void Transmitter::send_control(ConstBytes frame) {
  if (!flush() || !take_mbufs(1)) return;
  rte_mbuf* const mbuf = waiting_[waiting_begin_];
  std::memcpy(bytes_of(mbuf), frame.data(), frame.size());
  set_bytes(mbuf, frame.size());
  flush();
}

void Transmitter::on_turn(Instant now) {
  now_ = now;
  if (is_idle()) {
    progressed_at_ = now;
  } else {
    flush();
  }
}

void Transmitter::clear() {
  give_back_waiting();
  loopback_.clear();
}

void Transmitter::give_back_waiting() {
  rte_pktmbuf_free_bulk(&waiting_[waiting_begin_],
                        static_cast<unsigned>(waiting_end_ - waiting_begin_));
  waiting_begin_ = waiting_end_ = 0;
}

// What a transport that keeps to the capabilities never sends, but what would overrun a buffer.
bool Transmitter::is_sendable(const TxFrame& frame) const {
  return frame.packet_count != 0 && frame.packet_count <= Port::kBurst &&
         frame.segment_bytes <= path_mtu_ &&
         frame.payload_bytes <= std::uint32_t{path_mtu_} * frame.packet_count;
}

// False when it does not fit: then nothing of it was built.
bool Transmitter::build_frame(const TxFrame& frame, const wire::LinkAddresses& link) {
  if (waiting_end_ + frame.packet_count > waiting_.size() && !flush()) return false;
  const std::size_t first = waiting_end_;
  if (!take_mbufs(frame.packet_count)) return false;
  const wire::IcrcFlow flow(frame.path->source, frame.path->destination,
                            frame.path->udp_source_port);
  wire::PayloadCursor payload(frame.payload());
  const bool is_for_group = frame.path->destination.is_multicast();
  for (unsigned i = 0; i < frame.packet_count; ++i) {
    build_packet(waiting_[first + i], frame, i, link, flow, payload);
    if (is_for_group) loopback_.add(waiting_[first + i]);
  }
  counters_.tx_packets += frame.packet_count;
  counters_.tx_bytes += frame.payload_bytes;
  return true;
}

bool Transmitter::copy_frame(const TxFrame& frame) {
  if (waiting_end_ == waiting_.size() && !flush()) return false;
  const std::size_t index = waiting_end_;
  if (!take_mbufs(1)) return false;
  std::byte* to = bytes_of(waiting_[index]);
  for (const ConstBytes piece : frame.payload()) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  set_bytes(waiting_[index], frame.payload_bytes);
  ++counters_.tx_packets;
  counters_.tx_bytes += frame.payload_bytes;
  if (waiting_end_ - waiting_begin_ >= kBuiltAheadMax) flush();
  return true;
}

bool Transmitter::take_mbufs(std::size_t count) {
  if (!port_.allocate({&waiting_[waiting_end_], count})) return false;
  waiting_end_ += count;
  return true;
}

bool Transmitter::flush() {
  if (is_idle()) return true;
  const std::span left(&waiting_[waiting_begin_], waiting_end_ - waiting_begin_);
  const std::size_t sent = port_.send(left);
  waiting_begin_ += sent;
  if (sent != 0) {
    progressed_at_ = now_;
  } else if (progressed_at_ + kStalledAfter < now_ || !port_.link_is_up()) {
    drop_waiting();
  }
  if (!is_idle()) return false;
  waiting_begin_ = waiting_end_ = 0;
  return true;
}

void Transmitter::drop_waiting() {
  counters_.tx_errors += waiting_end_ - waiting_begin_;
  give_back_waiting();
}

}  // namespace uroce::datapath
