// SPDX-License-Identifier: BSD-2-Clause
// Connections: what programs ask for. What they are told of is in events.cc.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "cma/agent.h"
#include "engine/clock.h"
#include "engine/log_sink.h"

namespace uroce::cma {
namespace {

constexpr std::uint32_t kBacklogMax = 1'024;
constexpr std::uint8_t kRetriesMax = 7;

cm::Service service_of(std::uint8_t qp_type) {
  switch (qp_type) {
    case IBV_QPT_UC:
      return cm::Service::kUc;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return cm::Service::kXrc;
    default:
      return cm::Service::kRc;
  }
}

cm::Serves served_by(const Id& id) {
  if (id.is_datagram()) return cm::Serves::kDatagrams;
  switch (service_of(id.qp_type)) {
    case cm::Service::kUc:
      return cm::Serves::kUc;
    case cm::Service::kXrc:
      return cm::Serves::kXrc;
    case cm::Service::kRc:
      break;
  }
  return id.qp_type == IBV_QPT_RC ? cm::Serves::kRc : cm::Serves::kAll;
}

cm::PrivateData data_of(const rdma_ucm_conn_param& p) {
  return cm::PrivateData(std::as_bytes(std::span(p.private_data).first(p.private_data_len)));
}

cm::Offer offer_of(const Id& id, const rdma_ucm_conn_param& p) {
  return {.qpn = {p.qp_num & 0xff'ffff},
          .psn = id.connection.local.psn,
          .service = service_of(id.qp_type),
          .responder_resources = p.responder_resources,
          .initiator_depth = p.initiator_depth,
          .retry_count = std::min(p.retry_count, kRetriesMax),
          .rnr_retry_count = std::min(p.rnr_retry_count, kRetriesMax),
          .flow_control = p.flow_control != 0,
          .has_srq = p.srq != 0,
          .path_mtu = id.device->path_mtu(),
          .ack_timeout = id.ack_timeout.value_or(kAckTimeout),
          .ca_guid = id.device->node_guid()};
}

}  // namespace

int Agent::listen(Id& id, std::uint32_t backlog) {
  if (id.state == IdState::kIdle) {
    if (const int error = bind(id, Address{}); error != 0) return error;
  }
  if (id.state != IdState::kBound) return EINVAL;
  if (id.is_infiniband) return ENODEV;
  // It was bound for a connection, which failed.
  if (!id.claim) {
    if (const int error = claim_port(id); error != 0) return error;
  }
  if (const int error = ports_.check(id, true); error != 0) return error;
  if (const int error = directory().listen_to_service(*id.claim); error != 0) return error;
  id.reuses_address = false;  // of a port, one listens
  id.backlog = backlog == 0 || backlog > kBacklogMax ? kBacklogMax : backlog;
  id.listener.service_id = id.service_id(id.source.port);
  id.listener.address = id.service_address();
  id.listener.serves = served_by(id);
  manager_.listen(id.listener);
  id.state = IdState::kListening;
  engine::log(engine::LogLevel::kInfo,
              "rdma_cm: listening to port " + std::to_string(id.source.port));
  return 0;
}

int Agent::connect(Id& id, const rdma_ucm_conn_param& parameters) {
  if (id.state != IdState::kRouteResolved || parameters.valid == 0) return EINVAL;
  const std::size_t data_max =
      id.is_datagram() ? cm::kSidrRequestPrivateBytes : cm::kRequestPrivateBytes;
  if (parameters.private_data_len > data_max) return EINVAL;
  const cm::Manager::Request request{.route = id.route,
                                     .service_id = id.service_id(id.destination.port),
                                     .addresses = {.source = id.source.gid,
                                                   .destination = id.destination.gid,
                                                   .source_port = id.source.port,
                                                   .is_ipv4 = id.source.is_ipv4},
                                     .data = data_of(parameters)};
  id.state = IdState::kConnecting;
  id.is_active = true;
  const Instant now = engine::monotonic_now();
  if (id.is_datagram()) return manager_.resolve_service(now, id.connection, request);
  return manager_.connect(now, id.connection, request, offer_of(id, parameters));
}

// The passive side's answer, or the active side's consent to it.
int Agent::accept(Id& id, std::uint64_t uid, const rdma_ucm_conn_param& parameters) {
  if (id.state != IdState::kConnecting) return EINVAL;
  cm::Connection& c = id.connection;
  const cm::PrivateData data = parameters.valid != 0 ? data_of(parameters) : cm::PrivateData();
  if (c.state == cm::State::kReplyReceived) return manager_.ready(c, data);
  const std::uint64_t former = std::exchange(id.uid, uid != 0 ? uid : id.uid);
  int error = EINVAL;
  if (parameters.valid != 0) {
    error = id.is_datagram() ? accept_datagrams(id, parameters, data)
                             : accept_connection(id, parameters, data);
  }
  if (error == 0) return 0;
  id.uid = former;
  // The peer need not wait for what will not come; as from the kernel.
  static_cast<void>(reject(id, cm::Reason::kConsumer, {}));
  return error;
}

int Agent::accept_datagrams(Id& id, const rdma_ucm_conn_param& parameters,
                            const cm::PrivateData& data) {
  if (data.bytes().size() > cm::kSidrReplyPrivateBytes) return EINVAL;
  if (id.qkey == 0) id.qkey = kDatagramQKey;
  return manager_.reply_to_sidr(id.connection, cm::SidrStatus::kValid,
                                {parameters.qp_num & 0xff'ffff}, id.qkey, data);
}

int Agent::accept_connection(Id& id, const rdma_ucm_conn_param& parameters,
                             const cm::PrivateData& data) {
  if (data.bytes().size() > cm::kReplyPrivateBytes) return EINVAL;
  cm::Offer offer = offer_of(id, parameters);
  // A peer is not asked for more than it gives.
  offer.initiator_depth = std::min(offer.initiator_depth, id.connection.remote.responder_resources);
  return manager_.accept(engine::monotonic_now(), id.connection, offer, data);
}

int Agent::reject(Id& id, cm::Reason reason, std::span<const std::byte> data) {
  if (id.state != IdState::kConnecting) return EINVAL;
  const bool is_datagram = id.connection.state == cm::State::kSidrRequestReceived;
  if (data.size() > (is_datagram ? cm::kSidrReplyPrivateBytes : cm::kRejectPrivateBytes)) {
    return EINVAL;
  }
  if (is_datagram) {
    return manager_.reply_to_sidr(id.connection, cm::SidrStatus::kReject, {}, 0,
                                  cm::PrivateData(data));
  }
  return manager_.reject(id.connection, reason, cm::PrivateData(data));
}

// Also where there is nothing to end any more, or never was: the kernel's answer too, once it has
// an identifier of its communication manager for it.
int Agent::disconnect(Id& id) {
  const bool is_connected =
      id.state == IdState::kConnecting ||
      (id.state == IdState::kRemoved && id.connection.state != cm::State::kIdle);
  const bool listens_at_device = id.state == IdState::kListening && id.device != nullptr;
  if (!is_connected && !listens_at_device) return EINVAL;
  static_cast<void>(manager_.disconnect(engine::monotonic_now(), id.connection));
  return 0;
}

int Agent::notify(Id& id, std::uint32_t event) {
  if (id.state != IdState::kConnecting || event != IBV_EVENT_COMM_EST) return EINVAL;
  return manager_.note_established(id.connection);
}

}  // namespace uroce::cma
