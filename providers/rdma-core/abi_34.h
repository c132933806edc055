// SPDX-License-Identifier: BSD-2-Clause
// The private interface between libibverbs and its providers, version IBVERBS_PRIVATE_34 (rdma-core
// 34 to 56): as much of it as this provider uses. No distribution packages a header for it, so this
// is our own, written from the measured layout; every size and offset that matters is asserted. A
// second version of the interface is a second header beside this one.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

extern "C" {

struct verbs_list_node {
  verbs_list_node* next;
  verbs_list_node* prev;
};

struct verbs_match_ent {
  void* driver_data;
  union {
    const char* modalias;
    std::uint64_t driver_id;
  } u;
  std::uint16_t vendor;
  std::uint16_t device;
  std::uint8_t kind;
};

// verbs_match_ent::kind. A match by the device's name is a modalias "rdma_device:*N<prefix>*".
enum : std::uint8_t {
  VERBS_MATCH_SENTINEL = 0,
  VERBS_MATCH_PCI = 1,
  VERBS_MATCH_MODALIAS = 2,
  VERBS_MATCH_DRIVER_ID = 3,
};

struct verbs_sysfs_dev {
  verbs_list_node entry;
  void* provider_data;
  const verbs_match_ent* match;
  unsigned flags;
  char sysfs_name[64];
  dev_t sysfs_cdev;
  char ibdev_name[64];
  char ibdev_path[256];
  char modalias[512];
  std::uint64_t node_guid;
  std::uint32_t driver_id;
  ibv_node_type node_type;
  int ibdev_idx;
  std::uint32_t num_ports;
  std::uint32_t abi_ver;
  timespec time_created;
};

struct verbs_device;

struct verbs_device_ops {
  const char* name;
  std::uint32_t match_min_abi_version;
  std::uint32_t match_max_abi_version;
  const verbs_match_ent* match_table;
  const verbs_device_ops** static_providers;
  bool (*match_device)(verbs_sysfs_dev*);
  verbs_context* (*alloc_context)(ibv_device*, int cmd_fd, void* private_data);
  verbs_context* (*import_context)(ibv_device*, int cmd_fd);
  verbs_device* (*alloc_device)(verbs_sysfs_dev*);
  void (*uninit_device)(verbs_device*);
};

struct verbs_device {
  ibv_device device;
  const verbs_device_ops* ops;
  std::atomic<int> refcount;
  verbs_list_node entry;
  verbs_sysfs_dev* sysfs;
  std::uint64_t core_support;
};

enum ibv_mr_type {
  IBV_MR_TYPE_MR,
  IBV_MR_TYPE_NULL_MR,
  IBV_MR_TYPE_IMPORTED_MR,
  IBV_MR_TYPE_DMABUF_MR,
};

struct verbs_mr {
  ibv_mr public_mr;
  ibv_mr_type mr_type;
  int access;
};

struct verbs_xrcd {
  ibv_xrcd xrcd;
  std::uint32_t comp_mask;
  std::uint32_t handle;
};

struct verbs_qp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  std::uint32_t comp_mask;
  verbs_xrcd* xrcd;
};

// verbs_qp::comp_mask.
enum : std::uint32_t {
  VERBS_QP_XRCD = 1,
  VERBS_QP_EX = 2,  // qp_ex has its functions
};

struct verbs_cq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};

struct verbs_srq {
  ibv_srq srq;
  ibv_srq_type srq_type;
  verbs_xrcd* xrcd;
  ibv_cq* cq;
  std::uint32_t srq_num;
};

struct verbs_dm {
  ibv_dm dm;
  std::uint32_t handle;
};

// An operation that this provider does not have; libibverbs then answers EOPNOTSUPP.
using verbs_no_operation = void (*)();

// Sorted by name, so operations move from version to version.
struct verbs_context_ops {
  int (*advise_mr)(ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t);
  ibv_dm* (*alloc_dm)(ibv_context*, ibv_alloc_dm_attr*);
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  ibv_mr* (*alloc_null_mr)(ibv_pd*);
  ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*);
  void (*async_event)(ibv_context*, ibv_async_event*);
  verbs_no_operation attach_counters_point_flow;
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  int (*close_xrcd)(ibv_xrcd*);
  void (*cq_event)(ibv_cq*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  verbs_no_operation create_counters;
  ibv_cq* (*create_cq)(ibv_context*, int, ibv_comp_channel*, int);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  ibv_flow* (*create_flow)(ibv_qp*, ibv_flow_attr*);
  verbs_no_operation create_flow_action_esp;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  ibv_rwq_ind_table* (*create_rwq_ind_table)(ibv_context*, ibv_rwq_ind_table_init_attr*);
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  ibv_srq* (*create_srq_ex)(ibv_context*, ibv_srq_init_attr_ex*);
  ibv_wq* (*create_wq)(ibv_context*, ibv_wq_init_attr*);
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  int (*dealloc_td)(ibv_td*);
  int (*dereg_mr)(verbs_mr*);
  int (*destroy_ah)(ibv_ah*);
  verbs_no_operation destroy_counters;
  int (*destroy_cq)(ibv_cq*);
  int (*destroy_flow)(ibv_flow*);
  verbs_no_operation destroy_flow_action;
  int (*destroy_qp)(ibv_qp*);
  int (*destroy_rwq_ind_table)(ibv_rwq_ind_table*);
  int (*destroy_srq)(ibv_srq*);
  int (*destroy_wq)(ibv_wq*);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t);
  void (*free_context)(ibv_context*);
  int (*free_dm)(ibv_dm*);
  int (*get_srq_num)(ibv_srq*, std::uint32_t*);
  ibv_dm* (*import_dm)(ibv_context*, std::uint32_t);
  ibv_mr* (*import_mr)(ibv_pd*, std::uint32_t);
  ibv_pd* (*import_pd)(ibv_context*, std::uint32_t);
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  verbs_no_operation modify_flow_action_esp;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  verbs_no_operation modify_qp_rate_limit;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int);
  int (*modify_wq)(ibv_wq*, ibv_wq_attr*);
  ibv_qp* (*open_qp)(ibv_context*, ibv_qp_open_attr*);
  ibv_xrcd* (*open_xrcd)(ibv_context*, ibv_xrcd_init_attr*);
  int (*poll_cq)(ibv_cq*, int, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
  verbs_no_operation post_srq_ops;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         std::size_t);
  int (*query_ece)(ibv_qp*, ibv_ece*);
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  verbs_no_operation query_qp_data_in_order;
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  verbs_no_operation read_counters;
  ibv_mr* (*reg_dm_mr)(ibv_pd*, ibv_dm*, std::uint64_t, std::size_t, unsigned);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, std::uint64_t, int);
  int (*req_notify_cq)(ibv_cq*, int);
  int (*rereg_mr)(verbs_mr*, int, ibv_pd*, void*, std::size_t, int);
  int (*resize_cq)(ibv_cq*, int);
  int (*set_ece)(ibv_qp*, ibv_ece*);
  void (*unimport_dm)(ibv_dm*);
  void (*unimport_mr)(ibv_mr*);
  void (*unimport_pd)(ibv_pd*);
};

// Exported by libibverbs with the version IBVERBS_PRIVATE_34.
void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, std::size_t alloc_size,
                                    verbs_context* context_offset, std::uint32_t driver_id);
void verbs_set_ops(verbs_context* context, const verbs_context_ops* ops);
void verbs_uninit_context(verbs_context* context);
void verbs_register_driver_34(const verbs_device_ops* ops);

}  // extern "C"

static_assert(sizeof(verbs_match_ent) == 24 && offsetof(verbs_match_ent, u) == 8 &&
              offsetof(verbs_match_ent, vendor) == 16 && offsetof(verbs_match_ent, device) == 18 &&
              offsetof(verbs_match_ent, kind) == 20);

static_assert(
    sizeof(verbs_sysfs_dev) == 992 && offsetof(verbs_sysfs_dev, provider_data) == 16 &&
    offsetof(verbs_sysfs_dev, match) == 24 && offsetof(verbs_sysfs_dev, flags) == 32 &&
    offsetof(verbs_sysfs_dev, sysfs_name) == 36 && offsetof(verbs_sysfs_dev, sysfs_cdev) == 104 &&
    offsetof(verbs_sysfs_dev, ibdev_name) == 112 && offsetof(verbs_sysfs_dev, ibdev_path) == 176 &&
    offsetof(verbs_sysfs_dev, modalias) == 432 && offsetof(verbs_sysfs_dev, node_guid) == 944 &&
    offsetof(verbs_sysfs_dev, driver_id) == 952 && offsetof(verbs_sysfs_dev, node_type) == 956 &&
    offsetof(verbs_sysfs_dev, ibdev_idx) == 960 && offsetof(verbs_sysfs_dev, num_ports) == 964 &&
    offsetof(verbs_sysfs_dev, abi_ver) == 968 && offsetof(verbs_sysfs_dev, time_created) == 976);

static_assert(sizeof(verbs_device_ops) == 72 &&
              offsetof(verbs_device_ops, match_min_abi_version) == 8 &&
              offsetof(verbs_device_ops, match_max_abi_version) == 12 &&
              offsetof(verbs_device_ops, match_table) == 16 &&
              offsetof(verbs_device_ops, static_providers) == 24 &&
              offsetof(verbs_device_ops, match_device) == 32 &&
              offsetof(verbs_device_ops, alloc_context) == 40 &&
              offsetof(verbs_device_ops, import_context) == 48 &&
              offsetof(verbs_device_ops, alloc_device) == 56 &&
              offsetof(verbs_device_ops, uninit_device) == 64);

static_assert(sizeof(verbs_device) == 712 && offsetof(verbs_device, ops) == 664 &&
              offsetof(verbs_device, refcount) == 672 && offsetof(verbs_device, entry) == 680 &&
              offsetof(verbs_device, sysfs) == 696 && offsetof(verbs_device, core_support) == 704);

static_assert(sizeof(verbs_mr) == 56 && offsetof(verbs_mr, mr_type) == 48 &&
              offsetof(verbs_mr, access) == 52);
static_assert(sizeof(verbs_qp) == 368 && offsetof(verbs_qp, comp_mask) == 352 &&
              offsetof(verbs_qp, xrcd) == 360);
static_assert(sizeof(verbs_cq) == 288);
static_assert(sizeof(verbs_srq) == 160 && offsetof(verbs_srq, srq_type) == 128 &&
              offsetof(verbs_srq, xrcd) == 136 && offsetof(verbs_srq, cq) == 144 &&
              offsetof(verbs_srq, srq_num) == 152);
static_assert(sizeof(verbs_dm) == 40 && offsetof(verbs_dm, handle) == 32);

// 76 operations in a row; one of each stretch says where the stretch lies.
static_assert(sizeof(verbs_context_ops) == 608);
static_assert(offsetof(verbs_context_ops, alloc_dm) == 8);
static_assert(offsetof(verbs_context_ops, alloc_null_mr) == 24);
static_assert(offsetof(verbs_context_ops, alloc_parent_domain) == 32);
static_assert(offsetof(verbs_context_ops, alloc_mw) == 16);
static_assert(offsetof(verbs_context_ops, alloc_pd) == 40);
static_assert(offsetof(verbs_context_ops, alloc_td) == 48);
static_assert(offsetof(verbs_context_ops, async_event) == 56);
static_assert(offsetof(verbs_context_ops, bind_mw) == 80);
static_assert(offsetof(verbs_context_ops, cq_event) == 96);
static_assert(offsetof(verbs_context_ops, create_cq) == 120);
static_assert(offsetof(verbs_context_ops, create_cq_ex) == 128);
static_assert(offsetof(verbs_context_ops, create_flow) == 136);
static_assert(offsetof(verbs_context_ops, create_qp) == 152);
static_assert(offsetof(verbs_context_ops, create_qp_ex) == 160);
static_assert(offsetof(verbs_context_ops, create_rwq_ind_table) == 168);
static_assert(offsetof(verbs_context_ops, create_srq) == 176);
static_assert(offsetof(verbs_context_ops, create_wq) == 192);
static_assert(offsetof(verbs_context_ops, dealloc_mw) == 200);
static_assert(offsetof(verbs_context_ops, dealloc_pd) == 208);
static_assert(offsetof(verbs_context_ops, dereg_mr) == 224);
static_assert(offsetof(verbs_context_ops, destroy_cq) == 248);
static_assert(offsetof(verbs_context_ops, destroy_flow) == 256);
static_assert(offsetof(verbs_context_ops, destroy_qp) == 272);
static_assert(offsetof(verbs_context_ops, destroy_rwq_ind_table) == 280);
static_assert(offsetof(verbs_context_ops, destroy_srq) == 288);
static_assert(offsetof(verbs_context_ops, destroy_wq) == 296);
static_assert(offsetof(verbs_context_ops, free_context) == 312);
static_assert(offsetof(verbs_context_ops, free_dm) == 320);
static_assert(offsetof(verbs_context_ops, import_dm) == 336);
static_assert(offsetof(verbs_context_ops, modify_cq) == 360);
static_assert(offsetof(verbs_context_ops, modify_qp) == 376);
static_assert(offsetof(verbs_context_ops, modify_srq) == 392);
static_assert(offsetof(verbs_context_ops, modify_wq) == 400);
static_assert(offsetof(verbs_context_ops, poll_cq) == 424);
static_assert(offsetof(verbs_context_ops, post_recv) == 432);
static_assert(offsetof(verbs_context_ops, post_send) == 440);
static_assert(offsetof(verbs_context_ops, post_srq_recv) == 456);
static_assert(offsetof(verbs_context_ops, query_device_ex) == 464);
static_assert(offsetof(verbs_context_ops, query_ece) == 472);
static_assert(offsetof(verbs_context_ops, query_port) == 480);
static_assert(offsetof(verbs_context_ops, query_qp) == 488);
static_assert(offsetof(verbs_context_ops, query_rt_values) == 504);
static_assert(offsetof(verbs_context_ops, query_srq) == 512);
static_assert(offsetof(verbs_context_ops, reg_dm_mr) == 528);
static_assert(offsetof(verbs_context_ops, reg_dmabuf_mr) == 536);
static_assert(offsetof(verbs_context_ops, reg_mr) == 544);
static_assert(offsetof(verbs_context_ops, req_notify_cq) == 552);
static_assert(offsetof(verbs_context_ops, rereg_mr) == 560);
static_assert(offsetof(verbs_context_ops, resize_cq) == 568);
static_assert(offsetof(verbs_context_ops, set_ece) == 576);
static_assert(offsetof(verbs_context_ops, unimport_pd) == 600);
