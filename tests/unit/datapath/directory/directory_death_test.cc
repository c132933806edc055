// SPDX-License-Identifier: BSD-2-Clause
// The directory when processes are killed, stopped or forked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <chrono>

#include "datapath/directory/directory.h"
#include "datapath/directory/process_state.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace uroce::datapath {
namespace {

using std::chrono::microseconds, std::chrono::steady_clock;
using test::Child;
using test::TemporaryFolder;

struct DirectoryDeath : testing::Test {
  TemporaryFolder folder;
  std::unique_ptr<Directory> join() {
    auto joined = Directory::join({.folder = folder.path(), .device = "uroce0"});
    if (!joined) ::_exit(2);
    return std::move(*joined);
  }
  // Joins, claims a block, reports both, and waits for a word.
  void be_a_peer(Child& self) {
    auto directory = join();
    const auto block = directory->claim_block();
    self.tell(directory->own_slot().index);
    self.tell(directory->own_slot().generation);
    self.tell(*block);
    (void)self.hear();
  }
  struct Peer {
    SlotHandle slot;
    Qpn qpn;
  };
  static Peer meet(const Child& child) {
    Peer peer;
    peer.slot.index = static_cast<std::uint32_t>(child.hear());
    peer.slot.generation = child.hear();
    peer.qpn.value = static_cast<std::uint32_t>(child.hear()) * kQpnsPerBlock;
    return peer;
  }
};

TEST_F(DirectoryDeath, AKilledProcessIsDeadAtOnceAndSweptLater) {
  auto a = join();
  Child child([&](Child& self) { be_a_peer(self); });
  const Peer peer = meet(child);
  EXPECT_TRUE(a->is_alive(peer.slot));
  EXPECT_EQ(a->owner(peer.qpn), peer.slot);
  child.kill_and_reap();
  EXPECT_FALSE(a->is_alive(peer.slot));
  const auto epoch = a->epoch();
  EXPECT_TRUE(a->sweep());
  EXPECT_FALSE(a->is_present(peer.slot));
  EXPECT_FALSE(a->owner(peer.qpn));
  EXPECT_NE(a->epoch(), epoch);
  EXPECT_FALSE(a->sweep());
}

// A program of another version: its table has another format, its locks are where they always are.
TEST_F(DirectoryDeath, AnotherVersionsFileIsReplacedOnlyWhenItsLastUserIsDead) {
  const std::string path = folder.path() + "/directory";
  Child other([&](Child& self) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const std::uint64_t format = 1;
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_start = 77;
    lock.l_len = 1;
    const bool done = ::write(file, &format, sizeof format) == sizeof format &&
                      ::fcntl(file, F_SETLK, &lock) == 0;
    self.tell(done ? 1 : 0);
    (void)self.hear();
  });
  ASSERT_EQ(other.hear(), 1u);
  const auto refused = Directory::join({.folder = folder.path(), .device = "uroce0"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EPROTO);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("in use by another version"));
  other.kill_and_reap();
  auto a = join();
  Child child([&](Child& self) { be_a_peer(self); });
  EXPECT_TRUE(a->is_alive(meet(child).slot));
}

TEST_F(DirectoryDeath, AZombieIsDead) {
  auto a = join();
  Child child([&](Child& self) { be_a_peer(self); });
  const Peer peer = meet(child);
  child.signal(SIGKILL);
  siginfo_t ignored{};
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &ignored, WEXITED | WNOWAIT);
  EXPECT_FALSE(a->is_alive(peer.slot));
}

TEST_F(DirectoryDeath, AForkedChildDoesNotKeepTheDeadParentAlive) {
  auto a = join();
  Child child([&](Child& self) {
    auto directory = join();
    self.tell(directory->own_slot().index);
    self.tell(directory->own_slot().generation);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      (void)self.hear();  // with everything inherited still open, until the test is over or dead
      ::_exit(0);
    }
    self.tell(0);
    self.tell(static_cast<std::uint64_t>(grandchild));
    (void)self.hear();
  });
  const Peer peer = meet(child);
  const auto grandchild = static_cast<pid_t>(child.hear());
  ASSERT_GT(grandchild, 0);
  child.kill_and_reap();
  EXPECT_EQ(::kill(grandchild, 0), 0);
  EXPECT_FALSE(a->is_alive(peer.slot));
  EXPECT_TRUE(a->sweep());
}

TEST_F(DirectoryDeath, AStoppedProcessIsAliveAndKeepsItsBlocks) {
  auto a = join();
  Child child([&](Child& self) { be_a_peer(self); });
  const Peer peer = meet(child);
  child.stop();
  EXPECT_FALSE(a->sweep());
  EXPECT_TRUE(a->is_alive(peer.slot));
  EXPECT_EQ(a->owner(peer.qpn), peer.slot);
  EXPECT_TRUE(read_process_state(static_cast<std::uint32_t>(child.pid()))->is_stopped());
  child.signal(SIGCONT);
}

TEST_F(DirectoryDeath, AProcessThatExecsHasLeft) {
  auto a = join();
  Child child([&](Child& self) {
    auto directory = join();
    self.tell(directory->own_slot().index);
    self.tell(directory->own_slot().generation);
    ::execlp("sleep", "sleep", "60", nullptr);
  });
  SlotHandle slot;
  slot.index = static_cast<std::uint32_t>(child.hear());
  slot.generation = child.hear();
  EXPECT_EQ(child.hear(), Child::kGone);  // the pipes are closed by exec, after the locks
  while (a->is_alive(slot)) {             // ... or just before: nothing else to wait for
    ::sched_yield();
  }
  EXPECT_FALSE(a->is_alive(slot));
}

TEST_F(DirectoryDeath, AChildThatAbandonsDisturbsNothingAndMayJoinAnew) {
  auto a = join();
  const auto block = a->claim_block();
  Child child([&](Child& self) {
    a->abandon_in_child();
    a.reset();
    be_a_peer(self);
  });
  const Peer peer = meet(child);
  EXPECT_NE(peer.slot.index, a->own_slot().index);
  EXPECT_TRUE(a->is_alive(peer.slot));
  EXPECT_TRUE(a->is_alive(a->own_slot()));
  EXPECT_EQ(a->owner(Qpn{*block * kQpnsPerBlock}), a->own_slot());
  child.kill_and_reap();
  EXPECT_TRUE(a->sweep());
  EXPECT_TRUE(a->is_alive(a->own_slot()));
}

TEST_F(DirectoryDeath, AChildThatForgetsToAbandonAndDestroysDisturbsNothing) {
  auto a = join();
  Child child([&](Child& self) {
    a.reset();
    be_a_peer(self);
  });
  const Peer peer = meet(child);
  EXPECT_TRUE(a->is_alive(a->own_slot()));
  EXPECT_NE(peer.slot.index, a->own_slot().index);
}

TEST_F(DirectoryDeath, TheParentSeesItsSlotTakenFromOutside) {
  auto a = join();
  Child child([&](Child& self) {
    auto mine = join();
    self.tell(mine->is_alive(a->own_slot()) && !mine->sweep() ? 1 : 0);
    (void)self.hear();
  });
  EXPECT_EQ(child.hear(), 1u);
}

// Fifty processes come and are killed at whatever instruction they have reached.
TEST_F(DirectoryDeath, KilledAnywhereNothingIsLost) {
  auto a = join();
  for (int round = 0; round < 50; ++round) {
    Child child([&](Child& self) {
      self.tell(1);
      for (;;) {
        auto directory = join();
        for (int i = 0; i < 4; ++i) (void)directory->claim_block();
      }
    });
    EXPECT_EQ(child.hear(), 1u);
    // A random moment is what is tried, so here time is right.
    const auto end = steady_clock::now() + microseconds(20 * round);
    while (steady_clock::now() < end) {
    }
    child.kill_and_reap();
  }
  a->sweep();
  EXPECT_EQ(a->slots().size(), 1u);
  std::uint32_t free_blocks = 0;
  while (a->claim_block()) ++free_blocks;
  EXPECT_EQ(free_blocks, kBlockCount - 2);
}

TEST_F(DirectoryDeath, TheGroupLockDiesWithItsHolder) {
  auto a = join();
  Child child([&](Child& self) {
    auto directory = join();
    auto lock = directory->lock_group();
    self.tell(lock ? 1 : 0);
    (void)self.hear();
  });
  EXPECT_EQ(child.hear(), 1u);
  EXPECT_FALSE(a->lock_group());
  child.kill_and_reap();
  EXPECT_TRUE(a->lock_group());
}

TEST_F(DirectoryDeath, AFullFileSystemIsOneClearError) {
  Child child([&](Child& self) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
      self.tell(2);
      return;
    }
    auto joined = Directory::join({.folder = folder.path(), .device = "uroce0"});
    self.tell(!joined && joined.error().code == ENOSPC &&
                      joined.error().message.find("No space left") != std::string::npos
                  ? 1
                  : 0);
  });
  const auto answer = child.hear();
  if (answer == 2) GTEST_SKIP() << "needs the right to mount a tmpfs in a namespace of its own";
  EXPECT_EQ(answer, 1u);
}

}  // namespace
}  // namespace uroce::datapath
