// SPDX-License-Identifier: BSD-2-Clause
// The engine's small parts: QP numbers, keys, peers' windows, locks, doorbells, clock.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "engine/clock.h"
#include "engine/doorbell.h"
#include "engine/key_source.h"
#include "engine/peers.h"
#include "engine/placement.h"
#include "engine/qpn_allocator.h"
#include "engine/quota.h"
#include "engine/shard_lock.h"
#include "unit/engine/fake_parts.h"

namespace uroce::engine {
namespace {

TEST(QpnAllocator, GivesFreshNumbersOfABlockInOrder) {
  FakeBlocks blocks;
  QpnAllocator qpns(blocks);
  const auto first = qpns.allocate();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->number, Qpn{256});
  EXPECT_NE(first->new_block, nullptr);
  const auto second = qpns.allocate();
  EXPECT_EQ(second->number, Qpn{257});
  EXPECT_EQ(second->new_block, nullptr);
}

TEST(QpnAllocator, UsesAFreedNumberAgainAsLateAsPossible) {
  FakeBlocks blocks;
  QpnAllocator qpns(blocks);
  std::vector<std::uint32_t> given;
  for (int i = 0; i < 1'000; ++i) {
    const Qpn number = qpns.allocate()->number;
    given.push_back(number.value);
    qpns.release(number);
  }
  EXPECT_EQ(blocks.held.size(), 1U);
  for (std::size_t i = QpnAllocator::kRestAtLeast; i < given.size(); ++i) {
    for (std::size_t back = 1; back < QpnAllocator::kRestAtLeast; ++back) {
      ASSERT_NE(given[i], given[i - back]);
    }
  }
}

TEST(QpnAllocator, ClaimsAnotherBlockRatherThanHurry) {
  FakeBlocks blocks;
  QpnAllocator qpns(blocks);
  std::set<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 2 * kQpnsPerBlock; ++i) {
    numbers.insert(qpns.allocate()->number.value);
  }
  EXPECT_EQ(numbers.size(), 2 * kQpnsPerBlock);
  EXPECT_EQ(blocks.held.size(), 2U);
}

TEST(QpnAllocator, WithoutAnotherBlockUsesWhatWasFreedAndThenNothing) {
  FakeBlocks blocks;
  blocks.left = 1;
  QpnAllocator qpns(blocks);
  for (std::uint32_t i = 0; i < kQpnsPerBlock; ++i) ASSERT_TRUE(qpns.allocate());
  EXPECT_FALSE(qpns.allocate());
  qpns.release({300});
  EXPECT_EQ(qpns.allocate()->number, Qpn{300});
}

TEST(QpnAllocator, GivesItsBlocksBack) {
  FakeBlocks blocks;
  { static_cast<void>(QpnAllocator(blocks).allocate()); }
  EXPECT_TRUE(blocks.held.empty());
}

TEST(KeySource, NeverGivesZeroNorTheSameKeysTwiceInARow) {
  KeySource keys;
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1'000; ++i) {
    const std::uint32_t key = keys.next();
    ASSERT_NE(key, 0U);
    seen.insert(key);
  }
  EXPECT_GT(seen.size(), 990U);
}

TEST(Peers, QpsToTheSameProcessShareAWindow) {
  Peers peers;
  auto* spare = new PeerEntry;
  transport::Peer& first = peers.use(test_gid(1), 7, spare);
  EXPECT_EQ(spare, nullptr);
  EXPECT_EQ(&peers.use(test_gid(1), 7, spare), &first);
  auto* other = new PeerEntry;
  transport::Peer& second = peers.use(test_gid(2), 7, other);
  EXPECT_NE(&second, &first);
  EXPECT_EQ(peers.release(first), nullptr);
  const std::unique_ptr<PeerEntry> last(peers.release(first));
  EXPECT_NE(last, nullptr);
  const std::unique_ptr<PeerEntry> last_other(peers.release(second));
  EXPECT_NE(last_other, nullptr);
}

TEST(Quota, EndsAtItsNumber) {
  Quota quota(2);
  EXPECT_TRUE(quota.take());
  EXPECT_TRUE(quota.take());
  EXPECT_FALSE(quota.take());
  quota.give_back();
  EXPECT_TRUE(quota.take());
}

TEST(ShardLock, IsHeldByOneThreadAtATime) {
  ShardLock lock;
  int inside = 0, total = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        lock.lock();
        EXPECT_EQ(++inside, 1);
        ++total;
        --inside;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, 8'000);
}

TEST(ShardLock, AbandonedIsNeverHadAgain) {
  ShardLock lock;
  lock.abandon();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.is_mine());
}

TEST(ShardLockDeathTest, WaitingForOneselfIsOurFault) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ShardLock lock;
  lock.lock();
  EXPECT_DEATH(lock.lock(), "");
  lock.unlock();
}

TEST(DoorbellStack, VisitsEachQpOnceHoweverOftenItRang) {
  DoorbellStack stack;
  transport::Qp a, b;
  Doorbell bell_a, bell_b;
  bell_a.qp = &a;
  bell_b.qp = &b;
  stack.ring(bell_a);
  stack.ring(bell_b);
  stack.ring(bell_a);
  std::multiset<transport::Qp*> visited;
  stack.take_all([&](transport::Qp& qp) { visited.insert(&qp); });
  EXPECT_EQ(visited, (std::multiset<transport::Qp*>{&a, &b}));
  EXPECT_TRUE(stack.is_empty());
}

TEST(DoorbellStack, ARingDuringTheVisitIsNotLost) {
  DoorbellStack stack;
  transport::Qp qp;
  Doorbell bell;
  bell.qp = &qp;
  stack.ring(bell);
  stack.take_all([&](transport::Qp&) { stack.ring(bell); });
  EXPECT_FALSE(stack.is_empty());
}

TEST(TurnClock, FollowsTheMonotonicClockAndNeverGoesBack) {
  TurnClock clock;
  Instant last{};
  const Instant end = monotonic_now() + milliseconds(20);
  for (Instant t = monotonic_now(); t < end; t = monotonic_now()) {
    const Instant now = clock.now();
    EXPECT_GE(now, last);
    last = now;
    // Between the two readings this thread may lose its processor, which is not the clock's fault:
    // so only what lies outside of [t, after] counts.
    const Instant after = monotonic_now();
    EXPECT_GE(now + microseconds(50), t);
    EXPECT_LE(now, after + microseconds(50));
  }
}

TEST(Placement, AnOwnAddressGoesOverSharedMemoryWhereThePeerIsThere) {
  Links links;
  auto local = std::make_unique<LoopbackLink>();
  LoopbackLink& fake = *local;
  links[transport::kLocalLink] = std::move(local);
  links[transport::kUplink] = std::make_unique<LoopbackLink>();
  Path path;
  std::uint8_t link = 9;
  EXPECT_EQ(open_on_some_link(links, true, path, {300}, link), 0);
  EXPECT_EQ(link, transport::kLocalLink);
  fake.open_error = EHOSTUNREACH;
  EXPECT_EQ(open_on_some_link(links, true, path, {300}, link), 0);
  EXPECT_EQ(link, transport::kUplink);
  fake.open_error = ENOMEM;
  EXPECT_EQ(open_on_some_link(links, true, path, {300}, link), ENOMEM);
}

TEST(Placement, WithoutAnUplinkOthersAreUnreachable) {
  Links links;
  links[transport::kLocalLink] = std::make_unique<LoopbackLink>();
  Path path;
  std::uint8_t link = 9;
  EXPECT_EQ(open_on_some_link(links, false, path, {300}, link), ENETUNREACH);
}

TEST(Placement, WithoutAnUplinkAnUnknownQpOfThisHostIsForTheRetriesToFindOut) {
  Links links;
  auto local = std::make_unique<LoopbackLink>();
  local->open_error = EHOSTUNREACH;
  links[transport::kLocalLink] = std::move(local);
  Path path;
  std::uint8_t link = 9;
  EXPECT_EQ(open_on_some_link(links, true, path, {300}, link), 0);
  EXPECT_EQ(link, transport::kLocalLink);
  EXPECT_EQ(path.route, 0U);
}

}  // namespace
}  // namespace uroce::engine
