// SPDX-License-Identifier: BSD-2-Clause
// The datagram socket of an engine in the runtime folder: rings are offered to it, and an empty
// datagram wakes its owner. Only who may enter the folder can send to it; the sender's uid is
// checked besides, as the kernel reports it.
//
// Datagrams, because an offer then needs no answer: the sender writes into the ring at once, and
// what it wrote is there when the receiver gets round to mapping it, also if the sender has ended
// by then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "datapath/directory/directory.h"
#include "posix/descriptor.h"

namespace uroce::datapath::shm {

// "This is the ring from me to you."
struct RingOffer {
  std::uint64_t format = kRingOfferFormat;
  SlotHandle from;
  SlotHandle to;
  std::uint64_t key = 0;
  std::uint64_t data_bytes = 0;

  static constexpr std::uint64_t kRingOfferFormat = 0x7572'6f63'6572'0002;
};

class ControlSocket {
 public:
  // The socket of `directory`'s own slot.
  static Result<ControlSocket> open(const Directory& directory);

  struct Received {
    RingOffer offer;
    int descriptor = -1;  // of the ring's memory; the taker closes it
  };
  // The next offer; wake-ups and what makes no sense are swallowed. Nothing: the socket is empty.
  [[nodiscard]] std::optional<Received> receive();
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  void close() { socket_.close(); }

 private:
  explicit ControlSocket(posix::Descriptor socket) : socket_(std::move(socket)) {}
  posix::Descriptor socket_;
};

// The way to somebody else's.
class PeerSocket {
 public:
  PeerSocket() = default;
  // 0 or an errno.
  [[nodiscard]] int connect(const std::string& path);
  // 0; EAGAIN: its queue is full, try later.
  [[nodiscard]] int offer(const RingOffer& offer, int descriptor) const;
  // A full queue is as good: the owner is being woken already.
  void wake() const;
  void close() { socket_.close(); }

 private:
  posix::Descriptor socket_;
};

}  // namespace uroce::datapath::shm
