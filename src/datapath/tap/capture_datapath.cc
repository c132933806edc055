// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/capture_datapath.h"

#include <utility>

#include "datapath/tap/wire_packet.h"
#include "wire/network.h"
#include "wire/run.h"

namespace uroce::datapath::tap {
namespace {

constexpr std::size_t kPaths = 16'384;

Path reversed(const Path& path) {
  Path other = path;
  std::swap(other.source, other.destination);
  return other;
}

}  // namespace

CaptureDatapath::CaptureDatapath(std::unique_ptr<Datapath> link, std::shared_ptr<CaptureFile> file,
                                 const std::string& name, std::uint64_t (*clock)())
    : link_(std::move(link)),
      file_(std::move(file)),
      clock_(clock),
      head_{.interface = file_->add_interface(name)},
      paths_(std::make_unique<Path[]>(kPaths)) {}

int CaptureDatapath::open_path(Path& path, Qpn destination) {
  const int error = link_->open_path(path, destination);
  if (error == 0) paths_[path.own_qpn.value % kPaths] = path;
  return error;
}

std::size_t CaptureDatapath::rx_burst(std::span<RxPacket> packets) {
  const std::size_t count = link_->rx_burst(packets);
  if (count == 0) return 0;
  head_.time_ns = clock_();
  head_.direction = pcapng::Direction::kInbound;
  for (const RxPacket& packet : packets.first(count)) record_arrival(packet);
  return count;
}

// What is refused was not sent. The time is that before sending, so that no answer seems earlier.
std::size_t CaptureDatapath::tx_burst(std::span<TxFrame> frames) {
  const std::uint64_t before = clock_();
  const std::size_t refused = link_->tx_burst(frames);
  head_.time_ns = before;
  head_.direction = pcapng::Direction::kOutbound;
  for (const TxFrame& frame : frames) {
    if (!frame.refused) record_run(*frame.path, frame);
  }
  return refused;
}

void CaptureDatapath::on_turn(Instant now) {
  link_->on_turn(now);
  file_->flush();
}

void CaptureDatapath::abandon_in_child() {
  file_->abandon_in_child();
  link_->abandon_in_child();
}

void CaptureDatapath::record_arrival(const RxPacket& packet) {
  if (run_.open(packet)) {
    record_run(path_of(packet, run_.frame().destination_qpn), run_.frame());
  } else {
    record_bytes(path_of(packet, {}), packet);
  }
}

Path CaptureDatapath::path_of(const RxPacket& packet, Qpn to) const {
  Path path;
  path.source = path.destination = wire::gid_of_ipv4(0);
  if (const Path& own = paths_[to.value % kPaths]; to.value != 0 && own.own_qpn == to) {
    path = reversed(own);
  }
  if (packet.source == nullptr || packet.destination == nullptr) return path;
  path.source = *packet.source;
  path.destination = *packet.destination;
  path.flow_label = packet.flow_label;
  path.traffic_class = packet.traffic_class;
  path.hop_limit = packet.hop_limit;
  return path;
}

void CaptureDatapath::record_run(const Path& path, const TxFrame& frame) {
  wire::PayloadCursor payload(frame.payload());
  for (unsigned i = 0; i < frame.packet_count; ++i) {
    const std::size_t bytes = wire_packet_bytes(path, wire::run_packet_bytes(frame, i));
    std::byte* const packet = begin_packet(bytes);
    if (packet == nullptr) return;
    write_wire_packet(path, frame, i, payload, {packet, bytes});
  }
}

void CaptureDatapath::record_bytes(const Path& path, const RxPacket& packet) {
  const std::size_t bytes = wire_packet_bytes(path, packet.bytes.size());
  if (std::byte* const to = begin_packet(bytes); to != nullptr) {
    write_wire_bytes(path, packet.bytes, {to, bytes});
  }
}

std::byte* CaptureDatapath::begin_packet(std::size_t bytes) {
  std::byte* const block = file_->reserve(pcapng::packet_block_bytes(bytes));
  if (block == nullptr) return nullptr;
  pcapng::put_packet_tail(block, head_, bytes);
  return pcapng::put_packet_head(block, head_, bytes);
}

}  // namespace uroce::datapath::tap
