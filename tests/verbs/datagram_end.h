// SPDX-License-Identifier: BSD-2-Clause
// A datagram queue pair over stock libibverbs, with a receive posted: of one word and what stands
// before it.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "node.h"

namespace uroce::tests {

inline constexpr std::uint32_t kQKey = 0x1234;
inline constexpr std::uint32_t kGrhBytes = 40;

class DatagramEnd {
 public:
  // What it receives lies at `offset` of the node's memory.
  explicit DatagramEnd(Node& node, std::size_t offset = 0, ibv_qp_state last = IBV_QPS_RTS)
      : node_(node), offset_(offset) {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq_ = ibv_create_cq(node.context, 16, nullptr, nullptr, 0);
    a.qp_type = IBV_QPT_UD;
    a.cap = {.max_send_wr = 4,
             .max_recv_wr = 4,
             .max_send_sge = 1,
             .max_recv_sge = 1,
             .max_inline_data = 16};
    qp = ibv_create_qp(node.pd, &a);
    if (qp == nullptr) return;
    EXPECT_EQ(connect(last), 0);
    EXPECT_EQ(receive(), 0);
  }
  ~DatagramEnd() {
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
  }
  DatagramEnd(const DatagramEnd&) = delete;
  DatagramEnd& operator=(const DatagramEnd&) = delete;

  // Nobody hears of it here.
  int send(ibv_ah* ah, std::uint32_t qpn, std::uint64_t word) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(&word), sizeof word, 0};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE;
    request.wr.ud = {ah, qpn, kQKey};
    return ibv_post_send(qp, &request, &bad);
  }
  [[nodiscard]] ibv_wc wait() const {
    ibv_wc wc{};
    while (ibv_poll_cq(cq_, 1, &wc) == 0) {
    }
    return wc;
  }
  [[nodiscard]] bool is_empty() const {
    ibv_wc wc{};
    return ibv_poll_cq(cq_, 1, &wc) == 0;
  }
  [[nodiscard]] ibv_grh grh() const {
    ibv_grh grh;
    std::memcpy(&grh, node_.memory.data() + offset_, sizeof grh);
    return grh;
  }
  [[nodiscard]] std::uint64_t word() const {
    std::uint64_t word = 0;
    std::memcpy(&word, node_.memory.data() + offset_ + kGrhBytes, sizeof word);
    return word;
  }

  ibv_qp* qp = nullptr;

 private:
  int connect(ibv_qp_state last) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kQKey;
    int error = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    a.qp_state = IBV_QPS_RTR;
    if (error == 0) error = ibv_modify_qp(qp, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RTS;
    return error == 0 && last == IBV_QPS_RTS ? ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN)
                                             : error;
  }
  int receive() {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(node_.memory.data()) + offset_, 1024,
                node_.mr->lkey};
    ibv_recv_wr request{}, *bad = nullptr;
    request.sg_list = &sge;
    request.num_sge = 1;
    return ibv_post_recv(qp, &request, &bad);
  }

  Node& node_;
  std::size_t offset_;
  ibv_cq* cq_ = nullptr;
};

}  // namespace uroce::tests
