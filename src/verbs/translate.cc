// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/translate.h"

#include <cerrno>
#include <cstring>

#include "host/gid_table.h"
#include "host/port_attributes.h"
#include "memory/access.h"
#include "steering/hash.h"
#include "verbs/number_of.h"

namespace uroce::verbs {
namespace {

using namespace transport;  // NOLINT: this file is about both worlds
namespace attribute = transport::qp_attribute;

template <typename Ours, typename Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<std::uint32_t>(ours) == static_cast<std::uint32_t>(theirs);
}

static_assert(same(WcStatus::kSuccess, IBV_WC_SUCCESS));
static_assert(same(WcStatus::kLocalLengthError, IBV_WC_LOC_LEN_ERR));
static_assert(same(WcStatus::kLocalQpOperationError, IBV_WC_LOC_QP_OP_ERR));
static_assert(same(WcStatus::kLocalProtectionError, IBV_WC_LOC_PROT_ERR));
static_assert(same(WcStatus::kFlushed, IBV_WC_WR_FLUSH_ERR));
static_assert(same(WcStatus::kWindowBindError, IBV_WC_MW_BIND_ERR));
static_assert(same(WcStatus::kBadResponse, IBV_WC_BAD_RESP_ERR));
static_assert(same(WcStatus::kLocalAccessError, IBV_WC_LOC_ACCESS_ERR));
static_assert(same(WcStatus::kRemoteInvalidRequest, IBV_WC_REM_INV_REQ_ERR));
static_assert(same(WcStatus::kRemoteAccessError, IBV_WC_REM_ACCESS_ERR));
static_assert(same(WcStatus::kRemoteOperationError, IBV_WC_REM_OP_ERR));
static_assert(same(WcStatus::kRetryExceeded, IBV_WC_RETRY_EXC_ERR));
static_assert(same(WcStatus::kRnrRetryExceeded, IBV_WC_RNR_RETRY_EXC_ERR));
static_assert(same(WcStatus::kFatal, IBV_WC_FATAL_ERR));
static_assert(same(WcStatus::kGeneralError, IBV_WC_GENERAL_ERR));

static_assert(same(WcOpcode::kSend, IBV_WC_SEND));
static_assert(same(WcOpcode::kRdmaWrite, IBV_WC_RDMA_WRITE));
static_assert(same(WcOpcode::kRdmaRead, IBV_WC_RDMA_READ));
static_assert(same(WcOpcode::kCompareSwap, IBV_WC_COMP_SWAP));
static_assert(same(WcOpcode::kFetchAdd, IBV_WC_FETCH_ADD));
static_assert(same(WcOpcode::kBindWindow, IBV_WC_BIND_MW));
static_assert(same(WcOpcode::kLocalInvalidate, IBV_WC_LOCAL_INV));
static_assert(same(WcOpcode::kAtomicWrite, IBV_WC_ATOMIC_WRITE));
static_assert(same(WcOpcode::kReceive, IBV_WC_RECV));
static_assert(same(WcOpcode::kReceiveRdmaWithImmediate, IBV_WC_RECV_RDMA_WITH_IMM));

static_assert(same(wc_flag::kGrh, IBV_WC_GRH));
static_assert(same(wc_flag::kWithImmediate, IBV_WC_WITH_IMM));
static_assert(same(wc_flag::kWithInvalidate, IBV_WC_WITH_INV));

static_assert(same(QpState::kReset, IBV_QPS_RESET) && same(QpState::kInit, IBV_QPS_INIT) &&
              same(QpState::kRtr, IBV_QPS_RTR) && same(QpState::kRts, IBV_QPS_RTS) &&
              same(QpState::kSqd, IBV_QPS_SQD) && same(QpState::kSqe, IBV_QPS_SQE) &&
              same(QpState::kErr, IBV_QPS_ERR));

static_assert(same(attribute::kState, IBV_QP_STATE));
static_assert(same(attribute::kCurrentState, IBV_QP_CUR_STATE));
static_assert(same(attribute::kEnableSqdNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY));
static_assert(same(attribute::kAccessFlags, IBV_QP_ACCESS_FLAGS));
static_assert(same(attribute::kPKeyIndex, IBV_QP_PKEY_INDEX));
static_assert(same(attribute::kPort, IBV_QP_PORT));
static_assert(same(attribute::kQKey, IBV_QP_QKEY));
static_assert(same(attribute::kAddressVector, IBV_QP_AV));
static_assert(same(attribute::kPathMtu, IBV_QP_PATH_MTU));
static_assert(same(attribute::kTimeout, IBV_QP_TIMEOUT));
static_assert(same(attribute::kRetryCount, IBV_QP_RETRY_CNT));
static_assert(same(attribute::kRnrRetry, IBV_QP_RNR_RETRY));
static_assert(same(attribute::kReceivePsn, IBV_QP_RQ_PSN));
static_assert(same(attribute::kMaxReadAtomic, IBV_QP_MAX_QP_RD_ATOMIC));
static_assert(same(attribute::kAlternatePath, IBV_QP_ALT_PATH));
static_assert(same(attribute::kMinRnrTimer, IBV_QP_MIN_RNR_TIMER));
static_assert(same(attribute::kSendPsn, IBV_QP_SQ_PSN));
static_assert(same(attribute::kMaxDestReadAtomic, IBV_QP_MAX_DEST_RD_ATOMIC));
static_assert(same(attribute::kPathMigrationState, IBV_QP_PATH_MIG_STATE));
static_assert(same(attribute::kCapabilities, IBV_QP_CAP));
static_assert(same(attribute::kDestinationQpn, IBV_QP_DEST_QPN));
static_assert(same(attribute::kRateLimit, IBV_QP_RATE_LIMIT));

namespace hash_field = steering::hash_field;
static_assert(same(hash_field::kSourceIpv4, IBV_RX_HASH_SRC_IPV4));
static_assert(same(hash_field::kDestinationIpv4, IBV_RX_HASH_DST_IPV4));
static_assert(same(hash_field::kSourceIpv6, IBV_RX_HASH_SRC_IPV6));
static_assert(same(hash_field::kDestinationIpv6, IBV_RX_HASH_DST_IPV6));
static_assert(same(hash_field::kSourcePortTcp, IBV_RX_HASH_SRC_PORT_TCP));
static_assert(same(hash_field::kDestinationPortTcp, IBV_RX_HASH_DST_PORT_TCP));
static_assert(same(hash_field::kSourcePortUdp, IBV_RX_HASH_SRC_PORT_UDP));
static_assert(same(hash_field::kDestinationPortUdp, IBV_RX_HASH_DST_PORT_UDP));

constexpr std::uint8_t kUsualHopLimit = 64;
constexpr std::uint8_t kServiceLevelMax = 15;  // four bits of a header that RoCE has not

// Spread by connection over 0xC000 to 0xFFFF, where receivers and routers hash on it. With a flow
// label it is derived from that (IBTA annex 17), else from the QPNs, as Linux does both.
std::uint16_t udp_source_port(std::uint32_t flow_label, Qpn local, Qpn remote) {
  if (flow_label == 0) {
    std::uint64_t mixed = std::uint64_t{local.value} * remote.value;
    mixed ^= mixed >> 20;
    mixed ^= mixed >> 40;
    flow_label = static_cast<std::uint32_t>(mixed & 0xf'ffff);
  }
  const std::uint32_t folded = (flow_label & 0x3fff) ^ ((flow_label & 0xf'c000) >> 14);
  return static_cast<std::uint16_t>(0xc000 | folded);
}

constexpr unsigned kFlushRights =
    static_cast<unsigned>(memory::Access::kFlushGlobal | memory::Access::kFlushPersistent);
// IBV_ACCESS_ON_DEMAND, ZERO_BASED and their like mean nothing on a queue pair, and other devices
// take them; a flag without a name may mean anything.
constexpr unsigned kKnownAccess =
    kFlushRights | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
    IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;

// What would be lost by the conversion, or could only be forgotten.
int check_attributes(const ibv_qp_attr& from, std::uint32_t mask) {
  // As the kernel has it: RoCE has no alternate paths, and no device changes capacities.
  if ((mask & (attribute::kAlternatePath | attribute::kCapabilities)) != 0) return EINVAL;
  if ((mask & attribute::kRateLimit) != 0) return EOPNOTSUPP;
  if ((mask & attribute::kPathMigrationState) != 0 && from.path_mig_state != IBV_MIG_MIGRATED) {
    const bool has_name =
        from.path_mig_state == IBV_MIG_REARM || from.path_mig_state == IBV_MIG_ARMED;
    return has_name ? EOPNOTSUPP : EINVAL;
  }
  if ((mask & attribute::kState) != 0 && number_of(from.qp_state) > IBV_QPS_ERR) return EINVAL;
  if ((mask & attribute::kCurrentState) != 0 && number_of(from.cur_qp_state) > IBV_QPS_ERR) {
    return EINVAL;
  }
  if ((mask & attribute::kAccessFlags) != 0 && (from.qp_access_flags & ~kKnownAccess) != 0) {
    return EINVAL;
  }
  return 0;
}

}  // namespace

Gid to_gid(const union ibv_gid& raw) {
  Gid gid;
  std::memcpy(gid.bytes.data(), raw.raw, sizeof(raw.raw));
  return gid;
}

int to_path(const engine::Port& port, Qpn local, Qpn remote, const ibv_ah_attr& from, Path& to) {
  const ibv_global_route& route = from.grh;
  // RoCE has no LIDs: without GRH there is no address.
  if (from.is_global == 0 || from.port_num != 1 || from.sl > kServiceLevelMax ||
      route.sgid_index >= host::GidTable::kLength) {
    return EINVAL;
  }
  const auto source = port.gid(route.sgid_index);
  if (!source) return ENODATA;
  const Gid destination = to_gid(route.dgid);
  if (destination.is_zero() || destination.is_ipv4() != source->is_ipv4()) return EINVAL;
  to = {.source = *source,
        .destination = destination,
        .flow_label = route.flow_label & 0xf'ffff,
        .udp_source_port = udp_source_port(route.flow_label & 0xf'ffff, local, remote),
        .traffic_class = route.traffic_class,
        .hop_limit = route.hop_limit > 1 ? route.hop_limit : kUsualHopLimit,
        .own_qpn = local};
  return 0;
}

std::uint16_t bytes_of_mtu(ibv_mtu mtu) {
  return mtu < IBV_MTU_256 || mtu > IBV_MTU_4096 ? std::uint16_t{0}
                                                 : static_cast<std::uint16_t>(128 << mtu);
}

ibv_mtu mtu_of_bytes(std::uint16_t bytes) {
  int code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && 128 << code < bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

int to_qp_attributes(const engine::Port& port, Qpn local, const ibv_qp_attr& from,
                     std::uint32_t mask, QpAttributes& to) {
  if (const int error = check_attributes(from, mask); error != 0) return error;
  to.state = static_cast<QpState>(from.qp_state);
  to.current_state = static_cast<QpState>(from.cur_qp_state);
  to.sqd_notify = from.en_sqd_async_notify != 0;
  to.access = static_cast<memory::Access>(from.qp_access_flags);
  to.pkey_index = from.pkey_index;
  to.port = from.port_num;
  to.qkey = {from.qkey};
  to.timeout = from.timeout;
  to.retry_count = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.receive_psn = Psn(from.rq_psn);
  to.send_psn = Psn(from.sq_psn);
  to.max_read_atomic = from.max_rd_atomic;
  to.max_dest_read_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.destination_qpn = {from.dest_qp_num};
  if ((mask & attribute::kPathMtu) != 0) {
    to.path_mtu = bytes_of_mtu(from.path_mtu);
    if (to.path_mtu == 0 || to.path_mtu > host::port_path_mtu(port.facts().mtu_bytes)) {
      return EINVAL;
    }
  }
  if ((mask & attribute::kAddressVector) == 0) return 0;
  to.sgid_index = from.ah_attr.grh.sgid_index;
  to.service_level = from.ah_attr.sl;
  return to_path(port, local, to.destination_qpn, from.ah_attr, to.path);
}

void to_ibv_qp_attr(const QpAttributes& from, ibv_qp_attr& to) {
  to = {};
  to.qp_state = static_cast<ibv_qp_state>(from.state);
  to.cur_qp_state = static_cast<ibv_qp_state>(from.current_state);
  to.path_mtu = mtu_of_bytes(from.path_mtu);
  to.path_mig_state = IBV_MIG_MIGRATED;
  to.qkey = from.qkey.value;
  to.rq_psn = from.receive_psn.value();
  to.sq_psn = from.send_psn.value();
  to.dest_qp_num = from.destination_qpn.value;
  to.qp_access_flags = static_cast<unsigned>(from.access);
  to.pkey_index = from.pkey_index;
  to.en_sqd_async_notify = from.sqd_notify ? 1 : 0;
  to.max_rd_atomic = from.max_read_atomic;
  to.max_dest_rd_atomic = from.max_dest_read_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_count;
  to.rnr_retry = from.rnr_retry;
  if (from.path.destination.is_zero()) return;
  to.ah_attr.is_global = 1;
  to.ah_attr.port_num = 1;
  to.ah_attr.sl = from.service_level;
  std::memcpy(to.ah_attr.grh.dgid.raw, from.path.destination.bytes.data(), 16);
  to.ah_attr.grh.flow_label = from.path.flow_label;
  to.ah_attr.grh.sgid_index = from.sgid_index;
  to.ah_attr.grh.hop_limit = from.path.hop_limit;
  to.ah_attr.grh.traffic_class = from.path.traffic_class;
}

}  // namespace uroce::verbs
