// SPDX-License-Identifier: BSD-2-Clause
#include "sim/trace.h"

#include <algorithm>
#include <array>
#include <cstdarg>

#include "base/byte_order.h"
#include "wire/describe.h"

namespace uroce::sim {
namespace {

void print_time(std::FILE* out, Instant now) {
  std::fprintf(out, "%12.3f us  ", static_cast<double>(now.ns) / 1000);
}

// The same on machines of either byte order.
std::uint64_t word_at(ConstBytes bytes, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i) {
    word = word << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return word;
}

}  // namespace

void Trace::note_packet(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                        const char* fate) {
  note(static_cast<std::uint64_t>(now.ns) ^ std::uint64_t{from} << 60 ^ std::uint64_t{to} << 56);
  note(std::uint64_t{packet.bytes.size()} << 32 ^ packet.detached_payload.size() << 8 ^
       static_cast<std::uint8_t>(fate[0]));
  for (std::size_t at = 0; at < std::min<std::size_t>(packet.bytes.size(), 32); at += 8) {
    note(word_at(packet.bytes, at));
  }
}

void Trace::print_packet(Instant now, unsigned from, unsigned to, const RxPacket& packet,
                         const char* fate) {
  std::array<char, wire::kDescriptionChars> text;
  const std::string_view what = wire::describe(packet, text);
  print_time(out_, now);
  std::fprintf(out_, "%u>%u  %.*s  [%s]\n", from, to, static_cast<int>(what.size()), what.data(),
               fate);
}

void Trace::line(Instant now, const char* format, ...) {
  if (out_ == nullptr) return;
  print_time(out_, now);
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(out_, format, arguments);
  va_end(arguments);
  std::fputc('\n', out_);
}

}  // namespace uroce::sim
