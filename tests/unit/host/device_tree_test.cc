// SPDX-License-Identifier: BSD-2-Clause
#include "host/device_tree.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "host/port_counters.h"
#include "support/few_descriptors.h"
#include "unit/host/support.h"

namespace uroce::host {
namespace {

using test::gid;
using testing::UnorderedElementsAre;

class DeviceTree : public testing::Test {
 protected:
  DeviceTree() {
    device_.name = "uroce0";
    device_.netdev = "eth0";
    device_.interface_index = 2;
    device_.node_guid = 0x0011'22ff'fe33'4455;
    device_.mac = {2, 0, 0, 0, 0, 1};
    device_.mtu_bytes = 1500;
    device_.megabits_per_second = 10'000;
    device_.active = true;
    device_.gids = {gid("fe80::1"), gid("10.0.0.1"), gid("2001:db8::1")};
    directory_ = *open_runtime_directory({{"UROCE_RUNTIME_DIR", base_.path() + "/run"}}, 9);
  }

  std::string prepare() {
    const auto tree = prepare_device_tree(directory_, {device_});
    EXPECT_TRUE(tree) << tree.error().message;
    return tree ? *tree : "";
  }

  static std::string text(const std::string& tree, const std::string& name) {
    return read_line(tree + "/sys/class/infiniband/uroce0/" + name);
  }
  static std::vector<TreeDevice> devices(const std::string& tree) {
    const auto held = hold_device_tree(tree);
    if (!held) return {};
    return *read_device_tree(*held);
  }
  static GidTable gids(const std::string& tree) { return devices(tree).front().gids; }

  HostNetwork network_with(std::vector<const char*> addresses, bool running = true) const {
    HostNetwork network;
    Interface interface;
    interface.name = "eth0";
    interface.running = running;
    for (const char* address : addresses) {
      interface.addresses.push_back({.address = {gid(address), 64}});
    }
    network.interfaces = {interface};
    return network;
  }

  test::TemporaryFolder base_;
  RuntimeDirectory directory_;
  Device device_;
};

TEST_F(DeviceTree, HasWhatLibibverbsLooksFor) {
  const std::string tree = prepare();
  const std::string verbs = tree + "/sys/class/infiniband_verbs/";
  EXPECT_EQ(read_line(verbs + "abi_version"), "6");
  EXPECT_EQ(read_line(verbs + "uverbs0/ibdev"), "uroce0");
  EXPECT_EQ(read_line(verbs + "uverbs0/dev"), "1:3");
  EXPECT_EQ(read_line(verbs + "uverbs0/abi_version"), "1");
  EXPECT_EQ(text(tree, "node_type"), "1: CA");
  EXPECT_EQ(text(tree, "node_guid"), "0011:22ff:fe33:4455");
  EXPECT_EQ(text(tree, "sys_image_guid"), "0011:22ff:fe33:4455");
  EXPECT_EQ(text(tree, "ports/1/link_layer"), "Ethernet");
  EXPECT_EQ(text(tree, "ports/1/state"), "4: ACTIVE");
  EXPECT_EQ(text(tree, "ports/1/rate"), "10 Gb/sec (4X SDR)");
  EXPECT_EQ(text(tree, "ports/1/pkeys/0"), "0xffff");
  EXPECT_EQ(text(tree, "device/net/eth0/ifindex"), "2");
  EXPECT_THAT(list_directory(tree + "/dev/infiniband"), UnorderedElementsAre("uverbs0", "rdma_cm"));
  EXPECT_EQ(read_line(tree + "/sys/class/misc/rdma_cm/abi_version"), "4");
}

// Their values are the preloaded library's business.
TEST_F(DeviceTree, ListsThePortsCounters) {
  const std::string tree = prepare();
  const std::string port = tree + "/sys/class/infiniband/uroce0/ports/1/";
  for (const PortCounter& counter : kPortCounters) {
    const std::string file = std::string(counter.folder) + "/" + std::string(counter.name);
    EXPECT_EQ(read_file(port + file), kNotCounted) << file;
  }
  EXPECT_EQ(list_directory(port + "counters").size() + list_directory(port + "hw_counters").size(),
            kPortCounters.size() + 1);
  EXPECT_EQ(text(tree, "ports/1/hw_counters/lifespan"), "0");
}

// A tree comes and goes with the configuration; what the port has counted does not.
TEST_F(DeviceTree, LeadsToTheSameCountersAsOtherTreesOfThePort) {
  const std::string first = prepare();
  device_.megabits_per_second = 25'000;
  const std::string second = prepare();
  ASSERT_NE(first, second);
  ASSERT_TRUE(write_file(first + "/counters/uroce0", "1"));
  EXPECT_EQ(read_file(second + "/counters/uroce0"), "1");
  EXPECT_EQ(
      read_file(directory_.network_path + "/" + counters_file(device_.netdev, device_.node_guid)),
      "1");
  device_.netdev = "eth0.5";  // with the same MAC address
  EXPECT_FALSE(read_file(prepare() + "/counters/uroce0"));
}

TEST_F(DeviceTree, EveryGidIndexHasItsFiles) {
  const std::string tree = prepare();
  const std::string zero = format_gid(Gid{});
  for (std::size_t i = 0; i < GidTable::kLength; ++i) {
    const std::string n = std::to_string(i);
    const bool used = i < device_.gids.size();
    EXPECT_EQ(text(tree, "ports/1/gids/" + n), used ? format_gid(device_.gids[i]) : zero);
    EXPECT_EQ(text(tree, "ports/1/gid_attrs/types/" + n), "RoCE v2");
    EXPECT_EQ(read_file(tree + "/sys/class/infiniband/uroce0/ports/1/gid_attrs/ndevs/" + n),
              used ? "eth0\n" : "");
  }
}

TEST_F(DeviceTree, ReadsBackAsItWasWritten) {
  const std::vector<TreeDevice> read = devices(prepare());
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.front().name, "uroce0");
  EXPECT_EQ(read.front().netdev, "eth0");
  EXPECT_EQ(read.front().node_guid, device_.node_guid);
  EXPECT_EQ(read.front().gids, GidTable(device_.gids));
}

TEST_F(DeviceTree, DevicesAlikeShareATreeAndOthersDoNot) {
  const std::string tree = prepare();
  EXPECT_EQ(prepare(), tree);
  device_.netdev = "eth1";
  EXPECT_NE(prepare(), tree);
}

TEST_F(DeviceTree, IndicesStayWhileSomebodyHoldsIt) {
  const std::string tree = prepare();
  const auto hold = hold_device_tree(tree);
  ASSERT_TRUE(hold);
  device_.gids = {gid("10.0.0.9"), gid("2001:db8::1")};
  EXPECT_EQ(prepare(), tree);
  EXPECT_EQ(gids(tree).find(gid("2001:db8::1")), 2u);
  EXPECT_EQ(gids(tree).find(gid("10.0.0.9")), 0u);
}

TEST_F(DeviceTree, OrderIsFreshWhenNobodyHoldsIt) {
  const std::string tree = prepare();
  device_.gids = {gid("10.0.0.9"), gid("2001:db8::1")};
  prepare();
  EXPECT_EQ(gids(tree).find(gid("2001:db8::1")), 1u);
}

TEST_F(DeviceTree, UpdateKeepsSurvivorsAndSaysWhetherAnythingChanged) {
  const std::string tree = prepare();
  const auto same = update_gids(tree, network_with({"2001:db8::1", "10.0.0.1", "fe80::1"}));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_FALSE(*same);
  const auto changed = update_gids(tree, network_with({"2001:db8::1", "10.0.0.2"}));
  ASSERT_TRUE(changed);
  EXPECT_TRUE(*changed);
  EXPECT_EQ(gids(tree).slots()[0], gid("10.0.0.2"));
  EXPECT_TRUE(gids(tree).slots()[1].is_zero());
  EXPECT_EQ(gids(tree).slots()[2], gid("2001:db8::1"));
}

// It would be taken for unchanged, and nobody would look again.
TEST_F(DeviceTree, WhatCannotBeReadForWantOfDescriptorsIsAnError) {
  const std::string tree = prepare();
  const HostNetwork network = network_with({"10.0.0.9"});
  for (const rlim_t left : {0U, 1U}) {
    bool is_taken_for_read = false;
    {
      const uroce::test::FewDescriptors few(left);
      is_taken_for_read = static_cast<bool>(update_gids(tree, network));
    }
    EXPECT_FALSE(is_taken_for_read) << left;
  }
  EXPECT_TRUE(*update_gids(tree, network));
}

TEST_F(DeviceTree, LinkDownAndInterfaceGoneShowInTheState) {
  const std::string tree = prepare();
  ASSERT_TRUE(update_gids(tree, network_with({"10.0.0.1"}, false)));
  EXPECT_EQ(text(tree, "ports/1/state"), "1: DOWN");
  ASSERT_TRUE(update_gids(tree, network_with({"10.0.0.1"})));
  EXPECT_EQ(text(tree, "ports/1/state"), "4: ACTIVE");
  ASSERT_TRUE(update_gids(tree, HostNetwork{}));
  EXPECT_EQ(text(tree, "ports/1/state"), "1: DOWN");
  EXPECT_EQ(gids(tree), GidTable());
}

TEST_F(DeviceTree, ConfiguredAddressesAreNoBusinessOfTheKernel) {
  device_.netdev.clear();
  const std::string tree = prepare();
  const auto changed = update_gids(tree, HostNetwork{});
  ASSERT_TRUE(changed);
  EXPECT_FALSE(*changed);
  EXPECT_EQ(gids(tree), GidTable(device_.gids));
}

// libibverbs would take the device for a new one.
TEST_F(DeviceTree, UpdateLeavesTheTimeOfTheDeviceAlone) {
  const std::string tree = prepare();
  const std::string path = tree + "/sys/class/infiniband/uroce0";
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  ASSERT_TRUE(update_gids(tree, network_with({"10.0.0.77"}, false)));
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
  EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

TEST_F(DeviceTree, AReaderNeverSeesAFileHalfWritten) {
  const std::string tree = prepare();
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) {
      const bool even = i % 2 == 0;
      EXPECT_TRUE(update_gids(tree, network_with({even ? "10.0.0.1" : "10.0.0.2", "fe80::1"})));
    }
    done = true;
  });
  while (!done) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(parse_gid(text(tree, "ports/1/gids/" + std::to_string(i))));
    }
  }
  writer.join();
}

TEST_F(DeviceTree, ManyMayPrepareItAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(prepare_device_tree(directory_, {device_})); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gids(prepare()), GidTable(device_.gids));
}

// Its holder was stopped, perhaps.
TEST_F(DeviceTree, ALockThatNobodyLetsGoOfIsGivenUp) {
  const std::string path = base_.path() + "/lock";
  auto holder = lock_file(path, LockKind::kShared);
  ASSERT_TRUE(holder);
  EXPECT_TRUE(lock_file(path, LockKind::kShared, milliseconds(0)));
  const auto lock = lock_file(path, LockKind::kExclusive, milliseconds(10));
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ETIMEDOUT);
  EXPECT_THAT(lock.error().message, testing::HasSubstr("kill -CONT"));
  holder->close();
  EXPECT_TRUE(lock_file(path, LockKind::kExclusive, milliseconds(0)));
}

TEST_F(DeviceTree, ARunningProgramDoesNotWaitForAnotherToUpdateIt) {
  const std::string tree = prepare();
  const HostNetwork network = network_with({"fe80::1", "10.0.0.7"});
  auto other = lock_file(trees_lock_file(directory_.network_path), LockKind::kExclusive);
  const auto changed = update_gids(tree, network);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ETIMEDOUT);
  other->close();
  EXPECT_TRUE(*update_gids(tree, network));
}

TEST_F(DeviceTree, WhatACrashLeftAsideIsClearedAway) {
  const std::string tree = prepare();
  remove_tree(tree);
  ASSERT_TRUE(make_directories(tree + ".new/sys/class/infiniband/stale0", 0700));
  prepare();
  EXPECT_EQ(devices(tree).size(), 1u);
}

// Every file and link, with its text.
std::map<std::string, std::string> contents(const std::string& tree) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree)) {
    const std::string path = entry.path();
    std::string& text = all[path.substr(tree.size())];
    if (entry.is_symlink()) {
      text = "to " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      text = *read_file(path);
    }
  }
  return all;
}

// A cleaner of temporary files takes what is old.
TEST_F(DeviceTree, WhateverIsMissingComesBack) {
  const std::string tree = prepare();
  const auto whole = contents(tree);
  ASSERT_GT(whole.size(), 400u);
  for (const bool is_held : {false, true}) {
    for (const auto& [name, text] : whole) {
      if (is_held && name == "/in-use") continue;  // and nobody can tell that it is
      const auto number = std::atoi(name.c_str() + name.rfind('/') + 1);
      if (number > 4) continue;  // the numbered ones are alike
      std::optional<Result<HeldTree>> held;
      if (is_held) held.emplace(hold_device_tree(tree));
      remove_tree(tree + name);
      ASSERT_EQ(prepare(), tree);
      ASSERT_EQ(contents(tree), whole) << name;
    }
  }
}

TEST_F(DeviceTree, FollowsItsInterfaceUnderAnotherName) {
  const std::string tree = prepare();
  HostNetwork network = network_with({"fe80::1", "10.0.0.9"});
  network.interfaces.front().name = "renamed0";
  network.interfaces.front().index = device_.interface_index;
  // Another one may have taken the name.
  Interface other;
  other.name = "eth0";
  other.index = 7;
  network.interfaces.push_back(other);
  EXPECT_TRUE(*update_gids(tree, network));
  EXPECT_EQ(text(tree, "ports/1/state"), "4: ACTIVE");
  EXPECT_TRUE(gids(tree).find(gid("10.0.0.9")));
  EXPECT_EQ(text(tree, "ports/1/gid_attrs/ndevs/0"), "renamed0");
}

TEST_F(DeviceTree, OneThatWasRemovedUnderAProgramIsNotThere) {
  const std::string tree = prepare();
  remove_tree(tree);
  const auto changed = update_gids(tree, network_with({"10.0.0.1"}));
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ENOENT);
}

TEST_F(DeviceTree, AnythingElseIsNotADeviceTree) {
  const auto held = hold_device_tree(base_.path());
  ASSERT_TRUE(held);
  EXPECT_FALSE(read_device_tree(*held));
  EXPECT_FALSE(hold_device_tree(base_.path() + "/none"));
}

}  // namespace
}  // namespace uroce::host
