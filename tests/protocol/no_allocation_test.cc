// SPDX-License-Identifier: BSD-2-Clause
// Once a connection stands, the core neither allocates nor calls the kernel, whatever it is given
// to do. Two witnesses watch an exchange: this program's own malloc family counts what passes
// through it (operator new of the standard library included), and a seccomp filter that allows
// nothing but the end of the process kills at the first system call.
//
// A third witness covers the paths that no test takes: style.pure holds the core's archives against
// the list of symbols they may need from outside, which are mem{cpy,set,move,cmp} and their like.
// What cannot be named cannot be called.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <new>

#include "support/direct_pair.h"

namespace {

bool counting = false;
int allocations = 0;

void count_allocation() { allocations += counting ? 1 : 0; }

}  // namespace

#pragma GCC visibility push(default)  // or shared libraries would not call these
// The C library's own, under the names it has for programs that bring their own malloc.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count_allocation();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count_allocation();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#pragma GCC visibility pop

namespace uroce::test {
namespace {

using transport::SendOperation;

constexpr std::uint32_t kBytes = 65536;
constexpr int kEndedClean = 0, kAllocated = 1, kNoFilter = 2;

// From here on every system call but exit_group is the process's end.
bool forbid_system_calls() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

template <typename Work>
[[noreturn]] void watch(Work work) {
  if (!forbid_system_calls()) _exit(kNoFilter);
  counting = true;
  work();
  counting = false;
  _exit(allocations == 0 ? kEndedClean : kAllocated);
}

class NoAllocation : public ::testing::TestWithParam<transport::LinkFacts> {
 protected:
  static DirectPair make_pair() {
    return DirectPair(GetParam(), {.path_mtu = 1024, .timeout = 8}, 1 << 20);
  }
  // Some of everything, several times.
  static void exchange_everything(DirectPair& pair) {
    for (int i = 0; i < 50; ++i) {
      pair.post(SendOperation::kWrite, 0, kBytes);
      pair.post_receive(kBytes, kBytes);
      pair.post(SendOperation::kSend, kBytes, kBytes);
      pair.post_receive(kBytes, kBytes);
      pair.post(SendOperation::kWriteWithImmediate, 0, 8);
      pair.post(SendOperation::kRead, 2 * kBytes, kBytes);
      pair.post(SendOperation::kCompareSwap, 0, 8);
      pair.post(SendOperation::kFetchAdd, 8, 8);
      pair.finish();
    }
  }
};

TEST_P(NoAllocation, NorSystemCallInAnExchangeOfEverything) {
  DirectPair pair = make_pair();
  EXPECT_EXIT(watch([&] { exchange_everything(pair); }), ::testing::ExitedWithCode(kEndedClean),
              "");
}

TEST_P(NoAllocation, NorSystemCallWhenPacketsAreLostAndSentAgain) {
  DirectPair pair = make_pair();
  pair.lose_every(17);
  EXPECT_EXIT(watch([&] { exchange_everything(pair); }), ::testing::ExitedWithCode(kEndedClean),
              "");
}

INSTANTIATE_TEST_SUITE_P(
    Links, NoAllocation,
    ::testing::Values(transport::LinkFacts{.max_run_packets = 1, .max_run_bytes = 1024},
                      transport::LinkFacts{.max_run_packets = 16, .max_run_bytes = 60'000},
                      transport::LinkFacts{.max_run_packets = 16,
                                           .max_run_bytes = 60'000,
                                           .peer_window_bytes = 32'768},
                      transport::LinkFacts{.max_run_packets = 1024,
                                           .max_run_bytes = 65'536,
                                           .trusted_memory = true}));

// The witnesses themselves, or the tests above would prove nothing.
TEST(Witness, CountsAnAllocation) {
  EXPECT_EXIT(watch([] { operator delete(operator new(1)); }),
              ::testing::ExitedWithCode(kAllocated), "");
}

TEST(Witness, EndsTheProcessAtASystemCall) {
  EXPECT_EXIT(watch([] { syscall(SYS_getppid); }), ::testing::KilledBySignal(SIGSYS), "");
}

}  // namespace
}  // namespace uroce::test
