// SPDX-License-Identifier: BSD-2-Clause
// The directory as seen by engines that behave.
#include "datapath/directory/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "support/temporary_folder.h"

namespace uroce::datapath {
namespace {

using test::TemporaryFolder;

struct DirectoryTest : testing::Test {
  TemporaryFolder folder;
  std::unique_ptr<Directory> join(const std::string& device = "uroce0") {
    auto joined = Directory::join({.folder = folder.path(), .device = device});
    EXPECT_TRUE(joined) << joined.error().message;
    return std::move(*joined);
  }
};

TEST_F(DirectoryTest, EveryEngineHasItsOwnSlotAndGeneration) {
  auto a = join(), b = join();
  EXPECT_NE(a->own_slot().index, b->own_slot().index);
  EXPECT_NE(a->own_slot().generation, b->own_slot().generation);
  EXPECT_TRUE(a->is_alive(b->own_slot()));
  EXPECT_TRUE(b->is_alive(a->own_slot()));
}

TEST_F(DirectoryTest, SlotsTellWhoIsThere) {
  auto a = join("uroce0"), b = join("uroce1");
  const auto all = a->slots();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].handle, a->own_slot());
  EXPECT_EQ(all[1].device, "uroce1");
  EXPECT_EQ(all[1].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(all[1].uid, ::geteuid());
  EXPECT_FALSE(all[1].program.empty());
}

// Else peers would take a program that polls for one that sleeps, and wake it.
TEST_F(DirectoryTest, WhoTakesASlotHasNotPolledYet) {
  auto first = join();
  const std::uint32_t slot = first->own_slot().index;
  first->mailbox(slot).application_turns = 7;
  first.reset();
  const auto second = join();
  ASSERT_EQ(second->own_slot().index, slot);
  EXPECT_EQ(second->mailbox(slot).application_turns.load(), 0u);
}

TEST_F(DirectoryTest, AHandleIsStaleOnceItsEngineHasLeft) {
  auto a = join(), b = join();
  const SlotHandle old = b->own_slot();
  b.reset();
  EXPECT_FALSE(a->is_alive(old));
  EXPECT_FALSE(a->info(old));
  b = join();
  EXPECT_EQ(b->own_slot().index, old.index);
  EXPECT_FALSE(a->is_alive(old));
  EXPECT_TRUE(a->is_alive(b->own_slot()));
}

TEST_F(DirectoryTest, EpochChangesAtEveryJoinAndLeave) {
  auto a = join();
  const auto first = a->epoch();
  auto b = join();
  const auto second = a->epoch();
  b.reset();
  EXPECT_NE(first, second);
  EXPECT_NE(second, a->epoch());
}

TEST_F(DirectoryTest, AClaimedBlockLeadsToItsOwner) {
  auto a = join(), b = join();
  const auto block = b->claim_block();
  ASSERT_TRUE(block);
  for (std::uint32_t offset : {0u, 255u}) {
    EXPECT_EQ(a->owner(Qpn{*block * kQpnsPerBlock + offset}), b->own_slot());
  }
  EXPECT_FALSE(a->owner(Qpn{(*block + 1) * kQpnsPerBlock}));
  b->release_block(*block);
  EXPECT_FALSE(a->owner(Qpn{*block * kQpnsPerBlock}));
}

TEST_F(DirectoryTest, NobodyOwnsTheManagementAndMulticastBlocks) {
  auto a = join();
  std::set<std::uint32_t> taken;
  while (auto block = a->claim_block()) taken.insert(*block);
  EXPECT_EQ(taken.size(), kBlockCount - 2);
  EXPECT_EQ(*taken.begin(), 1u);
  EXPECT_EQ(*taken.rbegin(), kBlockCount - 2);
  EXPECT_FALSE(a->owner(Qpn{1}));
  EXPECT_FALSE(a->owner(Qpn{0xff'ffff}));
  EXPECT_FALSE(a->owner(Qpn{0xffff'ffff}));
}

TEST_F(DirectoryTest, FreedBlocksAreUsedAgainLastAndOldestFirst) {
  auto a = join();
  std::vector<std::uint32_t> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(*a->claim_block());
  a->release_block(taken[2]);
  a->release_block(taken[0]);
  std::vector<std::uint32_t> rest;
  while (auto block = a->claim_block()) rest.push_back(*block);
  ASSERT_EQ(rest.size(), kBlockCount - 2 - 1u);
  EXPECT_EQ(rest[rest.size() - 2], taken[2]);
  EXPECT_EQ(rest.back(), taken[0]);
}

TEST_F(DirectoryTest, LeavingGivesBlocksBack) {
  auto a = join(), b = join();
  while (b->claim_block()) {
  }
  EXPECT_FALSE(a->claim_block());
  b.reset();
  EXPECT_TRUE(a->claim_block());
}

TEST_F(DirectoryTest, ReleasingWhatOneDoesNotOwnChangesNothing) {
  auto a = join(), b = join();
  const auto block = b->claim_block();
  a->release_block(*block);
  EXPECT_EQ(a->owner(Qpn{*block * kQpnsPerBlock}), b->own_slot());
}

TEST_F(DirectoryTest, ThreadsNeverGetTheSameBlock) {
  auto a = join(), b = join();
  std::vector<std::uint32_t> first, second;
  const auto claim = [](Directory& from, std::vector<std::uint32_t>& into) {
    for (int i = 0; i < 500; ++i) into.push_back(*from.claim_block());
  };
  std::thread one([&] { claim(*a, first); });
  std::thread two([&] { claim(*b, second); });
  one.join();
  two.join();
  std::set<std::uint32_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_EQ(all.size(), 1000u);
}

TEST_F(DirectoryTest, UdpMembersAreNumberedInTheOrderOfEntering) {
  auto a = join(), b = join();
  {
    auto lock = a->lock_group();
    ASSERT_TRUE(lock);
    b->enter_udp_group();
    a->enter_udp_group();
  }
  EXPECT_TRUE(a->lock_group());
  EXPECT_LT(a->info(b->own_slot())->udp_order, a->info(a->own_slot())->udp_order);
  a->leave_udp_group();
  EXPECT_EQ(b->info(a->own_slot())->udp_order, 0u);
}

TEST_F(DirectoryTest, AMissingFolderIsAnErrorThatNamesIt) {
  auto joined = Directory::join({.folder = folder.path() + "/none", .device = "uroce0"});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ENOENT);
  EXPECT_THAT(joined.error().message, testing::HasSubstr(folder.path() + "/none"));
}

// With the group of UDP sockets and the control sockets that belong to it, and nothing else.
TEST_F(DirectoryTest, AFileThatAnotherVersionLeftIsReplaced) {
  const std::vector<std::string> of_engines = {"udp-4791"}, of_others = {"trees.lock", "tree-1"};
  std::ofstream(folder.path() + "/directory") << "something else altogether";
  for (const std::string& name : of_engines) std::ofstream(folder.path() + "/" + name) << "old";
  for (const std::string& name : of_others) std::ofstream(folder.path() + "/" + name) << "old";
  auto a = join(), b = join();
  EXPECT_EQ(a->slots().size(), 2u);
  for (const std::string& name : of_engines) {
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/" + name)) << name;
  }
  for (const std::string& name : of_others) {
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/" + name)) << name;
  }
}

TEST_F(DirectoryTest, ALinkInPlaceOfTheFileIsNotFollowed) {
  std::filesystem::create_symlink("/dev/null", folder.path() + "/directory");
  EXPECT_FALSE(Directory::join({.folder = folder.path(), .device = "uroce0"}));
}

TEST(DirectoryOnAFullDisk, IsAnErrorThatSaysSo) {
  auto joined = Directory::join({.folder = "/sys/kernel", .device = "uroce0"});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, testing::HasSubstr("/sys/kernel/directory"));
}

}  // namespace
}  // namespace uroce::datapath
