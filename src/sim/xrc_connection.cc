// SPDX-License-Identifier: BSD-2-Clause
#include "sim/xrc_connection.h"

#include "sim/draw_options.h"
#include "sim/invariants.h"

namespace uroce::sim {

using namespace transport;

namespace {

// Behind those of all other traffic.
inline constexpr std::uint32_t kFirstEnd = 64, kFirstArena = 128;
inline constexpr XrcdId kDomain{1}, kOtherDomain{2};
inline constexpr Duration kFlushTime = microseconds(200);
inline constexpr Duration kIdlePause = microseconds(100);

std::uint32_t queue_bytes(const Scenario& s) { return s.capacity * XrcQueue::slot_bytes(s); }

}  // namespace

XrcConnection::XrcConnection(World& world, Oracle& oracle, const Scenario& s, Site& from, Site& to,
                             std::uint32_t index, Prng prng)
    : world_(world),
      oracle_(oracle),
      scenario_(s),
      from_(from),
      to_(to),
      index_(index),
      prng_(prng.split(1)),
      local_(kFirstArena + 4 * index, EndLayout(s).local_bytes, prng.split(2)),
      target_memory_(kFirstArena + 4 * index + 1, EndLayout(s).target_bytes, prng.split(3)),
      received_(kFirstArena + 4 * index + 2, 128 + (kQueues + 1) * queue_bytes(s), prng.split(4)),
      maker_(s, kFirstEnd + 2 * index, from.source(), local_, prng.split(5)),
      flow_(oracle, {&local_, &target_memory_, target_memory_.whole()}),
      left_(s.requests) {
  using enum memory::Access;
  const Range open = EndLayout(s).open_target();
  from.node().add_region(local_.key(), local_.address(0), local_.memory(local_.whole()),
                         kLocalWrite | kMwBind);
  from.node().add_window(RequestMaker::bound_window(kFirstEnd + 2 * index),
                         memory::KeyKind::kWindowType1);
  from.node().add_window(RequestMaker::free_window(kFirstEnd + 2 * index),
                         memory::KeyKind::kWindowType2);
  to.node().add_region(target_memory_.key(), target_memory_.address(open.offset),
                       target_memory_.memory(open),
                       kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  to.node().add_region(received_.key(), received_.address(0), received_.memory(received_.whole()),
                       kLocalWrite);
  to.node().add_window(RequestMaker::free_window(kFirstEnd + 2 * index + 1),
                       memory::KeyKind::kWindowType2);
  maker_.set_peer(kFirstEnd + 2 * index + 1);
  for (std::uint32_t i = 0; i <= kQueues; ++i) {
    queues_.emplace_back(oracle, to, s, i, i < kQueues ? kDomain : kOtherDomain, received_,
                         Range{64 + i * queue_bytes(s), queue_bytes(s)}, prng.split(6 + i));
  }
  draw_options();
}

void XrcConnection::draw_options() {
  const Scenario& s = scenario_;
  QueuePairOptions options = draw_connection_options(prng_, s);
  draw_end_options(prng_, s, options);
  options.max_read_atomic =
      static_cast<std::uint8_t>(prng_.between(1, options.max_dest_read_atomic));
  initiator_options_ = target_options_ = options;
  initiator_options_.service = Service::kXrcInitiator;
  target_options_.service = Service::kXrcTarget;
  target_options_.xrcd = kDomain;
}

void XrcConnection::open() {
  initiator_ = std::make_unique<QueuePair>(from_.node(), initiator_options_, from_.cq(), from_.cq(),
                                           nullptr);
  target_ = std::make_unique<QueuePair>(to_.node(), target_options_, to_.cq(), to_.cq(), nullptr);
  initiator_sink_.owner = target_sink_.owner = this;
  initiator_sink_.take = &XrcConnection::on_sent;
  target_sink_.take = &XrcConnection::on_received;
  from_.add(initiator_->number(), initiator_sink_);
  to_.add(target_->number(), target_sink_);
  const Psn psn(0xff'ffff - prng_.below(64));
  flow_.open(initiator_options_.path_mtu);
  initiator_->connect(world_.now(), to_.node().index(), target_->number(), psn, psn);
  target_->connect(world_.now(), from_.node().index(), initiator_->number(), psn, psn);
  look_again();
}

void XrcConnection::look_again() {
  if (is_over_) return;
  Duration pause = nanoseconds(1 + prng_.below(static_cast<std::uint32_t>(scenario_.think.ns)));
  if (is_done()) pause = pause + kIdlePause;
  world_.at(world_.now() + pause, *this, 0);
}

void XrcConnection::on_event(std::uint32_t) {
  if (!is_over_) look();
  look_again();
}

void XrcConnection::look() {
  if (is_healed_ || phase_ == Phase::kFlushing || !prng_.chance(scenario_.late_poll)) {
    from_.poll();
    to_.poll();
  }
  if (phase_ == Phase::kDead) return;
  if (phase_ == Phase::kFlushing) return settle();
  check_limits(oracle_, initiator_->core());
  if (initiator_->state() == QpState::kErr) return close();
  if (is_healed_ || !prng_.chance(scenario_.late_receive)) {
    for (XrcQueue& queue : queues_) queue.post(prng_.between(1, scenario_.capacity));
  }
  std::uint32_t count = prng_.between(1, 4);
  for (; count != 0 && left_ != 0 && initiator_->send_slots() != 0; --count) post_request();
  if (!is_healed_ && prng_.chance(scenario_.disturb / 4)) close();
}

void XrcConnection::post_request() {
  --left_;
  const bool is_last = left_ == 0 || initiator_->send_slots() == 1;
  Request request =
      maker_.make(initiator_options_.path_mtu, is_last, initiator_options_.signal_all, !is_healed_);
  std::uint32_t queue = prng_.below(kQueues);
  const bool is_misled = !is_healed_ && request.poison == Poison::kNone &&
                         !is_local(request.operation) && prng_.chance(scenario_.poison);
  if (is_misled) {
    queue = kQueues;
    request.poison = Poison::kForeignQueue;
  }
  if (request.takes_receive()) named_.push_back(queue);
  world_.trace.note(request.wr_id << 8 ^ request.length);
  world_.trace.line(world_.now(), "XRC %u: posts %#llx operation %u bytes %u%s", index_,
                    static_cast<unsigned long long>(request.wr_id),
                    static_cast<unsigned>(request.operation), request.length,
                    request.poison != Poison::kNone ? " wrong" : "");
  flow_.post(request);
  maker_.post(*initiator_, request, target_memory_, queues_[queue].number());
}

void XrcConnection::close() {
  world_.trace.line(world_.now(), "XRC %u: closes", index_);
  phase_ = Phase::kFlushing;
  closed_at_ = world_.now();
  left_ = 0;
  for (QueuePair* qp : {initiator_.get(), target_.get()}) {
    if (qp->state() != QpState::kErr) qp->to_state(world_.now(), QpState::kErr);
  }
}

void XrcConnection::settle() {
  if (world_.now() < closed_at_ + kFlushTime) return;
  flow_.succeed_unsignaled();
  if (!flow_.is_idle()) return;
  flow_.settle(true);
  phase_ = Phase::kDead;
}

bool XrcConnection::is_target_gone() const {
  return phase_ != Phase::kOpen || target_->state() == QpState::kErr;
}

bool XrcConnection::may_give_up(WcStatus status, const Request& request) const {
  switch (status) {
    case WcStatus::kFlushed:
      return phase_ != Phase::kOpen;
    case WcStatus::kRetryExceeded:
      return is_target_gone() || (scenario_.may_fail && world_.now() < healed_for_good_);
    case WcStatus::kRnrRetryExceeded:
      return initiator_options_.rnr_retry < 7 && request.takes_receive();
    default:
      return request.poison != Poison::kNone && status == status_of(request.poison);
  }
}

void XrcConnection::on_sent(const Cqe& entry) {
  if (entry.status != WcStatus::kSuccess && !flow_.has_failed()) {
    const Request* const request = flow_.find(entry.wr_id);
    if (request != nullptr && !may_give_up(entry.status, *request)) {
      oracle_.violated("XRC request %#llx fails with status %u, without reason",
                       static_cast<unsigned long long>(entry.wr_id),
                       static_cast<unsigned>(entry.status));
    }
  }
  flow_.on_completion(entry);
}

void XrcConnection::on_received(const Cqe& entry) {
  const std::uint32_t queue = XrcQueue::index_of(entry);
  if (queue >= kQueues) return oracle_.violated("XRC %u: received in another domain", index_);
  if (entry.status == WcStatus::kSuccess && !named_.empty()) {
    if (named_.front() != queue) oracle_.violated("XRC %u: received in another queue", index_);
    named_.pop_front();
  }
  queues_[queue].on_completion(entry, flow_, is_target_gone());
}

bool XrcConnection::is_done() const {
  if (phase_ != Phase::kOpen) return phase_ == Phase::kDead;
  return left_ == 0 && flow_.is_idle() && flow_.next_received() == nullptr;
}

void XrcConnection::describe_unfinished() {
  if (is_done()) return;
  oracle_.violated("XRC %u does not come to its end: %zu requests open, %zu to be received", index_,
                   flow_.pending().size(), flow_.unreceived());
}

void XrcConnection::heal() {
  is_healed_ = true;
  if (scenario_.is_impatient) return;
  // As Connection::heal.
  healed_for_good_ = world_.now() + timeout_of(scenario_.timeout_max) * 8 + milliseconds(100);
}

void XrcConnection::check_at_end() {
  flow_.check_target();
  for (Arena* arena : {&local_, &received_}) {
    if (arena->is_as_expected(arena->whole())) continue;
    oracle_.violated("XRC %u: byte %u of %s has changed", index_,
                     arena->first_unexpected(arena->whole()),
                     arena == &local_ ? "local memory" : "the receive buffers");
  }
}

void XrcConnection::destroy() {
  from_.remove(initiator_->number());
  to_.remove(target_->number());
  initiator_.reset();
  target_.reset();
  queues_.clear();
}

}  // namespace uroce::sim
