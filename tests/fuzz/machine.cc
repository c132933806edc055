// SPDX-License-Identifier: BSD-2-Clause
// The application's side: set-up, posts, changes, completions.
#include "fuzz/machine.h"

#include <algorithm>
#include <cstring>

#include "fuzz/check.h"

namespace uroce::fuzz {

using namespace transport;

namespace {

constexpr std::uint32_t kCapacity = 16;
constexpr std::uint32_t kSrqSges = 4;
constexpr Psn kFirstPsn(0xff'fff0);  // so that everything goes through the wrap

LinkFacts link(std::uint32_t choice) {
  if (choice == 0) return {.max_run_packets = 16, .max_run_bytes = 60'000};
  if (choice == 1) {
    return {.max_run_packets = 16, .max_run_bytes = 60'000, .peer_window_bytes = 4096};
  }
  return {.max_run_packets = 64, .max_run_bytes = 65'536, .trusted_memory = true};
}

constexpr std::array<std::uint8_t, 4> kCounts = {0, 1, 4, 128};

std::uint8_t count(Commands& commands) { return kCounts[commands.below(kCounts.size())]; }

test::QpOptions options(Commands& commands) {
  test::QpOptions options;
  options.path_mtu = commands.flag() ? 1024 : 256;
  options.capacity = kCapacity;
  options.timeout = commands.flag() ? 8 : 0;
  options.retry_count = static_cast<std::uint8_t>(commands.below(8));
  options.rnr_retry = static_cast<std::uint8_t>(commands.below(8));
  options.max_read_atomic = count(commands);
  options.max_dest_read_atomic = count(commands);
  options.signal_all = commands.flag();
  if (commands.flag()) options.access = memory::Access::kRemoteRead;
  return options;
}

memory::MemoryRegion region(const Area& area, std::byte* buffer) {
  memory::MemoryRegion region;
  region.base = buffer + area.offset;
  region.iova = reinterpret_cast<std::uintptr_t>(region.base);
  region.length = area.bytes;
  region.pd = area.pd;
  region.access = area.access;
  region.key = area.key;
  return region;
}

}  // namespace

Machine::Machine(Commands& commands)
    : endpoint_(kBufferBytes, commands.flag() ? 8 : 64), facts_(link(commands.below(3))) {
  for (std::size_t i = 0; i < kBufferBytes; ++i) {
    endpoint_.buffer[i] = static_cast<std::byte>(i * 37 + (i >> 8));
  }
  pristine_ = endpoint_.buffer;
  (void)endpoint_.hca.regions().erase(test::Endpoint::kKey);
  for (const Area& area : kAreas) {
    (void)endpoint_.hca.regions().insert(region(area, endpoint_.buffer.data()));
  }
  endpoint_.add_window(kWindow1, memory::KeyKind::kWindowType1);
  endpoint_.add_window(kWindow2, memory::KeyKind::kWindowType2);
  options_ = options(commands);
  if (commands.flag()) {
    const std::uint32_t stride = sizeof(RecvWqe) + kSrqSges * sizeof(memory::Sge);
    srq_memory_.resize(kCapacity * stride);
    srq_.queue.set_memory(srq_memory_, kCapacity, stride);
    srq_.pd = test::Endpoint::kPd;
    srq_.limit = commands.below(kCapacity);
    options_.srq = &srq_;
  }
  endpoint_.set_link(facts_);
  qp_ = &endpoint_.add_qp(kNumber, options_);
  connect();
}

void Machine::connect() {
  endpoint_.to_init(*qp_);
  endpoint_.to_rtr(*qp_, kPeer, kFirstPsn);
  endpoint_.to_rts(*qp_, kFirstPsn);
}

std::uint32_t Machine::key(Commands& commands) const {
  const std::uint32_t choice = commands.below(8);
  if (choice < kAreas.size()) return kAreas[choice].key;
  if (choice == 4) return kAreas[kOpen].key ^ 1;  // another variant of the same index
  if (choice == 5) return commands.word();
  if (choice == 6) return kWindow1.value + commands.below(3);
  if (choice == 7) return kWindow2.value + commands.below(3);
  return kAreas[kOwn].key;
}

memory::Sge Machine::sge(Commands& commands) const {
  const std::uint32_t choice = commands.below(8);
  const Area& area = kAreas[choice < kAreas.size() ? choice : kOwn];
  const std::size_t offset = area.offset + commands.half() % area.bytes;
  const auto left = static_cast<std::uint32_t>(area.offset + area.bytes - offset);
  std::uint32_t bytes = commands.half() % (left + 1);
  if (commands.below(16) == 15) bytes = commands.word();
  return {endpoint_.address(offset), bytes, {choice < 6 ? area.key : key(commands)}};
}

void Machine::post_send(Commands& commands) {
  SendQueue& queue = qp_->qp.send_queue;
  const QpState state = qp_->qp.state.load();
  if (queue.free_slots() == 0) return;
  if (state != QpState::kRts && state != QpState::kSqd && state != QpState::kErr) return;
  test::SendRequest request;
  request.operation = static_cast<SendOperation>(commands.below(kSendOperationCount));
  request.wr_id = next_wr_id_++;
  request.flags =
      commands.byte() & (send_flag::kSignaled | send_flag::kFence | send_flag::kSolicited);
  request.remote_address = endpoint_.address(commands.half() % kBufferBytes);
  request.rkey = {key(commands)};
  request.compare_add = request.swap = commands.byte();
  if (request.operation == SendOperation::kBindWindow) {
    request.part = {{key(commands)},
                    endpoint_.address(commands.half() % kBufferBytes),
                    commands.half(),
                    static_cast<memory::Access>(commands.byte() & 0x3f)};
  }
  const std::uint32_t pieces = commands.below(options_.sge_max + 2);
  if (pieces > options_.sge_max && !is_read_or_atomic(request.operation)) {
    request.inline_data.resize(1 + commands.below(options_.inline_max));
  } else {
    for (std::uint32_t i = 0; i < pieces % (options_.sge_max + 1); ++i) {
      request.sges.push_back(sge(commands));
    }
  }
  // verbs refuses what is longer than the length of a work request can say.
  if (memory::total_bytes(request.sges) > 0xffff'ffff) return;
  sends_.push_back({request.wr_id, options_.signal_all || (request.flags & 1) != 0});
  endpoint_.post_send(*qp_, request);
}

void Machine::post_receive(Commands& commands) {
  RecvQueue& queue = options_.srq != nullptr ? srq_.queue : qp_->qp.receive_queue;
  if (queue.free_slots() == 0) return;
  if (options_.srq == nullptr && qp_->qp.state.load() == QpState::kReset) return;
  std::vector<memory::Sge> sges(commands.below(options_.sge_max + 1));
  for (memory::Sge& piece : sges) piece = sge(commands);
  if (memory::total_bytes(sges) > 0xffff'ffff) return;
  receives_.push_back({next_wr_id_, true});
  endpoint_.post_receive(*qp_, next_wr_id_++, std::move(sges));
}

void Machine::modify(Commands& commands) {
  QpAttributes attributes = endpoint_.hca.query_qp(qp_->qp);
  attributes.state = static_cast<QpState>(commands.below(8));
  attributes.sqd_notify = commands.flag();
  attributes.max_read_atomic = count(commands);
  attributes.max_dest_read_atomic = count(commands);
  attributes.timeout = static_cast<std::uint8_t>(commands.below(40));
  const std::uint32_t choice = commands.below(4);
  std::uint32_t mask = choice == 0 ? commands.word() : 0;
  if (choice != 3) mask |= qp_attribute::kState;
  if (choice == 2) mask |= qp_attribute::kEnableSqdNotify;
  modify_to(attributes, mask);
}

void Machine::modify_to(const QpAttributes& attributes, std::uint32_t mask) {
  if (endpoint_.modify(*qp_, attributes, mask) != 0) return;
  if (qp_->qp.state.load() != QpState::kReset) return;
  // As verbs does: completions of before are taken out, and the queues begin anew.
  endpoint_.cq.purge(kNumber, options_.srq != nullptr ? &srq_.queue.released() : nullptr);
  sends_.clear();
  if (options_.srq == nullptr) receives_.clear();
  sent_.clear();
  connect();
}

void Machine::change_regions(Commands& commands) {
  const Area& area = kAreas[commands.below(kAreas.size())];
  if (!endpoint_.hca.regions().erase(area.key)) {
    (void)endpoint_.hca.regions().insert(region(area, endpoint_.buffer.data()));
  }
}

void Machine::pass_time(Commands& commands) {
  endpoint_.now = endpoint_.now + nanoseconds(std::int64_t{1} << commands.below(34));
  endpoint_.timers();
}

void Machine::poll(std::uint32_t at_most) {
  for (std::uint32_t i = 0; i < at_most; ++i) {
    const auto entry = endpoint_.poll();
    if (!entry) return;
    take(*entry);
  }
}

void Machine::take(const Cqe& entry) {
  check(entry.qpn == kNumber, "a completion is of our queue pair");
  if (entry.opcode >= WcOpcode::kReceive) {
    take_receive(entry);
  } else {
    take_send(entry);
  }
}

void Machine::take_send(const Cqe& entry) {
  while (!sends_.empty() && sends_.front().wr_id != entry.wr_id) {
    // Only a CQ that had no room has lost completions.
    check(!sends_.front().is_signaled || endpoint_.cq.has_overrun(),
          "completions of sends come in the order of posting");
    sends_.pop_front();
  }
  check(!sends_.empty(), "a completion is of a send that was posted");
  check(sends_.front().is_signaled || entry.status != WcStatus::kSuccess,
        "an unsignalled success has no completion");
  sends_.pop_front();
}

void Machine::take_receive(const Cqe& entry) {
  const auto posted = std::ranges::find(receives_, entry.wr_id, &Posted::wr_id);
  check(posted != receives_.end(), "a completion is of a receive that was posted");
  check(options_.srq != nullptr || posted == receives_.begin() || endpoint_.cq.has_overrun(),
        "completions of receives come in the order of posting");
  receives_.erase(posted);
  ++receives_taken_;
}

void Machine::finish() {
  poll(kCapacity * 4);
  QpAttributes attributes;
  attributes.state = QpState::kErr;
  modify_to(attributes, qp_attribute::kState);
  transmit(false);
  poll(kCapacity * 4);
  check_all();
  if (!endpoint_.cq.has_overrun()) {
    check(std::ranges::none_of(sends_, &Posted::is_signaled), "every send has its completion");
    check(options_.srq != nullptr || receives_.empty(), "every receive has its completion");
  }
  endpoint_.hca.destroy_qp(qp_->qp);
  transmit(false);
  while (endpoint_.event()) {
  }
  check(endpoint_.hca.is_quiet() && !endpoint_.hca.has_responses_due() &&
            endpoint_.hca.next_deadline() == Instant::never() && endpoint_.peer.window_used == 0,
        "nothing is left of a queue pair that is gone");
}

}  // namespace uroce::fuzz
