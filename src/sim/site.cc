// SPDX-License-Identifier: BSD-2-Clause
#include "sim/site.h"

#include "sim/queue_pair.h"

namespace uroce::sim {

using namespace transport;

namespace {

inline constexpr std::uint32_t kCompletions = 2048;
inline constexpr std::uint32_t kSharedSlots = 64;
inline constexpr std::uint32_t kGapBytes = 64;
inline constexpr std::uint32_t kSourceId = 1, kSharedId = 2;

std::uint32_t shared_bytes(const Scenario& s) {
  return s.has_srq ? kSharedSlots * (s.message_bytes + kGapBytes) : kGapBytes;
}

}  // namespace

Site::Site(World& world, Oracle& oracle, Node& node, const Scenario& s, Prng prng)
    : world_(world),
      oracle_(oracle),
      node_(node),
      by_event_(s.by_event),
      source_(kSourceId, kSourceBytes, prng.split(1)),
      cq_memory_(CompletionQueue::ring_slots(kCompletions)),
      shared_(kSharedId, shared_bytes(s), prng.split(2)),
      srq_memory_(RecvQueue::ring_slots(kSharedSlots) *
                  (sizeof(RecvWqe) + kSgesMax * sizeof(memory::Sge))) {
  cq_.set_memory(cq_memory_, kCompletions);
  cq_.arm(Arm::kAny);
  node.set_user(this);
  node.add_region(source_.key(), source_.address(0), source_.memory(source_.whole()),
                  memory::Access::kNone);
  if (!s.has_srq) return;
  node.add_region(shared_.key(), shared_.address(0), shared_.memory(shared_.whole()),
                  memory::Access::kLocalWrite);
  srq_.pd = {1};
  srq_.queue.set_memory(
      srq_memory_, kSharedSlots,
      static_cast<std::uint32_t>(sizeof(RecvWqe) + kSgesMax * sizeof(memory::Sge)));
  pool_.emplace(oracle, shared_, shared_.whole(), s.message_bytes + kGapBytes, s.message_bytes,
                true, prng.split(3));
}

void Site::add(Qpn number, CompletionSink& sink) { sinks_.push_back({number, &sink}); }

void Site::remove(Qpn number) {
  std::erase_if(sinks_, [number](const Entry& entry) { return entry.number == number; });
}

void Site::post_shared(std::uint32_t count) {
  for (; count != 0 && pool_->can_post() && srq_.queue.free_slots() != 0; --count) {
    const ReceivePool::Posted posted = pool_->post();
    post_receive(srq_.queue, posted.wr_id, {posted.sges.data(), posted.sge_count});
  }
}

bool Site::is_wronged(const Cqe& entry, Sabotage by, bool is_receive) {
  const bool is_it = sabotage_ == by && entry.status == WcStatus::kSuccess &&
                     ((entry.wr_id & ReceivePool::kWrIdBit) != 0) == is_receive;
  if (is_it) {
    sabotage_ = Sabotage::kNone;
    has_wronged_ = true;
  }
  return is_it;
}

void Site::hand_over(const Cqe& entry) {
  world_.trace.note(entry.wr_id ^ std::uint64_t{entry.byte_count} << 32);
  world_.trace.note(static_cast<std::uint64_t>(entry.status) ^ std::uint64_t{entry.qpn.value} << 8);
  world_.trace.line(world_.now(), "node %u qpn %#x: completion of %#llx status %u bytes %u",
                    node_.index(), entry.qpn.value, static_cast<unsigned long long>(entry.wr_id),
                    static_cast<unsigned>(entry.status), entry.byte_count);
  if (is_wronged(entry, Sabotage::kLostCompletion, false)) return;
  if (is_wronged(entry, Sabotage::kForgottenReceive, true)) return;
  for (const Entry& candidate : sinks_) {
    if (candidate.number != entry.qpn) continue;
    CompletionSink& sink = *candidate.sink;
    sink.on_completion(entry);
    if (is_wronged(entry, Sabotage::kRepeatedCompletion, false)) sink.on_completion(entry);
    return;
  }
  oracle_.violated("a completion of QP %#x, which is not there", entry.qpn.value);
}

void Site::poll() {
  if (by_event_ && !is_told_) return;
  if (by_event_) {
    is_told_ = false;
    cq_.arm(Arm::kAny);
  }
  while (const Cqe* front = cq_.front()) {
    const Cqe entry = *front;
    cq_.pop();
    hand_over(entry);
  }
}

void Site::on_notification(CompletionQueue&) { is_told_ = true; }

void Site::on_async_event(const Event& event) {
  world_.trace.note(static_cast<std::uint64_t>(event.type));
  world_.trace.line(world_.now(), "node %u: asynchronous event %u of QP %#x", node_.index(),
                    static_cast<unsigned>(event.type),
                    event.qp == nullptr ? 0 : event.qp->number.value);
  if (event.type == EventType::kCqError) oracle_.violated("a completion queue overran");
}

void Site::check_at_end() {
  if (!source_.is_as_expected(source_.whole())) {
    oracle_.violated("byte %u of what is only sent has changed",
                     source_.first_unexpected(source_.whole()));
  }
  if (!pool_) return;
  if (!shared_.is_as_expected(shared_.whole())) {
    oracle_.violated("byte %u of the shared buffers has changed",
                     shared_.first_unexpected(shared_.whole()));
  }
  const std::uint32_t held = srq_.queue.posted() - srq_.next;
  if (srq_.queue.free_slots() != srq_.queue.capacity() - held) {
    oracle_.violated("a shared receive queue of %u has %u slots free, and %u requests in it",
                     srq_.queue.capacity(), srq_.queue.free_slots(), held);
  }
}

}  // namespace uroce::sim
