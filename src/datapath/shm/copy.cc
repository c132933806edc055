// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/shm/copy.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uroce::datapath::shm {
namespace {

#if defined(__x86_64__)

std::uint64_t ticks_now() { return __rdtsc(); }

// `to` is on a line, `bytes` is whole lines.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  void* target = to;
  const void* origin = from;
  auto* out = static_cast<__m128i*>(target);
  const auto* in = static_cast<const __m128i*>(origin);
  for (std::size_t i = 0; i < bytes / sizeof(__m128i); i += 4) {
    const __m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1);
    const __m128i c = _mm_loadu_si128(in + i + 2), d = _mm_loadu_si128(in + i + 3);
    _mm_stream_si128(out + i, a);
    _mm_stream_si128(out + i + 1, b);
    _mm_stream_si128(out + i + 2, c);
    _mm_stream_si128(out + i + 3, d);
  }
  _mm_sfence();  // a record's stamp must not overtake its bytes
}

#else

std::uint64_t ticks_now() { return 0; }
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

void copy_non_temporal(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t before = -std::bit_cast<std::uintptr_t>(to) % kLine;
  std::memcpy(to, from, before);
  const std::size_t lines = (bytes - before) / kLine * kLine;
  stream_lines(to + before, from + before, lines);
  std::memcpy(to + before + lines, from + before + lines, bytes - before - lines);
}

}  // namespace

void Copier::copy_large(std::byte* to, const std::byte* from, std::size_t bytes) {
  const Way way = next_way();
  const std::uint64_t begin = ticks_now();
  if (way == kPlain) {
    std::memcpy(to, from, bytes);
  } else {
    copy_non_temporal(to, from, bytes);
  }
  learn(way, ticks_now() - begin, bytes);
}

Copier::Way Copier::next_way() {
  const bool plain_is_cheaper = cost_[kPlain] <= cost_[kNonTemporal];
  const bool try_other = ++copies_ % kTryOtherEvery == 0;
  return plain_is_cheaper != try_other ? kPlain : kNonTemporal;
}

// A copy that was interrupted says nothing, so one sample counts at most four times the average.
void Copier::learn(Way way, std::uint64_t ticks, std::size_t bytes) {
  std::uint64_t& cost = cost_[way];
  const std::uint64_t sample = (ticks << 20) / bytes;
  if (cost == 0) cost = sample;
  cost = (cost * 7 + std::min(sample, cost * 4)) / 8;
}

}  // namespace uroce::datapath::shm
