// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/eal_log.h"

#include <rte_log.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <string_view>

namespace uroce::datapath {
namespace {

// The interrupt thread of DPDK logs as well. No destructors: it may still run when we exit.
constinit std::mutex mutex;
constinit std::array<char, 256> first_error{};
constinit std::size_t first_error_length = 0;

// Keeps the *first* error until it is taken: what follows are the consequences.
ssize_t on_write(void*, const char* text, std::size_t length) {
  if (rte_log_cur_msg_loglevel() > static_cast<int>(RTE_LOG_ERR)) {
    return static_cast<ssize_t>(length);
  }
  // DPDK is about to abort the process: that must not go unexplained.
  if (rte_log_cur_msg_loglevel() <= static_cast<int>(RTE_LOG_CRIT)) {
    static_cast<void>(std::fwrite(text, 1, length, stderr));
  }
  std::string_view line(text, length);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  const std::lock_guard lock(mutex);
  if (first_error_length == 0) {
    first_error_length = std::min(line.size(), first_error.size());
    std::copy_n(line.begin(), first_error_length, first_error.begin());
  }
  return static_cast<ssize_t>(length);
}

}  // namespace

bool capture_eal_log() {
  FILE* stream = fopencookie(nullptr, "w", {nullptr, on_write, nullptr, nullptr});
  if (stream == nullptr) return false;
  setvbuf(stream, nullptr, _IOLBF, 512);
  rte_openlog_stream(stream);
  return true;
}

std::string take_eal_error() {
  const std::lock_guard lock(mutex);
  std::string taken(first_error.data(), first_error_length);
  first_error_length = 0;
  std::ranges::replace(taken, '\n', ' ');
  return taken;
}

}  // namespace uroce::datapath
