// SPDX-License-Identifier: BSD-2-Clause
// The program that the tests of the preloaded library start. It does one thing, named by its first
// argument, and prints one line about the outcome; what failed ends in Failure, printed as errno.
#pragma once

#include <cerrno>
#include <map>
#include <string>

namespace probe {

struct Failure {
  int error = errno;
};

template <typename Result>
Result check(Result result) {
  if (result == static_cast<Result>(-1)) throw Failure{};
  return result;
}

template <typename Pointer>
Pointer* check(Pointer* result) {
  if (result == nullptr) throw Failure{};
  return result;
}

using Action = std::string (*)(const std::string& path);
using Actions = std::map<std::string, Action>;

// One per form of a libc function: what the function says about a path.
const Actions& forms();
// One per story about descriptors, signals, threads.
const Actions& scenarios();
// One per story about /dev/infiniband/rdma_cm.
const Actions& rdma_cm();

// First line, without its end, of what can be read; "char 1:3" for a character device.
std::string describe_and_close(int descriptor);

}  // namespace probe
