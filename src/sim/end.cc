// SPDX-License-Identifier: BSD-2-Clause
#include "sim/end.h"

#include "sim/invariants.h"

namespace uroce::sim {

using namespace transport;

namespace {

inline constexpr std::uint32_t kMillion = Prng::kMillion;
// Until what was flushed has been published, also by a slow node.
inline constexpr Duration kFlushTime = microseconds(200);
inline constexpr Duration kIdlePause = microseconds(100);
inline constexpr Duration kNewsTakeAtMost = milliseconds(5);

Duration up_to(Prng& prng, Duration most) {
  return nanoseconds(1 + prng.below(static_cast<std::uint32_t>(most.ns)));
}

}  // namespace

End::End(ConnectionState& connection, Site& site, std::uint32_t id, Prng prng)
    : connection_(connection),
      site_(site),
      id_(id),
      prng_(prng.split(1)),
      target_(id * 2 + 8, EndLayout(connection.scenario).target_bytes, prng.split(2)),
      local_(id * 2 + 9, EndLayout(connection.scenario).local_bytes, prng.split(3)),
      maker_(connection.scenario, id, site.source(), local_, prng.split(4)),
      own_pool_(connection.oracle, local_, EndLayout(connection.scenario).receives,
                EndLayout(connection.scenario).slot_bytes, connection.scenario.message_bytes, false,
                prng.split(5)),
      left_(connection.scenario.requests) {
  using enum memory::Access;
  const Range open = EndLayout(connection.scenario).open_target();
  site.node().add_region(target_.key(), target_.address(open.offset), target_.memory(open),
                         kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  site.node().add_region(local_.key(), local_.address(0), local_.memory(local_.whole()),
                         kLocalWrite | kMwBind);
  site.node().add_window(RequestMaker::bound_window(id), memory::KeyKind::kWindowType1);
  site.node().add_window(RequestMaker::free_window(id), memory::KeyKind::kWindowType2);
  // Words are small, so that a comparison hits now and then.
  for (std::uint32_t i = 0; i < EndLayout::kWords; ++i) {
    const Range word{EndLayout::kEdgeBytes + 8 * i, 8};
    store_word(target_.memory(word), i % 3);
    target_.accept(word);
  }
}

void End::set_peer(End& peer) {
  peer_ = &peer;
  maker_.set_peer(peer.id_);
  flow_.emplace(connection_.oracle, FlowMemory{&local_, &peer.target_, peer.target_.whole()});
}

void End::create(const QueuePairOptions& options) {
  if (qp_ == nullptr) {
    qp_ = std::make_unique<QueuePair>(site_.node(), options, site_.cq(), site_.cq(), site_.srq());
    site_.add(qp_->number(), *this);
  } else {
    qp_->to_state(connection_.world.now(), QpState::kReset);
    qp_->purge_completions();
  }
}

void End::connect(Psn receive_psn, Psn send_psn) {
  was_abrupt_ = is_paused_ = false;
  flow_->open(qp_->options().path_mtu);
  qp_->connect(connection_.world.now(), peer_->site_.node().index(), peer_->qp_->number(),
               receive_psn, send_psn);
  phase_ = Phase::kOpen;
  ++life_;
}

void End::start() {
  if (!is_looking_) look_again();
}

void End::look_again() {
  is_looking_ = !connection_.is_over;
  if (!is_looking_) return;
  Duration pause = up_to(prng_, connection_.scenario.think);
  // There is nothing to do but to wait for the peer, or for another life.
  const bool has_nothing_to_do = phase_ == Phase::kDead || (left_ == 0 && flow_->is_idle());
  if (has_nothing_to_do) pause = pause + kIdlePause;
  connection_.world.at(connection_.world.now() + pause, *this, kLook);
}

void End::on_event(std::uint32_t what) {
  if (what == kLook) {
    look();
    look_again();
  } else if (phase_ == Phase::kOpen && what >> kWhatBits == life_) {
    close((what & ((1U << kWhatBits) - 1)) == kCloseAbruptly);
  }
}

void End::look() {
  if (connection_.is_over) return;
  const Scenario& s = connection_.scenario;
  const bool is_faulty = !connection_.is_healed;
  const bool must_poll = phase_ == Phase::kFlushing || !is_faulty;
  if (must_poll || !prng_.chance(s.late_poll)) site_.poll();
  if (phase_ == Phase::kDead) return;
  check_limits(connection_.oracle, qp_->core());
  if (phase_ == Phase::kFlushing) return look_while_flushing();
  if (qp_->state() == QpState::kErr) return close(false);
  if (!is_faulty || !prng_.chance(s.late_receive)) post_receives();
  if (is_paused_ && (!is_faulty || prng_.chance(kMillion / 4)) && qp_->is_drained()) {
    qp_->to_state(connection_.world.now(), QpState::kRts);
    is_paused_ = false;
  }
  post_requests();
  if (is_faulty && prng_.chance(s.disturb)) disturb();
}

void End::look_while_flushing() {
  if (connection_.world.now() < closed_at_ + kFlushTime) return;
  flow_->succeed_unsignaled();
  const bool is_flushed =
      flow_->is_idle() && (site_.srq() != nullptr || own_pool_.outstanding() == 0);
  if (is_flushed) die();
}

void End::die() {
  phase_ = Phase::kDead;
  connection_.world.at(connection_.world.now(), connection_.owner, id_);
}

void End::post_receives() {
  std::uint32_t count = prng_.between(1, connection_.scenario.capacity);
  if (site_.srq() != nullptr) return site_.post_shared(count);
  for (; count != 0 && own_pool_.can_post() && qp_->can_receive(); --count) {
    const ReceivePool::Posted posted = own_pool_.post();
    qp_->post_receive(posted.wr_id, {posted.sges.data(), posted.sge_count});
  }
}

void End::post_requests() {
  std::uint32_t count = prng_.between(1, 4);
  for (; count != 0 && left_ != 0 && qp_->send_slots() != 0; --count) {
    --left_;
    const bool is_last = left_ == 0 || qp_->send_slots() == 1;
    post(maker_.make(qp_->options().path_mtu, is_last, qp_->options().signal_all,
                     !connection_.is_healed));
  }
}

void End::post(Request request) {
  connection_.world.trace.note(request.wr_id << 8 ^ request.length);
  connection_.world.trace.line(
      connection_.world.now(), "end %u: posts %#llx operation %u bytes %u at %u%s%s%s", id_,
      static_cast<unsigned long long>(request.wr_id), static_cast<unsigned>(request.operation),
      request.length, request.remote_offset, request.is_signaled ? " signalled" : "",
      request.is_fenced ? " fenced" : "", request.poison != Poison::kNone ? " wrong" : "");
  flow_->post(request);
  maker_.post(*qp_, request, peer_->target_);
}

void End::disturb() {
  const std::uint32_t what = prng_.below(4);
  connection_.world.trace.line(connection_.world.now(), "end %u: disturbs %u", id_, what);
  if (what <= 1) {
    if (!is_paused_) qp_->to_state(connection_.world.now(), QpState::kSqd);
    is_paused_ = true;
  } else {
    close(what == 3);
  }
}

void End::close(bool abruptly) {
  connection_.world.trace.line(connection_.world.now(), "end %u: closes%s", id_,
                               abruptly ? " abruptly" : "");
  connection_.is_open = false;
  closed_at_ = connection_.world.now();
  if (abruptly) {
    was_abrupt_ = true;
    if (site_.shared_pool() != nullptr) reclaim_receives(*site_.shared_pool());
    destroy();
    die();
  } else {
    if (qp_->state() != QpState::kErr) qp_->to_state(connection_.world.now(), QpState::kErr);
    phase_ = Phase::kFlushing;
  }
  // The news reaches the peer some other way, unless it finds out by itself.
  if (peer_->phase_ == Phase::kOpen) {
    const Duration delay = up_to(prng_, kNewsTakeAtMost);
    peer_->close_after(delay, prng_.chance(kMillion / 4));
  }
}

void End::close_after(Duration delay, bool abruptly) {
  connection_.world.at(connection_.world.now() + delay, *this,
                       life_ << kWhatBits | (abruptly ? kCloseAbruptly : kCloseGently));
}

void End::settle() {
  flow_->settle(peer_->kept_all());
  if (connection_.oracle.is_violated()) return;
  own_pool_.abandon();
}

// What the queue pair has taken from the shared queue and nobody will hear of.
void End::reclaim_receives(ReceivePool& pool) {
  const CompletionQueue& cq = site_.cq();
  for (std::uint32_t i = 0; i < cq.pending(); ++i) {
    const Cqe& entry = cq.pending_at(i);
    const bool is_receive = (entry.wr_id & ReceivePool::kWrIdBit) != 0;
    if (entry.qpn == qp_->number() && is_receive) pool.reclaim(entry.wr_id);
  }
  const RecvWqe* const in_hand = qp_->core().responder.receive;
  if (in_hand != nullptr) pool.reclaim(in_hand->wr_id);
}

void End::destroy() {
  if (qp_ == nullptr) return;
  site_.remove(qp_->number());
  flow_->abandon();
  qp_.reset();
}

bool End::is_idle() const {
  return left_ == 0 && flow_->is_idle() && peer_->flow_->next_received() == nullptr;
}

bool End::is_peer_gone() const {
  return !connection_.is_open || peer_->qp_ == nullptr || peer_->qp_->state() == QpState::kErr;
}

// The queue pair may be in ERR, for what the peer sent or for what was done to it.
bool End::may_flush() const { return phase_ != Phase::kOpen || peer_->flow_->has_poison(); }

bool End::may_give_up(WcStatus status, const Request& request) const {
  switch (status) {
    case WcStatus::kFlushed:
      return may_flush();
    case WcStatus::kRetryExceeded:
      return is_peer_gone() || (connection_.scenario.may_fail &&
                                connection_.world.now() < connection_.healed_for_good);
    case WcStatus::kRnrRetryExceeded:
      return qp_->options().rnr_retry < 7 && request.takes_receive();
    default:
      return request.poison != Poison::kNone && status == status_of(request.poison);
  }
}

void End::judge_failure(const Cqe& entry) {
  const Request* const request = flow_->find(entry.wr_id);
  if (request == nullptr || may_give_up(entry.status, *request)) return;
  connection_.oracle.violated("request %#llx (operation %u) fails with status %u, without reason",
                              static_cast<unsigned long long>(entry.wr_id),
                              static_cast<unsigned>(request->operation),
                              static_cast<unsigned>(entry.status));
}

void End::on_send_completion(const Cqe& entry) {
  if (entry.status != WcStatus::kSuccess && !flow_->has_failed()) judge_failure(entry);
  flow_->on_completion(entry);
  if (entry.status != WcStatus::kSuccess && phase_ == Phase::kOpen) close(false);
}

void End::on_completion(const Cqe& entry) {
  if ((entry.wr_id & ReceivePool::kWrIdBit) == 0) return on_send_completion(entry);
  ReceivePool& pool = site_.shared_pool() != nullptr ? *site_.shared_pool() : own_pool_;
  pool.on_completion(entry, *peer_->flow_, may_flush() || qp_->state() == QpState::kErr);
}

void End::write_stray_byte() { local_.memory({1, 1})[0] ^= std::byte{1}; }

void End::repeat_atomic() {
  const Bytes word = target_.memory({EndLayout::kEdgeBytes, 8});
  store_word(word, load_word(word) + 1);
}

void End::check_at_end() {
  flow_->check_target();
  if (!local_.is_as_expected(local_.whole())) {
    connection_.oracle.violated("byte %u of local memory has changed",
                                local_.first_unexpected(local_.whole()));
  }
}

}  // namespace uroce::sim
