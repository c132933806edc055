// SPDX-License-Identifier: BSD-2-Clause
// An open /dev/infiniband/rdma_cm: the identifiers made through it and their events. What the
// program has is one end of a socket pair, in which there is a byte while there are events, so that
// it can poll it and set O_NONBLOCK. Waiting for an event is reading that byte, with all that the
// program's flags, signals and cancellation mean for a read. The socket's inode says which file a
// command is for, and our end tells when the program has closed its own.
#pragma once

#include <rdma/rdma_user_cm.h>
#include <sys/types.h>

#include <deque>
#include <memory>
#include <optional>

#include "posix/descriptor.h"

namespace uroce::cma {

struct Id;
struct Membership;

struct PendingEvent {
  rdma_ucm_event_resp answer{};
  Id* id = nullptr;                  // who counts it
  Membership* membership = nullptr;  // ... too, of a group
  Id* connection = nullptr;          // of a CONNECT_REQUEST: what is new
};

class EventFile {
 public:
  // Null, and errno. `program_end` is the program's from then on.
  static std::unique_ptr<EventFile> open(int& program_end);
  // Which file a descriptor is; nothing where it is none at all.
  static std::optional<std::pair<dev_t, ino_t>> place_of(int descriptor);

  [[nodiscard]] std::pair<dev_t, ino_t> place() const { return place_; }
  [[nodiscard]] int own_end() const { return own_end_.get(); }
  [[nodiscard]] bool is_closed_by_program() const;

  void push(const PendingEvent& event);
  // After the byte was read. Nothing: its event is gone.
  [[nodiscard]] std::optional<PendingEvent> pop();
  // Moves those for which `is_meant(event)` to the end of `to`, or away where that is null.
  template <typename IsMeant>
  void take_out(IsMeant is_meant, std::deque<PendingEvent>* to) {
    std::deque<PendingEvent> kept;
    for (PendingEvent& event : events_) {
      if (!is_meant(event)) {
        kept.push_back(event);
      } else if (to != nullptr) {
        to->push_back(event);
      }
    }
    events_.swap(kept);
  }
  // After take_out: the program finds nothing to read where nothing is left. Only through its own
  // descriptor can the byte be had.
  void take_token_back(int program_end);

 private:
  explicit EventFile(int own_end) : own_end_(own_end) {}
  void put_token();

  posix::Descriptor own_end_;
  std::pair<dev_t, ino_t> place_;
  std::deque<PendingEvent> events_;
  bool has_token_ = false;
};

}  // namespace uroce::cma
