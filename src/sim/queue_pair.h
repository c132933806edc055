// SPDX-License-Identifier: BSD-2-Clause
// A queue pair of a node with the memory that verbs would give it, and its way through the states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/node.h"
#include "transport/hca.h"

namespace uroce::sim {

struct QueuePairOptions {
  transport::Service service = transport::Service::kRc;
  transport::LinkId link = transport::kUplink;
  std::uint16_t path_mtu = 1024;
  std::uint32_t capacity = 64;
  std::uint32_t sge_max = 4;
  std::uint32_t inline_max = 64;
  std::uint8_t timeout = 14;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t max_read_atomic = 16;
  std::uint8_t max_dest_read_atomic = 16;
  std::uint8_t min_rnr_timer = 12;
  memory::Access access = memory::Access::kRemoteWrite | memory::Access::kRemoteRead |
                          memory::Access::kRemoteAtomic | memory::Access::kLocalWrite;
  bool signal_all = false;
  QKey qkey{};    // of UD
  XrcdId xrcd{};  // of an XRC target
};

// What ibv_post_send takes, but for the SGEs or the inline data.
struct SendRequest {
  transport::SendOperation operation = transport::SendOperation::kSend;
  std::uint64_t wr_id = 0;
  std::uint64_t remote_address = 0;
  RKey rkey{};
  std::uint32_t immediate = 0;
  std::uint64_t compare_add = 0, swap = 0;
  std::uint8_t flags = 0;
  transport::WindowPart part = {};  // of a binding
  std::optional<transport::DatagramTarget> target = {};
  std::optional<Qpn> srq = {};  // of XRC
};

class QueuePair {
 public:
  QueuePair(Node& node, const QueuePairOptions& options, transport::CompletionQueue& send_cq,
            transport::CompletionQueue& receive_cq, transport::Srq* srq);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair();  // takes completions that nobody polled along

  [[nodiscard]] Node& node() { return node_; }
  [[nodiscard]] transport::Qp& core() { return qp_; }
  [[nodiscard]] const transport::Qp& core() const { return qp_; }
  [[nodiscard]] const QueuePairOptions& options() const { return options_; }
  [[nodiscard]] Qpn number() const { return qp_.number; }
  [[nodiscard]] transport::QpState state() const { return qp_.state.load(); }

  [[nodiscard]] bool is_drained() const { return node_.hca().is_drained(qp_); }

  // From RESET to RTS; where and what for depend on the service.
  void connect(Instant now, unsigned node, Qpn destination, Psn receive_psn, Psn send_psn);
  void to_state(Instant now, transport::QpState state);
  // Completions that nobody polled are gone, as they are after a change to RESET.
  void purge_completions();

  [[nodiscard]] std::uint32_t send_slots() const { return qp_.send_queue.free_slots(); }
  [[nodiscard]] bool can_receive() const { return qp_.receive_queue.free_slots() != 0; }
  void post_send(const SendRequest& request, std::span<const memory::Sge> sges);
  void post_inline(const SendRequest& request, ConstBytes data);
  void post_receive(std::uint64_t wr_id, std::span<const memory::Sge> sges);

 private:
  void modify(Instant now, const transport::QpAttributes& attributes, std::uint32_t mask);
  void to_init(Instant now, transport::QpAttributes& a);
  void to_rtr(Instant now, transport::QpAttributes& a);
  void to_rts(Instant now, transport::QpAttributes& a);
  transport::SendWqe& next_send(const SendRequest& request);

  Node& node_;
  QueuePairOptions options_;
  unsigned destination_ = 0;
  transport::Qp qp_;
  std::vector<std::byte> send_memory_, receive_memory_, srq_copy_;
  std::vector<transport::ReplayEntry> replay_;
};

// Fills a receive queue's next slot, be it a QP's or shared.
void post_receive(transport::RecvQueue& queue, std::uint64_t wr_id,
                  std::span<const memory::Sge> sges);

}  // namespace uroce::sim
