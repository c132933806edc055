// SPDX-License-Identifier: BSD-2-Clause
// Everything about the host that `uroce doctor` judges, gathered in one place so that the judging
// (doctor_findings.h) is a pure function.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/installation.h"
#include "cli/program.h"
#include "cli/setup.h"

namespace uroce::cli {

struct LibibverbsFacts {
  std::string path;        // empty: not found
  std::string load_error;  // why, if so
  bool has_our_abi = false;
  std::vector<std::string> private_abis;  // "IBVERBS_PRIVATE_59"
};

struct PortHolder {
  uid_t user = 0;
  pid_t process = 0;    // 0: not ours to see
  std::string program;  // likewise empty
  // With other programs of its user, as those under 'uroce run' do.
  bool shares = false;
};

// Of one device's interface.
struct LinkFacts {
  std::string device;
  std::string netdev;
  std::string kind;                      // "veth"
  std::optional<bool> udp_segmentation;  // tx-udp-segmentation
  bool carries_default_route = false;
};

struct DoctorFacts {
  uid_t user = 0;
  Installation installation;
  LibibverbsFacts libibverbs;
  std::optional<Setup> setup;
  std::string setup_error;  // when there is no set-up
  std::string runtime_path;
  std::string runtime_error;
  std::uint64_t runtime_free_bytes = 0;
  std::uint64_t runtime_missing_bytes = 0;  // what the next program will still take of them
  std::vector<LinkFacts> links;
  bool kernel_has_rdma = false;
  std::vector<std::string> kernel_devices;
  std::vector<PortHolder> port_holders;
  bool nat_rules = false;  // this host itself translates addresses (visible to root only)
  std::uint64_t receive_buffer_max_bytes = 0;
  std::uint64_t memlock_bytes = 0;  // UINT64_MAX: unlimited
  std::uint64_t hugepages_total = 0, hugepages_free = 0, hugepage_kib = 0;
  std::string dpdk_load_error;     // of the module, when there is one
  std::string missing_capability;  // "CAP_NET_RAW", that the port of the uplink needs
  std::optional<ProgramFacts> program;
};

[[nodiscard]] DoctorFacts gather_facts(const Arguments& arguments);

}  // namespace uroce::cli
