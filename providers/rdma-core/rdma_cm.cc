// SPDX-License-Identifier: BSD-2-Clause
// Tells the preloaded library who answers /dev/infiniband/rdma_cm in this process: we do.
#include <dlfcn.h>

#include <cerrno>

#include "cma/agent.h"
#include "rdma_cm_provider.h"

namespace uroce::provider {
namespace {

int open_file() {
  cma::Agent* const agent = cma::Agent::get();
  return agent == nullptr ? -1 : agent->open_file();
}

ssize_t execute(int descriptor, dev_t device, ino_t inode, const void* command, std::size_t bytes) {
  cma::Agent* const agent = cma::Agent::find();
  if (agent == nullptr) {
    errno = EBADF;  // the parent's, in a child
    return -1;
  }
  return agent->execute(descriptor, {device, inode}, command, bytes);
}

constexpr RdmaCmProvider kProvider{open_file, execute};

[[gnu::constructor]] void introduce() {
  void* const function = dlsym(RTLD_DEFAULT, kSetRdmaCmProvider);
  if (function == nullptr) return;
  cma::Agent::set_forget(reinterpret_cast<SetRdmaCmProvider>(function)(&kProvider));
}

[[gnu::destructor]] void say_goodbye() {
  if (cma::Agent* const agent = cma::Agent::find(); agent != nullptr) agent->say_goodbye();
}

}  // namespace
}  // namespace uroce::provider
