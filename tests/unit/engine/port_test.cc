// SPDX-License-Identifier: BSD-2-Clause
#include "engine/port.h"

#include <gtest/gtest.h>

#include "host/device_table.h"
#include "host/runtime_dir.h"
#include "support/temporary_folder.h"

namespace uroce::engine {
namespace {

// A tree for a device on lo, with an address that lo does not have.
class PortOnLoopback : public testing::Test {
 protected:
  PortOnLoopback() {
    stale_.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 9, 9};
    host::Device device{.name = "uroce0", .netdev = "lo", .gids = {stale_}};
    const auto directory = host::open_runtime_directory({{"UROCE_RUNTIME_DIR", base_.path()}}, 9);
    tree_ = *host::prepare_device_tree(*directory, {device});
  }

  static host::TreeDevice first_device(const host::HeldTree& tree) {
    auto devices = host::read_device_tree(tree);
    EXPECT_TRUE(devices && !devices->empty());
    return devices && !devices->empty() ? devices->front() : host::TreeDevice{};
  }

  test::TemporaryFolder base_;
  Gid stale_;
  std::string tree_;
};

TEST_F(PortOnLoopback, KnowsWhatHasChangedSinceTheTreeWasPrepared) {
  const auto network = host::read_host_network();
  ASSERT_TRUE(network);
  auto held = host::hold_device_tree(tree_);
  ASSERT_TRUE(held);
  const host::TreeDevice device = first_device(*held);
  ASSERT_EQ(device.gids.find(stale_), 0u);
  const Port port(std::move(*held), device, *network);
  EXPECT_NE(port.gid(0), stale_);
  EXPECT_FALSE(port.is_own_address(stale_));
}

// It goes on as what it is now called.
TEST_F(PortOnLoopback, IsTheSameInterfaceUnderAnotherName) {
  const auto network = host::read_host_network();
  ASSERT_TRUE(network);
  const host::Interface* const lo = network->find("lo");
  ASSERT_NE(lo, nullptr);
  host::TreeDevice device;
  device.name = "uroce0";
  device.netdev = "before";
  device.interface_index = lo->index;
  const Port port(std::nullopt, device, *network);
  EXPECT_EQ(port.facts().mtu_bytes, lo->mtu_bytes);
  EXPECT_EQ(port.facts().active, lo->up && lo->running);
  device.interface_index = 0;
  EXPECT_EQ(Port(std::nullopt, device, *network).facts().mtu_bytes, 0U);
}

// By what clears folders of temporary files: the port's state is the kernel's all the same, and
// there is nothing to wait for.
TEST_F(PortOnLoopback, IsFollowedWithoutItsFiles) {
  const auto network = host::read_host_network();
  ASSERT_TRUE(network);
  auto held = host::hold_device_tree(tree_);
  ASSERT_TRUE(held);
  const host::TreeDevice device = first_device(*held);
  for (const std::string& removed : {tree_, tree_.substr(0, tree_.rfind('/'))}) {
    host::remove_tree(removed);
    const Port port(host::HeldTree{tree_, {}}, device, *network);
    EXPECT_FALSE(port.is_behind());
    EXPECT_FALSE(port.index_of(stale_));
  }
}

}  // namespace
}  // namespace uroce::engine
