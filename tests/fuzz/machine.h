// SPDX-License-Identifier: BSD-2-Clause
// One transport core with one reliable connection, for the fuzzers of its state machine: a peer
// that may send anything, and an application that posts, polls, modifies and deregisters as it
// likes. After each command `check_all` looks at what must hold whatever happened:
//
//   - no byte outside of what was granted has changed, and none was sent;
//   - each work request has at most one completion, in the order of posting;
//   - the positions of requester and responder are in order, and their counts agree;
//   - while something is unacknowledged, a timer runs.
//
// `finish` ends the connection and finds each work request completed once, and nothing left over.
#pragma once

#include <deque>
#include <vector>

#include "fuzz/commands.h"
#include "support/endpoint.h"

namespace uroce::fuzz {

// Parts of the buffer, by who may do what; between and around them nobody may do anything.
struct Area {
  std::size_t offset;
  std::uint32_t bytes;
  std::uint32_t key;
  memory::Access access;
  PdId pd;
};
inline constexpr memory::Access kEverything =
    memory::Access::kLocalWrite | memory::Access::kRemoteWrite | memory::Access::kRemoteRead |
    memory::Access::kRemoteAtomic | memory::Access::kMwBind | memory::Access::kFlushGlobal;
// A window of each type, of which each binding makes another variant.
inline constexpr RKey kWindow1{0x5555'5500};
inline constexpr RKey kWindow2{0x6666'6600};
enum AreaName : std::uint32_t { kOpen, kReadOnly, kOwn, kForeign };
inline constexpr std::array<Area, 4> kAreas = {{
    {1024, 4096, 0x1111'1101, kEverything, test::Endpoint::kPd},
    {6144, 1024, 0x2222'2201, memory::Access::kRemoteRead, test::Endpoint::kPd},
    {8192, 4096, 0x3333'3301, memory::Access::kLocalWrite, test::Endpoint::kPd},
    {13'312, 1024, 0x4444'4401, kEverything, PdId{2}},
}};
inline constexpr std::size_t kBufferBytes = 16'384;

class Machine {
 public:
  static constexpr Qpn kNumber{0x101};
  static constexpr Qpn kPeer{0x201};

  // The first commands choose link, sizes and counts; the connection is in RTS then.
  explicit Machine(Commands& commands);

  // The peer.
  void request(Commands& commands);   // a request packet, right or nearly so
  void response(Commands& commands);  // a response packet, right or nearly so
  void answer();                      // what an honest responder says to the oldest request
  void raw(Commands& commands);       // any bytes

  // The application, its memory and its link.
  void post_send(Commands& commands);
  void post_receive(Commands& commands);
  void modify(Commands& commands);
  void change_regions(Commands& commands);
  void pass_time(Commands& commands);
  void poll(std::uint32_t at_most);
  void transmit(bool refuses);

  void check_all() const;
  void finish();

 private:
  struct Posted {
    std::uint64_t wr_id;
    bool is_signaled;
  };
  struct Sent {
    wire::Kind kind;
    Psn psn;
    std::uint32_t packets, bytes;
  };

  void connect();
  void modify_to(const transport::QpAttributes& attributes, std::uint32_t mask);
  void deliver(const wire::PacketView& view, Commands& commands);
  void deliver(ConstBytes packet, ConstBytes payload, std::uint16_t count, std::uint8_t address);
  void deliver_simple(const wire::PacketView& view, std::size_t payload_bytes);
  void answer_read(const Sent& sent);
  void note(const TxFrame& frame);
  void check_frame(const TxFrame& frame) const;
  void take(const transport::Cqe& entry);
  void take_send(const transport::Cqe& entry);
  void take_receive(const transport::Cqe& entry);
  [[nodiscard]] memory::Sge sge(Commands& commands) const;
  [[nodiscard]] std::uint32_t key(Commands& commands) const;

  test::Endpoint endpoint_;
  transport::LinkFacts facts_;
  test::QpOptions options_;
  transport::Srq srq_;
  std::vector<std::byte> srq_memory_;
  test::TestQp* qp_ = nullptr;
  transport::TxBurst burst_;
  std::vector<std::byte> pristine_;
  std::vector<std::byte> scratch_;  // the packet being made
  std::vector<std::byte> payload_;
  std::deque<Posted> sends_, receives_;
  std::deque<Sent> sent_;
  std::uint64_t next_wr_id_ = 1;
  std::uint64_t receives_taken_ = 0;
};

}  // namespace uroce::fuzz
