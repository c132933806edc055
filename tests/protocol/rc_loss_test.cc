// SPDX-License-Identifier: BSD-2-Clause
// Small scope, exhaustively: for each operation of three packets, every mask of lost or duplicated
// packets among the first of the exchange. Large scope, at random: a mixed workload under loss.
#include <random>

#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;

constexpr std::uint32_t kBytes = 3 * 1024 - 5;
constexpr unsigned kMaskBits = 11;

enum class Mode { kLose, kDuplicate };

class RcMasks : public ::testing::TestWithParam<std::tuple<SendOperation, Mode>> {
 protected:
  static void post(Pair& pair, SendOperation operation) {
    SendRequest request{.operation = operation,
                        .sges = {pair.a.sge(0, is_atomic(operation) ? 8 : kBytes)},
                        .remote_address = pair.b.address(0),
                        .rkey = {Endpoint::kKey}};
    if (is_atomic(operation)) request.compare_add = 1;
    pair.a.post_send(pair.qp_a, request);
  }
};

TEST_P(RcMasks, EveryMaskCompletesOnce) {
  const auto [operation, mode] = GetParam();
  for (unsigned mask = 0; mask < 1U << kMaskBits; ++mask) {
    QpOptions options;
    options.retry_count = 7;
    Pair pair(wire_link(), options, 8192, Psn(0xff'fffe));
    Endpoint& source = operation == SendOperation::kRead ? pair.b : pair.a;
    for (std::size_t i = 0; i < kBytes; ++i) source.buffer[i] = std::byte(i * 13 + 1);
    if (is_atomic(operation)) std::memset(pair.b.buffer.data(), 0, 8);
    pair.b.post_receive(pair.qp_b, 1, {pair.b.sge(0, kBytes)});
    post(pair, operation);
    const int hit = mode == Mode::kLose ? 0 : 2;
    ASSERT_TRUE(pair.run([mask = mask, hit](unsigned i, const Packet&) {
      return i < kMaskBits && (mask >> i & 1) != 0 ? hit : 1;
    })) << "mask "
        << mask;
    const auto completions = pair.a.poll_all();
    ASSERT_EQ(completions.size(), 1U) << "mask " << mask;
    // As many time-outs as there are mask bits would be too many for retry_cnt 7.
    if (completions[0].status == WcStatus::kRetryExceeded) {
      ASSERT_GE(std::popcount(mask), 8) << "mask " << mask;
      continue;
    }
    ASSERT_EQ(completions[0].status, WcStatus::kSuccess) << "mask " << mask;
    if (is_atomic(operation)) {
      std::uint64_t value = 0;
      std::memcpy(&value, pair.b.buffer.data(), 8);
      ASSERT_EQ(value, 1U) << "mask " << mask << ": not exactly once";
    } else {
      ASSERT_EQ(0, std::memcmp(pair.a.buffer.data(), pair.b.buffer.data(), kBytes))
          << "mask " << mask;
    }
    const bool takes_receive =
        operation == SendOperation::kSend || operation == SendOperation::kWriteWithImmediate;
    ASSERT_EQ(pair.b.poll_all().size(), takes_receive ? 1U : 0U) << "mask " << mask;
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<SendOperation, Mode>>& test) {
  constexpr const char* kNames[] = {"Send", "SendImmediate", "Write",   "WriteImmediate",
                                    "Read", "CompareSwap",   "FetchAdd"};
  const auto [operation, mode] = test.param;
  return std::string(kNames[static_cast<int>(operation)]) +
         (mode == Mode::kLose ? "Lost" : "Duplicated");
}
INSTANTIATE_TEST_SUITE_P(
    All, RcMasks,
    ::testing::Combine(::testing::Values(SendOperation::kSend, SendOperation::kWrite,
                                         SendOperation::kWriteWithImmediate, SendOperation::kRead,
                                         SendOperation::kFetchAdd),
                       ::testing::Values(Mode::kLose, Mode::kDuplicate)),
    name_of);

// SENDs, WRITEs, READs and fetch-and-adds of random sizes under random loss and duplication: each
// takes effect once and in order.
TEST(RcSoak, MixedWorkloadUnderLoss) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    const auto random = [&engine] { return static_cast<unsigned>(engine()); };
    QpOptions options;
    options.path_mtu = std::uint16_t(256U << random() % 4);
    const LinkFacts facts = seed % 2 == 0 ? wire_link() : windowed_link();
    Pair pair(facts, options, 1 << 16, Psn(0xff'ff00));
    std::uint64_t adds = 0;
    std::uint64_t sends = 0;
    constexpr std::size_t kCounter = 60'000;
    const unsigned lost_percent = random() % 6;
    std::mt19937 fate(seed + 1000);
    for (int round = 0; round < 20; ++round) {
      const unsigned count = 1 + random() % 32;
      for (unsigned i = 0; i < count; ++i) {
        const auto bytes = static_cast<std::uint32_t>(random() % 6000);
        SendRequest request{.wr_id = i,
                            .sges = {pair.a.sge(random() % 8000, bytes)},
                            .remote_address = pair.b.address(30'000 + random() % 8000),
                            .rkey = {Endpoint::kKey}};
        switch (random() % 4) {
          case 0:
            request.operation = SendOperation::kSend;
            pair.b.post_receive(pair.qp_b, sends++, {pair.b.sge(10'000, 8192)});
            break;
          case 1:
            request.operation = SendOperation::kWrite;
            break;
          case 2:
            request.operation = SendOperation::kRead;
            request.sges = {pair.a.sge(20'000, bytes)};
            break;
          default:
            request.operation = SendOperation::kFetchAdd;
            request.sges = {pair.a.sge(50'000, 8)};
            request.remote_address = pair.b.address(kCounter);
            request.compare_add = 1;
            ++adds;
        }
        pair.a.post_send(pair.qp_a, request);
      }
      ASSERT_TRUE(pair.run([&](unsigned, const Packet&) {
        const auto draw = static_cast<unsigned>(fate() % 100);
        return draw < lost_percent ? 0 : draw < lost_percent + 3 ? 2 : 1;
      }));
      const auto completions = pair.a.poll_all();
      ASSERT_EQ(completions.size(), count);
      for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(completions[i].status, WcStatus::kSuccess);
        ASSERT_EQ(completions[i].wr_id, i);
      }
      std::uint64_t received = sends - pair.b.poll_all().size();
      sends = 0;
      ASSERT_EQ(received, 0U);
    }
    std::uint64_t counter = 0;
    std::memcpy(&counter, pair.b.buffer.data() + kCounter, 8);
    EXPECT_EQ(counter, adds);
  }
}

}  // namespace
}  // namespace uroce::test
