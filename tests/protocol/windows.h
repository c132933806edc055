// SPDX-License-Identifier: BSD-2-Clause
// One endpoint with a window of each type, and a scripted peer that comes through them.
#pragma once

#include "protocol/fixture.h"

namespace uroce::test {

inline constexpr RKey kType1{0x2222'2200};
inline constexpr RKey kType2{0x3333'3300};
inline RKey variant(RKey key, std::uint32_t number) { return {(key.value & ~0xffU) | number}; }

class WindowFixture : public RcTest {
 protected:
  explicit WindowFixture(QpOptions options = {}) : RcTest(options) {
    endpoint.add_window(kType1, memory::KeyKind::kWindowType1);
    endpoint.add_window(kType2, memory::KeyKind::kWindowType2);
  }

  // [256, 512) of the buffer.
  transport::WindowPart part() const {
    return {{Endpoint::kKey},
            endpoint.address(256),
            256,
            memory::Access::kRemoteWrite | memory::Access::kRemoteRead};
  }
  void post_bind(RKey window, std::uint64_t wr_id = 0,
                 std::uint8_t flags = transport::send_flag::kSignaled) {
    endpoint.post_send(qp, {.operation = transport::SendOperation::kBindWindow,
                            .wr_id = wr_id,
                            .rkey = window,
                            .flags = flags,
                            .part = part()});
  }
  void post_invalidate(RKey window, std::uint64_t wr_id = 0) {
    endpoint.post_send(
        qp,
        {.operation = transport::SendOperation::kLocalInvalidate, .wr_id = wr_id, .rkey = window});
  }
  // Bound, and the completion taken.
  void bind(RKey window) {
    post_bind(window);
    EXPECT_THAT(transmits(), ::testing::IsEmpty());
    const auto done = endpoint.poll();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->status, transport::WcStatus::kSuccess);
    EXPECT_EQ(done->opcode, transport::WcOpcode::kBindWindow);
  }
  void write_through(RKey key, std::uint32_t psn) {
    endpoint.receive(make_packet(bth(wire::Opcode::kRcWriteOnly, psn, true), 8,
                                 wire::Reth{endpoint.address(256), key, 8}));
  }
  // What the peer is told after that, if it is a NAK.
  wire::NakCode nak_code() {
    transmits();
    if (packets.empty() || packets.back().view().aeth.syndrome.is_ack()) {
      ADD_FAILURE() << "no NAK";
      return {};
    }
    return packets.back().view().aeth.syndrome.nak_code();
  }
};

}  // namespace uroce::test
