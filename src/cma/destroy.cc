// SPDX-License-Identifier: BSD-2-Clause
// Where identifiers go: to another file, to their end, to their end with their file or process.
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>

#include "cma/agent.h"
#include "engine/clock.h"

namespace uroce::cma {

// How many of its events the program was given; it waits until it has acknowledged all of them.
std::uint32_t Agent::destroy_id(Id& id) {
  const std::uint32_t reported = id.events_reported;
  if (id.state == IdState::kListening) cm::Manager::stop_listening(id.listener);
  while (Id* const unseen = first_that_waits_for(id)) destroy_id(*unseen);
  if (id.waits_for != nullptr) {
    id.waits_for->file->take_out([&id](const PendingEvent& e) { return e.connection == &id; },
                                 nullptr);
    ++id.waits_for->backlog;
  }
  neighbours_.forget(id);
  manager_.forget(engine::monotonic_now(), id.connection);
  release_port(id);
  for (const auto& membership : id.memberships) members_.erase(membership->number);
  id.file->take_out([&id](const PendingEvent& e) { return e.id == &id; }, nullptr);
  ids_.erase(id.number);
  return reported;
}

// As Linux, where the device itself goes with the interface: each identifier that is bound to it is
// told, if its program knows of it, and good for nothing but to be ended and destroyed. Here the
// device stays, and new ones can be bound to it once there is an interface by that name again.
void Agent::remove_from(const Device& device) {
  const std::uint32_t removals = device.removals();
  for (const auto& [number, id] : ids_) {
    const bool is_over = id->device == &device && id->removals != removals;
    if (is_over && id->state != IdState::kRemoved) remove_from_device(*id);
  }
}

void Agent::remove_from_device(Id& id) {
  if (id.state == IdState::kListening) cm::Manager::stop_listening(id.listener);
  neighbours_.forget(id);
  id.state = IdState::kRemoved;
  if (id.uid != 0) post(id, EventType::kDeviceRemoval, 0);
}

Id* Agent::first_that_waits_for(const Id& listening) {
  const auto found = std::ranges::find_if(
      ids_, [&listening](const auto& entry) { return entry.second->waits_for == &listening; });
  return found == ids_.end() ? nullptr : found->second.get();
}

std::uint32_t Agent::migrate(Id& id, EventFile& to) {
  if (id.file == &to) return id.events_reported;
  std::deque<PendingEvent> moved;
  id.file->take_out([&id](const PendingEvent& e) { return e.id == &id; }, &moved);
  id.file = &to;
  for (const PendingEvent& event : moved) {
    if (event.connection != nullptr) event.connection->file = &to;
    to.push(event);
  }
  return id.events_reported;
}

// The program has it now, and counts it as read; what is new is in the file where it was read.
void Agent::hand_over(const PendingEvent& event, EventFile& file) {
  ++event.id->events_reported;
  if (event.membership != nullptr) ++event.membership->events_reported;
  if (event.connection == nullptr) return;
  event.connection->file = &file;
  ++event.id->backlog;
  event.connection->waits_for = nullptr;
}

void Agent::close_file(EventFile& file) {
  const auto is_its = [&file](const auto& entry) { return entry.second->file == &file; };
  for (auto its = std::ranges::find_if(ids_, is_its); its != ids_.end();
       its = std::ranges::find_if(ids_, is_its)) {
    destroy_id(*its->second);
  }
  // A forked child may have a copy of our end, which would keep it in the set.
  epoll_ctl(events_, EPOLL_CTL_DEL, file.own_end(), nullptr);
  if (provider_forgets_ != nullptr) provider_forgets_(file.place().second);
  files_.erase(file.place());
}

void Agent::close_abandoned_files() {
  const auto is_abandoned = [](const auto& entry) { return entry.second->is_closed_by_program(); };
  for (auto file = std::ranges::find_if(files_, is_abandoned); file != files_.end();
       file = std::ranges::find_if(files_, is_abandoned)) {
    close_file(*file->second);
  }
}

// The process ends, and those it is connected to hear of it, as they would from the kernel. Other
// libraries' last functions may still come with commands; they find nothing.
void Agent::say_goodbye() {
  constexpr std::chrono::milliseconds kPatience(100);
  const std::unique_lock held(mutex_, kPatience);
  if (!held) return;
  while (!ids_.empty()) destroy_id(*ids_.begin()->second);
  for (const auto& device : devices_) device->engine().progress();
}

}  // namespace uroce::cma
