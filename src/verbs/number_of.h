// SPDX-License-Identifier: BSD-2-Clause
// A program in C may put any number into a field of an enumeration; to read it as one is undefined
// where it is none of its values.
#pragma once

#include <cstdint>
#include <cstring>

namespace uroce::verbs {

template <typename Enumeration>
std::uint32_t number_of(const Enumeration& field) {
  static_assert(sizeof field == sizeof(std::uint32_t));
  std::uint32_t number = 0;
  std::memcpy(&number, &field, sizeof number);
  return number;
}

}  // namespace uroce::verbs
