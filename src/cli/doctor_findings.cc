// SPDX-License-Identifier: BSD-2-Clause
#include "cli/doctor_findings.h"

#include <algorithm>
#include <limits>

#include "host/port_attributes.h"

namespace uroce::cli {
namespace {

using enum Severity;

constexpr std::uint64_t kMebi = 1024 * 1024;
constexpr std::uint64_t kReceiveBufferGood = 4 * kMebi;
constexpr std::uint64_t kMemlockGood = 64 * kMebi;
// A segmented train that the kernel passes to a socket in one piece.
constexpr std::uint64_t kTrainBytes = 64 * 1024;

bool uses(const DoctorFacts& facts, host::UplinkKind kind) {
  return facts.setup && facts.setup->config.uplink.kind == kind;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 16 * kMebi || (bytes >= kMebi && bytes % kMebi == 0)) {
    return std::to_string(bytes / kMebi) + " MiB";
  }
  return std::to_string(bytes / 1024) + " KiB";
}

// Who starts a program without `uroce run` and sets the variables himself must know.
std::string provider_text(const Installation& i) {
  const std::string text = "the provider is " + i.provider;
  if (i.provider.starts_with(i.plug_in_folder + "/")) return text;
  return text + ", and 'uroce run' says so to programs; libibverbs by itself looks for providers " +
         "only in " + i.plug_in_folder;
}

void judge_installation(const DoctorFacts& facts, std::vector<Finding>& findings) {
  const Installation& i = facts.installation;
  const std::string places = host::join(i.looked_in, ", ");
  if (i.provider.empty()) {
    findings.push_back({kProblem, "the provider, liburoce-rdmav34.so, is in none of " + places,
                        "build uroce completely (cmake --build --preset release) or install it"});
  }
  if (i.preload.empty()) {
    findings.push_back(
        {kProblem, "liburoce-kernel.so, which stands in for the kernel, is in none of " + places,
         "build uroce completely (cmake --build --preset release) or install it"});
  }
  if (!i.provider.empty() && !i.preload.empty()) {
    findings.push_back({kGood, provider_text(i), ""});
  }
}

void judge_libibverbs(const DoctorFacts& facts, std::vector<Finding>& findings) {
  const LibibverbsFacts& library = facts.libibverbs;
  const std::string ours = "IBVERBS_PRIVATE_" + std::to_string(kProviderAbi);
  if (library.path.empty()) {
    findings.push_back({kProblem, "libibverbs cannot be loaded: " + library.load_error,
                        "install it: apt-get install libibverbs1 ibverbs-utils"});
  } else if (library.has_our_abi) {
    findings.push_back({kGood, library.path + " has the provider interface " + ours, ""});
  } else {
    const std::string has = library.private_abis.empty() ? "no provider interface"
                                                         : host::join(library.private_abis, ", ");
    findings.push_back(
        {kProblem,
         library.path + " has " + has + ", and this uroce speaks " + ours + " (rdma-core 34 to 56)",
         "use a libibverbs of rdma-core 34 to 56: Debian 12, Ubuntu 22.04 or 24.04, EL 9"});
  }
}

void judge_kernel_rdma(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.kernel_has_rdma) return;
  const std::string devices =
      facts.kernel_devices.empty() ? "no device" : host::join(facts.kernel_devices, ", ");
  findings.push_back(
      {kNote,
       "the kernel has RDMA of its own (" + devices +
           "); under 'uroce run' its netlink interface is hidden, because libibverbs "
           "would look nowhere else",
       "devices whose plug-in is found through sysfs (mlx5, rxe) can still be used; "
       "siw's is found through netlink only and is not seen"});
}

void judge_device(const host::Device& device, std::vector<Finding>& findings) {
  const std::string name =
      device.netdev.empty() ? device.name : device.name + " on " + device.netdev;
  if (!device.active) {
    findings.push_back({kProblem, name + " is down", "ip link set " + device.netdev + " up"});
  } else if (device.gids.empty()) {
    findings.push_back({kProblem, name + " has no usable address, so it has no GID",
                        "ip address add 192.0.2.1/24 dev " + device.netdev});
  } else {
    findings.push_back({kGood,
                        name + " has " + std::to_string(device.gids.size()) + " GIDs, path MTU " +
                            std::to_string(host::port_path_mtu(device.mtu_bytes)),
                        ""});
  }
}

void judge_setup(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.setup) {
    for (const std::string& line : host::split(facts.setup_error, '\n')) {
      findings.push_back({kProblem, line, "correct the configuration; see uroce.conf(5)"});
    }
    return;
  }
  if (!facts.setup->config_file.empty()) {
    findings.push_back({kGood, "configured by " + facts.setup->config_file, ""});
  }
  for (const host::Device& device : facts.setup->devices) judge_device(device, findings);
  const LoopbackHint hint = loopback_hint(*facts.setup);
  if (!hint.what.empty()) findings.push_back({kNote, hint.what, hint.advice});
  if (const auto& fault = facts.setup->config.fault; fault.is_active()) {
    findings.push_back(
        {kNote, "packets meet with faults on purpose: " + datapath::tap::format_fault_spec(fault),
         "--fault off, or take it out of UROCE_FAULT and the configuration file"});
  }
}

void judge_runtime_directory(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.runtime_error.empty()) {
    findings.push_back({kProblem, facts.runtime_error,
                        "programs under 'uroce run' meet there; UROCE_RUNTIME_DIR names another"});
  } else if (facts.runtime_free_bytes < facts.runtime_missing_bytes) {
    findings.push_back({kProblem,
                        facts.runtime_path + " has only " + size_text(facts.runtime_free_bytes) +
                            " free, and the next program takes " +
                            size_text(facts.runtime_missing_bytes) + " of it",
                        "make room there, or set UROCE_RUNTIME_DIR"});
  } else {
    findings.push_back({kGood, "processes meet in " + facts.runtime_path, ""});
  }
}

std::string holder_text(const PortHolder& holder) {
  std::string text = "user " + std::to_string(holder.user);
  if (holder.process != 0) {
    text += ", process " + std::to_string(holder.process) + " (" + holder.program + ")";
  } else if (holder.user == 0) {
    text += " or the kernel itself (rxe, a tunnel)";
  }
  return text;
}

// Empty where programs of uroce can have the port beside the holder.
std::string why_not_shared(const PortHolder& holder, uid_t user) {
  if (holder.user != user) return "; only programs of one user can share it";
  return holder.shares ? "" : ", which is nothing under 'uroce run' and does not share it";
}

void judge_port(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (uses(facts, host::UplinkKind::kNone) || !facts.setup) return;
  const std::string port = "UDP port " + std::to_string(facts.setup->config.udp_port);
  std::vector<std::string> own;
  bool is_free = true;
  for (const PortHolder& holder : facts.port_holders) {
    const std::string reason = why_not_shared(holder, facts.user);
    if (reason.empty()) {
      own.push_back(holder_text(holder));
      continue;
    }
    is_free = false;
    const std::string as_user = holder.user == facts.user ? "" : "run as that user, ";
    findings.push_back(
        {kProblem, port + " is held by " + holder_text(holder) + reason,
         "end that program, " + as_user + "or use --uplink none for peers on this host"});
  }
  if (!is_free) return;
  if (own.empty()) {
    findings.push_back({kGood, port + " is free", ""});
  } else {
    findings.push_back({kGood, port + " is shared by your programs: " + host::join(own, "; "), ""});
  }
}

void judge_segmentation(const LinkFacts& link, bool uses_dpdk, std::vector<Finding>& findings) {
  if (link.kind != "veth" || !link.udp_segmentation.value_or(false)) return;
  const std::string advice = "ethtool -K " + link.netdev + " tx-udp-segmentation off";
  findings.push_back({uses_dpdk ? kProblem : kNote,
                      link.netdev +
                          " is a veth that passes trains of UDP packets on in one piece: a capture "
                          "or a peer that reads raw frames (af_packet) sees several packets as one",
                      advice + (uses_dpdk ? ", at both ends" : ", where such a peer is used")});
}

bool is_private_ipv4(const Gid& gid) {
  const std::uint8_t a = gid.bytes[12], b = gid.bytes[13];
  return gid.is_ipv4() && (a == 10 || (a == 172 && b >= 16 && b < 32) || (a == 192 && b == 168) ||
                           (a == 100 && b >= 64 && b < 128));
}

// A container's or a virtual network's way out; this host cannot see what its neighbour does.
bool may_be_behind_nat(const DoctorFacts& facts, const LinkFacts& link) {
  if (link.kind != "veth" || !link.carries_default_route) return false;
  const auto device = std::ranges::find(facts.setup->devices, link.device, &host::Device::name);
  return device != facts.setup->devices.end() && std::ranges::any_of(device->gids, is_private_ipv4);
}

void judge_links(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.setup || uses(facts, host::UplinkKind::kNone)) return;
  constexpr const char* kWhy =
      "the ICRC covers the addresses, so a translated packet is dropped as damaged";
  for (const LinkFacts& link : facts.links) {
    judge_segmentation(link, uses(facts, host::UplinkKind::kDpdk), findings);
    if (may_be_behind_nat(facts, link)) {
      findings.push_back({kNote,
                          link.netdev +
                              " looks like the inside of a container; if its way out is "
                              "translated (NAT), peers outside cannot be reached: " +
                              kWhy,
                          "use the host's network (docker run --network host) for peers outside"});
    }
  }
  if (facts.nat_rules) {
    findings.push_back({kNote, std::string("this host has NAT rules; ") + kWhy,
                        "leave UDP port 4791 out of them"});
  }
}

void judge_limits(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (uses(facts, host::UplinkKind::kUdp) && facts.receive_buffer_max_bytes < kReceiveBufferGood) {
    findings.push_back(
        {kNote,
         "net.core.rmem_max is " + size_text(facts.receive_buffer_max_bytes) + ", room for about " +
             std::to_string(facts.receive_buffer_max_bytes / 2 / kTrainBytes) +
             " trains of packets (the kernel counts its own overhead): peers that send over udp "
             "are held to that",
         "sysctl -w net.core.rmem_max=" + std::to_string(kReceiveBufferGood)});
  }
  if (facts.memlock_bytes < kMemlockGood) {
    findings.push_back({kNote,
                        "memory that may be locked is limited to " +
                            size_text(facts.memlock_bytes) +
                            "; uroce locks none, but some programs look at the limit",
                        "ulimit -l unlimited, should a program complain"});
  }
}

void judge_dpdk(const DoctorFacts& facts, std::vector<Finding>& findings) {
  const Severity severity = uses(facts, host::UplinkKind::kDpdk) ? kProblem : kNote;
  if (facts.installation.dpdk_module.empty()) {
    findings.push_back(
        {severity, "the DPDK module, liburoce-dpdk.so, is not there",
         "only --uplink dpdk:... needs it; build it (cmake --build --preset release, configured "
         "without -DUROCE_DPDK=OFF)"});
  } else if (!facts.dpdk_load_error.empty()) {
    findings.push_back({severity, "the DPDK module cannot be loaded: " + facts.dpdk_load_error,
                        "only --uplink dpdk:... needs it; install DPDK's libraries"});
  } else {
    findings.push_back({kGood, "the DPDK module can be loaded", ""});
  }
  if (!facts.missing_capability.empty()) {
    findings.push_back(
        {kProblem,
         "dpdk:" + facts.setup->config.uplink.dpdk_spec + " needs " + facts.missing_capability +
             ", which you do not have",
         "run as root, or give it to the shell (capsh or setpriv with --ambient-caps)"});
  }
  if (facts.hugepages_total == 0) {
    findings.push_back({kNote, "there are no hugepages; everything works without, DPDK slower",
                        "echo 256 > /proc/sys/vm/nr_hugepages"});
  } else {
    findings.push_back({kGood,
                        std::to_string(facts.hugepages_free) + " of " +
                            std::to_string(facts.hugepages_total) + " hugepages of " +
                            size_text(facts.hugepage_kib * 1024) + " are free",
                        ""});
  }
}

void judge_program(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.program) return;
  const ProgramFacts& program = *facts.program;
  const std::string reason = why_not_preloadable(program);
  if (program.path.empty()) {
    findings.push_back({kProblem, program.name + ": there is no such program", "check PATH"});
  } else if (!program.is_executable) {
    findings.push_back({kProblem, program.path + " may not be executed", "chmod +x"});
  } else if (!reason.empty()) {
    const bool rights = program.is_setuid || program.has_file_capabilities;
    findings.push_back({kProblem,
                        program.path + " " + reason + ", so nothing can be preloaded into it",
                        rights ? "use a copy without these rights (cp drops them)"
                               : "use a dynamically linked build for this machine"});
  } else {
    findings.push_back({kGood, program.path + " can be run under uroce", ""});
  }
}

}  // namespace

std::vector<Finding> judge(const DoctorFacts& facts) {
  std::vector<Finding> findings;
  judge_installation(facts, findings);
  judge_libibverbs(facts, findings);
  judge_kernel_rdma(facts, findings);
  judge_setup(facts, findings);
  judge_runtime_directory(facts, findings);
  judge_port(facts, findings);
  judge_links(facts, findings);
  judge_limits(facts, findings);
  judge_dpdk(facts, findings);
  judge_program(facts, findings);
  return findings;
}

std::string summary(const std::vector<Finding>& findings) {
  const auto problems = std::ranges::count(findings, kProblem, &Finding::severity);
  if (problems == 0) return "uroce is usable here: try 'uroce run -- ibv_devinfo'";
  return problems == 1 ? "1 problem to solve" : std::to_string(problems) + " problems to solve";
}

}  // namespace uroce::cli
