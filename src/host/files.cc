// SPDX-License-Identifier: BSD-2-Clause
#include "host/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace uroce::host {
namespace {

constexpr mode_t kFileMode = 0644;

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<posix::Descriptor> open_lock(const std::string& path) {
  posix::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return system_error(path, "cannot be opened");
  return file;
}

// 0, or EWOULDBLOCK: somebody else has it, or another errno.
int try_lock(const posix::Descriptor& file, int operation) {
  while (flock(file.get(), operation | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int operation_of(LockKind kind) { return kind == LockKind::kShared ? LOCK_SH : LOCK_EX; }

}  // namespace

Error system_error(std::string_view path, std::string_view what) {
  const int code = errno;
  std::string message(path);
  message.append(": ").append(what).append(": ").append(std::strerror(code));
  return {code, std::move(message)};
}

std::optional<std::string> read_file(const std::string& path) {
  const posix::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t n = read(file.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
}

std::string read_line(const std::string& path) {
  std::string text = read_file(path).value_or("");
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

Result<Done> write_file(const std::string& path, std::string_view text) {
  const posix::Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode));
  if (!file.is_open() || !write_all(file.get(), text))
    return system_error(path, "cannot be written");
  return Done{};
}

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

Result<Done> write_missing_file(const std::string& path, std::string_view text) {
  return exists(path) ? Result<Done>(Done{}) : write_file(path, text);
}

Result<Done> replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new-" + std::to_string(getpid());
  Result<Done> written = write_file(temporary, text);
  if (written && rename(temporary.c_str(), path.c_str()) != 0) {
    written = system_error(path, "cannot be replaced");
  }
  if (!written) unlink(temporary.c_str());
  return written;
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

Result<Done> make_directories(const std::string& path, mode_t mode) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return system_error(part, "cannot be made");
    }
    if (end == std::string::npos) return Done{};
  }
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

Result<posix::Descriptor> lock_file(const std::string& path, LockKind kind, Duration patience) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 2'000'000};
  Result<posix::Descriptor> file = open_lock(path);
  if (!file) return file;
  for (Duration waited{};; waited = waited + nanoseconds(kPause.tv_nsec)) {
    errno = try_lock(*file, operation_of(kind));
    if (errno == 0) return file;
    if (errno != EWOULDBLOCK) return system_error(path, "cannot be locked");
    if (waited >= patience) break;
    nanosleep(&kPause, nullptr);
  }
  return Error{ETIMEDOUT, path +
                              ": another program holds this lock and does not let go; if it is "
                              "stopped, continue it (kill -CONT) or end it"};
}

Result<posix::Descriptor> try_lock_file(const std::string& path, LockKind kind) {
  Result<posix::Descriptor> file = open_lock(path);
  if (!file) return file;
  errno = try_lock(*file, operation_of(kind));
  if (errno == 0) return file;
  if (errno == EWOULDBLOCK) return posix::Descriptor{};
  return system_error(path, "cannot be locked");
}

}  // namespace uroce::host
