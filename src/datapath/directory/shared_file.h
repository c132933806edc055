// SPDX-License-Identifier: BSD-2-Clause
// The directory file of a folder: mapped and locked, once per process, however many engines use it.
//
// A slot belongs to whoever holds the POSIX record lock (fcntl F_SETLK) on the byte of its number.
// Why that one, of the things that could say "its process lives":
//   - it goes with the process at any kind of death, before the process is a zombie, and at exec;
//   - a forked child does not have it, however long it lives. OFD locks, flock, sockets and pipes
//     all live on in the child, and the dead parent would look alive;
//   - a stopped process keeps it;
//   - it works over PID namespaces, unlike the PID and start time in /proc, which also survive
//     exec;
//   - taking a dead one's slot and finding that it is dead are the same atomic step.
// Its two weak points are handled here. It is lost when the process closes *any* descriptor of the
// file, so there is one SharedFile per file and process, never closed, and the file is recognised
// through O_PATH descriptors, which do not count. And it does not exclude threads of one process
// from each other, so `held_` says which slots are ours.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "datapath/directory/table.h"

namespace uroce::datapath {

class SharedFile {
 public:
  // Of `folder`/directory, made if need be, every byte of it allocated: a full disk is an Error
  // here and not a SIGBUS later. A file that another version left is replaced, if nobody uses it.
  // Lives as long as the process; a forked child gets its own.
  static Result<SharedFile*> open(const std::string& folder);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  [[nodiscard]] Table* table() const { return table_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] int folder_descriptor() const { return folder_descriptor_; }

  // Nobody who comes will find it.
  [[nodiscard]] bool is_removed() const;

  // Taken by threads of this process around everything that locks or unlocks.
  [[nodiscard]] std::mutex& threads() { return threads_; }
  [[nodiscard]] std::mutex& group_threads() { return group_threads_; }
  [[nodiscard]] std::mutex& services_threads() { return services_threads_; }

  // The lock of a slot, of the reuseport group, or of the services; false where another process
  // has it.
  static constexpr std::uint32_t kGroupLock = kSlotCount;
  static constexpr std::uint32_t kServicesLock = kSlotCount + 1;
  [[nodiscard]] bool try_lock(std::uint32_t index) const;
  void unlock(std::uint32_t index) const;
  [[nodiscard]] bool is_locked_by_other(std::uint32_t index) const;

  // Which slots are this process's own.
  [[nodiscard]] bool holds(std::uint32_t slot) const;
  void set_held(std::uint32_t slot, bool held);

  // In a forked child, instead of waiting for its first `open`: closes what was inherited.
  static void abandon_in_child();

 private:
  struct Registry;
  explicit SharedFile(std::string folder) : folder_(std::move(folder)) {}
  static Registry& registry();
  static Result<SharedFile*> find_or_open(Registry& all, const std::string& folder);
  std::string open_of_our_version();
  std::string open_file();
  [[nodiscard]] std::string allocate() const;
  std::string map();
  void close_inherited() const;
  void close_descriptors();

  std::string folder_;
  int folder_descriptor_ = -1;
  int descriptor_ = -1;
  Table* table_ = nullptr;
  std::uint64_t device_ = 0, inode_ = 0;
  std::mutex threads_, group_threads_, services_threads_;
  std::array<std::atomic<std::uint64_t>, kSlotCount / 64> held_{};
  SharedFile* next_ = nullptr;  // in the registry
};

}  // namespace uroce::datapath
