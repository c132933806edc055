// SPDX-License-Identifier: BSD-2-Clause
// A host with one core: what an engine does for it, in virtual time. Packets wait in an inbox until
// the next turn; a turn is that of transport/hca.h. A slow node takes turns seldom, reads little in
// each, and loses what its inbox cannot hold.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "sim/link.h"
#include "sim/world.h"
#include "transport/hca.h"

namespace uroce::sim {

inline constexpr unsigned kNodesMax = 4;

struct NodeOptions {
  Duration turn_gap = nanoseconds(200);  // turns are at least this far apart
  std::uint32_t packets_a_turn = 64;
  std::uint32_t inbox_packets = 4096;
  std::uint32_t stash_packets = 64;  // ahead of a gap; 0: none are kept
  std::uint32_t refuse = 0;          // of a million frames, by the transmit burst
};

// Whoever lives on the node and wants to know.
class NodeUser {
 public:
  virtual void on_notification(transport::CompletionQueue& cq) = 0;
  virtual void on_async_event(const transport::Event& event) = 0;

 protected:
  ~NodeUser() = default;
};

class Node final : public EventSink, private transport::HostOracle {
 public:
  Node(World& world, unsigned index, const NodeOptions& options, Prng prng);

  [[nodiscard]] unsigned index() const { return index_; }
  [[nodiscard]] transport::Hca& hca() { return hca_; }
  [[nodiscard]] const NodeOptions& options() const { return options_; }
  void set_user(NodeUser* user) { user_ = user; }
  // Turns and bursts are as they should be from here on.
  void heal();

  // Frames for node `to` go over `link`. The facts of a LinkId hold for all its links.
  void set_link(transport::LinkId id, const transport::LinkFacts& facts);
  void connect(transport::LinkId id, unsigned to, Link& link) { links_[id][to] = &link; }
  [[nodiscard]] Path path_to(unsigned to) const;
  // To each node, this one too.
  [[nodiscard]] Path path_to_group() const;
  // Where QPs to that node share their window; null where the link has none.
  [[nodiscard]] transport::Peer* peer(transport::LinkId id, unsigned to);

  [[nodiscard]] Qpn allocate_qpn();
  // Of type 1 or 2, not bound.
  void add_window(RKey key, memory::KeyKind kind);
  // Memory of the node that SGEs and peers call `iova`.
  void add_region(std::uint32_t key, std::uint64_t iova, Bytes memory, memory::Access access);

  // After a post.
  void ring(transport::Qp& qp);
  // A turn no later than this.
  void request_turn(Instant when);

  void on_event(std::uint32_t what) override;

  // Of the next packet that brings a message or an answer: its last byte is changed behind the
  // ICRC's back.
  void damage_next_payload() { damages_next_ = true; }
  [[nodiscard]] bool has_damaged() const { return has_damaged_; }
  [[nodiscard]] std::uint64_t inbox_overflows() const { return inbox_overflows_; }

 private:
  static constexpr std::uint32_t kTurn = ~std::uint32_t{0};
  static constexpr std::uint32_t kGroupRoute = kNodesMax;

  [[nodiscard]] bool peer_stalled(transport::LinkId, const Path&) const override { return false; }
  [[nodiscard]] bool is_own_address(const Gid& source) const override {
    return source == addresses_[index_];
  }

  void take_turn();
  void receive();
  void receive_over(transport::LinkId id, std::size_t count);
  void transmit(transport::LinkId id);
  [[nodiscard]] bool send_burst(transport::LinkId id);
  void send_to_group(transport::LinkId id, const TxFrame& frame);
  void send(Link& link, const TxFrame& frame);
  void send_run(Link& link, const TxFrame& frame);
  void tell_user();
  void damage(PacketId packet);

  World& world_;
  unsigned index_;
  NodeOptions options_;
  Prng refusal_;
  transport::Hca hca_;
  NodeUser* user_ = nullptr;
  std::array<transport::LinkFacts, transport::kLinkCount> facts_;
  std::array<std::array<Link*, kNodesMax>, transport::kLinkCount> links_{};
  std::array<std::array<transport::Peer, kNodesMax>, transport::kLinkCount> peers_;
  std::array<Gid, kNodesMax> addresses_;
  Gid group_ = group_address();

  std::vector<transport::QpBlock*> blocks_;
  std::deque<transport::QpBlock> block_memory_;
  std::vector<transport::Timer*> deadline_memory_, early_deadline_memory_;
  std::vector<transport::StashEntry> stash_entries_;
  std::unique_ptr<transport::StashSlot[]> stash_slots_;  // written before they are read
  std::vector<memory::MemoryRegion> regions_;
  std::unique_ptr<transport::TxBurst> burst_;
  std::uint32_t next_qpn_;

  std::deque<PacketId> inbox_;
  std::vector<RxPacket> received_;
  std::vector<PacketId> received_ids_;
  Instant next_turn_ = Instant::never();
  Instant last_turn_{};
  bool was_refused_ = false;
  bool damages_next_ = false;
  bool has_damaged_ = false;
  std::uint64_t inbox_overflows_ = 0;
};

}  // namespace uroce::sim
