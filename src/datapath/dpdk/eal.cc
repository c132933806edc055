// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "datapath/dpdk/eal_log.h"

namespace uroce::datapath {
namespace {

constexpr const char* kMemoryMegabytes = "256";  // without hugepages: reserved, used as needed
constexpr unsigned kHugepagesWanted = 32;        // of 2 MiB: pools and rings of two ports

enum class State : std::uint8_t { kNotStarted, kRunning, kFailed };
constinit std::mutex mutex;
constinit State state = State::kNotStarted;
constinit pid_t started_by = 0;
constinit bool started_with_pci = false;

std::vector<unsigned> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

bool hugepages_are_free() {
  const std::string folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  unsigned long free_pages = 0;
  unsigned long reserved_pages = 0;
  std::ifstream(folder + "free_hugepages") >> free_pages;
  std::ifstream(folder + "resv_hugepages") >> reserved_pages;
  return free_pages >= reserved_pages + kHugepagesWanted;
}

// On a thread of its own, so that neither affinity nor signal mask of the caller change.
int init_on_own_thread(std::vector<std::string> arguments) {
  int error = 0;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([&] {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(arguments.size()), argv.data()) < 0) {
      error = rte_errno != 0 ? rte_errno : EIO;
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  thread.join();
  return error;
}

std::optional<Error> check_started(const PortSpec& port) {
  if (started_by != getpid()) {
    return Error{EPERM,
                 "dpdk: this process was forked from one that runs DPDK, which cannot be "
                 "started again here; exec a program, or open the port only in the child"};
  }
  if (state == State::kFailed) return Error{EIO, "dpdk: DPDK did not start the first time"};
  if (port.is_pci && !started_with_pci) {
    return Error{EINVAL, "dpdk:" + port.device +
                             ": DPDK runs without PCI already; open PCI ports before others"};
  }
  return std::nullopt;
}

}  // namespace

std::string driver_file(const std::string& library) {
  const unsigned version = RTE_VER_MONTH == 11 ? RTE_VER_YEAR + 1 : RTE_VER_YEAR;
  return library + '.' + std::to_string(version);
}

std::vector<std::string> eal_arguments(const EalSettings& settings) {
  std::string cpus;
  for (const unsigned cpu : settings.cpus) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
  std::vector<std::string> arguments{"uroce", "--no-telemetry", "--lcores", "0@(" + cpus + ")"};
  if (settings.hugepages) {
    arguments.insert(arguments.end(), {"--in-memory", "--single-file-segments"});
  } else {
    arguments.insert(arguments.end(), {"--no-huge", "--no-shconf", "-m", kMemoryMegabytes});
  }
  if (settings.pci) {
    // Nothing is probed by itself: each port is plugged in by name.
    arguments.insert(arguments.end(), {"-a", "ffff:ff:1f.7"});
  } else {
    arguments.insert(arguments.end(), {"--no-pci", "--iova-mode=va"});
    arguments.insert(arguments.end(), {"-d", driver_file("librte_mempool_ring.so")});
  }
  return arguments;
}

std::optional<Error> start_eal(const PortSpec& port) {
  const std::lock_guard lock(mutex);
  if (state != State::kNotStarted) return check_started(port);
  // Its own complaint about this would go to the terminal.
  if (rte_lcore_count() != 0) {
    return Error{EBUSY,
                 "dpdk: the program runs DPDK itself already, which can be used once in a "
                 "process; use another uplink"};
  }
  if (!capture_eal_log()) return Error{ENOMEM, "dpdk: no memory for DPDK's log"};
  started_by = getpid();
  started_with_pci = port.is_pci;
  const int error =
      init_on_own_thread(eal_arguments({allowed_cpus(), hugepages_are_free(), port.is_pci}));
  const std::string reason = take_eal_error();
  state = error == 0 ? State::kRunning : State::kFailed;
  if (error == 0) return std::nullopt;
  return Error{error, std::string("dpdk: DPDK does not start: ") +
                          (reason.empty() ? rte_strerror(error) : reason.c_str())};
}

}  // namespace uroce::datapath
