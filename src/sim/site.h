// SPDX-License-Identifier: BSD-2-Clause
// What the applications of one node share: a completion queue, a shared receive queue with its
// buffers, and the bytes that they send.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/arena.h"
#include "sim/node.h"
#include "sim/oracle.h"
#include "sim/receive_pool.h"
#include "sim/scenario.h"
#include "transport/completion.h"

namespace uroce::sim {

class CompletionSink {
 public:
  virtual void on_completion(const transport::Cqe& entry) = 0;

 protected:
  ~CompletionSink() = default;
};

class Site final : public NodeUser {
 public:
  static constexpr std::uint32_t kSourceBytes = 128 << 10;

  Site(World& world, Oracle& oracle, Node& node, const Scenario& scenario, Prng prng);

  [[nodiscard]] Node& node() { return node_; }
  [[nodiscard]] transport::CompletionQueue& cq() { return cq_; }
  [[nodiscard]] transport::Srq* srq() { return pool_ ? &srq_ : nullptr; }
  [[nodiscard]] ReceivePool* shared_pool() { return pool_ ? &*pool_ : nullptr; }
  [[nodiscard]] Arena& source() { return source_; }

  void add(Qpn number, CompletionSink& sink);
  void remove(Qpn number);
  // Everything there is goes to whom it belongs; of one who waits to be told, only after that.
  void poll();
  // So many receive requests for the shared queue, as far as there are buffers.
  void post_shared(std::uint32_t count);

  // Whoever is wronged next.
  void sabotage(Sabotage sabotage) { sabotage_ = sabotage; }
  [[nodiscard]] bool has_wronged() const { return has_wronged_; }
  void check_at_end();

  void on_notification(transport::CompletionQueue& cq) override;
  void on_async_event(const transport::Event& event) override;

 private:
  void hand_over(const transport::Cqe& entry);
  [[nodiscard]] bool is_wronged(const transport::Cqe& entry, Sabotage by, bool is_receive);

  World& world_;
  Oracle& oracle_;
  Node& node_;
  bool by_event_;
  bool is_told_ = true;
  Arena source_;
  std::vector<transport::Cqe> cq_memory_;
  transport::CompletionQueue cq_;
  Arena shared_;
  std::vector<std::byte> srq_memory_;
  transport::Srq srq_;
  std::optional<ReceivePool> pool_;
  struct Entry {
    Qpn number;
    CompletionSink* sink;
  };
  std::vector<Entry> sinks_;
  Sabotage sabotage_ = Sabotage::kNone;
  bool has_wronged_ = false;
};

}  // namespace uroce::sim
