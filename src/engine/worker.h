// SPDX-License-Identifier: BSD-2-Clause
// The helper thread of an engine: serves the device while the application does not poll, and sleeps
// while there is nothing to serve. When it sleeps and what may wake it is SleepPolicy's decision.
//
// After the last packet it stays awake for a moment, since packets come in trains and waking it
// costs the sender a system call; but only while no other thread of the process is running, because
// on a busy machine it would take the very processor that the application needs to see the data.
//
// It blocks all signals but those that its own faults raise, and changes nothing else that belongs
// to the process.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>

#include "engine/sleep_policy.h"
#include "uroce/time.h"

namespace uroce::engine {

class Engine;

class Worker {
 public:
  // Null when the system gives no thread: then progress is made in verbs calls only.
  static std::unique_ptr<Worker> start(Engine& engine, const std::string& device);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  explicit Worker(Engine& engine) : engine_(engine) {}
  static void* run_thread(void* self);
  void run();
  // False: somebody else had the lock all the time.
  [[nodiscard]] bool serve(SleepPolicy::Cause woken_by);
  SleepPolicy::Cause sleep();
  void follow_port(bool has_changed);
  [[nodiscard]] bool others_are_running();

  Engine& engine_;
  pthread_t thread_{};
  bool has_thread_ = false;
  std::atomic<bool> stop_{false};
  // Grows while a link that cannot wake us stays silent.
  Duration silent_pause_{};
  Instant next_look_at_port_{};
  Duration process_time_{}, own_time_{}, looked_at_{};
};

}  // namespace uroce::engine
