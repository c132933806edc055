// SPDX-License-Identifier: BSD-2-Clause
// How the directory file is laid out: what all engines of a network namespace share. A file of
// zeroes is a valid, empty table, so there is nothing to initialise and no moment at which a killed
// process could leave it half made.
//
// Every word is atomic, and every change is one store or one compare-and-swap that leaves the table
// valid; directory.cc says in which order.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "uroce/ids.h"

namespace uroce::datapath {

inline constexpr std::uint32_t kSlotCount = 4096;
inline constexpr std::uint32_t kBlockCount = (1u << 24) / kQpnsPerBlock;

// A slot's `generation` while its blocks are being freed: matches no handle any more.
inline constexpr std::uint64_t kRetiredBit = std::uint64_t{1} << 63;

// The facts of a slot are written before its generation is published and never change after.
struct SlotFacts {
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint64_t start_time = 0;  // of the process, field 22 of /proc/PID/stat
  std::array<char, 16> program{};
  std::array<char, 64> device{};
};
inline constexpr std::size_t kFactWords = sizeof(SlotFacts) / sizeof(std::uint64_t);
static_assert(sizeof(SlotFacts) % sizeof(std::uint64_t) == 0);

// What others write to an engine. Read at every poll, written seldom: a line of its own.
struct alignas(64) Mailbox {
  // generation * 2 + (asleep ? 1 : 0). The generation is in it, so that a sender that was stopped
  // for an hour cannot take away the wake-up of the slot's next user.
  std::atomic<std::uint64_t> sleep;
  // Raised by whoever has put something into the engine's control socket.
  std::atomic<std::uint32_t> bell;
  // The engine cannot force a barrier on its senders, so they must make one themselves.
  std::atomic<std::uint32_t> senders_must_fence;
  // Counts the turns of its application, twice each, so that others see whether that polls; odd: it
  // may wait to be told of a completion. Written at every poll, read seldom: again a line of its
  // own.
  alignas(64) std::atomic<std::uint64_t> application_turns;
};

struct alignas(64) Slot {
  std::atomic<std::uint64_t> generation;  // 0: vacant
  std::atomic<std::uint64_t> udp_order;   // 0: not in the reuseport group
  std::array<std::atomic<std::uint64_t>, kFactWords> facts;
  Mailbox mailbox;
};

// A word of the block table: the low 16 bits are slot + 1 and the rest its generation; or the low
// 16 bits are 0 (free) and the rest says when the block was given back, 0 for never used.
struct BlockWord {
  std::uint64_t value = 0;

  static constexpr BlockWord owned(std::uint32_t slot, std::uint64_t generation) {
    return {generation << 16 | (slot + 1)};
  }
  static constexpr BlockWord freed(std::uint64_t when) { return {when << 16}; }
  [[nodiscard]] constexpr bool is_free() const { return (value & 0xffff) == 0; }
  [[nodiscard]] constexpr std::uint32_t slot() const {
    return static_cast<std::uint32_t>(value & 0xffff) - 1;
  }
  [[nodiscard]] constexpr std::uint64_t stamp() const { return value >> 16; }
};

// A service of the communication manager: who listens, or holds the port. Its facts are written
// before its owner is published, and the owner is cleared before they change.
struct Service {
  std::atomic<std::uint64_t> owner;  // as in a BlockWord; 0: vacant
  std::atomic<std::uint64_t> id;
  std::array<std::atomic<std::uint64_t>, 2> address;
  std::atomic<std::uint64_t> family_and_flags;  // Family: 8 bits, shares: bit 8, listens: bit 9
  std::atomic<std::uint64_t> block;             // of QPNs, its owner's
};
inline constexpr std::uint32_t kServiceCount = 1024;

struct Table {
  std::atomic<std::uint64_t> format;       // 0 until the first user says kTableFormat
  std::atomic<std::uint64_t> sequence;     // numbers joins, releases and udp members
  std::atomic<std::uint32_t> slots_used;   // no slot at or after this was ever taken
  std::atomic<std::uint32_t> blocks_used;  // no block after this was ever claimed
  alignas(64) std::atomic<std::uint64_t> epoch;
  std::array<Slot, kSlotCount> slots;
  alignas(64) std::array<std::atomic<std::uint64_t>, kBlockCount> blocks;
  std::atomic<std::uint32_t> services_used;  // no service at or after this was ever taken
  alignas(64) std::array<Service, kServiceCount> services;
};
inline constexpr std::uint64_t kTableFormat = 0x75726f'6365'0001 + (sizeof(Table) << 16);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace uroce::datapath
