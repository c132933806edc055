// SPDX-License-Identifier: BSD-2-Clause
// One DPDK port with one queue each way and its packet buffers: plugged in, configured and started
// in `open`, stopped and unplugged by the destructor. What the datapath does with the packets is
// not known here.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "datapath/dpdk/port_spec.h"
#include "uroce/time.h"
#include "wire/network.h"

namespace uroce::datapath {

class Port {
 public:
  // Two bursts of received and two of built packets may be held by the datapath at a time.
  static constexpr std::uint16_t kBurst = 64;

  [[nodiscard]] static Result<std::unique_ptr<Port>> open(const PortSpec& spec);
  explicit Port(std::string name) : name_(std::move(name)) {}
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] std::size_t receive(std::span<rte_mbuf*> packets) const {
    if (!started_) return 0;
    return rte_eth_rx_burst(number_, 0, packets.data(), static_cast<std::uint16_t>(packets.size()));
  }
  // How many of them were taken, from the front; the others remain the caller's.
  [[nodiscard]] std::size_t send(std::span<rte_mbuf*> packets) const {
    if (!started_) return 0;
    return rte_eth_tx_burst(number_, 0, packets.data(), static_cast<std::uint16_t>(packets.size()));
  }
  // All of them or, when there are not so many free, none.
  [[nodiscard]] bool allocate(std::span<rte_mbuf*> mbufs) const {
    return rte_pktmbuf_alloc_bulk(pool_, mbufs.data(), static_cast<unsigned>(mbufs.size())) == 0;
  }

  // Null where none is free.
  [[nodiscard]] rte_mbuf* copy(const rte_mbuf* mbuf) const {
    return rte_pktmbuf_copy(mbuf, pool_, 0, mbuf->pkt_len);
  }

  [[nodiscard]] const wire::MacAddress& mac() const { return mac_; }
  [[nodiscard]] std::uint16_t mtu_bytes() const { return mtu_bytes_; }
  // What one packet buffer holds.
  [[nodiscard]] std::uint16_t buffer_bytes() const {
    return static_cast<std::uint16_t>(rte_pktmbuf_data_room_size(pool_) - RTE_PKTMBUF_HEADROOM);
  }
  [[nodiscard]] bool link_is_up() const;
  [[nodiscard]] std::uint64_t bits_per_second() const;
  // Readable while packets are there; -1 where the driver has no such thing.
  [[nodiscard]] int interrupt_descriptor() const { return interrupt_descriptor_; }

  // Also what other stations are sent, where the device can and leaves that out by itself.
  void hear_all(bool all) const;

  // Connects again what connects by itself only at its start; nothing for other ports.
  void on_turn(Instant now);

  // In a forked child: the port is the parent's, the destructor does nothing.
  void abandon() { abandoned_ = true; }

 private:
  [[nodiscard]] int plug_in(const PortSpec& spec);
  [[nodiscard]] int make_pool(const PortSpec& spec);
  [[nodiscard]] int configure(const PortSpec& spec);
  [[nodiscard]] int start();
  [[nodiscard]] int read_mac();

  std::string name_;  // DPDK's, unique in the process
  const char* bus_ = "vdev";
  std::uint16_t number_ = RTE_MAX_ETHPORTS;
  bool plugged_in_ = false;
  bool started_ = false;
  bool connects_at_start_ = false;
  Instant connect_at_;
  Instant was_up_at_;
  bool abandoned_ = false;
  rte_mempool* pool_ = nullptr;
  wire::MacAddress mac_;
  std::uint16_t mtu_bytes_ = 0;
  int interrupt_descriptor_ = -1;
};

}  // namespace uroce::datapath
