// SPDX-License-Identifier: BSD-2-Clause
// Datagrams by the calls of stock libibverbs: what stands before one tells whom to answer.
#include <memory>

#include "datagram_end.h"
#include "node.h"

namespace uroce::tests {
namespace {

// lo's addresses: 127.0.0.1 comes first, then ::1.
class Datagrams : public testing::TestWithParam<std::uint8_t> {
 protected:
  // To the address itself.
  static ibv_ah* own_address(Node& node) {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = 1;
    attributes.grh.sgid_index = GetParam();
    EXPECT_EQ(ibv_query_gid(node.context, 1, GetParam(), &attributes.grh.dgid), 0);
    return ibv_create_ah(node.pd, &attributes);
  }
};

// P46.
TEST_P(Datagrams, AreAnsweredByWhatStandsBeforeThem) {
  Node node;
  ASSERT_TRUE(node.is_ready());
  DatagramEnd asks(node, 0), answers(node, 2048);
  ibv_ah* const there = own_address(node);
  ASSERT_NE(there, nullptr);
  ASSERT_EQ(asks.send(there, answers.qp->qp_num, 1), 0);
  ibv_wc asked = answers.wait();
  EXPECT_EQ(asked.status, IBV_WC_SUCCESS);
  EXPECT_EQ(asked.byte_len, kGrhBytes + sizeof(std::uint64_t));
  EXPECT_NE(asked.wc_flags & IBV_WC_GRH, 0U);
  EXPECT_EQ(answers.word(), 1U);

  ibv_grh grh = answers.grh();
  ibv_ah* const back = ibv_create_ah_from_wc(node.pd, &asked, &grh, 1);
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(answers.send(back, asked.src_qp, 2), 0);
  const ibv_wc answered = asks.wait();
  EXPECT_EQ(answered.status, IBV_WC_SUCCESS);
  EXPECT_EQ(answered.src_qp, answers.qp->qp_num);
  EXPECT_EQ(asks.word(), 2U);
  EXPECT_EQ(ibv_destroy_ah(back), 0);
  EXPECT_EQ(ibv_destroy_ah(there), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, Datagrams, testing::Values(0, 1),
                         [](const auto& test) { return test.param == 0 ? "IPv4" : "IPv6"; });

}  // namespace
}  // namespace uroce::tests
