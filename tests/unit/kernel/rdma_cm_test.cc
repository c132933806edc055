// SPDX-License-Identifier: BSD-2-Clause
// /dev/infiniband/rdma_cm, whose descriptors are pipes that look like a device.
#include <gtest/gtest.h>

#include "support.h"

namespace uroce::kernel {
namespace {

constexpr char kNode[] = "/dev/infiniband/rdma_cm";

class RdmaCmNode : public testing::Test {
 protected:
  RdmaCmNode() { tree.write("dev/infiniband/rdma_cm", ""); }
  std::string answer(const char* scenario) {
    const Outcome outcome = run({KERNEL_PROBE, scenario, kNode}, preloaded(tree));
    EXPECT_EQ(outcome.exit_status, 0);
    return outcome.output;
  }
  Tree tree;
};

TEST_F(RdmaCmNode, IsNoDeviceWhereNobodyAnswers) {
  EXPECT_EQ(answer("rdma_cm without a provider"), "ENODEV");
}

TEST_F(RdmaCmNode, IsNotThereWithoutATree) {
  EXPECT_EQ(run({KERNEL_PROBE, "rdma_cm without a provider", kNode}, preloaded()).output, "ENOENT");
}

TEST_F(RdmaCmNode, SaysWhyItCannotBeOpened) {
  EXPECT_EQ(answer("rdma_cm that cannot be opened"), "EMFILE");
}

TEST_F(RdmaCmNode, IsACharacterDeviceByEveryForm) {
  EXPECT_EQ(answer("rdma_cm by every form"), "char device");
}

TEST_F(RdmaCmNode, ShowsItsPathAsADeviceToo) { EXPECT_EQ(answer("stat"), "char 1:3"); }

TEST_F(RdmaCmNode, HasTheFlagsThatAreAskedFor) {
  EXPECT_EQ(answer("rdma_cm flags"), "as asked for");
}

TEST_F(RdmaCmNode, IsListedAsADevice) {
  EXPECT_EQ(
      run({"find", "/dev/infiniband", "-type", "c", "-name", "rdma_cm"}, preloaded(tree)).output,
      kNode);
}

TEST_F(RdmaCmNode, TakesWholeCommands) { EXPECT_EQ(answer("rdma_cm commands"), "commands only"); }

TEST_F(RdmaCmNode, IsKnownByItsDuplicateToo) {
  EXPECT_EQ(answer("rdma_cm duplicate"), "is the same");
}

TEST_F(RdmaCmNode, IsGoneWhenItIsClosed) { EXPECT_EQ(answer("rdma_cm closed"), "gone"); }

TEST_F(RdmaCmNode, LeavesOtherPipesAlone) {
  EXPECT_EQ(answer("rdma_cm and other pipes"), "untouched");
}

}  // namespace
}  // namespace uroce::kernel
