// SPDX-License-Identifier: BSD-2-Clause
// Our end of a pipe out of which libibverbs reads events, 8 bytes (completion channel) or 16
// (asynchronous event). We open a description of our own, so that it never blocks whatever the
// application makes of its descriptor, which is its own to set.
//
// Events that nobody read can be taken back, which the destruction of their object needs: the
// kernel forgets them too. Whoever calls holds the shard's lock, but to make one: that allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/zeroed_memory.h"

namespace uroce::verbs {

class EventPipe {
 public:
  // A pipe of the kernel's is full when its pages are, and has room for so much once so much was
  // read. To take back less at a time would lose events of a full one.
  static std::size_t page_bytes();

  // Not open yet. `bytes_at_a_time` are taken back: a multiple of the page.
  explicit EventPipe(std::size_t bytes_at_a_time = page_bytes()) : page_(bytes_at_a_time) {}
  // `descriptor`: of either end of the pipe. Afterwards is_open(), or errno says why not, and it
  // may be tried again.
  void open(int descriptor);
  // Nobody reads any more.
  void close();
  ~EventPipe() { close(); }
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  [[nodiscard]] bool is_open() const { return page_ && descriptor_ >= 0; }

  // False when the pipe is full.
  template <typename Event>
  [[nodiscard]] bool write(const Event& event) {
    return write_bytes(&event, sizeof(event));
  }
  // Takes the unread events for which `is_dead(event)`; how many they were. The others keep their
  // order.
  template <typename Event, typename IsDead>
  std::uint32_t take_back(IsDead is_dead) {
    const std::span<Event> page = page_.as<Event>();
    std::uint32_t taken = 0;
    for (std::size_t left = unread_bytes(); left >= sizeof(Event);) {
      const std::size_t bytes = read_some(page.data(), std::min(left, page.size_bytes()));
      // Another thread reads as well: what it has is not unread any more.
      if (bytes == 0) break;
      left -= bytes;
      const auto end = page.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(Event));
      const auto kept = std::remove_if(page.begin(), end, is_dead);
      taken += static_cast<std::uint32_t>(end - kept);
      const auto kept_bytes = static_cast<std::size_t>(kept - page.begin()) * sizeof(Event);
      if (kept_bytes != 0) static_cast<void>(write_bytes(page.data(), kept_bytes));
    }
    return taken;
  }

 private:
  [[nodiscard]] std::size_t unread_bytes() const;
  [[nodiscard]] bool write_bytes(const void* event, std::size_t bytes);
  // 0: there is nothing.
  [[nodiscard]] std::size_t read_some(void* events, std::size_t at_most);

  engine::ZeroedMemory page_;
  int descriptor_ = -1;
};

}  // namespace uroce::verbs
