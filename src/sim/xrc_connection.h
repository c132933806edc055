// SPDX-License-Identifier: BSD-2-Clause
// An XRC connection: an initiator and a target, and behind the target two receive queues of its
// domain and one of another. It is as reliable as RC, so the same must hold of it, and each message
// lies in the queue that it named. When it fails it is over.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "sim/arena.h"
#include "sim/flow.h"
#include "sim/queue_pair.h"
#include "sim/request_maker.h"
#include "sim/scenario.h"
#include "sim/site.h"
#include "sim/xrc_queue.h"

namespace uroce::sim {

class XrcConnection final : public EventSink {
 public:
  // `index` is unique among those of its kind.
  XrcConnection(World& world, Oracle& oracle, const Scenario& scenario, Site& from, Site& to,
                std::uint32_t index, Prng prng);

  void open();
  [[nodiscard]] bool is_done() const;
  void describe_unfinished();
  void heal();
  void stop() { is_over_ = true; }
  void check_at_end();
  void destroy();
  [[nodiscard]] std::uint64_t succeeded() const { return flow_.succeeded(); }

  void on_event(std::uint32_t what) override;

 private:
  enum class Phase : std::uint8_t { kOpen, kFlushing, kDead };
  static constexpr std::uint32_t kQueues = 2;
  struct Sink final : CompletionSink {
    XrcConnection* owner = nullptr;
    void (XrcConnection::*take)(const transport::Cqe&) = nullptr;
    void on_completion(const transport::Cqe& entry) override { (owner->*take)(entry); }
  };

  void draw_options();
  void look();
  void look_again();
  void post_request();
  void close();
  void settle();
  void on_sent(const transport::Cqe& entry);
  void on_received(const transport::Cqe& entry);
  [[nodiscard]] bool may_give_up(transport::WcStatus status, const Request& request) const;
  [[nodiscard]] bool is_target_gone() const;

  World& world_;
  Oracle& oracle_;
  const Scenario& scenario_;
  Site &from_, &to_;
  std::uint32_t index_;
  Prng prng_;
  Arena local_, target_memory_, received_;
  RequestMaker maker_;
  Flow flow_;
  QueuePairOptions initiator_options_, target_options_;
  std::unique_ptr<QueuePair> initiator_, target_;
  std::deque<XrcQueue> queues_;      // the last one is of another domain
  std::deque<std::uint32_t> named_;  // by messages that were not received
  Sink initiator_sink_, target_sink_;
  Phase phase_ = Phase::kOpen;
  std::uint32_t left_;  // requests to post
  Instant closed_at_{};
  Instant healed_for_good_{Instant::never()};
  bool is_healed_ = false;
  bool is_over_ = false;
};

}  // namespace uroce::sim
