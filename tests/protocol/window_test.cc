// SPDX-License-Identifier: BSD-2-Clause
// Several QPs share one peer's receive window: none starves, nothing waits for a timer, and what is
// on its way never exceeds the window.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;

constexpr int kQps = 4;
constexpr std::uint32_t kMessages = 40;

struct Crowd {
  explicit Crowd(std::uint16_t path_mtu) : a(1 << 17, 4096), b(1 << 17, 4096) {
    QpOptions options;
    options.path_mtu = path_mtu;
    for (Endpoint* end : {&a, &b}) end->set_link(windowed_link());
    for (std::uint32_t i = 0; i < kQps; ++i) {
      qps_a.push_back(&a.add_qp({0x100 + i}, options));
      qps_b.push_back(&b.add_qp({0x200 + i}, options));
    }
    for (std::uint32_t i = 0; i < kQps; ++i) {
      for (auto [end, qp, peer] : {std::tuple{&a, qps_a[i], 0x200U}, {&b, qps_b[i], 0x100U}}) {
        end->to_init(*qp);
        end->to_rtr(*qp, {peer + i}, Psn(7));
        end->to_rts(*qp, Psn(7));
      }
    }
  }
  // True while packets move.
  bool exchange() {
    const auto from_a = a.transmit();
    const auto from_b = b.transmit();
    for (const Packet& packet : from_a) b.receive(packet);
    for (const Packet& packet : from_b) a.receive(packet);
    return !from_a.empty() || !from_b.empty();
  }
  Endpoint a, b;
  std::vector<TestQp*> qps_a, qps_b;
};

class Window : public ::testing::TestWithParam<std::tuple<int, std::uint32_t>> {};

TEST_P(Window, BothWaysOverAllQpsWithoutATimer) {
  const auto [path_mtu, bytes] = GetParam();
  Crowd crowd(static_cast<std::uint16_t>(path_mtu));
  for (std::uint32_t m = 0; m < kMessages; ++m) {
    for (int q = 0; q < kQps; ++q) {
      for (auto [end, qp] : {std::pair{&crowd.a, crowd.qps_a[static_cast<std::size_t>(q)]},
                             {&crowd.b, crowd.qps_b[static_cast<std::size_t>(q)]}}) {
        end->post_receive(*qp, m, {end->sge(0, 65'536)});
        end->post_send(*qp, {.wr_id = m,
                             .sges = {end->sge(0, bytes)},
                             .flags = m % 5 == 4 ? send_flag::kSignaled : std::uint8_t{0}});
      }
    }
  }
  while (crowd.exchange()) {
    EXPECT_LE(crowd.a.peer.window_used, windowed_link().peer_window_bytes + 5000);
  }
  EXPECT_EQ(crowd.a.cq.pending(), 2 * kQps * kMessages);
  EXPECT_EQ(crowd.b.cq.pending(), 2 * kQps * kMessages);
  EXPECT_EQ(crowd.a.peer.window_used, 0U);
  EXPECT_EQ(crowd.a.hca.counters().rewinds, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Window,
                         ::testing::Combine(::testing::Values(256, 1024, 4096),
                                            ::testing::Values(8U, 5000U, 65'536U)));

}  // namespace
}  // namespace uroce::test
