// SPDX-License-Identifier: BSD-2-Clause
#include "cli/doctor_facts.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/netlink.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "cli/port_holders.h"
#include "datapath/directory/table.h"
#include "datapath/dpdk_drivers.h"
#include "host/files.h"
#include "host/host_identity.h"
#include "posix/capability.h"
#include "posix/descriptor.h"
#include "posix/interface.h"

namespace uroce::cli {
namespace {

std::uint64_t number_in(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The names of private symbol versions, as they stand in the library's string table.
std::vector<std::string> private_abis_in(const std::string& path) {
  constexpr std::string_view kPrefix = "IBVERBS_PRIVATE_";
  const std::string bytes = host::read_file(path).value_or("");
  std::vector<std::string> found;
  for (std::size_t at = bytes.find(kPrefix); at != std::string::npos;
       at = bytes.find(kPrefix, at + 1)) {
    std::string name = bytes.c_str() + at;
    if (std::ranges::find(found, name) == found.end()) found.push_back(std::move(name));
  }
  return found;
}

LibibverbsFacts look_at_libibverbs() {
  LibibverbsFacts facts;
  void* library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    facts.load_error = dlerror();
    return facts;
  }
  const std::string number = std::to_string(kProviderAbi);
  facts.has_our_abi = dlvsym(library, ("verbs_register_driver_" + number).c_str(),
                             ("IBVERBS_PRIVATE_" + number).c_str()) != nullptr;
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) facts.path = map->l_name;
  facts.private_abis = private_abis_in(facts.path);
  dlclose(library);
  return facts;
}

void look_at_kernel_rdma(DoctorFacts& facts) {
  const posix::Descriptor netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  facts.kernel_has_rdma = netlink.is_open();
  facts.kernel_devices = host::list_directory("/sys/class/infiniband");
}

// The engines' directory is allocated once and stays; what else they keep there is small.
std::uint64_t missing_bytes(const std::string& folder) {
  constexpr std::uint64_t kOtherFiles = 64 * 1024;
  constexpr std::uint64_t kBytes = sizeof(datapath::Table);
  struct stat status {};
  const bool is_there = stat((folder + "/directory").c_str(), &status) == 0 &&
                        static_cast<std::uint64_t>(status.st_blocks) * 512 >= kBytes;
  return is_there ? 0 : kBytes + kOtherFiles;
}

// Whether the device tree fits is found out by making it, as any command does.
void look_at_runtime_directory(DoctorFacts& facts, const host::Environment& environment) {
  const Result<host::RuntimeDirectory> directory =
      host::open_runtime_directory(environment, host::read_host_identity().network_namespace);
  if (!directory) {
    facts.runtime_error = directory.error().message;
    return;
  }
  facts.runtime_path = directory->path;
  if (facts.setup) {
    const auto prepared = prepare_tree(*facts.setup, environment);
    if (!prepared) facts.runtime_error = prepared.error().message;
  }
  struct statvfs status {};
  if (statvfs(directory->path.c_str(), &status) == 0) {
    facts.runtime_free_bytes = std::uint64_t{status.f_bavail} * status.f_frsize;
    facts.runtime_missing_bytes = missing_bytes(directory->network_path);
  }
}

std::string missing_capability(const host::Config& config) {
  if (config.uplink.kind != host::UplinkKind::kDpdk) return {};
  const auto* driver = datapath::find_dpdk_driver(datapath::dpdk_device(config.uplink.dpdk_spec));
  if (driver == nullptr || driver->capability < 0) return {};
  return posix::has_capability(driver->capability) ? "" : std::string(driver->capability_name);
}

std::vector<LinkFacts> look_at_links(const Setup& setup) {
  std::vector<LinkFacts> links;
  for (const host::Device& device : setup.devices) {
    const host::Interface* interface = setup.network.find(device.netdev);
    if (interface == nullptr) continue;
    links.push_back({device.name, device.netdev, interface->kind,
                     posix::is_offload_on(device.netdev, "tx-udp-segmentation"),
                     device.netdev == setup.network.default_route});
  }
  return links;
}

void look_at_hugepages(DoctorFacts& facts) {
  std::istringstream lines(host::read_file("/proc/meminfo").value_or(""));
  for (std::string name, value, rest; lines >> name >> value && std::getline(lines, rest);) {
    if (name == "HugePages_Total:") facts.hugepages_total = number_in(value);
    if (name == "HugePages_Free:") facts.hugepages_free = number_in(value);
    if (name == "Hugepagesize:") facts.hugepage_kib = number_in(value);
  }
}

void look_at_limits(DoctorFacts& facts) {
  facts.receive_buffer_max_bytes = number_in(host::read_line("/proc/sys/net/core/rmem_max"));
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  facts.memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max()
                                                        : std::uint64_t{limit.rlim_cur};
}

// Loading it tells which of DPDK's libraries is missing; nothing of DPDK is started.
std::string dpdk_load_error(const std::string& module) {
  if (module.empty()) return {};
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  return {};  // stays loaded: its constructors are not made to be undone
}

}  // namespace

DoctorFacts gather_facts(const Arguments& arguments) {
  const host::Environment environment = host::current_environment();
  DoctorFacts facts;
  facts.user = geteuid();
  facts.installation = find_installation(executable_directory());
  facts.libibverbs = look_at_libibverbs();
  Result<Setup> setup = resolve_setup(arguments, environment);
  if (setup) {
    facts.links = look_at_links(*setup);
    facts.port_holders = find_port_holders(setup->config.udp_port);
    facts.missing_capability = missing_capability(setup->config);
    facts.setup = std::move(*setup);
  } else {
    facts.setup_error = setup.error().message;
  }
  look_at_runtime_directory(facts, environment);
  look_at_kernel_rdma(facts);
  const std::string tables = host::read_file("/proc/net/ip_tables_names").value_or("");
  facts.nat_rules = ("\n" + tables).find("\nnat\n") != std::string::npos;
  look_at_limits(facts);
  look_at_hugepages(facts);
  facts.dpdk_load_error = dpdk_load_error(facts.installation.dpdk_module);
  if (!arguments.program.empty()) {
    facts.program = examine_program(arguments.program[0], environment);
  }
  return facts;
}

}  // namespace uroce::cli
