// SPDX-License-Identifier: BSD-2-Clause
// Our end of a pipe out of which libibverbs reads events, 8 bytes (completion channel) or 16
// (asynchronous event). We open a description of our own, so that it never blocks whatever the
// application makes of its descriptor, which is its own to set.
//
// Events that nobody read can be taken back, which the destruction of their object needs: the
// kernel forgets them too. Whoever calls holds the shard's lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uroce::verbs {

class EventPipe {
 public:
  // `descriptor`: of either end of the pipe.
  explicit EventPipe(int descriptor);
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

  // False when the pipe is full.
  template <typename Event>
  [[nodiscard]] bool write(const Event& event) {
    return write_bytes(&event, sizeof(event));
  }
  // Takes the unread events for which `is_dead(event)`; how many they were. The others keep their
  // order.
  template <typename Event, typename IsDead>
  std::uint32_t take_back(IsDead is_dead) {
    std::uint32_t taken = 0;
    const std::size_t unread = unread_bytes() / sizeof(Event);
    for (std::size_t i = 0; i < unread; ++i) {
      Event event;
      // Another thread reads as well: what it has is not unread any more.
      if (!read_bytes(&event, sizeof(event))) break;
      if (is_dead(event)) {
        ++taken;
      } else {
        static_cast<void>(write_bytes(&event, sizeof(event)));
      }
    }
    return taken;
  }

 private:
  [[nodiscard]] std::size_t unread_bytes() const;
  [[nodiscard]] bool write_bytes(const void* event, std::size_t bytes);
  [[nodiscard]] bool read_bytes(void* event, std::size_t bytes);

  int descriptor_ = -1;
};

}  // namespace uroce::verbs
