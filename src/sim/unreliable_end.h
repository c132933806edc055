// SPDX-License-Identifier: BSD-2-Clause
// A queue pair of an unreliable service and the application that uses it: it sends to its peer (UC)
// or to whomever it likes, groups included (UD), and receives what comes through.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/arena.h"
#include "sim/ledger.h"
#include "sim/queue_pair.h"
#include "sim/scenario.h"
#include "sim/site.h"

namespace uroce::sim {

class UnreliableEnd final : public EventSink, public CompletionSink {
 public:
  // `id` is unique among those of its kind.
  UnreliableEnd(World& world, Oracle& oracle, Arrivals& arrivals, const Scenario& scenario,
                Site& site, std::uint32_t id, const QueuePairOptions& options, Prng prng);
  UnreliableEnd(const UnreliableEnd&) = delete;
  UnreliableEnd& operator=(const UnreliableEnd&) = delete;

  // Whom it may send to, and hear from: of UC its peer. In the order of their numbers.
  void add_neighbour(UnreliableEnd& end) { neighbours_.push_back(&end); }
  void join_group();
  void connect();

  [[nodiscard]] bool is_done() const { return left_ == 0 && ledger_.is_idle(); }
  void heal() { is_healed_ = true; }
  void stop() { is_over_ = true; }
  void check_at_end();
  void destroy();

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] Qpn number() const { return qp_->number(); }

  void on_event(std::uint32_t what) override;
  void on_completion(const transport::Cqe& entry) override;

 private:
  [[nodiscard]] bool is_datagram() const { return options_.service == transport::Service::kUd; }
  [[nodiscard]] std::uint32_t message_bytes() const;
  [[nodiscard]] Range send_slot(std::uint32_t number) const;
  [[nodiscard]] Range receive_slot(std::uint32_t slot) const;
  void look();
  void look_again();
  void post_receives();
  void post_parcel();
  [[nodiscard]] Parcel draw_parcel();
  [[nodiscard]] transport::DatagramTarget target_of(const Parcel& parcel);
  void on_receive(const transport::Cqe& entry);
  void hear(const transport::Cqe& entry, std::uint32_t slot);
  void check_header(const UnreliableEnd& sender, ConstBytes header, bool is_to_group);
  void count(const UnreliableEnd& sender, bool is_to_group);
  [[nodiscard]] UnreliableEnd* sender_of(const transport::Cqe& entry) const;

  World& world_;
  Oracle& oracle_;
  Arrivals& arrivals_;
  const Scenario& scenario_;
  Site& site_;
  std::uint32_t id_;
  QueuePairOptions options_;
  Prng prng_;
  Arena local_, target_;
  Ledger ledger_;
  std::vector<UnreliableEnd*> neighbours_;
  std::vector<Ledger::Seen> seen_;  // of each neighbour
  std::deque<transport::AddressPath> paths_;
  transport::AddressPath group_path_;
  transport::MulticastMember membership_;
  bool is_member_ = false;
  std::unique_ptr<QueuePair> qp_;
  std::vector<bool> is_posted_;
  std::uint32_t left_;  // requests to post
  Psn first_psn_;
  bool is_broken_ = false;
  bool is_healed_ = false;
  bool is_over_ = false;
};

}  // namespace uroce::sim
