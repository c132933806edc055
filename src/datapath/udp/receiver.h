// SPDX-License-Identifier: BSD-2-Clause
// Takes datagrams, trains of them where UDP_GRO has put packets together, from the receive socket
// and cuts them into packets without copying.
//
// The buffers are few and used in turn: a train should still be in the cache when its packets are
// checked and copied out. How many are filled by one system call follows from what came last: a
// train, whose acknowledgement then leaves at once, or many single packets.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "uroce/datapath.h"
#include "uroce/packet.h"
#include "wire/icrc.h"

namespace uroce::datapath::udp {

struct Received {
  RxPacket packet;
  bool is_first = false;    // of its datagram: the one that was steered
  bool is_control = false;  // control.h; not checked at all yet
};

class Receiver {
 public:
  // A port other than RoCE's is for tests; the ICRC counts RoCE's all the same.
  Receiver(int socket, bool verify_icrc, DatapathCounters& counters);
  ~Receiver();

  // The next packet that is whole and bears a right ICRC, lent until `refill`.
  [[nodiscard]] bool next(Received& received);

  // Fills the buffers, all of whose packets have been handed out; false if nothing was there.
  bool refill();
  [[nodiscard]] bool is_drained() const { return current_ == filled_; }

 private:
  static constexpr std::size_t kBuffersMax = 32;
  static constexpr std::size_t kTrainsMax = 1;
  static constexpr std::size_t kBufferBytes = 64 << 10;
  static constexpr std::size_t kControlBytes = 256;

  // A datagram and what the kernel said about it.
  struct Datagram {
    Gid source;
    Gid destination;
    std::uint16_t source_port = 0;
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;
    std::size_t bytes = 0;
    std::size_t segment_bytes = 0;
    std::size_t taken_bytes = 0;
    std::uint16_t next_index = 0;  // of the packets in it
  };
  // The start of the ICRC of a flow seen before; packets of one peer come in numbers.
  struct KnownFlow {
    Gid source;
    Gid destination;
    std::uint16_t source_port = 0;
    wire::IcrcFlow flow;
  };
  static constexpr std::size_t kKnownFlows = 16;
  struct Buffers;

  void prepare(std::size_t count);
  void open(std::size_t i);
  static void note(const cmsghdr& control, Datagram& datagram);
  bool accept(const Datagram& datagram, Bytes bytes, Received& received);
  [[nodiscard]] bool is_intact(const Datagram& datagram, Bytes bytes);
  const wire::IcrcFlow& flow_of(const Datagram& datagram);

  int socket_;
  bool verify_icrc_;
  DatapathCounters& counters_;
  std::unique_ptr<Buffers> buffers_;
  std::array<Datagram, kBuffersMax> datagrams_;
  std::array<KnownFlow, kKnownFlows> known_flows_;
  std::size_t filled_ = 0;
  std::size_t current_ = 0;
  std::size_t batch_ = kBuffersMax;
};

}  // namespace uroce::datapath::udp
