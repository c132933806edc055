// SPDX-License-Identifier: BSD-2-Clause
// One end of a reliable connection over stock libibverbs: device, PD, CQ, QP and registered memory.
// What the other end must know is in `Address`, plain bytes that go through a pipe.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace uroce::tests {

struct Address {
  std::uint32_t qpn = 0;
  ibv_gid gid{};
  std::uint64_t memory = 0;
  std::uint32_t rkey = 0;
};

inline ibv_context* open_first_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = count > 0 ? ibv_open_device(list[0]) : nullptr;
  ibv_free_device_list(list);
  return context;
}

class Node {
 public:
  explicit Node(std::size_t bytes = 4096, ibv_context* shared = nullptr, int completions = 256)
      : memory(bytes),
        context(shared != nullptr ? shared : open_first_device()),
        owns_context_(shared == nullptr) {
    if (context == nullptr) return;
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, completions, nullptr, nullptr, 0);
    constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC;
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), kAll);
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = IBV_QPT_RC;
    a.cap = {.max_send_wr = 128,
             .max_recv_wr = 128,
             .max_send_sge = 1,
             .max_recv_sge = 1,
             .max_inline_data = 0};
    qp = ibv_create_qp(pd, &a);
  }
  ~Node() {
    EXPECT_EQ(qp != nullptr ? ibv_destroy_qp(qp) : 0, 0) << "QP";
    EXPECT_EQ(mr != nullptr ? ibv_dereg_mr(mr) : 0, 0) << "MR";
    EXPECT_EQ(cq != nullptr ? ibv_destroy_cq(cq) : 0, 0) << "CQ";
    EXPECT_EQ(pd != nullptr ? ibv_dealloc_pd(pd) : 0, 0) << "PD";
    EXPECT_EQ(context != nullptr && owns_context_ ? ibv_close_device(context) : 0, 0) << "context";
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] bool is_ready() const { return qp != nullptr && mr != nullptr; }
  [[nodiscard]] Address address() const {
    Address a{.qpn = qp->qp_num,
              .gid = {},
              .memory = reinterpret_cast<std::uintptr_t>(memory.data()),
              .rkey = mr->rkey};
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &a.gid), 0);
    return a;
  }
  // From RESET to RTS, or to RTR only; 0, or the errno of the first step that failed.
  int connect(const Address& to, ibv_qp_state last = IBV_QPS_RTS) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (int e = ibv_modify_qp(qp, &a,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        e != 0) {
      return e;
    }
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = to.qpn;
    a.max_dest_rd_atomic = read_depth;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = to.gid;
    if (int e = ibv_modify_qp(qp, &a,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        e != 0) {
      return e;
    }
    if (last == IBV_QPS_RTR) return 0;
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = read_depth;
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }

  int write(const Address& to, std::uint32_t bytes, bool with_immediate = false) {
    return write(to, bytes, with_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
  }
  // Or another operation on remote memory.
  int write(const Address& to, std::uint32_t bytes, ibv_wr_opcode opcode) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), bytes, mr->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = to.memory;
    request.wr.rdma.rkey = to.rkey;
    return ibv_post_send(qp, &request, &bad);
  }
  int receive() {
    ibv_recv_wr request{}, *bad = nullptr;
    return ibv_post_recv(qp, &request, &bad);
  }
  // Polls until there is one.
  ibv_wc wait() const {
    ibv_wc wc{};
    int n = 0;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
    }
    if (n < 0) wc.status = IBV_WC_FATAL_ERR;
    return wc;
  }

  std::uint8_t read_depth = 16;  // READs under way at once, after connect()
  std::vector<std::byte> memory;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;

 private:
  bool owns_context_;
};

// Two ends of a pair of pipes between a test and its child.
struct Line {
  int in = -1;
  int out = -1;
  template <typename T>
  void say(const T& value) const {
    ASSERT_EQ(::write(out, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
  }
  template <typename T>
  [[nodiscard]] T hear() const {
    T value{};
    EXPECT_EQ(::read(in, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
    return value;
  }
};

}  // namespace uroce::tests
