// SPDX-License-Identifier: BSD-2-Clause
#include "engine/worker.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "engine/engine.h"
#include "engine/short_slices.h"
#include "engine/spin_lock.h"

namespace uroce::engine {
namespace {

constexpr Duration kStayAwake = microseconds(50);
// Somebody else is at it; looks again this soon.
constexpr timespec kContendedPause{0, 100'000};
// A link without a wake-up: from this to that. 1 ms costs well under 3 % of a processor.
constexpr Duration kSilentPauseMin = microseconds(50);
constexpr Duration kSilentPauseMax = milliseconds(1);
constexpr Duration kForever = {INT64_MAX};
constexpr Duration kBetweenLooksAtThePort = milliseconds(50);
// Frames of the packet path are small; signal frames of a sanitizer's runtime are not.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

Duration cpu_time(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

sigset_t signals_to_block() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&set, fault);
  return set;
}

}  // namespace

std::unique_ptr<Worker> Worker::start(Engine& engine, const std::string& device) {
  std::unique_ptr<Worker> worker(new Worker(engine));
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return nullptr;
  pthread_attr_setstacksize(&attributes,
                            std::max(kStackBytes, static_cast<std::size_t>(PTHREAD_STACK_MIN)));
  // The thread inherits the mask, so that no signal finds it before it could block them.
  const sigset_t blocked = signals_to_block();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  const int failure = pthread_create(&worker->thread_, &attributes, run_thread, worker.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (failure != 0) return nullptr;
  worker->has_thread_ = true;
  pthread_setname_np(worker->thread_, ("uroce/" + device).substr(0, 15).c_str());
  return worker;
}

Worker::~Worker() {
  if (!has_thread_) return;
  stop_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  static_cast<void>(!write(engine_.kick_descriptor(), &one, sizeof(one)));
  pthread_join(thread_, nullptr);
}

void* Worker::run_thread(void* self) {
  static_cast<Worker*>(self)->run();
  return nullptr;
}

void Worker::run() {
  ask_for_short_slices();
  SleepPolicy::Cause cause = SleepPolicy::Cause::kOther;
  while (!stop_.load(std::memory_order_acquire)) {
    if (serve(cause)) {
      cause = sleep();
    } else {
      nanosleep(&kContendedPause, nullptr);
    }
  }
}

bool Worker::serve(SleepPolicy::Cause woken_by) {
  Instant last_packet = monotonic_now();
  bool may_stay_awake = false;
  for (bool first = true;; first = false) {
    const Engine::Look look = engine_.look(first ? woken_by : SleepPolicy::Cause::kOther);
    if (look.contended) return !first;
    if (look.next == SleepPolicy::State::kTicking) return true;
    if (first) may_stay_awake = look.packets != 0 && !others_are_running();
    // An application that was just told of a completion is about to run, perhaps right here.
    if (look.application_told || stop_.load(std::memory_order_relaxed)) return true;
    if (look.packets != 0) {
      last_packet = monotonic_now();
      silent_pause_ = {};
    } else if (!may_stay_awake || monotonic_now() - last_packet > kStayAwake) {
      return true;
    } else {
      pause_processor();
    }
  }
}

SleepPolicy::Cause Worker::sleep() {
  using Cause = SleepPolicy::Cause;
  Duration at_most = kForever;
  if (engine_.has_silent_link()) {
    silent_pause_ = std::clamp(silent_pause_ * 2, kSilentPauseMin, kSilentPauseMax);
    at_most = silent_pause_;
  }
  if (engine_.port().is_behind()) at_most = std::min(at_most, kBetweenLooksAtThePort);
  const std::optional<Duration> sleep_for = engine_.prepare_sleep(at_most);
  if (!sleep_for) return Cause::kArrival;
  if (sleep_for->ns <= 0) return Cause::kOther;

  const auto links = engine_.wakeup_descriptors();
  std::array<pollfd, 4> wait{{{links[0], POLLIN, 0},
                              {links[1], POLLIN, 0},
                              {engine_.kick_descriptor(), POLLIN, 0},
                              {engine_.port().change_descriptor(), POLLIN, 0}}};
  const timespec timeout{sleep_for->ns / 1'000'000'000, sleep_for->ns % 1'000'000'000};
  const int ready = ppoll(wait.data(), wait.size(), &timeout, nullptr);
  follow_port((wait[3].revents & POLLIN) != 0);
  if (ready == 0 && engine_.has_silent_link()) return Cause::kTimer;
  if (ready <= 0) return Cause::kOther;
  if ((wait[2].revents & POLLIN) != 0) {
    std::uint64_t kicks = 0;
    static_cast<void>(!read(wait[2].fd, &kicks, sizeof(kicks)));
  }
  const bool arrived = ((wait[0].revents | wait[1].revents) & POLLIN) != 0;
  return arrived ? Cause::kArrival : Cause::kOther;
}

// Also where it could not be followed before.
void Worker::follow_port(bool has_changed) {
  if (!has_changed && !engine_.port().is_behind()) return;
  const Instant now = monotonic_now();
  if (!has_changed && now < next_look_at_port_) return;
  next_look_at_port_ = now + kBetweenLooksAtThePort;
  engine_.on_port_change();
}

bool Worker::others_are_running() {
  const Duration wall = cpu_time(CLOCK_MONOTONIC);
  const Duration process = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
  const Duration own = cpu_time(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t used = own.ns - own_time_.ns;
  const std::int64_t others = (process.ns - process_time_.ns) - used;
  // While we had a processor we may have kept the others from it.
  const std::int64_t left_to_others = wall.ns - looked_at_.ns - used;
  process_time_ = process;
  own_time_ = own;
  looked_at_ = wall;
  return others * 4 > left_to_others;
}

}  // namespace uroce::engine
