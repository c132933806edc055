// SPDX-License-Identifier: BSD-2-Clause
// A value or an errno with a sentence that says what to do about it; for control paths.
// (std::expected is not in C++20, and clang 14 has it in no mode.)
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace uroce {

struct [[nodiscard]] Error {
  int code = 0;         // an errno
  std::string message;  // one line: what, and why
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  explicit operator bool() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace uroce
