// SPDX-License-Identifier: BSD-2-Clause
// Every operation, size, path MTU and kind of link, without loss: the bytes arrive and nothing
// else.
#include "protocol/fixture.h"

namespace uroce::test {
namespace {

using namespace transport;

constexpr std::size_t kBuffer = 1 << 17;
constexpr std::size_t kOffset = 64;  // guard bytes before and after

struct Case {
  const char* link;
  std::uint16_t path_mtu;
  std::uint32_t bytes;
};

LinkFacts facts_of(const char* link) {
  if (link[0] == 'm') return memory_link();
  return link[0] == 'n' ? windowed_link() : wire_link();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* link : {"wire", "narrow", "memory"}) {
    for (std::uint32_t mtu : {256U, 512U, 1024U, 2048U, 4096U}) {
      for (std::uint32_t bytes : {0U, 1U, mtu - 1, mtu, mtu + 1, 2 * mtu + 1, 100'000U}) {
        all.push_back({link, static_cast<std::uint16_t>(mtu), bytes});
      }
    }
  }
  return all;
}

class RcData : public ::testing::TestWithParam<Case> {
 protected:
  RcData() : pair(facts_of(GetParam().link), options(), kBuffer, Psn(0xff'fff0)) {
    for (std::size_t i = 0; i < kBuffer; ++i) pair.a.buffer[i] = std::byte(i * 7 + i / 251);
  }
  static QpOptions options() {
    QpOptions options;
    options.path_mtu = GetParam().path_mtu;
    return options;
  }
  void expect_copied(const Endpoint& from, const Endpoint& to) const {
    const std::uint32_t bytes = GetParam().bytes;
    EXPECT_EQ(0, std::memcmp(to.buffer.data() + kOffset, from.buffer.data() + kOffset, bytes));
    for (std::size_t i : {kOffset - 1, kOffset + bytes}) {
      EXPECT_EQ(to.buffer[i], std::byte{0}) << "beside the target, at " << i;
    }
  }
  Pair pair;
};

TEST_P(RcData, WriteArrives) {
  const std::uint32_t bytes = GetParam().bytes;
  pair.a.post_send(pair.qp_a, {.operation = SendOperation::kWrite,
                               .wr_id = 9,
                               .sges = {pair.a.sge(kOffset, bytes)},
                               .remote_address = pair.b.address(kOffset),
                               .rkey = {Endpoint::kKey}});
  ASSERT_TRUE(pair.run());
  const auto entry = pair.a.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->status, WcStatus::kSuccess);
  EXPECT_EQ(entry->opcode, WcOpcode::kRdmaWrite);
  EXPECT_EQ(entry->wr_id, 9U);
  expect_copied(pair.a, pair.b);
  EXPECT_FALSE(pair.b.poll());
}

TEST_P(RcData, WriteWithImmediateCompletesAReceive) {
  const std::uint32_t bytes = GetParam().bytes;
  pair.b.post_receive(pair.qp_b, 5, {});
  pair.a.post_send(pair.qp_a, {.operation = SendOperation::kWriteWithImmediate,
                               .sges = {pair.a.sge(kOffset, bytes)},
                               .remote_address = pair.b.address(kOffset),
                               .rkey = {Endpoint::kKey},
                               .immediate = 0x01020304});
  ASSERT_TRUE(pair.run());
  const auto entry = pair.b.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->opcode, WcOpcode::kReceiveRdmaWithImmediate);
  EXPECT_EQ(entry->byte_count, bytes);
  EXPECT_EQ(entry->immediate, 0x01020304U);
  EXPECT_EQ(entry->flags, wc_flag::kWithImmediate);
  expect_copied(pair.a, pair.b);
}

TEST_P(RcData, SendFillsScatteredReceive) {
  const std::uint32_t bytes = GetParam().bytes;
  const std::uint32_t first = bytes / 3;
  pair.b.post_receive(pair.qp_b, 5,
                      {pair.b.sge(kOffset, first), pair.b.sge(kOffset + first, bytes - first)});
  pair.a.post_send(pair.qp_a, {.operation = SendOperation::kSendWithImmediate,
                               .sges = {pair.a.sge(kOffset, bytes / 2),
                                        pair.a.sge(kOffset + bytes / 2, bytes - bytes / 2)},
                               .immediate = 77});
  ASSERT_TRUE(pair.run());
  const auto entry = pair.b.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->status, WcStatus::kSuccess);
  EXPECT_EQ(entry->opcode, WcOpcode::kReceive);
  EXPECT_EQ(entry->byte_count, bytes);
  EXPECT_EQ(entry->immediate, 77U);
  expect_copied(pair.a, pair.b);
}

TEST_P(RcData, ReadFetches) {
  const std::uint32_t bytes = GetParam().bytes;
  pair.b.post_send(pair.qp_b, {.operation = SendOperation::kRead,
                               .wr_id = 3,
                               .sges = {pair.b.sge(kOffset, bytes)},
                               .remote_address = pair.a.address(kOffset),
                               .rkey = {Endpoint::kKey}});
  ASSERT_TRUE(pair.run());
  const auto entry = pair.b.poll();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->status, WcStatus::kSuccess);
  EXPECT_EQ(entry->opcode, WcOpcode::kRdmaRead);
  EXPECT_EQ(entry->byte_count, bytes);
  expect_copied(pair.a, pair.b);
}

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  return std::string(test.param.link) + "_mtu" + std::to_string(test.param.path_mtu) + "_bytes" +
         std::to_string(test.param.bytes);
}
INSTANTIATE_TEST_SUITE_P(All, RcData, ::testing::ValuesIn(cases()), name_of);

TEST(RcInline, DataIsTakenWhenPosted) {
  Pair pair(wire_link(), {}, 4096);
  std::vector<std::byte> data(33, std::byte{0x5a});
  pair.a.post_send(pair.qp_a, {.operation = SendOperation::kWrite,
                               .inline_data = data,
                               .remote_address = pair.b.address(8),
                               .rkey = {Endpoint::kKey}});
  ASSERT_TRUE(pair.run());
  EXPECT_EQ(0, std::memcmp(pair.b.buffer.data() + 8, data.data(), data.size()));
}

// IBTA C9-88: zero bytes need no key.
TEST(RcZeroLength, ReadAndWriteIgnoreTheKey) {
  Pair pair(wire_link(), {}, 4096);
  for (auto operation : {SendOperation::kWrite, SendOperation::kRead}) {
    pair.a.post_send(pair.qp_a, {.operation = operation, .rkey = {0xdeadbeef}});
    ASSERT_TRUE(pair.run());
    EXPECT_EQ(pair.a.poll()->status, WcStatus::kSuccess);
  }
}

TEST(RcMessages, ManyStayInOrder) {
  for (const LinkFacts& facts : {wire_link(), windowed_link(), memory_link()}) {
    Pair pair(facts, {}, 1 << 16);
    for (std::uint64_t round = 0; round < 10; ++round) {
      for (std::uint64_t i = 0; i < 64; ++i) {
        pair.b.post_receive(pair.qp_b, i, {pair.b.sge(i * 64, 64)});
        pair.a.post_send(pair.qp_a, {.wr_id = i, .sges = {pair.a.sge(i * 8, 8)}});
      }
      ASSERT_TRUE(pair.run());
      for (std::uint64_t i = 0; i < 64; ++i) {
        EXPECT_EQ(pair.a.poll()->wr_id, i);
        EXPECT_EQ(pair.b.poll()->wr_id, i);
      }
    }
    EXPECT_EQ(pair.a.hca.counters().timeouts, 0U);
    EXPECT_EQ(pair.b.hca.counters().duplicate_requests, 0U);
  }
}

}  // namespace
}  // namespace uroce::test
