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

struct verbs_xrcd;

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

// An operation that this provider does not have; libibverbs then answers EOPNOTSUPP.
using verbs_no_operation = void (*)();

// Sorted by name, so operations move from version to version.
struct verbs_context_ops {
  verbs_no_operation advise_mr;
  verbs_no_operation alloc_dm;
  verbs_no_operation alloc_mw;
  verbs_no_operation alloc_null_mr;
  verbs_no_operation alloc_parent_domain;
  ibv_pd* (*alloc_pd)(ibv_context*);
  verbs_no_operation alloc_td;
  void (*async_event)(ibv_context*, ibv_async_event*);
  verbs_no_operation attach_counters_point_flow;
  verbs_no_operation attach_mcast;
  verbs_no_operation bind_mw;
  verbs_no_operation close_xrcd;
  void (*cq_event)(ibv_cq*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  verbs_no_operation create_counters;
  ibv_cq* (*create_cq)(ibv_context*, int, ibv_comp_channel*, int);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  verbs_no_operation create_flow;
  verbs_no_operation create_flow_action_esp;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  verbs_no_operation create_rwq_ind_table;
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  verbs_no_operation create_srq_ex;
  verbs_no_operation create_wq;
  verbs_no_operation dealloc_mw;
  int (*dealloc_pd)(ibv_pd*);
  verbs_no_operation dealloc_td;
  int (*dereg_mr)(verbs_mr*);
  int (*destroy_ah)(ibv_ah*);
  verbs_no_operation destroy_counters;
  int (*destroy_cq)(ibv_cq*);
  verbs_no_operation destroy_flow;
  verbs_no_operation destroy_flow_action;
  int (*destroy_qp)(ibv_qp*);
  verbs_no_operation destroy_rwq_ind_table;
  int (*destroy_srq)(ibv_srq*);
  verbs_no_operation destroy_wq;
  verbs_no_operation detach_mcast;
  void (*free_context)(ibv_context*);
  verbs_no_operation free_dm;
  verbs_no_operation get_srq_num;
  verbs_no_operation import_dm;
  verbs_no_operation import_mr;
  verbs_no_operation import_pd;
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  verbs_no_operation modify_flow_action_esp;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  verbs_no_operation modify_qp_rate_limit;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int);
  verbs_no_operation modify_wq;
  verbs_no_operation open_qp;
  verbs_no_operation open_xrcd;
  int (*poll_cq)(ibv_cq*, int, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
  verbs_no_operation post_srq_ops;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                         std::size_t);
  verbs_no_operation query_ece;
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  verbs_no_operation query_qp_data_in_order;
  int (*query_rt_values)(ibv_context*, ibv_values_ex*);
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  verbs_no_operation read_counters;
  verbs_no_operation reg_dm_mr;
  verbs_no_operation reg_dmabuf_mr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, std::uint64_t, int);
  int (*req_notify_cq)(ibv_cq*, int);
  int (*rereg_mr)(verbs_mr*, int, ibv_pd*, void*, std::size_t, int);
  int (*resize_cq)(ibv_cq*, int);
  verbs_no_operation set_ece;
  verbs_no_operation unimport_dm;
  verbs_no_operation unimport_mr;
  verbs_no_operation unimport_pd;
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

// 76 operations in a row; one of each stretch says where the stretch lies.
static_assert(sizeof(verbs_context_ops) == 608);
static_assert(offsetof(verbs_context_ops, alloc_pd) == 40);
static_assert(offsetof(verbs_context_ops, async_event) == 56);
static_assert(offsetof(verbs_context_ops, cq_event) == 96);
static_assert(offsetof(verbs_context_ops, create_cq) == 120);
static_assert(offsetof(verbs_context_ops, create_cq_ex) == 128);
static_assert(offsetof(verbs_context_ops, create_qp) == 152);
static_assert(offsetof(verbs_context_ops, create_qp_ex) == 160);
static_assert(offsetof(verbs_context_ops, create_srq) == 176);
static_assert(offsetof(verbs_context_ops, dealloc_pd) == 208);
static_assert(offsetof(verbs_context_ops, dereg_mr) == 224);
static_assert(offsetof(verbs_context_ops, destroy_cq) == 248);
static_assert(offsetof(verbs_context_ops, destroy_qp) == 272);
static_assert(offsetof(verbs_context_ops, destroy_srq) == 288);
static_assert(offsetof(verbs_context_ops, free_context) == 312);
static_assert(offsetof(verbs_context_ops, modify_cq) == 360);
static_assert(offsetof(verbs_context_ops, modify_qp) == 376);
static_assert(offsetof(verbs_context_ops, modify_srq) == 392);
static_assert(offsetof(verbs_context_ops, poll_cq) == 424);
static_assert(offsetof(verbs_context_ops, post_recv) == 432);
static_assert(offsetof(verbs_context_ops, post_send) == 440);
static_assert(offsetof(verbs_context_ops, post_srq_recv) == 456);
static_assert(offsetof(verbs_context_ops, query_device_ex) == 464);
static_assert(offsetof(verbs_context_ops, query_port) == 480);
static_assert(offsetof(verbs_context_ops, query_qp) == 488);
static_assert(offsetof(verbs_context_ops, query_rt_values) == 504);
static_assert(offsetof(verbs_context_ops, query_srq) == 512);
static_assert(offsetof(verbs_context_ops, reg_mr) == 544);
static_assert(offsetof(verbs_context_ops, req_notify_cq) == 552);
static_assert(offsetof(verbs_context_ops, rereg_mr) == 560);
static_assert(offsetof(verbs_context_ops, resize_cq) == 568);
static_assert(offsetof(verbs_context_ops, unimport_pd) == 600);
