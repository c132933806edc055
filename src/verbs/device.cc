// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/device.h"

#include <endian.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "engine/clock.h"
#include "engine/quota.h"
#include "host/gid_table.h"
#include "host/port_attributes.h"
#include "steering/hash.h"
#include "verbs/limits.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

// An OUI that nobody owns (locally administered) and our initials.
constexpr std::uint32_t kVendorId = 0x02'7572;
constexpr std::uint32_t kVendorPartId = 1;
constexpr std::uint32_t kHardwareVersion = 1;
// IBTA PortInfo:CapabilityMask, as rdma_core's IBV_PORT_* have it.
constexpr std::uint32_t kPortCapabilities = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
constexpr std::uint8_t kPhysicalLinkUp = 5;
constexpr std::uint8_t kPhysicalDisabled = 3;
constexpr std::uint8_t kOneVirtualLane = 1;
// 4.096 us << 15: how long a response may wait for its turn of the processor.
constexpr std::uint8_t kAckDelay = 15;

constexpr std::uint64_t kClockKilohertz = 1'000'000;

// IB_UVERBS_DEVICE_*: headers of rdma-core 44 have no names for them.
constexpr std::uint64_t kFlushGlobal = std::uint64_t{1} << 38;
constexpr std::uint64_t kAtomicWrite = std::uint64_t{1} << 40;

// As each transport can; XRC as RC, but from shared receive queues alone.
constexpr std::uint32_t kOdpOfUd =
    IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
constexpr std::uint32_t kOdpOfUc = kOdpOfUd | IBV_ODP_SUPPORT_WRITE;
constexpr std::uint32_t kOdpOfRc = kOdpOfUc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

constexpr int number(std::uint32_t value) { return static_cast<int>(value); }

void fill(ibv_device_attr& a, std::uint64_t node_guid) {
  std::strncpy(a.fw_ver, UROCE_VERSION, sizeof(a.fw_ver) - 1);
  a.node_guid = a.sys_image_guid = htobe64(node_guid);
  a.max_mr_size = UINT64_MAX;
  a.page_size_cap = 0xffff'f000;
  a.vendor_id = kVendorId;
  a.vendor_part_id = kVendorPartId;
  a.hw_ver = kHardwareVersion;
  a.max_qp = number(engine::kQpMax);
  a.max_qp_wr = number(kWorkRequestsMax);
  a.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                       IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_WINDOW |
                       IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                       IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC | IBV_DEVICE_UD_AV_PORT_ENFORCE |
                       IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_SRQ_RESIZE;
  a.max_sge = a.max_sge_rd = number(kSgesMax);
  a.max_cq = number(engine::kCqMax);
  a.max_cqe = number(kCqesMax);
  a.max_mr = number(engine::kMrMax);
  a.max_mw = number(engine::kMwMax);
  a.max_pd = number(engine::kPdMax);
  a.max_ah = number(engine::kAhMax);
  a.max_qp_rd_atom = a.max_qp_init_rd_atom = number(kReadAtomicMax);
  a.max_res_rd_atom = number(kReadAtomicMax * engine::kQpMax);
  // Remote atomics are the processor's own, so they are atomic for everybody on this host.
  a.atomic_cap = IBV_ATOMIC_GLOB;
  a.max_srq = number(engine::kSrqMax);
  a.max_srq_wr = number(kWorkRequestsMax);
  a.max_srq_sge = number(kSgesMax);
  a.max_mcast_grp = number(engine::kMulticastGroupsMax);
  a.max_mcast_qp_attach = number(engine::kMulticastMembersMax);
  a.max_total_mcast_qp_attach = number(engine::kMulticastGroupsMax * engine::kMulticastMembersMax);
  a.max_pkeys = 1;
  a.local_ca_ack_delay = kAckDelay;
  a.phys_port_cnt = 1;
}

// Of links that take whole frames. None of IBV_RAW_PACKET_CAP_* is ours: they are offloads.
void add_raw_packets(ibv_device_attr_ex& a) {
  a.orig_attr.device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
  a.device_cap_flags_ex |= IBV_DEVICE_MANAGED_FLOW_STEERING;
  a.max_wq_type_rq = engine::kWqMax;
  a.rss_caps = {.supported_qpts = 1U << IBV_QPT_RAW_PACKET,
                .max_rwq_indirection_tables = engine::kRwqTablesMax,
                .max_rwq_indirection_table_size = kRwqTableMax,
                .rx_hash_fields_mask = steering::hash_field::kAll,
                .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ};
}

}  // namespace

int query_device_ex(const Context& context, ibv_device_attr_ex& attributes, std::size_t size) {
  if (size < sizeof(attributes.orig_attr)) return EINVAL;
  // The caller's structure may be older, and so shorter, than ours.
  ibv_device_attr_ex all{};
  fill(all.orig_attr, context.engine().port().device().node_guid);
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags | kFlushGlobal | kAtomicWrite;
  all.phys_port_cnt_ex = 1;
  all.odp_caps = {.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
                  .per_transport_caps = {
                      .rc_odp_caps = kOdpOfRc, .uc_odp_caps = kOdpOfUc, .ud_odp_caps = kOdpOfUd}};
  all.xrc_odp_caps = kOdpOfRc & ~std::uint32_t{IBV_ODP_SUPPORT_RECV};
  all.max_dm_size = engine::kDmBytesMax;
  // Completions are timed by CLOCK_MONOTONIC, in nanoseconds.
  all.completion_timestamp_mask = UINT64_MAX;
  all.hca_core_clock = kClockKilohertz;
  all.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX};
  if (context.engine().has_raw_packets()) add_raw_packets(all);
  const std::size_t known = size < sizeof(all) ? size : sizeof(all);
  std::memset(static_cast<void*>(&attributes), 0, size);
  std::memcpy(static_cast<void*>(&attributes), &all, known);
  return 0;
}

int query_rt_values(const Context& context, ibv_values_ex& values) {
  if (context.engine().is_abandoned()) return EIO;
  values.comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
  // In units of the clock, all of them in one field: so mlx5 has it, and so programs read it.
  if (values.comp_mask != 0) values.raw_clock = {0, engine::monotonic_now().ns};
  return 0;
}

void query_ece(ibv_ece& ece) { ece = {.vendor_id = kVendorId, .options = 0, .comp_mask = 0}; }

int set_ece(const ibv_ece& ece) {
  const bool is_ours = ece.vendor_id == kVendorId;
  return is_ours && ece.options == 0 && ece.comp_mask == 0 ? 0 : EINVAL;
}

int query_port(const Context& context, std::uint8_t port, ibv_port_attr& attributes) {
  if (port != 1) return EINVAL;
  if (context.engine().is_abandoned()) return EIO;
  const engine::PortFacts facts = context.engine().port().facts();
  const auto megabits = static_cast<std::uint32_t>(facts.bits_per_second / 1'000'000);
  const host::PortRate& rate = host::port_rate(megabits);
  attributes = {};
  attributes.state = facts.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes.max_mtu = IBV_MTU_4096;
  attributes.active_mtu = mtu_of_bytes(host::port_path_mtu(facts.mtu_bytes));
  attributes.gid_tbl_len = number(host::GidTable::kLength);
  attributes.port_cap_flags = kPortCapabilities;
  attributes.max_msg_sz = static_cast<std::uint32_t>(kMessageBytesMax);
  attributes.pkey_tbl_len = 1;
  attributes.max_vl_num = kOneVirtualLane;
  attributes.active_width = rate.active_width;
  attributes.active_speed = rate.active_speed;
  attributes.phys_state = facts.active ? kPhysicalLinkUp : kPhysicalDisabled;
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

}  // namespace uroce::verbs
