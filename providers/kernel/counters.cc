// SPDX-License-Identifier: BSD-2-Clause
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "host/port_counters.h"
#include "interposed.h"

namespace uroce::kernel {

namespace {

using host::PortCounter;

constexpr std::string_view kDevices = "/sys/class/infiniband/";
constexpr std::string_view kPort = "/ports/1/";
constexpr std::string_view kRows = "/counters/";

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_counter_name(std::string_view name) {
  bool found = false;
  for (const PortCounter& counter : host::kPortCounters) found |= counter.name == name;
  return found;
}

const PortCounter* find_counter(std::string_view folder_and_name) {
  for (const PortCounter& counter : host::kPortCounters) {
    std::string_view rest = folder_and_name;
    if (take(rest, counter.folder) && take(rest, "/") && rest == counter.name) return &counter;
  }
  return nullptr;
}

// Where the rows of the device are, if it is one of the tree's own.
bool find_rows(std::string_view device, char (&path)[PATH_MAX]) {
  const std::size_t tree = strlen(tree_path);
  if (tree + kRows.size() + device.size() >= sizeof path) return false;
  memcpy(path, tree_path, tree);
  memcpy(path + tree, kRows.data(), kRows.size());
  memcpy(path + tree + kRows.size(), device.data(), device.size());
  path[tree + kRows.size() + device.size()] = '\0';
  Stat status;
  return next().lstat(path, &status) == 0;
}

// Where the counter's rows are; null where the path leads to none of ours.
const PortCounter* resolve(int folder, const char* path, char (&rows)[PATH_MAX]) {
  char place[PATH_MAX];
  if (!find_in_tree(folder, path, Want::kPlainPlace, place)) return nullptr;
  std::string_view rest(place);
  if (!take(rest, tree_path) || !take(rest, kDevices)) return nullptr;
  const std::string_view device = rest.substr(0, rest.find('/'));
  rest.remove_prefix(device.size());
  const PortCounter* counter = take(rest, kPort) ? find_counter(rest) : nullptr;
  return counter != nullptr && find_rows(device, rows) ? counter : nullptr;
}

// Mapped, since a file that is read may show half of a word. System calls by number: programs put
// their own mmap and munmap in front of libc's.
bool sum_file(int file, const PortCounter& counter, std::uint64_t& total) {
  Stat status;
  if (next().fstat(file, &status) != 0) return false;
  const std::size_t row_count = static_cast<std::size_t>(status.st_size) / kCounterRowBytes;
  const std::size_t bytes = row_count * kCounterRowBytes;
  if (row_count == 0) return true;
  const long start = syscall(SYS_mmap, nullptr, bytes, PROT_READ, MAP_SHARED, file, 0L);
  if (start == -1) return false;
  const auto* rows = reinterpret_cast<const std::byte*>(start);
  for (std::size_t row = 0; row < row_count; ++row) {
    const auto* counters = reinterpret_cast<const PortCounters*>(rows + row * kCounterRowBytes);
    total += host::value_in(*counters, counter);
  }
  syscall(SYS_munmap, start, bytes);
  return true;
}

// Nobody has counted yet where there is no file. False: it is not known, and 0 would be a claim.
bool read_value(const char* rows, const PortCounter& counter, std::uint64_t& value) {
  const int file = next().open(rows, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno == ENOENT;
  const bool is_known = sum_file(file, counter, value);
  close(file);
  return is_known;
}

int make_file(std::uint64_t value) {
  const int file = memfd_create("counter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  char text[kDecimalBytesMax + 1];
  write_decimal(value, text);
  const std::size_t bytes = strlen(text);
  text[bytes] = '\n';
  const bool is_written = pwrite(file, text, bytes + 1, 0) == static_cast<ssize_t>(bytes + 1);
  if (is_written && fchmod(file, 0444) == 0) {
    fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    return file;
  }
  close(file);
  return -1;
}

}  // namespace

bool may_be_counter(const char* path) {
  if (!tree_is_set() || path == nullptr || (*path == '/' && !mentions_rdma(path))) return false;
  const char* const slash = strrchr(path, '/');
  return is_counter_name(slash == nullptr ? path : slash + 1);
}

int make_counter(int folder, const char* path) {
  const int saved_errno = errno;
  char rows[PATH_MAX];
  const PortCounter* const counter = resolve(folder, path, rows);
  std::uint64_t value = 0;
  const bool is_known = counter != nullptr && read_value(rows, *counter, value);
  const int file = is_known ? make_file(value) : -1;
  errno = saved_errno;
  return file;
}

bool open_counter(int folder, const char* path, int flags, int& descriptor) {
  if (!may_be_counter(path) || (flags & (O_PATH | O_DIRECTORY)) != 0) return false;
  descriptor = make_counter(folder, path);
  if (descriptor < 0) return false;
  if ((flags & O_ACCMODE) != O_RDONLY) {
    close(descriptor);
    descriptor = -1;
    errno = EACCES;
  } else if ((flags & O_CLOEXEC) == 0) {
    fcntl(descriptor, F_SETFD, 0);
  }
  return true;
}

}  // namespace uroce::kernel
