// SPDX-License-Identifier: BSD-2-Clause
// A child process that runs one function, and a line to it. It dies with its parent.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <functional>

#include "node.h"

namespace uroce::tests {

class Process {
 public:
  explicit Process(const std::function<int(const Line&)>& body) {
    std::array<int, 2> down{}, up{};
    EXPECT_EQ(pipe(down.data()) | pipe(up.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(down[1]);
      close(up[0]);
      _exit(body({down[0], up[1]}));
    }
    close(down[0]);
    close(up[1]);
    line = {up[0], down[1]};
  }
  ~Process() {
    close(line.out);
    if (pid_ > 0) static_cast<void>(wait());
    close(line.in);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What it returned, or minus the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  Line line;

 private:
  pid_t pid_ = -1;
};

}  // namespace uroce::tests
