// SPDX-License-Identifier: BSD-2-Clause
#include "host/kernel_rdma.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "host/device_tree.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A host with a device of its own, as sysfs shows it.
class KernelRdmaDevices : public testing::Test {
 protected:
  KernelRdmaDevices() {
    directory_ = *open_runtime_directory({{"UROCE_RUNTIME_DIR", base_.path() + "/run"}}, 9);
  }
  void write(const std::string& path, const std::string& text) const {
    const std::string whole = base_.path() + path;
    ASSERT_TRUE(make_directories(whole.substr(0, whole.rfind('/')), 0755));
    ASSERT_TRUE(write_file(whole, text + "\n"));
  }
  void add_device(const std::string& name, int number) const {
    const std::string node = "uverbs" + std::to_string(number);
    write("/sys/class/infiniband_verbs/abi_version", "6");
    write("/sys/class/infiniband_verbs/" + node + "/ibdev", name);
    write("/sys/class/infiniband/" + name + "/node_guid", "0000:0000:0000:0001");
    write("/dev/infiniband/" + node, "");
  }
  std::string prepare() const {
    const Device device{.name = "uroce0", .netdev = "eth0", .gids = {}};
    return *prepare_device_tree(directory_, {device}, read_kernel_rdma(base_.path()));
  }

  test::TemporaryFolder base_;
  RuntimeDirectory directory_;
};

TEST_F(KernelRdmaDevices, AHostWithoutAnyHasNone) {
  const KernelRdma none = read_kernel_rdma(base_.path());
  EXPECT_THAT(none.paths, IsEmpty());
  EXPECT_EQ(none.first_free_uverbs, 0u);
}

TEST_F(KernelRdmaDevices, AreFoundWithAllTheirNodes) {
  add_device("mlx5_0", 3);
  write("/dev/infiniband/rdma_cm", "");
  const KernelRdma found = read_kernel_rdma(base_.path());
  EXPECT_THAT(
      found.paths,
      UnorderedElementsAre("/sys/class/infiniband/mlx5_0", "/sys/class/infiniband_verbs/uverbs3",
                           "/dev/infiniband/uverbs3", "/dev/infiniband/rdma_cm"));
  EXPECT_EQ(found.first_free_uverbs, 4u);
}

// Under `uroce run` sysfs shows the tree of that run.
TEST_F(KernelRdmaDevices, ThoseOfARunAroundThisOneAreLeftOut) {
  add_device("mlx5_0", 0);
  add_device("uroce0", 1);
  const KernelRdma found = read_kernel_rdma(base_.path());
  EXPECT_THAT(found.paths, UnorderedElementsAre("/sys/class/infiniband/mlx5_0",
                                                "/sys/class/infiniband_verbs/uverbs0",
                                                "/dev/infiniband/uverbs0"));
  EXPECT_EQ(found.first_free_uverbs, 1u);
}

TEST_F(KernelRdmaDevices, AreInTheTreeNextToOurs) {
  add_device("mlx5_0", 0);
  const std::string tree = prepare();
  EXPECT_THAT(list_directory(tree + "/dev/infiniband"),
              UnorderedElementsAre("uverbs0", "uverbs1", "rdma_cm"));
  EXPECT_EQ(read_line(tree + "/sys/class/infiniband_verbs/uverbs0/ibdev"), "mlx5_0");
  EXPECT_EQ(read_line(tree + "/sys/class/infiniband_verbs/uverbs1/ibdev"), "uroce0");
  EXPECT_EQ(read_line(tree + "/sys/class/infiniband/mlx5_0/node_guid"), "0000:0000:0000:0001");
}

TEST_F(KernelRdmaDevices, AreNeitherReadNorWrittenAsOurs) {
  add_device("mlx5_0", 0);
  write("/sys/class/infiniband/mlx5_0/device/net/eth0/ifindex", "2");
  const auto held = hold_device_tree(prepare());
  ASSERT_TRUE(held);
  const auto devices = read_device_tree(*held);
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->front().name, "uroce0");
  EXPECT_TRUE(update_gids(held->path, HostNetwork{}));
  EXPECT_THAT(list_directory(base_.path() + "/sys/class/infiniband/mlx5_0"),
              UnorderedElementsAre("device", "node_guid"));
}

TEST_F(KernelRdmaDevices, ThatComeOrGoMakeAnotherTree) {
  const std::string without = prepare();
  add_device("mlx5_0", 0);
  const std::string with = prepare();
  EXPECT_NE(with, without);
  EXPECT_EQ(prepare(), with);
}

TEST_F(KernelRdmaDevices, AreStillThereWhenTheTreeIsNot) {
  add_device("mlx5_0", 0);
  remove_tree(prepare());
  EXPECT_EQ(read_line(base_.path() + "/sys/class/infiniband/mlx5_0/node_guid"),
            "0000:0000:0000:0001");
}

}  // namespace
}  // namespace uroce::host
