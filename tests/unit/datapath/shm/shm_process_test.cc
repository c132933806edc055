// SPDX-License-Identifier: BSD-2-Clause
// Engines in processes that exit, are killed, stopped or forked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>

#include "support/child.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "unit/datapath/shm/shm_end.h"

namespace uroce::datapath {
namespace {

using std::chrono::microseconds, std::chrono::steady_clock;
using test::Child;
using test::TemporaryFolder;
using testing::ElementsAre;

struct ShmProcess : testing::Test {
  TemporaryFolder folder;

  // Joins, tells its QPN, hears the other's; then does `rest`.
  template <typename Rest>
  auto peer(Rest rest) {
    return [this, rest](Child& self) {
      ShmEnd end(folder.path());
      self.tell(end.qpn().value);
      const auto other = self.hear();
      if (other == Child::kGone) return;
      rest(self, end, Qpn{static_cast<std::uint32_t>(other)});
    };
  }
  static Qpn meet(const Child& child, const ShmEnd& own) {
    const Qpn qpn{static_cast<std::uint32_t>(child.hear())};
    child.tell(own.qpn().value);
    return qpn;
  }
  // Turns until the ring is found unread, in virtual time.
  static void turn(ShmEnd& end, std::int64_t from_ns, std::int64_t to_ns) {
    for (std::int64_t now = from_ns; now < to_ns; now += 5'000) end.link().on_turn({now});
  }
};

TEST_F(ShmProcess, APingPongBetweenProcesses) {
  constexpr std::uint32_t kRounds = test::kSanitized ? 500 : 2'000;
  ShmEnd a(folder.path());
  Child child(peer([](Child&, ShmEnd& b, Qpn other) {
    const Path path = b.path_to(other);
    for (std::uint32_t got = 0; got < kRounds;) {
      for (std::uint32_t number : b.receive()) {
        while (!b.send(path, number, number)) ::sched_yield();
        ++got;
      }
      ::sched_yield();
    }
    ::_exit(0);  // at once: the last answer is in the ring and must arrive
  }));
  const Path path = a.path_to(meet(child, a));
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(a.send(path, i, i));
    std::vector<std::uint32_t> got;
    while ((got = a.receive()).empty()) ::sched_yield();
    ASSERT_THAT(got, ElementsAre(i));
  }
}

TEST_F(ShmProcess, AStreamThroughASmallRingKeepsItsOrder) {
  constexpr std::uint32_t kFrames = test::kSanitized ? 5'000 : 20'000;
  const ShmOptions small{.ring_bytes = 16384, .max_run_bytes = 4096};
  ShmEnd a(folder.path(), small);
  Child child([&](Child& self) {
    ShmEnd b(folder.path(), small);
    self.tell(b.qpn().value);
    std::uint64_t wrong = 0;
    for (std::uint32_t next = 0; next < kFrames;) {
      for (std::uint32_t number : b.receive()) wrong += number == next++ ? 0u : 1u;
      ::sched_yield();
    }
    self.tell(wrong);
  });
  const Path path = a.path_to(Qpn{static_cast<std::uint32_t>(child.hear())});
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    while (!a.send(path, i, i * 37 % 4000)) ::sched_yield();
  }
  EXPECT_EQ(child.hear(), 0u);
}

TEST_F(ShmProcess, WhatAKilledProcessHadSentIsDelivered) {
  ShmEnd a(folder.path());
  Child child(peer([](Child& self, ShmEnd& b, Qpn other) {
    const Path path = b.path_to(other);
    for (std::uint32_t i = 0; i < 20; ++i) (void)b.send(path, i);
    self.tell(1);
    (void)self.hear();
  }));
  (void)meet(child, a);
  EXPECT_EQ(child.hear(), 1u);
  child.kill_and_reap();
  EXPECT_TRUE(a.directory().sweep());
  a.link().on_turn({1});
  EXPECT_EQ(a.receive().size(), 20u);
}

TEST_F(ShmProcess, AKilledPeerIsFoundOutAndSwallowsFrames) {
  ShmEnd a(folder.path());
  Child child(peer([](Child& self, ShmEnd&, Qpn) { (void)self.hear(); }));
  const Path path = a.path_to(meet(child, a));
  child.kill_and_reap();
  while (a.send(path, 1, 4000)) {  // until the ring is full
  }
  EXPECT_FALSE(a.link().peer_stalled(path));
  turn(a, 1, 20'000'000);
  const auto errors = a.link().counters().tx_errors;
  EXPECT_TRUE(a.send(path, 1, 4000));
  EXPECT_EQ(a.link().counters().tx_errors, errors + 1);
  EXPECT_EQ(a.directory().slots().size(), 1u);
}

TEST_F(ShmProcess, APeerThatDoesNotReadIsStalledUntilItDoes) {
  ShmEnd a(folder.path());
  Child child(peer([](Child& self, ShmEnd& b, Qpn) {
    (void)self.hear();
    self.tell(b.receive().size());
    (void)self.hear();
  }));
  const Path path = a.path_to(meet(child, a));
  EXPECT_FALSE(a.link().peer_stalled(path));
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_TRUE(a.link().peer_stalled(path));
  child.tell(1);
  EXPECT_EQ(child.hear(), 1u);
  EXPECT_FALSE(a.link().peer_stalled(path));
}

TEST_F(ShmProcess, AStoppedPeerIsNotStalledAndCostsNothing) {
  ShmEnd a(folder.path());
  Child child(peer([](Child& self, ShmEnd&, Qpn) { (void)self.hear(); }));
  const Path path = a.path_to(meet(child, a));
  child.stop();
  EXPECT_TRUE(a.send(path, 1));
  EXPECT_FALSE(a.link().peer_stalled(path));
  const auto before = a.link().counters().wakeups_sent;
  turn(a, 1, 1'000'000'000);
  EXPECT_LE(a.link().counters().wakeups_sent - before, 30u);
  while (a.send(path, 1, 4000)) {
  }
  EXPECT_EQ(a.link().counters().tx_errors, 0u);
  child.signal(SIGCONT);
}

TEST_F(ShmProcess, AChildThatAbandonsDisturbsNothingAndMayStartAnew) {
  auto a = std::make_unique<ShmEnd>(folder.path());
  ShmEnd b(folder.path());
  const Path out = a->path_to(b.qpn()), back = b.path_to(a->qpn());
  Child child([&](Child& self) {
    a->link().abandon_in_child();
    a->directory().abandon_in_child();
    b.link().abandon_in_child();
    b.directory().abandon_in_child();
    a = nullptr;
    ShmEnd fresh(folder.path());
    self.tell(fresh.qpn().value);
    std::vector<std::uint32_t> got;
    while ((got = fresh.receive()).empty()) ::sched_yield();
    self.tell(got[0]);
  });
  const Path to_child = b.path_to(Qpn{static_cast<std::uint32_t>(child.hear())});
  EXPECT_TRUE(b.send(to_child, 77));
  EXPECT_EQ(child.hear(), 77u);
  child.reap();
  EXPECT_TRUE(a->send(out, 1));
  EXPECT_TRUE(b.send(back, 2));
  EXPECT_THAT(b.receive(), ElementsAre(1));
  EXPECT_THAT(a->receive(), ElementsAre(2));
  EXPECT_TRUE(b.directory().is_alive(a->directory().own_slot()));
}

TEST_F(ShmProcess, KilledAnywherePeersDisturbNobody) {
  ShmEnd a(folder.path()), b(folder.path());
  const Path a_to_b = a.path_to(b.qpn());
  for (std::uint32_t round = 0; round < 40; ++round) {
    Child child([&](Child& self) {
      self.tell(1);
      for (;;) {
        ShmEnd end(folder.path());
        const Path path = end.path_to(b.qpn());
        for (std::uint32_t i = 0; i < 10; ++i) (void)end.send(path, 1'000'000 + i);
      }
    });
    EXPECT_EQ(child.hear(), 1u);
    // A random moment is what is tried, so here time is right.
    const auto end = steady_clock::now() + microseconds(20 * round);
    while (steady_clock::now() < end) (void)b.receive();
    child.kill_and_reap();
    (void)b.receive();
    ASSERT_TRUE(a.send(a_to_b, round));
    ASSERT_THAT(b.receive(), ElementsAre(round));
    b.link().on_turn({round + 1});
  }
  EXPECT_EQ(b.link().counters().rx_not_roce, 0u);
  a.directory().sweep();
  EXPECT_EQ(a.directory().slots().size(), 2u);
}

}  // namespace
}  // namespace uroce::datapath
