// SPDX-License-Identifier: BSD-2-Clause
#include "support/quiet_helper.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/sanitized.h"

namespace uroce::test {
namespace {

// The first word of a file of the kernel's; nothing when the thread has gone.
std::string first_word(const std::filesystem::path& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

bool is_awake(const std::filesystem::path& task) {
  const std::string call = first_word(task / "syscall");
  return !call.empty() && call != std::to_string(SYS_ppoll);
}

}  // namespace

void wait_for_quiet_helpers() {
  if (!kSanitized) return;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    // Others, the runtime's own among them, may never sleep in this call.
    if (!first_word(task.path() / "comm").starts_with("uroce/")) continue;
    while (is_awake(task.path())) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "a helper thread has not gone to sleep within 10 s";
        return;
      }
    }
  }
}

}  // namespace uroce::test
