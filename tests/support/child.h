// SPDX-License-Identifier: BSD-2-Clause
// Children that can be ordered about, for what only another process can show.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

namespace uroce::test {

// A forked process that runs `body` and then exits without destructors. Talks over pipes: it says a
// word, the test tells it a word; each waits for the other, so no test sleeps. Killed at the end.
class Child {
 public:
  explicit Child(const std::function<void(Child&)>& body) {
    int up[2], down[2];
    if (::pipe2(up, O_CLOEXEC) != 0 || ::pipe2(down, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    const bool is_child = pid_ == 0;
    read_ = is_child ? down[0] : up[0];
    write_ = is_child ? up[1] : down[1];
    ::close(is_child ? down[1] : up[1]);
    ::close(is_child ? up[0] : down[0]);
    if (!is_child) return;
    body(*this);
    ::_exit(0);
  }
  ~Child() {
    kill_and_reap();
    ::close(read_);
    ::close(write_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // From either side to the other.
  void tell(std::uint64_t word) const {
    if (::write(write_, &word, sizeof word) != sizeof word) ::_exit(3);
  }
  // What the other side told; the value of `kGone` when it ended without a word.
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t hear() const {
    std::uint64_t word = 0;
    return ::read(read_, &word, sizeof word) == sizeof word ? word : kGone;
  }
  void signal(int number) const { ::kill(pid_, number); }
  void stop() const {
    signal(SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void kill_and_reap() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    reap();
  }
  int reap() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = 0;
  int read_ = -1, write_ = -1;
};

}  // namespace uroce::test
