// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/dpdk_datapath.h"

#include <array>
#include <ctime>

#include "posix/uncancelled.h"

namespace uroce::datapath {
namespace {

constexpr std::uint16_t kMaxRunPackets = 8;  // as many as are built before the driver gets them
// A kept port's rings go with this process, perhaps in a moment, and what is in them with them: the
// last acknowledgement, too. The other side looks once a millisecond, when it has a processor.
constexpr timespec kUntilRead{0, 100'000'000};

}  // namespace

DpdkDatapath::DpdkDatapath(Parts parts, const Limits& limits, ReceiveOptions receive,
                           DatapathCounters* counters)
    : parts_(std::move(parts)),
      capabilities_{.name = "dpdk",
                    .max_path_mtu = limits.path_mtu,
                    .max_run_packets = kMaxRunPackets,
                    .max_run_bytes = std::uint32_t{limits.path_mtu} * kMaxRunPackets,
                    .peer_window_bytes = limits.window_bytes,
                    .trusted_memory = false,
                    .max_frame_bytes = limits.max_frame_bytes,
                    .bits_per_second = parts_.port->bits_per_second()},
      counters_(counters != nullptr ? *counters : own_counters_),
      sent_before_(counters_.tx_packets),
      transmitter_(*parts_.port, *parts_.resolver, limits.path_mtu, counters_),
      receiver_(*parts_.port, *parts_.resolver, transmitter_, std::move(receive), counters_) {}

// Buffers go back before the port that they belong to is closed.
DpdkDatapath::~DpdkDatapath() {
  if (abandoned_) return;
  receiver_.clear();
  transmitter_.clear();
  if (!parts_.parking_name.empty()) {
    if (counters_.tx_packets != sent_before_) nanosleep(&kUntilRead, nullptr);
    park_port(parts_.parking_name, {std::move(parts_.claim), std::move(parts_.port)});
  }
}

int DpdkDatapath::open_path(Path& path, Qpn) {
  const int error = parts_.resolver->open_path(path);
  if (error == 0) ask_neighbours();
  return error;
}

std::size_t DpdkDatapath::rx_burst(std::span<RxPacket> packets) {
  const posix::Uncancelled whole;  // of a kernel's interface, drivers read and write
  return receiver_.receive(now_, packets);
}

// A kernel's interface is asked by a socket, so that it is as it was when this process is gone.
void DpdkDatapath::lend_frames(Frames which) {
  receiver_.lend_frames(which);
  const bool all = which != Frames::kNone;
  if (parts_.interface_index == 0) {
    parts_.port->hear_all(all);
  } else if (all) {
    promiscuous_.hold(parts_.interface_index);
  } else {
    promiscuous_.release();
  }
}

std::size_t DpdkDatapath::tx_burst(std::span<TxFrame> frames) {
  const posix::Uncancelled whole;
  return transmitter_.send(frames);
}

void DpdkDatapath::on_turn(Instant now) {
  const posix::Uncancelled whole;
  now_ = now;
  parts_.port->on_turn(now);
  transmitter_.on_turn(now);
  ask_neighbours();
}

int DpdkDatapath::wakeup_descriptor() const { return parts_.port->interrupt_descriptor(); }

void DpdkDatapath::abandon_in_child() {
  abandoned_ = true;
  transmitter_.abandon();
  receiver_.abandon();
  parts_.port->abandon();
  parts_.claim->release();
  promiscuous_.release();
  if (parts_.held_port != nullptr) parts_.held_port->release();
  if (parts_.kernel_resolver != nullptr) parts_.kernel_resolver->close_descriptors();
}

void DpdkDatapath::ask_neighbours() {
  std::array<std::byte, 128> frame;
  while (const std::size_t bytes = parts_.resolver->poll_frame(now_, frame)) {
    transmitter_.send_control(std::span(frame).first(bytes));
  }
}

}  // namespace uroce::datapath
