// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/capture_datapath.h"

#include <utility>

#include "datapath/crc/fast_crc32.h"
#include "wire/network.h"

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
      recorder_(*file_, fast_crc32),
      paths_(std::make_unique<Path[]>(kPaths)) {
  recorder_.head.interface = file_->add_interface(name);
}

int CaptureDatapath::open_path(Path& path, Qpn destination) {
  const int error = link_->open_path(path, destination);
  if (error == 0) paths_[path.own_qpn.value % kPaths] = path;
  return error;
}

std::size_t CaptureDatapath::rx_burst(std::span<RxPacket> packets) {
  const std::size_t count = link_->rx_burst(packets);
  if (count == 0) return 0;
  recorder_.head.time_ns = clock_();
  recorder_.head.direction = capture::pcapng::Direction::kInbound;
  for (const RxPacket& packet : packets.first(count)) record_arrival(packet);
  return count;
}

// What is refused was not sent. The time is that before sending, so that no answer seems earlier.
std::size_t CaptureDatapath::tx_burst(std::span<TxFrame> frames) {
  const std::uint64_t before = clock_();
  const std::size_t refused = link_->tx_burst(frames);
  recorder_.head.time_ns = before;
  recorder_.head.direction = capture::pcapng::Direction::kOutbound;
  for (const TxFrame& frame : frames) {
    if (frame.refused) continue;
    if (frame.path == nullptr) {
      recorder_.record_frame(frame.payload(), frame.payload_bytes);
    } else {
      recorder_.record_run(*frame.path, frame);
    }
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
  if (packet.bytes.empty() && packet.has_frame()) {
    const ConstBytes frame = packet.frame();
    recorder_.record_frame({&frame, 1}, frame.size());
  } else if (run_.open(packet)) {
    recorder_.record_run(path_of(packet, run_.frame().destination_qpn), run_.frame());
  } else {
    recorder_.record_bytes(path_of(packet, {}), packet.bytes);
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

}  // namespace uroce::datapath::tap
