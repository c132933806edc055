// SPDX-License-Identifier: BSD-2-Clause
// What the members of one reuseport group share: the order of their sockets in the kernel.
//
// The kernel appends a joining socket and moves the last one into the hole that a leaving socket
// leaves, and tells nobody. The order is therefore history, and this file is where it is kept:
// "<folder>/udp-<port>", changed only under its lock. A list is written beside the current one and
// then made current by one store, so a process killed in the middle changes nothing.
//
// The lock is flock on a descriptor of its own and is only ever tried: a member stopped while it
// holds the lock must not stop its neighbours.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datapath/udp/control.h"
#include "posix/descriptor.h"

namespace uroce::datapath::udp {

// A member: BlockWord::owned(slot, generation).value, which names an engine for good.
using Member = std::uint64_t;
// At the index of a socket whose member is dead and which something else keeps open.
inline constexpr Member kNobody = 0;

inline constexpr std::size_t kMembersMax = 1024;

class GroupFile {
 public:
  static Result<std::unique_ptr<GroupFile>> open(const std::string& folder, std::uint16_t port);
  ~GroupFile();
  GroupFile(const GroupFile&) = delete;
  GroupFile& operator=(const GroupFile&) = delete;

  [[nodiscard]] bool try_lock();
  void unlock();

  // In the order of the kernel's array.
  [[nodiscard]] std::vector<Member> members() const;
  void set_members(std::span<const Member> members);  // under the lock

  // The directory's epoch that the installed program reflects.
  [[nodiscard]] std::uint64_t attached_epoch() const;
  void set_attached_epoch(std::uint64_t epoch);

  // Raised when the order is in doubt: every member then finds its own index out.
  [[nodiscard]] std::uint32_t doubt_round() const;
  void raise_doubt();

  [[nodiscard]] Secret secret() const;
  void abandon_in_child();

 private:
  struct List {
    std::atomic<std::uint64_t> count;
    std::array<std::atomic<Member>, kMembersMax> members;
  };
  struct Table {
    std::array<std::atomic<std::uint64_t>, 2> secret;
    std::atomic<std::uint64_t> attached_epoch;
    std::atomic<std::uint64_t> list_version;  // the list at `list_version % 2` is current
    std::atomic<std::uint32_t> doubt_round;
    std::array<List, 2> lists;
  };

  GroupFile(posix::Descriptor descriptor, Table* table)
      : descriptor_(std::move(descriptor)), table_(table) {}
  void choose_secret();
  [[nodiscard]] std::uint64_t list_version() const;

  posix::Descriptor descriptor_;
  Table* table_;
};

}  // namespace uroce::datapath::udp
