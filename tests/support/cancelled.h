// SPDX-License-Identifier: BSD-2-Clause
// Whether a call can be made by a thread that is to be cancelled, and comes to its end.
#pragma once

#include <pthread.h>

namespace uroce::test {

// In a thread whose cancellation is pending already, so that the first cancellation point ends it.
template <typename Call>
[[nodiscard]] bool is_no_cancellation_point(Call& call) {
  struct Tried {
    Call& call;
    bool has_ended = false;
  } tried{call};
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    auto& self = *static_cast<Tried*>(argument);
    pthread_cancel(pthread_self());
    self.call();
    self.has_ended = true;
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, run, &tried) != 0) return false;
  pthread_join(thread, nullptr);
  return tried.has_ended;
}

}  // namespace uroce::test
