// SPDX-License-Identifier: BSD-2-Clause
// Stories about /dev/infiniband/rdma_cm, with a provider that answers as the plug-in of libibverbs
// would: a pipe for each program that opens it, and commands that it takes notes of.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "probe.h"
#include "rdma_cm_provider.h"

// Declared by libc's headers only under _FORTIFY_SOURCE.
extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
}

namespace probe {

namespace {

// The last command, and whom it was for.
struct Noted {
  int descriptor = -1;
  dev_t device = 0;
  ino_t inode = 0;
  std::string command;
} noted;

int open_pipe() {
  int ends[2];
  return pipe2(ends, O_CLOEXEC) == 0 ? ends[0] : -1;
}
int refuse() {
  errno = EMFILE;
  return -1;
}
ssize_t note(int descriptor, dev_t device, ino_t inode, const void* command, std::size_t bytes) {
  noted = {descriptor, device, inode, std::string(static_cast<const char*>(command), bytes)};
  return static_cast<ssize_t>(bytes);
}

void provide(int (*open)()) {
  static uroce::RdmaCmProvider provider;
  provider = {open, note};
  void* const set = check(dlsym(RTLD_DEFAULT, uroce::kSetRdmaCmProvider));
  reinterpret_cast<uroce::SetRdmaCmProvider>(set)(&provider);
}

int open_node(const std::string& path, int flags = O_RDWR | O_CLOEXEC) {
  provide(open_pipe);
  return check(open(path.c_str(), flags));
}

bool is_char_device(int descriptor) {
  struct stat status {};
  struct stat64 status64 {};
  check(fstat(descriptor, &status));
  check(fstat64(descriptor, &status64));
  return S_ISCHR(status.st_mode) && S_ISCHR(status64.st_mode) && status.st_rdev == makedev(1, 3) &&
         status64.st_rdev == makedev(1, 3);
}

std::string every_form(const std::string& path) {
  provide(open_pipe);
  const char* const name = path.c_str();
  const std::vector<std::pair<const char*, std::function<int()>>> forms = {
      {"open", [=] { return open(name, O_RDWR); }},
      {"open64", [=] { return open64(name, O_RDWR); }},
      {"openat", [=] { return openat(AT_FDCWD, name, O_RDWR); }},
      {"openat64", [=] { return openat64(AT_FDCWD, name, O_RDWR); }},
      {"__open_2", [=] { return __open_2(name, O_RDWR); }},
      {"__open64_2", [=] { return __open64_2(name, O_RDWR); }},
      {"__openat_2", [=] { return __openat_2(AT_FDCWD, name, O_RDWR); }},
      {"__openat64_2", [=] { return __openat64_2(AT_FDCWD, name, O_RDWR); }},
  };
  for (const auto& [form, call] : forms) {
    if (!is_char_device(check(call()))) return form;
  }
  return "char device";
}

std::string flags(const std::string& path) {
  for (const int asked : {0, O_CLOEXEC, O_NONBLOCK, O_CLOEXEC | O_NONBLOCK}) {
    const int node = open_node(path, O_RDWR | asked);
    const bool closes = (check(fcntl(node, F_GETFD)) & FD_CLOEXEC) != 0;
    const bool blocks = (check(fcntl(node, F_GETFL)) & O_NONBLOCK) == 0;
    if (closes != ((asked & O_CLOEXEC) != 0)) return "O_CLOEXEC";
    if (blocks != ((asked & O_NONBLOCK) == 0)) return "O_NONBLOCK";
  }
  return "as asked for";
}

// Of a command's length, or what the kernel says of a write to the reading end of a pipe.
std::string lengths(const std::string& path) {
  const int node = open_node(path);
  for (std::size_t bytes = 0; bytes <= 400; ++bytes) {
    const std::string command(bytes, 'c');
    noted = {};
    const ssize_t result = write(node, command.data(), bytes);
    const bool is_command = bytes >= 12 && bytes <= 304;
    const bool was_taken = result == static_cast<ssize_t>(bytes) && noted.command == command;
    if (is_command && !was_taken) return "lost a command of " + std::to_string(bytes);
    if (!is_command && (result != -1 || errno != EBADF || noted.descriptor != -1)) {
      return "took " + std::to_string(bytes);
    }
  }
  return "commands only";
}

std::string duplicate(const std::string& path) {
  const int node = open_node(path);
  const std::string command(100, 'd');
  check(write(node, command.data(), command.size()));
  const Noted first = noted;
  const int second = check(dup2(node, 900));
  check(close(node));
  if (!is_char_device(second)) return "is a pipe";
  check(write(second, command.data(), command.size()));
  const bool is_same = noted.device == first.device && noted.inode == first.inode;
  return is_same && noted.descriptor == second ? "is the same" : "is another";
}

std::string closed(const std::string& path) {
  const int node = open_node(path);
  check(close(node));
  noted = {};
  const std::string command(100, 'x');
  if (write(node, command.data(), command.size()) != -1 || errno != EBADF) return "still there";
  return noted.descriptor == -1 ? "gone" : "was told";
}

// Of the program itself, opened before and after.
std::string other_pipes(const std::string& path) {
  int before[2], after[2];
  check(pipe(before));
  open_node(path);
  check(pipe(after));
  noted = {};
  for (const auto& ends : {before, after}) {
    struct stat status {};
    check(fstat(ends[0], &status));
    if (!S_ISFIFO(status.st_mode)) return "disguised";
    std::string text(100, 't'), read_back(100, ' ');
    if (write(ends[1], text.data(), 100) != 100) return "not written";
    if (read(ends[0], read_back.data(), 100) != 100 || read_back != text) return "not read";
  }
  return noted.descriptor == -1 ? "untouched" : "taken for commands";
}

}  // namespace

const Actions& rdma_cm() {
  static const Actions all = {
      {"rdma_cm without a provider",
       [](auto& path) {
         check(open(path.c_str(), O_RDWR));
         return std::string("opened");
       }},
      {"rdma_cm that cannot be opened",
       [](auto& path) {
         provide(refuse);
         check(open(path.c_str(), O_RDWR));
         return std::string("opened");
       }},
      {"rdma_cm by every form", every_form},
      {"rdma_cm flags", flags},
      {"rdma_cm commands", lengths},
      {"rdma_cm duplicate", duplicate},
      {"rdma_cm closed", closed},
      {"rdma_cm and other pipes", other_pipes},
  };
  return all;
}

}  // namespace probe
