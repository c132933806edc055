// SPDX-License-Identifier: BSD-2-Clause
// One transport core with the memory that verbs would give it: a protection domain, a registered
// buffer, a completion queue, and queue pairs. What it sends comes out as packets as they would lie
// on a wire (or as whole runs, on a link of trusted memory); nothing here has a clock or a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transport/hca.h"
#include "wire/parse.h"

namespace uroce::test {

struct Packet {
  std::vector<std::byte> bytes;    // from the BTH on, with pad
  std::vector<std::byte> payload;  // of a run, which carries it apart
  std::uint16_t packet_count = 1;
  bool is_run = false;
  bool has_addresses = false;
  Gid source, destination;

  [[nodiscard]] RxPacket received() const;
  // What is in it; valid as long as the packet.
  [[nodiscard]] wire::PacketView view() const;

 private:
  mutable RxPacket received_;
};

struct QpOptions {
  transport::Service service = transport::Service::kRc;
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
                          memory::Access::kRemoteAtomic | memory::Access::kLocalWrite |
                          memory::Access::kFlushGlobal;
  bool signal_all = true;
  transport::Srq* srq = nullptr;
  XrcdId xrcd{};
  QKey qkey{0x1111};
};

// A queue pair and its rings.
struct TestQp {
  transport::Qp qp;
  QpOptions options;
  std::vector<std::byte> send_memory, receive_memory, srq_copy;
  std::vector<transport::ReplayEntry> replay;
};

// A work request, by the field names of ibv_send_wr.
struct SendRequest {
  transport::SendOperation operation = transport::SendOperation::kSend;
  std::uint64_t wr_id = 0;
  std::vector<memory::Sge> sges = {};
  std::vector<std::byte> inline_data = {};
  std::uint64_t remote_address = 0;
  RKey rkey = {};
  std::uint32_t immediate = 0;
  std::uint64_t compare_add = 0, swap = 0;
  std::uint8_t flags = transport::send_flag::kSignaled;
  transport::WindowPart part = {};  // of a binding
  std::optional<transport::DatagramTarget> target = {};
  std::optional<Qpn> srq = {};  // of XRC
};

class Endpoint {
 public:
  static constexpr std::uint32_t kKey = 0x1234'5678;
  static constexpr PdId kPd{1};

  explicit Endpoint(std::size_t buffer_bytes, std::uint32_t completions = 1024);

  // That is not bound yet; the buffer may be bound to.
  void add_window(RKey key, memory::KeyKind kind);
  void set_link(const transport::LinkFacts& facts);
  TestQp& add_qp(Qpn number, const QpOptions& options = {});
  void to_init(TestQp& qp);
  void to_rtr(TestQp& qp, Qpn destination, Psn receive_psn);
  void to_rts(TestQp& qp, Psn send_psn);
  [[nodiscard]] int modify(TestQp& qp, transport::QpAttributes attributes, std::uint32_t mask);

  void post_send(TestQp& qp, const SendRequest& request);
  void post_receive(TestQp& qp, std::uint64_t wr_id, std::vector<memory::Sge> sges);
  static void post_receive(transport::RecvQueue& queue, std::uint64_t wr_id,
                           std::span<const memory::Sge> sges);

  void receive(const Packet& packet);
  // Everything there is to send, and completions published after it.
  std::vector<Packet> transmit();
  void timers() { hca.on_timer(now); }
  [[nodiscard]] Instant next_deadline() const {
    return std::min(hca.next_deadline(), hca.next_early_deadline());
  }

  std::optional<transport::Cqe> poll();
  std::vector<transport::Cqe> poll_all();
  std::optional<transport::Event> event();

  [[nodiscard]] memory::Sge sge(std::size_t offset, std::uint32_t bytes) const;
  [[nodiscard]] std::uint64_t address(std::size_t offset) const;

  Instant now{1'000'000};
  transport::Hca hca;
  std::vector<std::byte> buffer;
  transport::CompletionQueue cq;
  transport::Peer peer;
  // Set: tx_burst takes nothing, as when a ring is full.
  bool refuses = false;

 private:
  void send(TxFrame& frame, std::vector<Packet>& out) const;

  transport::LinkFacts facts_;
  std::unique_ptr<transport::QpBlock*[]> blocks_;
  std::deque<transport::QpBlock> block_memory_;
  std::vector<transport::Timer*> heap_, early_heap_;
  std::vector<transport::StashEntry> stash_entries_;
  std::vector<transport::StashSlot> stash_slots_;
  std::vector<memory::MemoryRegion> regions_;
  std::vector<transport::Cqe> cq_memory_;
  std::deque<TestQp> qps_;
  std::unique_ptr<transport::TxBurst> burst_;
};

}  // namespace uroce::test
