// SPDX-License-Identifier: BSD-2-Clause
// The steering program, run by a small interpreter of the instructions it uses.
#include "datapath/udp/steering.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>

#include "datapath/udp/control.h"
#include "posix/descriptor.h"

namespace uroce::datapath::udp {
namespace {

constexpr std::uint32_t kByHash = 0xffff'ffff;

using PacketBytes = std::array<std::uint8_t, 12>;

// The answer, or nothing where the kernel would refuse the program.
std::optional<std::uint32_t> run(const std::vector<sock_filter>& program,
                                 const PacketBytes& packet) {
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < program.size();) {
    const sock_filter& i = program[at++];
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
  PacketBytes packet{};
  packet[0] = 0x0a;
  packet[5] = static_cast<std::uint8_t>(block >> 8);
  packet[6] = static_cast<std::uint8_t>(block);
  packet[7] = 0x42;
  return packet;
}

// Every block, against the list itself.
void expect_steers(const std::vector<OwnedBlock>& blocks, std::size_t limit, bool all_fit) {
  const auto program = build_steering_program(blocks, limit);
  EXPECT_LE(program.size(), limit);
  std::vector<std::uint32_t> expected(1 << 16, kByHash);
  for (const OwnedBlock& owned : blocks) expected[owned.block] = owned.member;
  std::size_t unlike = 0;
  for (std::uint32_t block = 0; block < expected.size(); ++block) {
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

TEST(Steering, FirstAndLastBlock) { expect_steers({{0, 3}, {0xffff, 4}}, BPF_MAXINSNS, true); }

TEST(Steering, NeighboursOfOneOwnerCostNoMoreThanOne) {
  std::vector<OwnedBlock> blocks;
  for (unsigned i = 10; i < 20'000; ++i) blocks.push_back({static_cast<std::uint16_t>(i), 7});
  expect_steers(blocks, BPF_MAXINSNS, true);
  EXPECT_LT(build_steering_program(blocks, BPF_MAXINSNS).size(), 16u);
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
