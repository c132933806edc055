// SPDX-License-Identifier: BSD-2-Clause
// What programs are told of: connections, their ends, groups.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cma/agent.h"

namespace uroce::cma {
namespace {

template <std::size_t kBytes>
void copy(std::span<const std::byte> from, std::uint8_t (&to)[kBytes], std::uint8_t& length) {
  length = static_cast<std::uint8_t>(std::min(from.size(), kBytes - 1));
  std::memcpy(to, from.data(), length);
}

// Of the passive side.
std::uint8_t qp_type_of(cm::Service service) {
  switch (service) {
    case cm::Service::kUc:
      return IBV_QPT_UC;
    case cm::Service::kXrc:
      return IBV_QPT_XRC_RECV;
    case cm::Service::kRc:
      break;
  }
  return IBV_QPT_RC;
}

// What the peer takes is what we may give, and the other way round.
void fill_connection(const Id& id, std::span<const std::byte> data, rdma_ucm_conn_param& to) {
  const cm::Offer& remote = id.connection.remote;
  copy(data, to.private_data, to.private_data_len);
  to.qp_num = remote.qpn.value;
  to.responder_resources = remote.initiator_depth;
  to.initiator_depth = remote.responder_resources;
  to.flow_control = remote.flow_control ? 1 : 0;
  to.retry_count = remote.retry_count;
  to.rnr_retry_count = remote.rnr_retry_count;
  to.srq = remote.has_srq ? 1 : 0;
}

void fill_datagram(const Id& id, std::span<const std::byte> data, rdma_ucm_ud_param& to) {
  copy(data, to.private_data, to.private_data_len);
  to.qp_num = id.connection.remote.qpn.value;
  to.qkey = id.qkey;
  fill_path(id.route, to.ah_attr);
}

}  // namespace

void fill_parameters(const Id& id, std::span<const std::byte> data, rdma_ucm_event_resp& to) {
  if (id.is_datagram()) {
    fill_datagram(id, data, to.param.ud);
  } else {
    fill_connection(id, data, to.param.conn);
  }
}

PendingEvent event_for(Id& id, EventType kind, std::uint32_t status) {
  PendingEvent event;
  event.answer.uid = id.uid;
  event.answer.id = id.number;
  event.answer.event = static_cast<std::uint32_t>(kind);
  event.answer.status = status;
  event.id = &id;
  return event;
}

void Agent::post(Id& id, EventType kind, std::uint32_t status) {
  id.file->push(event_for(id, kind, status));
}

void Agent::post_with_data(Id& id, EventType kind, std::uint32_t status, const cm::Event& event) {
  PendingEvent pending = event_for(id, kind, status);
  fill_parameters(id, event.private_data, pending.answer);
  id.file->push(pending);
}

cm::Connection* Agent::new_connection(cm::Listener& listener) {
  Id& listening = *static_cast<Id*>(listener.user);
  if (listening.backlog == 0) return nullptr;
  Id* const id = create_id(*listening.file, 0, listening.port_space, listening.qp_type);
  if (id == nullptr) return nullptr;
  --listening.backlog;
  id->waits_for = &listening;
  id->state = IdState::kConnecting;
  id->source.port = listening.source.port;
  return &id->connection;
}

void Agent::on_request(Id& id, const cm::Event& event) {
  cm::Connection& c = id.connection;
  id.route = c.route;
  id.bind_to(static_cast<Device*>(c.route.device));
  if (event.kind == cm::EventKind::kSidrRequest) {
    id.qp_type = IBV_QPT_UD;
  } else {
    id.qp_type = qp_type_of(c.remote.service);
  }
  const cm::IpAddresses& asked = *event.addresses;
  id.source = {.gid = asked.destination, .is_ipv4 = asked.is_ipv4, .port = id.source.port};
  id.destination = {.gid = asked.source, .is_ipv4 = asked.is_ipv4, .port = asked.source_port};
  Id& listening = *id.waits_for;
  PendingEvent pending = event_for(listening, EventType::kConnectRequest, 0);
  pending.answer.id = id.number;
  pending.connection = &id;
  fill_parameters(id, event.private_data, pending.answer);
  listening.file->push(pending);
}

void Agent::on_datagram_service(Id& id, const cm::Event& event) {
  id.qkey = event.qkey;
  const bool is_there = event.sidr_status == cm::SidrStatus::kValid;
  post_with_data(id, is_there ? EventType::kEstablished : EventType::kUnreachable,
                 static_cast<std::uint32_t>(event.sidr_status), event);
}

void Agent::on_event(cm::Connection& connection, const cm::Event& event) {
  Id& id = *static_cast<Id*>(connection.user);
  if (event.kind == cm::EventKind::kRequest || event.kind == cm::EventKind::kSidrRequest) {
    return on_request(id, event);
  }
  if (id.uid == 0) return;  // the program does not know of it
  if (id.state == IdState::kRemoved) return;
  switch (event.kind) {
    case cm::EventKind::kReply:
      return post_with_data(id, EventType::kConnectResponse, 0, event);
    case cm::EventKind::kEstablished:
      return post(id, EventType::kEstablished, 0);  // an RTU's data is not told, as from the kernel
    case cm::EventKind::kRejected:
      return post_with_data(id, EventType::kRejected, static_cast<std::uint32_t>(event.reason),
                            event);
    case cm::EventKind::kUnreachable:
      return post(id, EventType::kUnreachable, static_cast<std::uint32_t>(-ETIMEDOUT));
    case cm::EventKind::kDisconnected:
      return post(
          id, EventType::kDisconnected,
          static_cast<std::uint32_t>(event.reason == cm::Reason::kTimeout ? -ETIMEDOUT : 0));
    case cm::EventKind::kTimeWaitExit:
      return post(id, EventType::kTimeWaitExit, 0);
    case cm::EventKind::kSidrReply:
      return on_datagram_service(id, event);
    case cm::EventKind::kRequest:
    case cm::EventKind::kSidrRequest:
      return;
  }
}

}  // namespace uroce::cma
