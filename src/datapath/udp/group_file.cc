// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/group_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace uroce::datapath::udp {
namespace {

Error failure(const std::string& path, int error) {
  return {error, "cannot use " + path + ": " + std::strerror(error)};
}

}  // namespace

Result<std::unique_ptr<GroupFile>> GroupFile::open(const std::string& folder, std::uint16_t port) {
  const std::string path = folder + "/udp-" + std::to_string(port);
  posix::Descriptor descriptor(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!descriptor.is_open()) return failure(path, errno);
  // Really allocated: a full file system is an error here and not a SIGBUS later.
  if (const int error = posix_fallocate(descriptor.get(), 0, sizeof(Table)); error != 0) {
    return failure(path, error);
  }
  void* memory =
      mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (memory == MAP_FAILED) return failure(path, errno);
  std::unique_ptr<GroupFile> file(
      new GroupFile(std::move(descriptor), static_cast<Table*>(memory)));
  file->choose_secret();
  return file;
}

GroupFile::~GroupFile() { munmap(table_, sizeof(Table)); }

void GroupFile::choose_secret() {
  for (std::atomic<std::uint64_t>& word : table_->secret) {
    std::uint64_t chosen = 0;
    while (chosen == 0) {
      if (getrandom(&chosen, sizeof chosen, 0) != sizeof chosen) return;
    }
    std::uint64_t none = 0;  // the first member's choice stays
    word.compare_exchange_strong(none, chosen);
  }
}

bool GroupFile::try_lock() { return flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0; }
void GroupFile::unlock() { flock(descriptor_.get(), LOCK_UN); }

std::uint64_t GroupFile::list_version() const {
  return table_->list_version.load(std::memory_order_acquire);
}

std::vector<Member> GroupFile::members() const {
  const List& list = table_->lists[list_version() % 2];
  const std::uint64_t count = std::min<std::uint64_t>(list.count.load(), kMembersMax);
  std::vector<Member> members;
  for (std::size_t i = 0; i < count; ++i) members.push_back(list.members[i].load());
  return members;
}

void GroupFile::set_members(std::span<const Member> members) {
  const std::uint64_t next = list_version() + 1;
  List& list = table_->lists[next % 2];
  const std::size_t count = std::min(members.size(), kMembersMax);
  for (std::size_t i = 0; i < count; ++i) list.members[i].store(members[i]);
  list.count.store(count);
  table_->list_version.store(next, std::memory_order_release);
}

std::uint64_t GroupFile::attached_epoch() const { return table_->attached_epoch.load(); }
void GroupFile::set_attached_epoch(std::uint64_t epoch) { table_->attached_epoch.store(epoch); }
std::uint32_t GroupFile::doubt_round() const { return table_->doubt_round.load(); }
void GroupFile::raise_doubt() { table_->doubt_round.fetch_add(1); }

Secret GroupFile::secret() const {
  return std::bit_cast<Secret>(
      std::array<std::uint64_t, 2>{table_->secret[0].load(), table_->secret[1].load()});
}

void GroupFile::abandon_in_child() { descriptor_.close(); }

}  // namespace uroce::datapath::udp
