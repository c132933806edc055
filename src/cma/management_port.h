// SPDX-License-Identifier: BSD-2-Clause
// QP1 of a device in this process: sends and receives the datagrams of the communication manager,
// over whatever links the device has. It is a datagram queue pair like any other, but for its
// number and its Q_Key.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "cm/connection.h"
#include "cm/mad.h"
#include "posix/descriptor.h"
#include "verbs/bridge.h"

namespace uroce::cma {

class ManagementPort {
 public:
  // Null, and errno.
  static std::unique_ptr<ManagementPort> open(verbs::Context& context);
  ~ManagementPort();
  ManagementPort(const ManagementPort&) = delete;
  ManagementPort& operator=(const ManagementPort&) = delete;

  // Readable when something has arrived.
  [[nodiscard]] int descriptor() const { return read_end_.get(); }

  // To the process of this host that has the block of QPNs; 0 for another host. What cannot be sent
  // is lost, as on a network.
  void send(const cm::Route& route, std::uint32_t block, const cm::Mad& mad);

  // take(route, mad) for what has arrived: from route.destination, to route.source. False: there
  // may be more than so many.
  template <typename Take>
  [[nodiscard]] bool receive(std::size_t at_most, Take take) {
    forget_notifications();
    for (std::size_t i = 0; i < at_most; ++i) {
      ibv_wc wc{};
      if (verbs::poll_cq(*receive_cq_, 1, &wc) != 1) return true;
      if (wc.status == IBV_WC_SUCCESS && wc.byte_len == kGrhBytes + cm::kMadBytes) {
        const Slot& slot = slots_[wc.wr_id];
        cm::Mad mad;
        std::memcpy(static_cast<void*>(&mad), slot.data() + kGrhBytes, sizeof mad);
        take(route_of(slot), mad);
      }
      give_receive(wc.wr_id);
    }
    return false;
  }

 private:
  static constexpr std::size_t kGrhBytes = 40;
  static constexpr std::size_t kSlots = 512;
  static constexpr std::size_t kHandlesMax = 256;
  using Slot = std::array<std::byte, kGrhBytes + cm::kMadBytes>;
  using Destination = std::tuple<std::array<std::uint8_t, 16>, std::array<std::uint8_t, 16>,
                                 std::uint32_t, std::uint8_t>;
  struct PublicParts;

  explicit ManagementPort(verbs::Context& context);
  [[nodiscard]] bool make();
  [[nodiscard]] bool to_rts();
  void give_receive(std::uint64_t slot);
  void empty_channel();
  void forget_notifications();
  void let_go_of_handles();
  [[nodiscard]] static cm::Route route_of(const Slot& slot);
  [[nodiscard]] verbs::Ah* handle_to(const cm::Route& route, std::uint32_t block);

  verbs::Context& context_;
  posix::Descriptor read_end_, write_end_;
  std::unique_ptr<PublicParts> public_;
  verbs::Pd* pd_ = nullptr;
  verbs::Cq* send_cq_ = nullptr;
  verbs::Cq* receive_cq_ = nullptr;
  verbs::Mr* mr_ = nullptr;
  verbs::Qp* qp_ = nullptr;
  std::vector<Slot> slots_;
  std::map<Destination, verbs::Ah*> handles_;
};

}  // namespace uroce::cma
