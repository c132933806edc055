// SPDX-License-Identifier: BSD-2-Clause
// For tests that read as packets: one real endpoint, and a peer that is the test itself.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "support/packets.h"
#include "support/pair.h"

namespace uroce::test {

inline constexpr Qpn kOurs{0x101};
inline constexpr Qpn kPeer{0x201};

class RcTest : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kMtu = 1024;
  static constexpr std::uint32_t kFirstPsn = 100;

  explicit RcTest(QpOptions options = {})
      : endpoint(1 << 20), qp((endpoint.set_link(wire_link()), endpoint.add_qp(kOurs, options))) {
    endpoint.to_init(qp);
    endpoint.to_rtr(qp, kPeer, Psn(kFirstPsn));
    endpoint.to_rts(qp, Psn(kFirstPsn));
  }

  wire::Bth bth(wire::Opcode opcode, std::uint32_t psn, bool ack_request = false) const {
    return {.opcode = opcode, .destination = kOurs, .ack_request = ack_request, .psn = Psn(psn)};
  }
  wire::Reth reth(std::size_t offset, std::uint32_t bytes) const {
    return {endpoint.address(offset), {Endpoint::kKey}, bytes};
  }

  // The scripted peer as requester ...
  void write_only(std::uint32_t psn, std::size_t offset, std::uint32_t bytes,
                  bool ack_request = true) {
    endpoint.receive(
        make_packet(bth(wire::Opcode::kRcWriteOnly, psn, ack_request), bytes, reth(offset, bytes)));
  }
  // ... and as responder.
  void ack(std::uint32_t psn) { aeth(psn, wire::Syndrome::ack()); }
  void nak(std::uint32_t psn, wire::NakCode code) { aeth(psn, wire::Syndrome::nak(code)); }
  void rnr(std::uint32_t psn, std::uint8_t timer) { aeth(psn, wire::Syndrome::rnr_nak(timer)); }
  void aeth(std::uint32_t psn, wire::Syndrome syndrome) {
    endpoint.receive(
        make_packet(bth(wire::Opcode::kRcAcknowledge, psn), 0, wire::Aeth{syndrome, {0}}));
  }

  // "opcode psn" of everything sent, in order.
  struct Sent {
    wire::Opcode opcode;
    std::uint32_t psn;
    friend bool operator==(const Sent&, const Sent&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Sent& sent) {
      return out << "{opcode " << static_cast<int>(sent.opcode) << ", psn " << sent.psn << "}";
    }
  };
  std::vector<Sent> transmits() {
    packets = endpoint.transmit();
    std::vector<Sent> sent;
    for (const Packet& packet : packets) {
      const wire::PacketView view = packet.view();
      sent.push_back({view.opcode->opcode, view.bth.psn.value()});
    }
    return sent;
  }

  void post_write(std::uint64_t wr_id, std::uint32_t bytes) {
    endpoint.post_send(qp, {.operation = transport::SendOperation::kWrite,
                            .wr_id = wr_id,
                            .sges = {endpoint.sge(0, bytes)},
                            .remote_address = 0x1000,
                            .rkey = {7}});
  }
  void pass(Duration time) {
    endpoint.now = endpoint.now + time;
    endpoint.timers();
  }

  Endpoint endpoint;
  TestQp& qp;
  std::vector<Packet> packets;  // of the last transmits()
};

}  // namespace uroce::test
