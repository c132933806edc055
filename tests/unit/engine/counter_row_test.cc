// SPDX-License-Identifier: BSD-2-Clause
// Rows of counters that processes share with their host: what they were never becomes less.
#include "engine/counter_row.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <vector>

#include "support/child.h"
#include "support/temporary_folder.h"

namespace uroce::engine {
namespace {

class Rows : public testing::Test {
 protected:
  std::unique_ptr<CounterRow> open(std::uint32_t row) const {
    auto opened = CounterRow::open(file(), row);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  std::string file() const { return folder_.path() + "/counters"; }

  // As everybody else sees them.
  std::uint64_t timeouts(std::uint32_t row) const {
    std::ifstream stream(file(), std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(row * kCounterRowBytes +
                                             offsetof(PortCounters, transport) +
                                             offsetof(TransportCounters, timeouts)));
    std::uint64_t count = 0;
    stream.read(reinterpret_cast<char*>(&count), sizeof count);
    return stream ? count : ~std::uint64_t{0};
  }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(Rows, ShowWhatIsCountedAtOnce) {
  const auto row = open(0);
  EXPECT_EQ(timeouts(0), 0U);
  ++row->counters().transport.timeouts;
  EXPECT_EQ(timeouts(0), 1U);
}

TEST_F(Rows, OfSeveralEnginesAreApart) {
  const auto first = open(2);
  const auto second = open(3);
  const auto far = open(4095);
  first->counters().transport.timeouts = 5;
  second->counters().transport.timeouts = 6;
  far->counters().transport.timeouts = 7;
  EXPECT_EQ(timeouts(1), 0U);
  EXPECT_EQ(timeouts(2), 5U);
  EXPECT_EQ(timeouts(3), 6U);
  EXPECT_EQ(timeouts(4095), 7U);
}

TEST_F(Rows, AreCountedOnByWhoeverComesNext) {
  open(1)->counters().transport.timeouts = 5;
  const auto next = open(1);
  EXPECT_EQ(next->before().transport.timeouts, 5U);
  next->counters().transport.timeouts += 2;
  EXPECT_EQ(timeouts(1), 7U);
  EXPECT_EQ(difference(next->counters(), next->before()).transport.timeouts, 2U);
}

TEST_F(Rows, LoseNothingWhenTheirProcessIsKilled) {
  test::Child child([this](test::Child& self) {
    const auto row = open(0);
    ++row->counters().transport.timeouts;
    self.tell(0);
    static_cast<void>(self.hear());
  });
  ASSERT_EQ(child.hear(), 0U);
  child.kill_and_reap();
  EXPECT_EQ(timeouts(0), 1U);
}

TEST_F(Rows, HaveNothingOfWhatAForkedChildDoesToThem) {
  const auto row = open(0);
  row->counters().transport.timeouts = 5;
  test::Child child([&row](test::Child& self) {
    row->abandon_in_child();
    self.tell(++row->counters().transport.timeouts);
  });
  EXPECT_NE(child.hear(), test::Child::kGone);
  ++row->counters().transport.timeouts;
  EXPECT_EQ(timeouts(0), 6U);
}

// Else the first count would end the program with SIGBUS.
TEST_F(Rows, AreRefusedWhereThereIsNoRoom) {
  test::Child child([this](test::Child& self) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit room{.rlim_cur = 3 * kCounterRowBytes, .rlim_max = 3 * kCounterRowBytes};
    setrlimit(RLIMIT_FSIZE, &room);
    const bool fits = static_cast<bool>(CounterRow::open(file(), 2));
    const auto refused = CounterRow::open(file(), 3);
    self.tell(fits && !refused && refused.error().code == EFBIG ? 0 : 1);
  });
  EXPECT_EQ(child.hear(), 0U);
}

}  // namespace
}  // namespace uroce::engine
