// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/context.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "engine/registry.h"
#include "posix/uncancelled.h"
#include "verbs/events.h"

namespace uroce::verbs {

namespace {

Context* without_engine(engine::Engine& engine, int error) {
  engine::release_engine(engine);
  errno = error;
  return nullptr;
}

}  // namespace

engine::Upcalls upcalls() { return {.completion = tell_completion, .event = tell_event}; }

Context* Context::open(const char* device) {
  const posix::Uncancelled whole;
  auto engine = engine::acquire_engine(device, upcalls());
  if (!engine) {
    errno = engine.error().code;
    return nullptr;
  }
  return make(**engine);
}

Context* Context::make(engine::Engine& engine) {
  const posix::Uncancelled whole;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return without_engine(engine, errno);
  errno = ENOMEM;
  auto* context = new (std::nothrow) Context(engine, ends[0], ends[1]);
  const int error = errno;
  ::close(ends[1]);  // the context has a description of its own
  if (context != nullptr && context->async_.is_open()) {
    engine.add_listener(*context);
    return context;
  }
  ::close(ends[0]);
  if (context == nullptr) return without_engine(engine, error);
  delete context;  // without a descriptor for its end of the pipe its events would be lost
  errno = error;
  return nullptr;
}

Context* Context::import(const Context& origin, const int& async_descriptor) {
  const posix::Uncancelled whole;
  engine::Engine& engine = origin.engine();
  const auto acquired = engine::acquire_engine(engine.port().device().name, upcalls());
  if (!acquired) {
    errno = acquired.error().code;
    return nullptr;
  }
  auto* const context =
      &engine == *acquired ? new (std::nothrow) Context(engine, origin, async_descriptor) : nullptr;
  if (context == nullptr) {
    engine::release_engine(**acquired);
    errno = ENOMEM;
    return nullptr;
  }
  {
    const std::lock_guard guard(origin.handles_->mutex);
    ++origin.handles_->open_contexts;
  }
  engine.add_listener(*context);
  return context;
}

void Context::close(Context* context) {
  const posix::Uncancelled whole;
  if (context->engine_.is_abandoned()) {
    delete context;
    return;
  }
  context->stop_events();
  const std::shared_ptr<Handles> handles = context->handles_;
  {
    const std::lock_guard guard(handles->mutex);
    context->next_closed_ = std::exchange(handles->closed, context);
    if (--handles->open_contexts != 0) return;
  }
  handles->inventory.end_all();
  while (handles->closed != nullptr) {
    delete std::exchange(handles->closed, handles->closed->next_closed_);
  }
}

// The descriptor of events is closed next, and its place may be in memory of libibverbs.
void Context::stop_events() {
  engine_.remove_listener(*this);
  const engine::Engine::Section section(engine_);
  read_descriptor_ = -1;
  async_descriptor_ = &read_descriptor_;
  async_.close();
}

Context::~Context() {
  unused_paths_.sweep(engine_);
  engine::release_engine(engine_);
}

CompletionChannel* Context::use_channel(const ibv_comp_channel& channel) {
  const posix::Uncancelled whole;
  const std::lock_guard guard(channels_mutex_);
  for (CompletionChannel* c = channels_.get(); c != nullptr; c = c->next.get()) {
    if (c->key != &channel) continue;
    ++c->users;
    return c;
  }
  std::unique_ptr<CompletionChannel> made(new (std::nothrow) CompletionChannel(channel));
  if (made == nullptr || !made->pipe.is_open()) return nullptr;
  made->next = std::move(channels_);
  channels_ = std::move(made);
  return channels_.get();
}

void Context::release_channel(CompletionChannel& channel) {
  const posix::Uncancelled whole;
  const std::lock_guard guard(channels_mutex_);
  if (--channel.users != 0) return;
  std::unique_ptr<CompletionChannel>* link = &channels_;
  while (link->get() != &channel) link = &(*link)->next;
  *link = std::move(channel.next);
}

void CompletionChannel::write(Notifications& notifications) {
  ++notifications.waiting;
  waiting.push_back(notifications);
  write_waiting();
}

void CompletionChannel::write_waiting() {
  while (Notifications* const first = waiting.front()) {
    if (!pipe.write(ib_uverbs_comp_event_desc{first->element})) return;
    ++first->given;
    if (--first->waiting == 0) first->waiting_hook.unlink();
  }
}

bool Context::write_event(std::uint64_t element, std::uint32_t type) {
  const posix::Uncancelled whole;
  if (!async_.is_open()) {
    if (*async_descriptor_ < 0) return false;  // nobody can wait for events yet
    async_.open(*async_descriptor_);
  }
  return async_.write(ib_uverbs_async_event_desc{element, type, 0});
}

std::uint32_t Context::take_back_events(const void* element) {
  if (!async_.is_open()) return 0;
  return async_.take_back<ib_uverbs_async_event_desc>(
      [element](const ib_uverbs_async_event_desc& event) {
        return event.element == reinterpret_cast<std::uintptr_t>(element);
      });
}

void Context::on_port_event(engine::PortEvent event) {
  constexpr std::uint64_t kPort = 1;
  static_cast<void>(write_event(kPort, static_cast<std::uint32_t>(event)));
}

void wait_for_acknowledgement(pthread_mutex_t& mutex, pthread_cond_t& condition,
                              const std::uint32_t& completed, std::uint32_t given) {
  pthread_mutex_lock(&mutex);
  while (completed != given) pthread_cond_wait(&condition, &mutex);
  pthread_mutex_unlock(&mutex);
}

}  // namespace uroce::verbs
