// SPDX-License-Identifier: BSD-2-Clause
// An open device: its engine, and where its events go. Completion channels are made behind our back
// (libibverbs asks the kernel) and closed so as well, so we learn of one with its first CQ and
// forget it with its last.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/list.h"
#include "engine/engine.h"
#include "transport/events.h"
#include "verbs/event_pipe.h"
#include "verbs/handles.h"
#include "verbs/unused_paths.h"

namespace uroce::verbs {

// What a completion queue tells its channel. Under the shard's lock.
struct Notifications {
  std::uint64_t element = 0;  // the public object
  std::uint32_t given = 0;    // written to the channel
  std::uint32_t waiting = 0;  // the channel is full of unread ones, its own or others'
  ListHook waiting_hook;
};

struct CompletionChannel {
  explicit CompletionChannel(const ibv_comp_channel& channel) : key(&channel) {
    pipe.open(channel.fd);
  }

  // One more, now or as soon as there is room.
  void write(Notifications& notifications);
  // After one was read.
  void write_waiting();

  const ibv_comp_channel* key;
  EventPipe pipe;
  List<Notifications, &Notifications::waiting_hook> waiting;
  std::uint32_t users = 1;  // CQs
  std::unique_ptr<CompletionChannel> next;
};

class Context final : public engine::PortListener {
 public:
  // Null, and errno, when the device cannot be opened; a line on standard error says why, if it is
  // for more than a lack of memory or descriptors.
  static Context* open(const char* device);
  // Over an engine that is acquired, or was made elsewhere (tests), and is released with it, also
  // when there is none: null, and errno.
  static Context* make(engine::Engine& engine);
  // ibv_import_device: one more user of what `origin` was opened for. The descriptor of its events
  // is libibverbs' to get, later, and to store at `async_descriptor`. Null, and errno.
  static Context* import(const Context& origin, const int& async_descriptor);
  // ibv_close_device. The last context of a descriptor ends what is left of all that was made
  // through it (made.h). As with the kernel, what another context has imported goes on until then.
  static void close(Context* context);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] engine::Engine& engine() const { return engine_; }
  [[nodiscard]] Handles& handles() const { return *handles_; }
  // The application's end; closed by libibverbs with the context.
  [[nodiscard]] int async_descriptor() const { return *async_descriptor_; }

  // With one more user; null without memory or descriptors.
  [[nodiscard]] CompletionChannel* use_channel(const ibv_comp_channel& channel);
  void release_channel(CompletionChannel& channel);

  // Both under the shard's lock. An event for `element` (or port 1); false when it was lost
  // because thousands are unread.
  bool write_event(std::uint64_t element, std::uint32_t type);
  // How many events for `element` nobody has read; nobody will.
  [[nodiscard]] std::uint32_t take_back_events(const void* element);

  [[nodiscard]] UnusedPaths& unused_paths() { return unused_paths_; }

  void on_port_event(engine::PortEvent event) override;

 private:
  ~Context();
  Context(engine::Engine& engine, int read_descriptor, int write_descriptor)
      : engine_(engine),
        handles_(std::make_shared<Handles>()),
        read_descriptor_(read_descriptor),
        async_descriptor_(&read_descriptor_) {
    async_.open(write_descriptor);
  }
  Context(engine::Engine& engine, const Context& origin, const int& async_descriptor)
      : engine_(engine), handles_(origin.handles_), async_descriptor_(&async_descriptor) {}

  void stop_events();

  engine::Engine& engine_;
  std::shared_ptr<Handles> handles_;
  int read_descriptor_ = -1;
  const int* async_descriptor_;
  EventPipe async_;  // of an imported one, open from the first event on that finds a descriptor
  std::mutex channels_mutex_;
  std::unique_ptr<CompletionChannel> channels_;
  UnusedPaths unused_paths_;
  Context* next_closed_ = nullptr;  // Handles::closed
};

// Closed when it goes.
struct CloseContext {
  void operator()(Context* context) const { Context::close(context); }
};
using OpenContext = std::unique_ptr<Context, CloseContext>;

// Waits until the application has acknowledged what it was given: `completed` is the public
// object's counter, guarded by its mutex (man ibv_ack_cq_events, ibv_ack_async_event).
void wait_for_acknowledgement(pthread_mutex_t& mutex, pthread_cond_t& condition,
                              const std::uint32_t& completed, std::uint32_t given);

}  // namespace uroce::verbs
