// SPDX-License-Identifier: BSD-2-Clause
#include "host/host_identity.h"

#include <sys/stat.h>

#include "host/files.h"

namespace uroce::host {

HostIdentity read_host_identity() {
  HostIdentity identity;
  identity.machine_id = read_line("/etc/machine-id");
  identity.boot_id = read_line("/proc/sys/kernel/random/boot_id");
  // Of the thread, not the process: a thread may have changed its namespace on its own.
  struct stat status {};
  if (stat("/proc/thread-self/ns/net", &status) == 0) identity.network_namespace = status.st_ino;
  return identity;
}

}  // namespace uroce::host
