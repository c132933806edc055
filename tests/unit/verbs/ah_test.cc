// SPDX-License-Identifier: BSD-2-Clause
// Address handles: which addresses there are (man ibv_create_ah). Queue pairs take the same ones.
#include "verbs/ah.h"

#include <cerrno>

#include "unit/verbs/fixture.h"

namespace uroce::verbs {
namespace {

class AhTest : public VerbsTest {
 protected:
  static ibv_ah_attr usual() {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.port_num = 1;
    const Gid gid = engine::test_gid(2);
    std::copy(gid.bytes.begin(), gid.bytes.end(), a.grh.dgid.raw);
    return a;
  }
};

TEST_F(AhTest, AddressesThatThereAreNotAreTheKernelsErrors) {
  struct Case {
    const char* name;
    void (*spoil)(ibv_ah_attr&);
    int error;
  };
  Qp* const qp = make_qp();
  ASSERT_EQ(to_init(*qp), 0);
  for (const Case& c : {
           Case{"no GRH", [](ibv_ah_attr& a) { a.is_global = 0; }, EINVAL},
           Case{"port 0", [](ibv_ah_attr& a) { a.port_num = 0; }, EINVAL},
           Case{"port 2", [](ibv_ah_attr& a) { a.port_num = 2; }, EINVAL},
           Case{"empty index", [](ibv_ah_attr& a) { a.grh.sgid_index = 127; }, ENODATA},
           Case{"index outside", [](ibv_ah_attr& a) { a.grh.sgid_index = 128; }, EINVAL},
           Case{"service level", [](ibv_ah_attr& a) { a.sl = 16; }, EINVAL},
           Case{"no destination", [](ibv_ah_attr& a) { a.grh.dgid = {}; }, EINVAL},
           Case{"other family", [](ibv_ah_attr& a) { a.grh.dgid.raw[0] = 0x20; }, EINVAL},
       }) {
    ibv_ah_attr attributes = usual();
    c.spoil(attributes);
    errno = 0;
    EXPECT_EQ(create_ah(*pd_, attributes), nullptr) << c.name;
    EXPECT_EQ(errno, c.error) << c.name;
    ibv_qp_attr change = rtr(*qp);
    change.ah_attr = attributes;
    EXPECT_EQ(modify_qp(*qp, change, kRtrMask), c.error) << c.name;
  }
}

TEST_F(AhTest, ItsDomainStays) {
  Ah* const ah = create_ah(*pd_, usual());
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(dealloc_pd(pd_), EBUSY);
  destroy_ah(ah);
}

}  // namespace
}  // namespace uroce::verbs
