// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/sender.h"

#include <algorithm>
#include <cerrno>

#include "posix/uncancelled.h"

namespace uroce::datapath::udp {
namespace {

// The peer works on one train while we compute the ICRCs of the next.
constexpr std::size_t kBatchBytes = 32 << 10;

void skip(wire::PayloadCursor& payload, std::size_t bytes) {
  while (bytes != 0) bytes -= payload.take(bytes).size();
}

}  // namespace

std::size_t Sender::send(std::span<TxFrame> frames) {
  PacketPosition next;
  while (next.frame < frames.size()) {
    batch_.clear();
    fill(frames, next);
    if (flush(next) == Outcome::kRefused) return refuse(frames, next);
  }
  return 0;
}

// Until the batch is full, or worth a system call, or everything is in it; `next` is what comes
// after.
void Sender::fill(std::span<TxFrame> frames, PacketPosition& next) {
  for (; next.frame < frames.size() && batch_.bytes() < kBatchBytes; next = {next.frame + 1, 0}) {
    TxFrame& frame = frames[next.frame];
    frame.refused = false;
    if (!routes_.is_open(frame.path->route)) {
      counters_.tx_errors += frame.packet_count;
      continue;
    }
    if (!fill_frame(frame, routes_[frame.path->route], next)) return;
  }
}

bool Sender::fill_frame(const TxFrame& frame, Route& route, PacketPosition& next) {
  wire::PayloadCursor payload(frame.payload());
  skip(payload, std::size_t{frame.segment_bytes} * next.packet);
  for (; next.packet < frame.packet_count; ++next.packet) {
    if (!batch_.append(frame, route, next, payload)) return false;
  }
  return true;
}

// One system call for each stretch of messages that leave by the same socket.
Sender::Outcome Sender::flush(PacketPosition& next) {
  const posix::Uncancelled whole;
  batch_.finish();
  for (std::size_t i = 0; i < batch_.size();) {
    const int socket = batch_[i].route->socket;
    std::size_t end = i + 1;
    while (end < batch_.size() && batch_[end].route->socket == socket) ++end;
    const int sent = sendmmsg(socket, batch_.system_messages() + i, static_cast<unsigned>(end - i),
                              MSG_DONTWAIT);
    if (sent > 0) {
      count_sent(i, static_cast<std::size_t>(sent));
      i += static_cast<std::size_t>(sent);
      continue;
    }
    const Outcome outcome = react(errno, batch_[i], next);
    if (outcome != Outcome::kSent) return outcome;
    ++i;
  }
  return Outcome::kSent;
}

Sender::Outcome Sender::react(int error, const SendBatch::Message& message, PacketPosition& next) {
  if (error == EAGAIN || error == ENOBUFS || error == ENOMEM) {
    next = message.first;
    return Outcome::kRefused;
  }
  Route& route = *message.route;
  if (error == EIO || error == EINVAL) {
    if (message.packet_count > 1) {
      route.segments_max = 1;
      route.is_doubted = true;
      next = message.first;
      return Outcome::kAgain;
    }
    if (route.is_doubted) {
      route.segments_max = routes_.segments_max(route.destination.ss_family);
      route.is_doubted = false;
    }
  }
  counters_.tx_errors += message.packet_count;
  return Outcome::kSent;
}

void Sender::count_sent(std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    counters_.tx_packets += batch_[i].packet_count;
    counters_.tx_bytes += batch_[i].bytes;
    batch_[i].route->is_doubted = false;
  }
}

std::size_t Sender::refuse(std::span<TxFrame> frames, PacketPosition next) {
  if (next.packet != 0) {
    counters_.tx_errors += frames[next.frame].packet_count - next.packet;
    ++next.frame;
  }
  const std::span<TxFrame> left = frames.subspan(next.frame);
  for (TxFrame& frame : left) frame.refused = true;
  counters_.tx_refused += left.size();
  return left.size();
}

}  // namespace uroce::datapath::udp
