// SPDX-License-Identifier: BSD-2-Clause
// Who is on this host: a file shared by all engines (process x device) of one network namespace.
// It gives each engine a slot, hands out blocks of QPNs, and tells to whom a QPN belongs.
//
//   auto joined = Directory::join({.folder = "/run/user/1000/uroce/4026531840", .device =
//   "uroce0"}); if (!joined) return report(joined.error()); Directory& directory = **joined;
//   std::optional<std::uint32_t> block = directory.claim_block();   // QPNs block * 256 ... + 255
//   if (auto peer = directory.owner(Qpn{17000})) { ... }
//
// Wrong: opening `<folder>/directory` elsewhere in the process. Closing such a descriptor drops the
// process's locks (see shared_file.h), and others would take it for dead.
//
// Threads: `owner`, `is_alive`, `epoch`, `slots`, `mailbox` and the block functions may be called
// from any thread; the first, third and fifth are loads and nothing else.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/service_address.h"
#include "datapath/directory/shared_file.h"
#include "datapath/directory/table.h"
#include "uroce/ids.h"
#include "uroce/packet.h"
#include "wire/management.h"

namespace uroce::datapath {

// An engine. The generation is the number of its join, never used twice, so that a handle kept too
// long matches nothing.
struct SlotHandle {
  std::uint32_t index = 0;
  std::uint64_t generation = 0;
  friend constexpr bool operator==(SlotHandle, SlotHandle) = default;
};

struct SlotInfo {
  SlotHandle handle;
  std::uint32_t pid = 0;  // in the PID namespace of that process
  std::uint32_t uid = 0;
  std::uint64_t start_time = 0;
  std::string program;
  std::string device;
  std::uint64_t udp_order = 0;  // place in the order of entering the reuseport group; 0: not in it
};

struct JoinOptions {
  std::string folder;  // exists, is the caller's own, and belongs to one network namespace
  std::string device;
};

// Held while a reuseport group is entered or left, so that the order in the directory is the order
// of the sockets. Dies with its process.
class GroupLock {
 public:
  GroupLock(GroupLock&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), threads_(std::move(other.threads_)) {}
  ~GroupLock();

 private:
  friend class Directory;
  GroupLock(SharedFile* file, std::unique_lock<std::mutex> threads)
      : file_(file), threads_(std::move(threads)) {}
  SharedFile* file_;
  std::unique_lock<std::mutex> threads_;
};

// What whoever wants `one` is told where `other`, which overlaps it, is taken: as Linux's rdma_cm
// has it, which sees a port that can be had at no address rather than an address that is in use.
[[nodiscard]] constexpr int in_use(const ServiceAddress& one, const ServiceAddress& other) {
  return one.is_any() || other.is_any() ? EADDRNOTAVAIL : EADDRINUSE;
}

class Directory {
 public:
  // Takes a slot, after freeing those of processes that died.
  static Result<std::unique_ptr<Directory>> join(const JoinOptions& options);
  // Leaves: blocks and slot are free, handles to it are stale.
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] SlotHandle own_slot() const { return own_; }
  [[nodiscard]] const std::string& folder() const { return file_->folder(); }

  // A block of kQpnsPerBlock QPNs, of those free the one given back longest ago; nothing when all
  // are taken. Block 0 (QP0, QP1) and the last (multicast) are never handed out.
  [[nodiscard]] std::optional<std::uint32_t> claim_block();
  void release_block(std::uint32_t block);

  // Whose QPN it is. The owner may have died since: `is_alive` knows.
  [[nodiscard]] std::optional<SlotHandle> owner(Qpn qpn) const {
    const std::uint32_t block = qpn_block(qpn);
    if (block >= kBlockCount) return std::nullopt;
    const BlockWord word{table().blocks[block].load(std::memory_order_acquire)};
    if (word.is_free() || word.slot() >= kSlotCount) return std::nullopt;
    return SlotHandle{word.slot(), word.stamp()};
  }

  // Has not left; a load. A killed process has not left until somebody sweeps.
  [[nodiscard]] bool is_present(SlotHandle handle) const {
    return table().slots[handle.index].generation.load(std::memory_order_acquire) ==
           handle.generation;
  }
  // Has not left, and its process lives (also if stopped); one system call.
  [[nodiscard]] bool is_alive(SlotHandle handle) const;

  // Changes at every join, leave, reclaim, claim of a block, and change of the reuseport group.
  [[nodiscard]] std::uint64_t epoch() const {
    return table().epoch.load(std::memory_order_acquire);
  }
  // Everybody present, by slot; may hold processes that were killed and not yet swept.
  [[nodiscard]] std::vector<SlotInfo> slots() const;
  [[nodiscard]] std::optional<SlotInfo> info(SlotHandle handle) const;
  // Frees the slots and blocks of dead processes; true if there were any.
  bool sweep();

  // The path of a socket on which the engine of that slot can be reached, short enough for
  // sun_path however long the folder is. `purpose` is a short word: "shm", "udp". Whoever owns the
  // slot may unlink what is there and bind; a sweep unlinks what the dead left.
  [[nodiscard]] std::string socket_path(SlotHandle handle, const char* purpose) const;

  // The reuseport group. Bind or close the socket, then say so, all under the lock.
  // Nothing: the holder did not let go in a second (stopped in the middle).
  [[nodiscard]] std::optional<GroupLock> lock_group();
  void enter_udp_group();  // takes the next udp_order
  void leave_udp_group();

  // --- Services of the communication manager (services.cc) ---------------------------------------
  // Held until it is released, or the slot is left. 0, in_use() where another process holds one
  // that the same request could be for, ENOSPC, or EBUSY where a process that was stopped in the
  // middle of this holds up all others. Two that both `share` do not exclude each other, until one
  // of them listens. What this process holds already is not looked at.
  struct ServiceClaim {
    std::uint64_t id = 0;
    ServiceAddress address;
    bool shares = false;
    std::uint32_t block = 0;  // of QPNs, own
  };
  [[nodiscard]] int claim_service(const ServiceClaim& claim, std::uint32_t& index);
  // Another family or other sharing from now on, whomever that excludes. 0 or EBUSY.
  [[nodiscard]] int change_service(std::uint32_t index, const ServiceClaim& claim);
  [[nodiscard]] int listen_to_service(std::uint32_t index);
  void release_service(std::uint32_t index);
  // The block of whoever listens there; loads only.
  [[nodiscard]] std::optional<std::uint32_t> service_block(std::uint64_t id,
                                                           const Gid& address) const;
  [[nodiscard]] std::optional<SlotHandle> owner(const wire::ManagementAddressee& addressee) const;
  // Whose a packet is: its QP's owner; or, of QP1, which all have, whoever it is about.
  [[nodiscard]] std::optional<SlotHandle> owner(ConstBytes packet) const;

  // Words that other engines change (a slot's current user or a former one).
  [[nodiscard]] Mailbox& mailbox(std::uint32_t slot) const { return table().slots[slot].mailbox; }

  // In a forked child: gives up descriptors and mapping; the parent keeps slot and locks.
  void abandon_in_child();

 private:
  explicit Directory(SharedFile* file) : file_(file), table_(file->table()) {}
  [[nodiscard]] Table& table() const { return *table_; }
  bool take_slot(const std::string& device);
  void publish(std::uint32_t index, const SlotFacts& facts);
  void retire(std::uint32_t index);
  class ServicesLock;
  [[nodiscard]] int check_service(const ServiceClaim& claim, bool to_listen,
                                  std::uint32_t except) const;
  void drop_services(std::uint64_t owner);
  std::optional<std::uint32_t> claim_unused();
  std::optional<std::uint32_t> claim_oldest_free();
  void changed() { table().epoch.fetch_add(1, std::memory_order_acq_rel); }
  [[nodiscard]] std::uint64_t next_number() {
    return table().sequence.fetch_add(1, std::memory_order_acq_rel) + 1;
  }

  SharedFile* file_;
  Table* table_;
  SlotHandle own_;
  std::uint32_t joined_by_pid_ = 0;
};

}  // namespace uroce::datapath
