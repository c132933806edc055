// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/steering.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "datapath/udp/control.h"
#include "wire/management.h"

namespace uroce::datapath::udp {
namespace {

constexpr std::uint32_t kChooseByHash = 0xffff'ffff;
constexpr std::uint32_t kOffsetOfBlock = 5;
constexpr std::uint32_t kManagementBlock = 0;
constexpr std::uint32_t kJumpMax = 255;  // of a conditional jump

// From `first_block` up to the next range's.
struct Range {
  std::uint32_t first_block;
  std::uint32_t answer;
};

constexpr sock_filter statement(int code, std::uint32_t k) {
  return {static_cast<std::uint16_t>(code), 0, 0, k};
}
constexpr sock_filter jump(int code, std::uint32_t k, std::uint32_t if_true, std::uint32_t if_not) {
  return {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
          static_cast<std::uint8_t>(if_not), k};
}

// Covers every block; stops at `ranges_max`, leaving the rest to the hash.
std::vector<Range> merge_into_ranges(std::span<const OwnedBlock> blocks, std::size_t ranges_max) {
  std::vector<Range> ranges = {{0, kChooseByHash}};
  const auto start = [&ranges](std::uint32_t block, std::uint32_t answer) {
    if (ranges.back().first_block == block) ranges.pop_back();
    if (ranges.empty() || ranges.back().answer != answer) ranges.push_back({block, answer});
  };
  for (std::size_t i = 0; i < blocks.size() && ranges.size() + 2 <= ranges_max; ++i) {
    start(blocks[i].block, blocks[i].member);
    start(blocks[i].block + 1U, kChooseByHash);
  }
  return ranges;
}

// Appends the search over `ranges`; the accumulator holds the block.
void append_search(std::vector<sock_filter>& program, std::span<const Range> ranges) {
  if (ranges.size() == 1) {
    program.push_back(statement(BPF_RET | BPF_K, ranges[0].answer));
    return;
  }
  const std::size_t middle = ranges.size() / 2;
  const std::size_t branch = program.size();
  const std::uint32_t boundary = ranges[middle].first_block;
  program.push_back({});
  append_search(program, ranges.first(middle));
  const auto lower = static_cast<std::uint32_t>(program.size() - branch - 1);
  if (lower <= kJumpMax) {
    program[branch] = jump(BPF_JMP | BPF_JGE | BPF_K, boundary, lower, 0);
  } else {
    program[branch] = jump(BPF_JMP | BPF_JGE | BPF_K, boundary, 0, 1);
    program.insert(program.begin() + static_cast<std::ptrdiff_t>(branch) + 1,
                   statement(BPF_JMP | BPF_JA, lower));
  }
  append_search(program, ranges.subspan(middle));
}

}  // namespace

std::vector<sock_filter> build_steering_program(std::span<const OwnedBlock> blocks,
                                                std::size_t instructions_max) {
  // A load behind the end of a datagram ends the program with 0: whoever is first gets what is too
  // short for anybody.
  std::vector<sock_filter> program = {
      statement(BPF_LD | BPF_B | BPF_ABS, 0),
      jump(BPF_JMP | BPF_JEQ | BPF_K, kControlOpcode, 0, 2),
      statement(BPF_LD | BPF_H | BPF_ABS, kOffsetOfControlMember),
      statement(BPF_RET | BPF_A, 0),
      statement(BPF_LD | BPF_H | BPF_ABS, kOffsetOfBlock),
      jump(BPF_JMP | BPF_JEQ | BPF_K, kManagementBlock, 0, 8),
      statement(BPF_LD | BPF_H | BPF_ABS, wire::kOffsetOfAttribute),
      jump(BPF_JMP | BPF_JEQ | BPF_K, wire::kConnectRequestAttribute, 1, 0),
      jump(BPF_JMP | BPF_JEQ | BPF_K, wire::kSidrRequestAttribute, 0, 1),
      statement(BPF_RET | BPF_K, kChooseByHash),
      jump(BPF_JMP | BPF_JEQ | BPF_K, wire::kSidrReplyAttribute, 0, 2),
      statement(BPF_LD | BPF_H | BPF_ABS, wire::kOffsetOfRequestIdentifier),
      statement(BPF_JMP | BPF_JA, 1),
      statement(BPF_LD | BPF_H | BPF_ABS, wire::kOffsetOfRemoteIdentifier),
  };
  // n ranges are n answers, n - 1 comparisons and at most as many far jumps.
  const std::size_t ranges_max = (instructions_max - program.size()) / 3;
  append_search(program, merge_into_ranges(blocks, ranges_max));
  return program;
}

int attach_steering_program(int socket, std::span<const OwnedBlock> blocks) {
  // The kernel bounds a program by instructions and, once translated, by net.core.optmem_max.
  for (std::size_t limit = BPF_MAXINSNS; limit >= 64; limit /= 2) {
    std::vector<sock_filter> program = build_steering_program(blocks, limit);
    sock_fprog attached;
    std::memset(&attached, 0, sizeof attached);  // its padding goes to the kernel, too
    attached.len = static_cast<unsigned short>(program.size());
    attached.filter = program.data();
    if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attached, sizeof attached) == 0) {
      return 0;
    }
    if (errno != ENOMEM) return errno;
  }
  return ENOMEM;
}

}  // namespace uroce::datapath::udp
