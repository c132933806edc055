// SPDX-License-Identifier: BSD-2-Clause
// A device whose uplink takes and lends whole frames, and what raw packets need of it.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/ethernet.h"
#include "unit/verbs/fixture.h"
#include "unit/verbs/privilege.h"

namespace uroce::verbs {

// An attribute list with its specs behind it, as ibv_create_flow takes it.
class FlowAttributes {
 public:
  explicit FlowAttributes(ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL) {
    bytes_.resize(sizeof(ibv_flow_attr));
    list().type = type;
    list().port = 1;
    list().size = sizeof(ibv_flow_attr);
  }

  [[nodiscard]] ibv_flow_attr& list() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }
  template <typename Spec>
  FlowAttributes& add(const Spec& spec) {
    const auto* from = reinterpret_cast<const std::byte*>(&spec);
    bytes_.insert(bytes_.end(), from, from + sizeof spec);
    ++list().num_of_specs;
    list().size = static_cast<std::uint16_t>(bytes_.size());
    return *this;
  }

 private:
  std::vector<std::byte> bytes_;
};

template <typename Spec>
Spec spec_of(std::uint32_t type) {
  Spec spec{};
  spec.type = static_cast<ibv_flow_spec_type>(type);
  spec.size = sizeof spec;
  return spec;
}

inline ibv_flow_spec_eth ether_type_spec(std::uint16_t type) {
  auto spec = spec_of<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
  spec.val.ether_type = to_big(type);
  spec.mask.ether_type = 0xffff;
  return spec;
}

class RawVerbsTest : public VerbsTest {
 protected:
  RawVerbsTest() : VerbsTest(true) {}
  void SetUp() override {
    if (!may_send_raw_packets()) GTEST_SKIP() << "needs CAP_NET_RAW";
    make_mr(buffer_.data(), buffer_.size());
  }

  Qp* make_raw_qp(bool to_rts = true) {
    ibv_qp_init_attr a = usual_qp();
    a.qp_type = IBV_QPT_RAW_PACKET;
    Qp* const qp = make_qp(a);
    if (qp == nullptr || !to_rts) return qp;
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    EXPECT_EQ(modify_qp(*qp, init, IBV_QP_STATE | IBV_QP_PORT), 0);
    EXPECT_EQ(to_state(*qp, IBV_QPS_RTR), 0);
    EXPECT_EQ(to_state(*qp, IBV_QPS_RTS), 0);
    return qp;
  }
  std::uint32_t lkey() const { return mrs_.front()->region.key; }
  // As a link has it from the network.
  void arrive(const std::vector<std::byte>& frame) {
    engine::Engine::Section section(engine_);
    fakes_.uplink->frames.push_back(frame);
  }

  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 16);
};

}  // namespace uroce::verbs
