// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk/port.h"

#include <dlfcn.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "datapath/dpdk/eal.h"
#include "datapath/dpdk/eal_log.h"
#include "datapath/dpdk_drivers.h"
#include "posix/capability.h"

namespace uroce::datapath {
namespace {

// IP packet of path MTU 4096 with every header that there may be, and a little more.
constexpr std::uint16_t kWantedMtuBytes = 4'200;
constexpr Duration kConnectEvery = milliseconds(100);
constexpr Duration kQuietBeforeStop = milliseconds(3'000);
constexpr std::uint16_t kPlainMtuBytes = RTE_ETHER_MTU;

// Names of ports and pools are DPDK's for the whole process.
std::string make_name(const PortSpec& spec) {
  static constinit std::atomic<unsigned> next = 0;
  if (spec.is_pci) return spec.device;
  return std::string(spec.facts->driver) + std::to_string(next.fetch_add(1));
}

Error make_error(const PortSpec& spec, const char* step, int error) {
  const std::string reason = take_eal_error();
  return Error{error, "dpdk:" + spec.device + ": " + step + ": " +
                          (reason.empty() ? rte_strerror(error) : reason.c_str())};
}

// DPDK says which of its calls failed, but not what would have helped.
Error cannot_open(const PortSpec& spec, int error) {
  Error result = make_error(spec, "cannot be opened", error);
  const DpdkDriver* driver = find_dpdk_driver(spec.device);
  if (driver != nullptr && driver->capability >= 0 && !posix::has_capability(driver->capability)) {
    result.message +=
        "; it needs " + std::string(driver->capability_name) + ", which this process does not have";
  }
  return result;
}

// The libraries under af_xdp write to the terminal by themselves.
void silence(const char* library, const char* setter) {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return;
  using Setter = void* (*)(void* print);
  if (void* const set_print = dlsym(loaded, setter); set_print != nullptr) {
    reinterpret_cast<Setter>(set_print)(nullptr);
  }
  dlclose(loaded);
}

// Loading it registers the driver. It stays: DPDK keeps pointers into it.
std::optional<Error> load_driver(const PortSpec& spec) {
  const std::string library = spec.driver_library();
  if (library.empty()) return std::nullopt;
  if (dlopen(driver_file(library).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    return Error{ENOENT, "dpdk:" + spec.device + ": the driver cannot be loaded: " + dlerror()};
  }
  silence("libbpf.so.1", "libbpf_set_print");
  silence("libxdp.so.1", "libxdp_set_print");
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Port>> Port::open(const PortSpec& spec) {
  if (auto error = load_driver(spec)) return std::move(*error);
  static_cast<void>(take_eal_error());
  auto port = std::make_unique<Port>(make_name(spec));
  if (spec.is_pci) port->bus_ = "pci";
  if (const int error = port->plug_in(spec); error != 0) {
    return cannot_open(spec, error);
  }
  if (const int error = port->make_pool(spec); error != 0) {
    return make_error(spec, "no memory for packet buffers", error);
  }
  if (const int error = port->configure(spec); error != 0) {
    return make_error(spec, "cannot be configured", error);
  }
  if (const int error = port->read_mac(); error != 0) {
    return make_error(spec, "has no MAC address", error);
  }
  port->connects_at_start_ = spec.connects_at_start();
  if (const int error = port->start(); error != 0 && !port->connects_at_start_) {
    return make_error(spec, "does not start", error);
  }
  return port;
}

Port::~Port() {
  if (abandoned_) return;
  if (number_ != RTE_MAX_ETHPORTS) {
    rte_eth_dev_stop(number_);
    rte_eth_dev_close(number_);
  }
  if (plugged_in_) rte_eal_hotplug_remove(bus_, name_.c_str());
  rte_mempool_free(pool_);
}

int Port::plug_in(const PortSpec& spec) {
  if (const int error = rte_eal_hotplug_add(bus_, name_.c_str(), spec.arguments.c_str());
      error != 0) {
    return -error;
  }
  plugged_in_ = true;
  std::uint16_t number = 0;
  if (const int error = rte_eth_dev_get_port_by_name(name_.c_str(), &number); error != 0) {
    return -error;
  }
  number_ = number;
  return 0;
}

int Port::make_pool(const PortSpec& spec) {
  const unsigned bytes = spec.mbuf_bytes() + unsigned{RTE_PKTMBUF_HEADROOM};
  if (bytes > UINT16_MAX) return EINVAL;
  pool_ =
      rte_pktmbuf_pool_create(("uroce-" + name_).c_str(), spec.facts->mbufs, 0, 0,
                              static_cast<std::uint16_t>(bytes), static_cast<int>(SOCKET_ID_ANY));
  return pool_ == nullptr ? rte_errno : 0;
}

int Port::configure(const PortSpec& spec) {
  rte_eth_dev_info info{};
  if (const int error = rte_eth_dev_info_get(number_, &info); error != 0) return -error;
  rte_eth_conf conf{};
  // Some virtual devices pass long packets but claim not to; the facts know them.
  const bool claims_enough =
      info.max_mtu >= kWantedMtuBytes && info.max_rx_pktlen >= kWantedMtuBytes + 18u;
  conf.rxmode.mtu = claims_enough ? kWantedMtuBytes : kPlainMtuBytes;
  if (!claims_enough && info.max_mtu < kWantedMtuBytes) conf.rxmode.mtu = info.max_mtu;
  mtu_bytes_ = spec.mtu_bytes(static_cast<std::uint16_t>(conf.rxmode.mtu));
  conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER & info.rx_offload_capa;
  conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS & info.tx_offload_capa;
  conf.intr_conf.rxq = spec.facts->has_interrupt ? 1 : 0;
  if (const int error = rte_eth_dev_configure(number_, 1, 1, &conf); error != 0) return -error;
  std::uint16_t rx = spec.facts->descriptors;
  std::uint16_t tx = spec.facts->descriptors;
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(number_, &rx, &tx); error != 0) {
    return -error;
  }
  const auto socket = static_cast<unsigned>(SOCKET_ID_ANY);
  if (const int error = rte_eth_rx_queue_setup(number_, 0, rx, socket, nullptr, pool_);
      error != 0) {
    return -error;
  }
  return -rte_eth_tx_queue_setup(number_, 0, tx, socket, nullptr);
}

int Port::start() {
  if (const int error = rte_eth_dev_start(number_); error != 0) return -error;
  started_ = true;
  // For neighbour discovery; where there is no such filter, everything comes anyway.
  static_cast<void>(rte_eth_allmulticast_enable(number_));
  interrupt_descriptor_ = rte_eth_dev_rx_intr_ctl_q_get_fd(number_, 0);
  if (interrupt_descriptor_ < 0) interrupt_descriptor_ = -1;
  return 0;
}

int Port::read_mac() {
  rte_ether_addr mac{};
  if (const int error = rte_eth_macaddr_get(number_, &mac); error != 0) return -error;
  std::copy_n(mac.addr_bytes, mac_.bytes.size(), mac_.bytes.begin());
  return 0;
}

void Port::on_turn(Instant now) {
  if (!connects_at_start_ || now < connect_at_) return;
  connect_at_ = now + kConnectEvery;
  if (link_is_up()) {
    was_up_at_ = now;
    return;
  }
  if (started_) {
    // Never while the two sides are about to connect or to part, on DPDK's interrupt thread.
    if (was_up_at_ == Instant{}) was_up_at_ = now;
    if (now - was_up_at_ < kQuietBeforeStop) return;
    rte_eth_dev_stop(number_);
    started_ = false;
  }
  was_up_at_ = now;
  static_cast<void>(start());
}

void Port::hear_all(bool all) const {
  static_cast<void>(all ? rte_eth_promiscuous_enable(number_)
                        : rte_eth_promiscuous_disable(number_));
}

bool Port::link_is_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(number_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::uint64_t Port::bits_per_second() const {
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(number_, &link) != 0 ||
      link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN) {
    return 0;
  }
  return std::uint64_t{link.link_speed} * 1'000'000;
}

}  // namespace uroce::datapath
