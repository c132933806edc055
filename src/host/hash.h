// SPDX-License-Identifier: BSD-2-Clause
// FNV-1a over several pieces of text, finished with an avalanche step: names for things that must
// differ when their parts differ (node GUIDs, device trees). Not for anything hostile.
#pragma once

#include <cstdint>
#include <string_view>

namespace uroce::host {

class Hash {
 public:
  // A piece is closed by a byte that no text holds, so that "ab" "c" is not "a" "bc".
  constexpr Hash& add(std::string_view piece) {
    for (const char c : piece) absorb(static_cast<std::uint8_t>(c));
    absorb(0xff);
    return *this;
  }
  constexpr Hash& add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) absorb(static_cast<std::uint8_t>(number >> shift));
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const {
    std::uint64_t v = state_;
    v = (v ^ (v >> 33)) * 0xff51'afd7'ed55'8ccd;
    v = (v ^ (v >> 33)) * 0xc4ce'b9fe'1a85'ec53;
    return v ^ (v >> 33);
  }

 private:
  constexpr void absorb(std::uint8_t byte) { state_ = (state_ ^ byte) * 0x100'0000'01b3; }
  std::uint64_t state_ = 0xcbf2'9ce4'8422'2325;
};

}  // namespace uroce::host
