// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/capture_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "capture/pcapng.h"
#include "posix/uncancelled.h"

namespace uroce::datapath::tap {
namespace {

constexpr std::string_view kProcessMark = "%p";
// A capture holds what programs send, so it is for its owner.
constexpr mode_t kMode = 0600;

bool names_process(const std::string& pattern) {
  return pattern.find(kProcessMark) != std::string::npos;
}

std::string with_process(std::string pattern) {
  const std::string process = std::to_string(getpid());
  for (std::size_t at = 0; (at = pattern.find(kProcessMark, at)) != std::string::npos;) {
    pattern.replace(at, kProcessMark.size(), process);
    at += process.size();
  }
  return pattern;
}

// "out.pcapng" and "4711" make "out.4711.pcapng".
std::string inserted(const std::string& path, const std::string& word) {
  const std::size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const std::size_t dot = path.rfind('.');
  const bool has_extension = dot != std::string::npos && dot > name;
  const std::size_t at = has_extension ? dot : path.size();
  return path.substr(0, at).append(".").append(word).append(path.substr(at));
}

std::array<std::string, 3> candidates(const std::string& pattern, const std::string& device) {
  const std::string process = std::to_string(getpid());
  const std::string own =
      names_process(pattern) ? with_process(pattern) : inserted(pattern, process);
  return {names_process(pattern) ? own : pattern, own, inserted(own, device)};
}

Error trouble(const std::string& path, int code) {
  return {code, path + ": cannot be written, so nothing can be captured: " + std::strerror(code)};
}

struct Opened {
  posix::Descriptor descriptor;
  bool is_ours = false;  // nobody else writes to it
};

Result<Opened> open_and_lock(const std::string& path) {
  Opened opened{posix::Descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, kMode))};
  if (!opened.descriptor.is_open() && errno != ENXIO) return trouble(path, errno);
  struct stat status {};
  // A pipe whose reader goes would end the program by SIGPIPE, and ENXIO is a pipe without one.
  if (!opened.descriptor.is_open() || fstat(opened.descriptor.get(), &status) != 0 ||
      !(S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))) {
    return Error{EINVAL, path +
                             ": a capture goes to a file; to watch it grow: tail -f -c +0 FILE | "
                             "wireshark -k -i -"};
  }
  // File systems without locks get no protection.
  const bool is_busy =
      flock(opened.descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  opened.is_ours = !is_busy;
  return opened;
}

std::string application() {
  return std::string(program_invocation_short_name) + ", process " + std::to_string(getpid());
}

}  // namespace

Result<std::shared_ptr<CaptureFile>> CaptureFile::open(const std::string& pattern,
                                                       const std::string& device) {
  const std::array<std::string, 3> paths = candidates(pattern, device);
  for (const std::string& path : paths) {
    Result<Opened> opened = open_and_lock(path);
    if (!opened) return opened.error();
    if (!opened->is_ours) continue;
    return std::shared_ptr<CaptureFile>(
        new CaptureFile(std::move(opened->descriptor), path, path != paths[0]));
  }
  return Error{EBUSY, pattern + ": somebody else writes to it; name another file"};
}

CaptureFile::CaptureFile(posix::Descriptor descriptor, std::string path, bool is_second_choice)
    : descriptor_(std::move(descriptor)),
      path_(std::move(path)),
      is_second_choice_(is_second_choice),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)) {
  const std::byte* const end = capture::pcapng::put_section(buffer_.get(), application());
  used_ = static_cast<std::size_t>(end - buffer_.get());
}

std::uint32_t CaptureFile::add_interface(std::string_view name) {
  if (used_ + capture::pcapng::kHeadBlockBytesMax > kBufferBytes) flush();
  const std::byte* const end = capture::pcapng::put_interface(buffer_.get() + used_, name);
  used_ = static_cast<std::size_t>(end - buffer_.get());
  return interfaces_++;
}

std::byte* CaptureFile::reserve(std::size_t bytes) {
  if (!descriptor_.is_open() || bytes > kReserveMax) return nullptr;
  if (used_ + bytes > kBufferBytes) flush();
  if (!descriptor_.is_open()) return nullptr;
  return buffer_.get() + std::exchange(used_, used_ + bytes);
}

void CaptureFile::flush() {
  if (used_ == 0 || !descriptor_.is_open()) return;
  const posix::Uncancelled whole;
  std::size_t written = 0;
  while (written < used_) {
    const ssize_t n = write(descriptor_.get(), buffer_.get() + written, used_ - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      give_up(n < 0 ? errno : ENOSPC, written);
      break;
    }
    written += static_cast<std::size_t>(n);
  }
  used_ = 0;
}

void CaptureFile::give_up(int error, std::size_t written) {
  struct stat status {};
  const std::size_t torn = written - capture::pcapng::whole_blocks(buffer_.get(), written);
  if (torn != 0 && fstat(descriptor_.get(), &status) == 0) {
    static_cast<void>(!ftruncate(descriptor_.get(), status.st_size - static_cast<off_t>(torn)));
  }
  descriptor_.close();
  // Not the log: the shard's lock is held, and that allocates.
  dprintf(STDERR_FILENO, "uroce: error: %s: %s; the capture ends here, the program goes on\n",
          path_.c_str(), std::strerror(error));
}

void CaptureFile::abandon_in_child() {
  descriptor_.close();
  used_ = 0;
}

std::string prepare_capture(const std::string& pattern) {
  if (names_process(pattern)) return {};  // whose, is not known yet
  Result<Opened> opened = open_and_lock(pattern);
  if (!opened) return opened.error().message;
  if (opened->is_ours && ftruncate(opened->descriptor.get(), 0) != 0 && errno != EINVAL) {
    return trouble(pattern, errno).message;
  }
  return {};
}

}  // namespace uroce::datapath::tap
