// SPDX-License-Identifier: BSD-2-Clause
// ibv_import_device and its kin: a second context over the descriptor of the first, for another
// part of the same program. Objects are the process's own, so another process cannot import them.
//
// libibverbs picks the first device whose number is that of the descriptor, and all of ours have
// the number of /dev/null. So the context that the descriptor belongs to is looked for: the one
// whose own descriptor is a duplicate of it, which the kernel tells by kcmp.
#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "objects.h"

namespace uroce::provider {
namespace {

struct OpenContexts {
  std::mutex mutex;
  ContextHolder* first = nullptr;
};

// Never destroyed: other threads may still be in here while the process exits.
OpenContexts& open_contexts() {
  static OpenContexts* const all = new OpenContexts;
  return *all;
}

// Nobody is in the middle of it when the process forks, and so nobody is in the child. It comes
// after the engines' own handlers, and so locks before them, as an import does.
void lock_across_forks() {
  static const int result =
      pthread_atfork([] { open_contexts().mutex.lock(); }, [] { open_contexts().mutex.unlock(); },
                     [] { open_contexts().mutex.unlock(); });
  static_cast<void>(result);  // out of memory: a child that forked in the middle may hang
}

enum class Answer { kYes, kNo, kUnknown };

Answer are_duplicates(int a, int b) {
  const pid_t self = getpid();
  const long order = syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
  if (order < 0) return errno == EBADF ? Answer::kNo : Answer::kUnknown;
  return order == 0 ? Answer::kYes : Answer::kNo;
}

// Where the kernel does not tell (some containers forbid to ask), the only context must be it.
ContextHolder* find_origin(OpenContexts& all, int cmd_fd) {
  for (ContextHolder* c = all.first; c != nullptr; c = c->next) {
    const Answer answer = are_duplicates(c->base.context.cmd_fd, cmd_fd);
    if (answer == Answer::kYes) return c;
    if (answer == Answer::kUnknown) return all.first->next == nullptr ? all.first : nullptr;
  }
  return nullptr;
}

ibv_pd* import_pd(ibv_context* context, std::uint32_t handle) {
  auto holder = allocate<PdHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::import_pd(*object_of(context), handle);
  if (holder->object == nullptr) return nullptr;
  holder->base = {.context = context, .handle = handle};
  return &holder.release()->base;
}

void unimport_pd(ibv_pd* pd) {
  verbs::unimport_pd(object_of(pd));
  std::free(&holder_of(pd));
}

ibv_mr* import_mr(ibv_pd* pd, std::uint32_t handle) {
  auto holder = allocate<MrHolder>();
  if (holder == nullptr) return nullptr;
  holder->object = verbs::import_mr(*object_of(pd), handle);
  if (holder->object == nullptr) return nullptr;
  holder->base.mr_type = IBV_MR_TYPE_IMPORTED_MR;
  // man ibv_import_mr: it has no address.
  holder->base.public_mr = {.context = pd->context,
                            .pd = pd,
                            .addr = nullptr,
                            .length = holder->object->region.length,
                            .handle = handle,
                            .lkey = handle,
                            .rkey = handle};
  return &holder.release()->base.public_mr;
}

void unimport_mr(ibv_mr* mr) {
  MrHolder& holder = holder_of(reinterpret_cast<verbs_mr*>(mr));
  verbs::unimport_mr(holder.object);
  std::free(&holder);
}

}  // namespace

void remember(ContextHolder& context) {
  lock_across_forks();
  OpenContexts& all = open_contexts();
  const std::lock_guard guard(all.mutex);
  context.next = all.first;
  all.first = &context;
}

void forget(ContextHolder& context) {
  OpenContexts& all = open_contexts();
  const std::lock_guard guard(all.mutex);
  ContextHolder** link = &all.first;
  while (*link != nullptr && *link != &context) link = &(*link)->next;
  if (*link != nullptr) *link = context.next;
}

verbs_context* import_context(ibv_device* /*first_of_the_number*/, int cmd_fd) {
  OpenContexts& all = open_contexts();
  std::unique_lock guard(all.mutex);
  ContextHolder* const origin = find_origin(all, cmd_fd);
  if (origin == nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ContextHolder* const holder = make_context(origin->base.context.device, cmd_fd);
  if (holder == nullptr) return nullptr;
  holder->object = verbs::Context::import(*origin->object, holder->base.context.async_fd);
  guard.unlock();
  return publish(holder);
}

void add_import_ops(verbs_context_ops& ops) {
  ops.import_mr = import_mr;
  ops.import_pd = import_pd;
  ops.unimport_mr = unimport_mr;
  ops.unimport_pd = unimport_pd;
}

}  // namespace uroce::provider
