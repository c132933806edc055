// SPDX-License-Identifier: BSD-2-Clause
#include "engine/log_sink.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/check.h"

namespace uroce::engine {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kOff:
      return spdlog::level::off;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kTrace:
      return spdlog::level::trace;
  }
  return spdlog::level::off;
}

// Never freed: threads may still log while the process exits.
std::atomic<spdlog::logger*> logger{nullptr};

// No allocation and no lock, wherever the fault is.
void report_check(const char* condition, const char* file, int line) {
  dprintf(STDERR_FILENO, "uroce: %s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace

void open_log(const host::Environment& environment) {
  if (logger.load() != nullptr) return;
  check_hook = report_check;
  auto made =
      std::make_unique<spdlog::logger>("uroce", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  made->set_pattern("uroce: %l: %v");
  const auto config = host::config_from(environment);
  made->set_level(level_of(config ? config->log_level : LogLevel::kWarn));
  logger.store(made.release());
}

void log(LogLevel level, const std::string& line) {
  if (spdlog::logger* const to = logger.load()) to->log(level_of(level), line);
}

}  // namespace uroce::engine
