// SPDX-License-Identifier: BSD-2-Clause
// One end of a connection: a queue pair and the application that uses it. It looks at its queues
// now and then, polls, posts, sometimes stops, breaks or destroys the queue pair, and judges
// whether what failed had a reason to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/arena.h"
#include "sim/flow.h"
#include "sim/queue_pair.h"
#include "sim/receive_pool.h"
#include "sim/request_maker.h"
#include "sim/scenario.h"
#include "sim/site.h"

namespace uroce::sim {

class End;

// What both ends share.
struct ConnectionState {
  EventSink& owner;  // is told when an end is dead
  World& world;
  Oracle& oracle;
  const Scenario& scenario;
  bool is_open = false;
  bool is_over = false;                       // nobody posts or disturbs any more
  bool is_healed = false;                     // the faults have stopped ...
  Instant healed_for_good{Instant::never()};  // ... and whatever they did is over
};

class End final : public EventSink, public CompletionSink {
 public:
  // `id` is unique in the simulation.
  End(ConnectionState& connection, Site& site, std::uint32_t id, Prng prng);

  void set_peer(End& peer);
  // A fresh queue pair, or the old one reset.
  void create(const QueuePairOptions& options);
  void connect(Psn receive_psn, Psn send_psn);
  void start();

  // The connection ends: at once, with everything that is in hand, or by way of ERR and a flush.
  void close(bool abruptly);
  void close_after(Duration delay, bool abruptly);
  [[nodiscard]] bool is_open() const { return phase_ == Phase::kOpen; }
  [[nodiscard]] std::size_t receives_open() const { return own_pool_.outstanding(); }
  [[nodiscard]] bool is_dead() const { return phase_ == Phase::kDead; }
  [[nodiscard]] bool kept_all() const { return !was_abrupt_; }
  // Both are dead.
  void settle();
  void destroy();

  [[nodiscard]] bool has_queue_pair() const { return qp_ != nullptr; }
  [[nodiscard]] bool wants_more() const { return left_ != 0; }
  // Everything posted is finished, and everything sent to us received.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] const Flow& flow() const { return *flow_; }
  [[nodiscard]] Flow& flow() { return *flow_; }
  [[nodiscard]] QueuePair& queue_pair() { return *qp_; }
  [[nodiscard]] Site& site() { return site_; }
  [[nodiscard]] std::uint32_t id() const { return id_; }
  void check_at_end();

  // For the tests of the oracle.
  void write_stray_byte();
  void repeat_atomic();

  void on_event(std::uint32_t what) override;
  void on_completion(const transport::Cqe& entry) override;

 private:
  enum class Phase : std::uint8_t { kOpen, kFlushing, kDead };
  // What happens to it; the news that the peer has closed is of one life of the queue pair only.
  enum What : std::uint32_t { kLook, kCloseGently, kCloseAbruptly };
  static constexpr std::uint32_t kWhatBits = 2;

  void look();
  void die();
  void look_again();
  void look_while_flushing();
  void post_receives();
  void post_requests();
  void post(Request request);
  void disturb();
  void reclaim_receives(ReceivePool& pool);
  void on_send_completion(const transport::Cqe& entry);
  void judge_failure(const transport::Cqe& entry);
  [[nodiscard]] bool may_give_up(transport::WcStatus status, const Request& request) const;
  [[nodiscard]] bool may_flush() const;
  [[nodiscard]] bool is_peer_gone() const;

  ConnectionState& connection_;
  Site& site_;
  std::uint32_t id_;
  Prng prng_;
  End* peer_ = nullptr;
  Arena target_, local_;
  RequestMaker maker_;
  ReceivePool own_pool_;
  std::optional<Flow> flow_;
  std::unique_ptr<QueuePair> qp_;
  Phase phase_ = Phase::kDead;
  bool is_looking_ = false;
  bool was_abrupt_ = false;
  bool is_paused_ = false;  // in SQD
  std::uint32_t left_;      // requests to post
  Instant closed_at_{};
  std::uint32_t life_ = 0;
};

}  // namespace uroce::sim
