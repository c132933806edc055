// SPDX-License-Identifier: BSD-2-Clause
// What a NIC's DMA engine does to registered memory: copies in and out of it, and the two remote
// atomics. The pieces come from SgeCursor or MrTable::resolve and are not checked again.
//
// Source and target may overlap: both ends of a connection can be in one process, with the payload
// of a received frame still lying in the memory it was sent from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "uroce/packet.h"

namespace uroce::memory {

// Copies the pieces one after another, until one side ends; returns how many bytes. What is
// scattered into a piece without an address goes nowhere (a null region).
std::size_t gather(std::span<const ConstBytes> pieces, Bytes target);
std::size_t scatter(ConstBytes source, std::span<const Bytes> pieces);

// IBTA 9.4.5: on 64 bits in the byte order of this machine; the result is the value before.
// Atomic with respect to the application's own atomics on the same word, and ordered like a
// sequentially consistent one. Nothing is done and nothing returned when `target` is not 8-byte
// aligned; the peer chooses the address, so it is for the responder to refuse it.
std::optional<std::uint64_t> compare_and_swap(std::byte* target, std::uint64_t expected,
                                              std::uint64_t desired);
std::optional<std::uint64_t> fetch_and_add(std::byte* target, std::uint64_t addend);

// IBTA annex 19: 8 bytes as they lie in `source`, which nobody sees in part. False, and nothing is
// done, when `target` is not 8-byte aligned.
[[nodiscard]] bool atomic_write(ConstBytes source, std::byte* target);

}  // namespace uroce::memory
