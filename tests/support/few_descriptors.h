// SPDX-License-Identifier: BSD-2-Clause
// As long as it lives no more than so many descriptors can be made. UndefinedBehaviorSanitizer
// needs some to look at a type that it has not seen: nothing is to be expected meanwhile.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace uroce::test {

class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest_free);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest_free) + left;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace uroce::test
