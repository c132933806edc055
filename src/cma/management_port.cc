// SPDX-License-Identifier: BSD-2-Clause
#include "cma/management_port.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cma/device.h"
#include "wire/management.h"

namespace uroce::cma {
namespace {

// IBTA 10.2.5.3, 13.5.3.1: of QP1, everywhere.
constexpr std::uint32_t kManagementQKey = 0x8001'0000;

Gid ipv4(const std::byte* address) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  std::memcpy(gid.bytes.data() + 12, address, 4);
  return gid;
}

}  // namespace

// What libibverbs would keep of these objects.
struct ManagementPort::PublicParts {
  ibv_comp_channel channel{};
  ibv_cq send_cq{}, receive_cq{};
  ibv_qp qp{};
  PublicParts() {
    for (ibv_cq* const cq : {&send_cq, &receive_cq}) {
      pthread_mutex_init(&cq->mutex, nullptr);
      pthread_cond_init(&cq->cond, nullptr);
    }
    pthread_mutex_init(&qp.mutex, nullptr);
    pthread_cond_init(&qp.cond, nullptr);
  }
};

ManagementPort::ManagementPort(verbs::Context& context)
    : context_(context), public_(std::make_unique<PublicParts>()), slots_(kSlots) {}

std::unique_ptr<ManagementPort> ManagementPort::open(verbs::Context& context) {
  std::unique_ptr<ManagementPort> port(new ManagementPort(context));
  if (port->make()) return port;
  const int error = errno;
  port.reset();
  errno = error;
  return nullptr;
}

ManagementPort::~ManagementPort() {
  let_go_of_handles();
  if (qp_ != nullptr) static_cast<void>(verbs::destroy_qp(qp_, public_->qp));
  if (mr_ != nullptr) static_cast<void>(verbs::dereg_mr(mr_));
  if (send_cq_ != nullptr) static_cast<void>(verbs::destroy_cq(send_cq_));
  if (receive_cq_ != nullptr) {
    // What was written to our own channel nobody acknowledges.
    empty_channel();
    public_->receive_cq.comp_events_completed = receive_cq_->notifications.given;
    static_cast<void>(verbs::destroy_cq(receive_cq_));
  }
  if (pd_ != nullptr) static_cast<void>(verbs::dealloc_pd(pd_));
}

bool ManagementPort::make() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  read_end_ = posix::Descriptor(ends[0]);
  write_end_ = posix::Descriptor(ends[1]);
  public_->channel.fd = ends[1];
  pd_ = verbs::alloc_pd(context_);
  if (pd_ == nullptr) return false;
  send_cq_ = verbs::create_cq(context_, public_->send_cq, kSlots, nullptr, 0);
  receive_cq_ = verbs::create_cq(context_, public_->receive_cq, kSlots, &public_->channel, 0);
  if (send_cq_ == nullptr || receive_cq_ == nullptr) return false;
  mr_ = verbs::reg_mr(*pd_, slots_.data(), slots_.size() * sizeof(Slot),
                      reinterpret_cast<std::uintptr_t>(slots_.data()), IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) return false;
  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_UD;
  attributes.sq_sig_all = 1;
  attributes.cap = {.max_send_wr = kSlots,
                    .max_recv_wr = kSlots,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = cm::kMadBytes};
  qp_ = verbs::create_qp(
      context_, {.pd = pd_, .send_cq = send_cq_, .receive_cq = receive_cq_, .is_management = true},
      public_->qp, attributes);
  return qp_ != nullptr && to_rts();
}

bool ManagementPort::to_rts() {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = 1;
  to.qkey = kManagementQKey;
  errno = verbs::modify_qp(*qp_, to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (errno != 0) return false;
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) give_receive(slot);
  to.qp_state = IBV_QPS_RTR;
  errno = verbs::modify_qp(*qp_, to, IBV_QP_STATE);
  if (errno != 0) return false;
  to.qp_state = IBV_QPS_RTS;
  errno = verbs::modify_qp(*qp_, to, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return errno == 0 && verbs::req_notify_cq(*receive_cq_, 0) == 0;
}

void ManagementPort::give_receive(std::uint64_t slot) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(slots_[slot].data()), sizeof(Slot), mr_->region.key};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  static_cast<void>(verbs::post_recv(*qp_, &request, &bad));
}

void ManagementPort::empty_channel() {
  std::array<std::byte, 512> unread;
  while (::read(read_end_.get(), unread.data(), unread.size()) > 0) {
  }
}

// Asked for the next before what is there is taken, so that none is missed.
void ManagementPort::forget_notifications() {
  empty_channel();
  static_cast<void>(verbs::req_notify_cq(*receive_cq_, 0));
}

// The header in front of the datagram, IPv4 in its second half (IBTA annex 17.4.5.1.2).
cm::Route ManagementPort::route_of(const Slot& slot) {
  cm::Route route;
  const bool is_ipv6 = (slot[0] >> 4) == std::byte{6};
  if (is_ipv6) {
    std::memcpy(route.destination.bytes.data(), slot.data() + 8, 16);
    std::memcpy(route.source.bytes.data(), slot.data() + 24, 16);
    route.traffic_class = static_cast<std::uint8_t>((slot[0] & std::byte{15}) << 4 | slot[1] >> 4);
  } else {
    route.destination = ipv4(slot.data() + 32);
    route.source = ipv4(slot.data() + 36);
    route.traffic_class = static_cast<std::uint8_t>(slot[21]);
  }
  return route;
}

verbs::Ah* ManagementPort::handle_to(const cm::Route& route, std::uint32_t block) {
  const Destination key{route.source.bytes, route.destination.bytes, block, route.traffic_class};
  if (const auto known = handles_.find(key); known != handles_.end()) return known->second;
  const auto index = static_cast<const Device*>(route.device)->gid_index(route.source);
  if (!index) return nullptr;
  ibv_ah_attr to{};
  to.is_global = 1;
  to.port_num = 1;
  to.grh.sgid_index = *index;
  to.grh.hop_limit = route.hop_limit;
  to.grh.traffic_class = route.traffic_class;
  std::memcpy(to.grh.dgid.raw, route.destination.bytes.data(), sizeof to.grh.dgid.raw);
  verbs::Ah* const handle = verbs::create_ah(*pd_, to);
  if (handle == nullptr) return nullptr;
  handle->management_block = block;
  if (handles_.size() >= kHandlesMax) let_go_of_handles();
  handles_.emplace(key, handle);
  return handle;
}

void ManagementPort::let_go_of_handles() {
  for (const auto& [destination, handle] : handles_) verbs::destroy_ah(handle);
  handles_.clear();
}

void ManagementPort::send(const cm::Route& route, std::uint32_t block, const cm::Mad& mad) {
  ibv_wc sent{};
  while (verbs::poll_cq(*send_cq_, 1, &sent) == 1) {
  }
  verbs::Ah* const handle = handle_to(route, block);
  if (handle == nullptr) return;
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(&mad), sizeof mad, 0};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  request.wr.ud = {handle, wire::kManagementQpn.value, kManagementQKey};
  ibv_send_wr* bad = nullptr;
  static_cast<void>(verbs::post_send(*qp_, &request, &bad));
}

}  // namespace uroce::cma
