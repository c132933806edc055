// SPDX-License-Identifier: BSD-2-Clause
#include "engine/registry.h"

#include <pthread.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>

#include "engine/links.h"
#include "engine/log_sink.h"
#include "engine/report.h"
#include "posix/uncancelled.h"

namespace uroce::engine {
namespace {

struct Entry {
  std::string device;
  std::unique_ptr<Engine> engine;
  std::uint32_t users = 0;
  Entry* next = nullptr;
};

// Never destroyed: other threads may still be in here while the process exits.
struct Registry {
  std::mutex mutex;
  Entry* first = nullptr;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

void before_fork() { registry().mutex.lock(); }
void in_parent() { registry().mutex.unlock(); }
// What the child inherited stays allocated, because its contexts and queues refer to it.
void in_child() {
  Registry& all = registry();
  for (Entry* entry = all.first; entry != nullptr; entry = entry->next) {
    entry->engine->abandon_in_child();
  }
  all.first = nullptr;
  all.mutex.unlock();
}

}  // namespace

void watch_forks() {
  static const int result = pthread_atfork(before_fork, in_parent, in_child);
  static_cast<void>(result);
}

Result<Engine*> acquire_engine(const std::string& device, const Upcalls& upcalls) {
  watch_forks();
  const posix::Uncancelled whole;
  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  for (Entry* entry = all.first; entry != nullptr; entry = entry->next) {
    if (entry->device != device) continue;
    ++entry->users;
    return entry->engine.get();
  }
  const host::Environment environment = host::current_environment();
  open_log(environment);
  auto parts = make_parts(device, environment);
  if (!parts) {
    log(LogLevel::kError, device + ": " + parts.error().message);
    return parts.error();
  }
  auto engine = std::make_unique<Engine>(std::move(*parts), upcalls);
  Engine* const result = engine.get();
  all.first = new Entry{device, std::move(engine), 1, all.first};
  log(LogLevel::kInfo, device + ": opened");
  return result;
}

void release_engine(Engine& engine) {
  // An abandoned one belongs to the parent's time and is not in the registry any more.
  if (engine.is_abandoned()) return;
  const posix::Uncancelled whole;
  Registry& all = registry();
  const std::lock_guard guard(all.mutex);
  for (Entry** link = &all.first; *link != nullptr; link = &(*link)->next) {
    Entry* const entry = *link;
    if (entry->engine.get() != &engine) continue;
    if (--entry->users != 0) return;
    *link = entry->next;
    for (const std::string& line : describe_counters(engine)) {
      log(LogLevel::kInfo, entry->device + ": " + line);
    }
    log(LogLevel::kInfo, entry->device + ": closed");
    delete entry;
    return;
  }
}

}  // namespace uroce::engine
