// SPDX-License-Identifier: BSD-2-Clause
// The ledger of messages that may be lost sees what is wrong, one wrong at a time.
#include "sim/ledger.h"

#include <gtest/gtest.h>

namespace uroce::sim {
namespace {

using namespace transport;

constexpr std::uint32_t kReceiver = 3;

class LedgerTest : public testing::Test {
 protected:
  explicit LedgerTest(NetworkRules rules = {.repeats = false, .keeps_order = true})
      : ledger(oracle, 1, rules) {}

  void post(Parcel parcel = {.length = 16, .receiver = kReceiver, .is_signaled = true}) {
    parcel.wr_id = ledger.next_number();
    ledger.post(parcel);
  }
  void arrive(std::uint32_t number, std::uint32_t length = 16, std::uint32_t receiver = kReceiver) {
    std::vector<std::byte> data(length);
    ledger.write(number, data);
    ledger.on_received(receiver, {.length = length, .data = data}, seen);
  }
  void complete(std::uint64_t wr_id, WcStatus status = WcStatus::kSuccess, std::uint32_t slots = 1,
                bool may_flush = false) {
    Cqe entry;
    entry.wr_id = wr_id;
    entry.status = status;
    entry.opcode = WcOpcode::kSend;
    entry.release_count = slots;
    ledger.on_sent(entry, may_flush);
  }
  [[nodiscard]] bool is_violated() const { return oracle.is_violated(); }

  World world{4096};
  Oracle oracle{world};
  Ledger ledger;
  Ledger::Seen seen;
};

TEST_F(LedgerTest, MessagesMayBeLost) {
  for (int i = 0; i < 4; ++i) post();
  arrive(0);
  arrive(3);
  EXPECT_FALSE(is_violated());
}

TEST_F(LedgerTest, NoneArrivesTwice) {
  post();
  arrive(0);
  arrive(0);
  EXPECT_TRUE(is_violated());
}

struct RepeatingLedgerTest : LedgerTest {
  RepeatingLedgerTest() : LedgerTest({.repeats = true, .keeps_order = false}) {}
};

TEST_F(RepeatingLedgerTest, OneMayArriveTwiceAndNoMore) {
  post();
  arrive(0);
  arrive(0);
  EXPECT_FALSE(is_violated());
  arrive(0);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, NoneOvertakesAnother) {
  post();
  post();
  arrive(1);
  arrive(0);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, NoneArrivesCut) {
  post();
  arrive(0, 12);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, NoneArrivesChanged) {
  post();
  std::vector<std::byte> data(16);
  ledger.write(0, data);
  data[9] ^= std::byte{1};
  ledger.on_received(kReceiver, {.length = 16, .data = data}, seen);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, NoneArrivesThatWasNotSent) {
  post();
  arrive(1);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, NoneArrivesWhereItWasNotSentTo) {
  post();
  arrive(0, 16, kReceiver + 1);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, NoneArrivesWithAWrongKey) {
  post({.length = 16, .receiver = kReceiver, .is_signaled = true, .is_refused = true});
  arrive(0);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, RequestsSucceedInTheirOrder) {
  post();
  post();
  complete(1);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, RequestsDoNotFail) {
  post();
  complete(0, WcStatus::kRetryExceeded);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, ACompletionGivesBackWhatItCovers) {
  post({.length = 16, .receiver = kReceiver});
  post();
  complete(1, WcStatus::kSuccess, 1);
  EXPECT_TRUE(is_violated());
}

// An unsignalled one before the first that is flushed has succeeded.
TEST_F(LedgerTest, InErrorTheRestIsFlushed) {
  post({.length = 16, .receiver = kReceiver});
  for (int i = 0; i < 3; ++i) post();
  complete(1, WcStatus::kFlushed, 2, true);
  complete(2, WcStatus::kFlushed, 1, true);
  EXPECT_FALSE(is_violated());
  complete(3);
  EXPECT_TRUE(is_violated());
}

TEST_F(LedgerTest, KnowsWhatItHasWritten) {
  constexpr std::uint32_t kPlace = 100;
  post({.operation = SendOperation::kWrite, .length = 16, .receiver = kReceiver, .place = kPlace});
  const std::vector<std::byte> before(200);
  std::vector<std::byte> memory = before;
  ledger.write(0, Bytes(memory).subspan(kPlace, 16));
  memory[kPlace + 7] ^= std::byte{1};   // not what was sent
  memory[kPlace + 16] ^= std::byte{1};  // behind it
  std::vector<std::byte> expected = before;
  ledger.accept_writes(kReceiver + 1, memory, expected);
  EXPECT_EQ(expected, before);
  ledger.accept_writes(kReceiver, memory, expected);
  memory[kPlace + 7] = memory[kPlace + 16] = std::byte{0};
  EXPECT_EQ(expected, memory);
}

}  // namespace
}  // namespace uroce::sim
