// SPDX-License-Identifier: BSD-2-Clause
// What was made through a descriptor of a device, and its end. ibv_close_device destroys no
// objects: the kernel does, once the last duplicate of the descriptor is closed. From then on their
// queue pairs answer nobody, their keys open nothing, their numbers and limits are others' to have.
// The same holds here, since the device may stay open in the process through another descriptor.
//
// Only what the device has of an object ends so. Its memory stays, because the program may have
// pointers to it, and a provider with a kernel below it would leave it as well. To destroy the
// object late frees it, and asks neither the context nor the engine, which may be gone.
//
//   struct Wq final : Made { ... };
//   wq->begin();   // the last thing of making it
//   wq->end();     // the first of destroying it, or done by whoever closes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/list.h"

namespace uroce::verbs {

class Context;

class Made {
 public:
  // In the order in which they end: each before what it uses, and windows before the regions that
  // they keep.
  enum class Kind : std::uint8_t {
    kFlow,
    kQp,
    kRwqTable,
    kWq,
    kSrq,
    kMw,
    kMr,
    kAh,
    kCq,
    kXrcd,
    kDm,
    kPd,
  };
  static constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::kPd) + 1;

  Made(Kind kind_of_it, Context& maker) : context(maker), kind(kind_of_it) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  // It is complete; what closes the descriptor ends it.
  void begin();
  // The device has nothing of it any more. Once; afterwards it does nothing, nor in the child of a
  // fork, where the device is the parent's.
  void end();
  // It has left the device otherwise.
  void has_left();
  // False: it has ended, or this is the child of a fork, where nobody may wait for a lock.
  [[nodiscard]] bool is_live() const;
  [[nodiscard]] bool has_ended() const { return has_ended_; }

  Context& context;
  const Kind kind;
  ListHook made_hook;

 protected:
  ~Made() = default;

 private:
  // Leaves the engine, and gives back its number and what it has of limits. Waits for no program,
  // and frees nothing that a program could name.
  virtual void leave_device() = 0;

  bool has_ended_ = false;
};

// Of one descriptor. Any thread may add and remove.
class Inventory {
 public:
  void add(Made& object);
  void remove(Made& object);
  // The first of its kind for which `is(object)`, or null.
  template <typename Is>
  [[nodiscard]] Made* find(Made::Kind kind, Is is) {
    const std::lock_guard guard(mutex_);
    auto& of_a_kind = objects_[static_cast<std::size_t>(kind)];
    Made* object = of_a_kind.front();
    while (object != nullptr && !is(*object)) object = of_a_kind.next(*object);
    return object;
  }
  // All that is left. Each lets go of the shard's lock, so that a million regions keep no other
  // context's packets waiting.
  void end_all();

 private:
  std::mutex mutex_;
  std::array<List<Made, &Made::made_hook>, Made::kKinds> objects_;
};

}  // namespace uroce::verbs
