// SPDX-License-Identifier: BSD-2-Clause
// man rdma_init_qp_attr: what a queue pair of an identifier is set to on its way to RTS.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cma/agent.h"

namespace uroce::cma {
namespace {

std::uint8_t at_most_ours(std::uint8_t reads) {
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(reads, verbs::kReadAtomicMax));
}

bool is_reliable(const Id& id) { return id.qp_type != IBV_QPT_UC; }

// Before there is a connection nothing may be done to its memory.
void to_init(const Id& id, ib_uverbs_qp_attr& to) {
  to.port_num = 1;
  to.qp_attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.is_datagram()) {
    to.qkey = id.qkey != 0 ? id.qkey : kDatagramQKey;
    to.qp_attr_mask |= IBV_QP_QKEY;
    return;
  }
  to.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
  if (id.state != IdState::kConnecting) return;
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.connection.remote.initiator_depth != 0) {
    to.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  }
}

void to_rtr(const Id& id, ib_uverbs_qp_attr& to) {
  const cm::Connection& c = id.connection;
  const std::uint8_t own_mtu = id.device->path_mtu();
  to.qp_attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  to.path_mtu = c.remote.path_mtu == 0 ? own_mtu : std::min(c.remote.path_mtu, own_mtu);
  to.dest_qp_num = c.remote.qpn.value;
  to.rq_psn = c.first_psn_expected();
  fill_path(c.route, to.ah_attr);
  if (is_reliable(id)) {
    to.qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    to.max_dest_rd_atomic = at_most_ours(c.remote.initiator_depth);
  }
}

void to_rts(const Id& id, ib_uverbs_qp_attr& to) {
  const cm::Connection& c = id.connection;
  to.qp_attr_mask |= IBV_QP_SQ_PSN;
  to.sq_psn = c.first_psn_sent();
  if (!is_reliable(id)) return;
  to.qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  to.timeout = id.ack_timeout.value_or(id.is_active ? kAckTimeout : c.remote.ack_timeout);
  to.retry_cnt = id.is_active ? c.local.retry_count : c.remote.retry_count;
  to.rnr_retry = c.remote.rnr_retry_count;
  to.max_rd_atomic = at_most_ours(c.remote.responder_resources);
}

}  // namespace

int Agent::qp_attributes(const Id& id, std::uint32_t state, ib_uverbs_qp_attr& to) const {
  if (id.device == nullptr) return EINVAL;
  to.qp_state = state;
  to.qp_attr_mask = IBV_QP_STATE;
  if (state == IBV_QPS_INIT) {
    to_init(id, to);
    return 0;
  }
  if (state != IBV_QPS_RTR && state != IBV_QPS_RTS) return EINVAL;
  if (id.is_datagram()) {
    if (state == IBV_QPS_RTS) to.qp_attr_mask |= IBV_QP_SQ_PSN;
    to.sq_psn = id.connection.local.psn;
    return 0;
  }
  if (id.state != IdState::kConnecting) return EINVAL;
  if (state == IBV_QPS_RTR) {
    to_rtr(id, to);
  } else {
    to_rts(id, to);
  }
  return 0;
}

void fill_path(const cm::Route& route, ib_uverbs_ah_attr& to) {
  std::memcpy(to.grh.dgid, route.destination.bytes.data(), sizeof to.grh.dgid);
  to.grh.sgid_index = static_cast<Device*>(route.device)->gid_index(route.source).value_or(0);
  to.grh.hop_limit = route.hop_limit;
  to.grh.traffic_class = route.traffic_class;
  to.is_global = 1;
  to.port_num = 1;
}

}  // namespace uroce::cma
