// SPDX-License-Identifier: BSD-2-Clause
// The steering program, run by a small interpreter of the instructions it uses.
#include "datapath/udp/steering.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <vector>

#include "datapath/udp/control.h"
#include "posix/descriptor.h"

namespace uroce::datapath::udp {
namespace {

constexpr std::uint32_t kByHash = 0xffff'ffff;

using PacketBytes = std::vector<std::uint8_t>;

// The answer, or nothing where the kernel would refuse the program. A load behind the end of the
// packet ends it with 0, as in the kernel.
std::optional<std::uint32_t> run(const std::vector<sock_filter>& program,
                                 const PacketBytes& packet) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < program.size();) {
    const sock_filter& i = program[at++];
    const bool is_load = BPF_CLASS(i.code) == BPF_LD;
    if (is_load && i.k + (BPF_SIZE(i.code) == BPF_H ? 2 : 1) > packet.size()) return 0;
    switch (i.code) {
      case BPF_LD | BPF_B | BPF_ABS:
        accumulator = packet[i.k];
        break;
      case BPF_LD | BPF_H | BPF_ABS:
        accumulator = static_cast<std::uint32_t>(packet[i.k] << 8 | packet[i.k + 1]);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += accumulator == i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += accumulator >= i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JA:
        at += i.k;
        break;
      case BPF_RET | BPF_K:
        return i.k;
      case BPF_RET | BPF_A:
        return accumulator;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

PacketBytes packet_to(std::uint32_t block) {
  PacketBytes packet(12);
  packet[0] = 0x0a;
  packet[5] = static_cast<std::uint8_t>(block >> 8);
  packet[6] = static_cast<std::uint8_t>(block);
  packet[7] = 0x42;
  return packet;
}

// Every block but QP1's, against the list itself.
void expect_steers(const std::vector<OwnedBlock>& blocks, std::size_t limit, bool all_fit) {
  const auto program = build_steering_program(blocks, limit);
  EXPECT_LE(program.size(), limit);
  std::vector<std::uint32_t> expected(1 << 16, kByHash);
  for (const OwnedBlock& owned : blocks) expected[owned.block] = owned.member;
  std::size_t unlike = 0;
  for (std::uint32_t block = 1; block < expected.size(); ++block) {
    const auto answer = run(program, packet_to(block));
    ASSERT_TRUE(answer.has_value());
    if (*answer == expected[block]) continue;
    ++unlike;
    ASSERT_EQ(*answer, kByHash) << "block " << block << " goes to a wrong member";
  }
  EXPECT_EQ(unlike == 0, all_fit);
}

TEST(Steering, NobodyOwnsAnything) { expect_steers({}, BPF_MAXINSNS, true); }

TEST(Steering, TwoMembersWithABlockEach) { expect_steers({{1, 0}, {2, 1}}, BPF_MAXINSNS, true); }

TEST(Steering, FirstAndLastBlock) { expect_steers({{1, 3}, {0xffff, 4}}, BPF_MAXINSNS, true); }

TEST(Steering, NeighboursOfOneOwnerCostNoMoreThanOne) {
  std::vector<OwnedBlock> blocks;
  for (unsigned i = 10; i < 20'000; ++i) blocks.push_back({static_cast<std::uint16_t>(i), 7});
  expect_steers(blocks, BPF_MAXINSNS, true);
  EXPECT_LT(build_steering_program(blocks, BPF_MAXINSNS).size(), 16u + 9u);
}

// Subtrees longer than a conditional jump reaches.
TEST(Steering, HundredsOfScatteredBlocks) {
  std::vector<OwnedBlock> blocks;
  for (unsigned i = 0; i < 600; ++i) {
    blocks.push_back({static_cast<std::uint16_t>(3 + i * 97), static_cast<std::uint16_t>(i % 16)});
  }
  expect_steers(blocks, BPF_MAXINSNS, true);
}

TEST(Steering, WhatDoesNotFitIsLeftToTheHash) {
  std::vector<OwnedBlock> blocks;
  for (unsigned i = 0; i < 5'000; ++i) {
    blocks.push_back({static_cast<std::uint16_t>(i * 3), static_cast<std::uint16_t>(i % 5)});
  }
  expect_steers(blocks, BPF_MAXINSNS, false);
  expect_steers(blocks, 64, false);
}

TEST(Steering, ControlDatagramsNameTheirMember) {
  const auto program = build_steering_program(std::vector<OwnedBlock>{{1, 0}}, BPF_MAXINSNS);
  PacketBytes packet = packet_to(1);
  packet[0] = kControlOpcode;
  packet[2] = 0x01;
  packet[3] = 0x02;
  EXPECT_EQ(run(program, packet), 0x0102u);
}

// --- QP1
// ------------------------------------------------------------------------------------------

constexpr std::uint16_t kOwnBlock = 0x0123, kOtherBlock = 0x4567;

// A whole message to QP1, whose first identifier is of the one block and second of the other.
PacketBytes message(unsigned attribute, std::uint16_t first, std::uint16_t second) {
  PacketBytes packet(20 + 256);
  const auto put = [&packet](std::size_t at, unsigned value) {
    packet[at] = static_cast<std::uint8_t>(value >> 8);
    packet[at + 1] = static_cast<std::uint8_t>(value);
  };
  packet[0] = 0x64;
  packet[7] = 1;
  put(20 + 16, attribute);
  put(20 + 24, first);
  put(20 + 28, second);
  return packet;
}

std::vector<sock_filter> program_of_two() {
  return build_steering_program(std::vector<OwnedBlock>{{kOwnBlock, 6}, {kOtherBlock, 9}},
                                BPF_MAXINSNS);
}

TEST(Steering, MessagesToQp1GoByTheBlockOfTheirReceiversIdentifier) {
  const auto program = program_of_two();
  for (unsigned attribute = 0; attribute < 0x1'0000; ++attribute) {
    if (attribute == 0x10 || attribute == 0x17 || attribute == 0x18) continue;
    EXPECT_EQ(run(program, message(attribute, kOtherBlock, kOwnBlock)), 6U);
    EXPECT_EQ(run(program, message(attribute, kOwnBlock, kOtherBlock)), 9U);
    EXPECT_EQ(run(program, message(attribute, kOwnBlock, 0x7777)), kByHash);
  }
}

TEST(Steering, AServiceIdentifierReplyGoesByTheBlockOfItsRequest) {
  const auto program = program_of_two();
  EXPECT_EQ(run(program, message(0x18, kOwnBlock, kOtherBlock)), 6U);
  EXPECT_EQ(run(program, message(0x18, kOtherBlock, kOwnBlock)), 9U);
  EXPECT_EQ(run(program, message(0x18, 0x7777, kOwnBlock)), kByHash);
}

// Whose the service is, the program does not know.
TEST(Steering, RequestsGoByHash) {
  const auto program = program_of_two();
  for (const unsigned attribute : {0x10U, 0x17U}) {
    EXPECT_EQ(run(program, message(attribute, kOwnBlock, kOwnBlock)), kByHash);
  }
}

TEST(Steering, WhatIsTooShortToTellGoesToTheFirst) {
  const auto program = program_of_two();
  const PacketBytes whole = message(0x14, kOtherBlock, kOtherBlock);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const PacketBytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(run(program, part), bytes < 20 + 30 ? 0U : 9U) << bytes;
  }
}

TEST(Steering, TheKernelTakesEvenTheLongestProgram) {
  std::vector<OwnedBlock> blocks;
  for (unsigned i = 0; i < 5'000; ++i) blocks.push_back({static_cast<std::uint16_t>(i * 3), 1});
  const posix::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ASSERT_EQ(setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
  EXPECT_EQ(attach_steering_program(socket.get(), blocks), 0);
}

}  // namespace
}  // namespace uroce::datapath::udp
