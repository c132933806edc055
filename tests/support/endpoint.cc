// SPDX-License-Identifier: BSD-2-Clause
#include "support/endpoint.h"

#include <cstring>

#include "wire/run.h"

namespace uroce::test {

using namespace transport;

RxPacket Packet::received() const {
  RxPacket packet;
  packet.bytes = bytes;
  packet.packet_count = packet_count;
  packet.payload_is_detached = is_run;
  packet.detached_payload = payload;
  if (has_addresses) {
    packet.source = &source;
    packet.destination = &destination;
  }
  return packet;
}

wire::PacketView Packet::view() const {
  received_ = received();
  wire::PacketView view;
  if (wire::parse(received_, view) != wire::DropReason::kNone) std::abort();
  return view;
}

Endpoint::Endpoint(std::size_t buffer_bytes, std::uint32_t completions)
    : buffer(buffer_bytes),
      blocks_(std::make_unique<QpBlock*[]>(kQpBlockCount)),
      heap_(1024),
      early_heap_(1024),
      stash_entries_(64),
      stash_slots_(64),
      regions_(64),
      cq_memory_(CompletionQueue::ring_slots(completions)),
      burst_(std::make_unique<TxBurst>()) {
  hca.demux().set_memory({blocks_.get(), kQpBlockCount});
  hca.deadlines().set_memory(heap_);
  hca.early_deadlines().set_memory(early_heap_);
  hca.stash().set_memory(stash_entries_, stash_slots_);
  (void)hca.regions().rehash_into(regions_);
  memory::MemoryRegion region;
  region.iova = reinterpret_cast<std::uintptr_t>(buffer.data());
  region.length = buffer.size();
  region.base = buffer.data();
  region.pd = kPd;
  region.access = memory::Access::kLocalWrite | memory::Access::kRemoteWrite |
                  memory::Access::kRemoteRead | memory::Access::kRemoteAtomic |
                  memory::Access::kMwBind | memory::Access::kFlushGlobal;
  region.key = kKey;
  (void)hca.regions().insert(region);
  cq.set_memory(cq_memory_, completions);
}

void Endpoint::add_window(RKey key, memory::KeyKind kind) {
  const memory::MemoryRegion window{.pd = kPd, .key = key.value, .kind = kind};
  if (hca.regions().insert(window) != memory::InsertOutcome::kInserted) std::abort();
}

void Endpoint::set_link(const LinkFacts& facts) {
  facts_ = facts;
  hca.set_link(kLocalLink, facts);
}

TestQp& Endpoint::add_qp(Qpn number, const QpOptions& options) {
  if (blocks_[qpn_block(number)] == nullptr) {
    block_memory_.emplace_back();
    hca.demux().add_block(qpn_block(number), block_memory_.back());
  }
  TestQp& test = qps_.emplace_back();
  test.options = options;
  const auto send_stride = static_cast<std::uint32_t>(
      sizeof(SendWqe) + std::max<std::uint32_t>(options.sge_max * 16, options.inline_max));
  const std::uint32_t receive_stride = 16 + options.sge_max * 16;
  test.send_memory.resize(std::size_t{SendQueue::ring_slots(options.capacity)} * send_stride);
  test.receive_memory.resize(std::size_t{RecvQueue::ring_slots(options.capacity)} * receive_stride);
  test.srq_copy.resize(receive_stride);
  test.replay.resize(kReplayMax);
  QpInit init;
  init.number = number;
  init.service = options.service;
  init.datagram_bytes = options.path_mtu;
  init.pd = kPd;
  init.send_cq = init.receive_cq = &cq;
  init.srq = options.srq;
  init.xrcd = options.xrcd;
  init.signal_all = options.signal_all;
  init.send_memory = test.send_memory;
  init.send_capacity = options.capacity;
  init.send_stride = send_stride;
  init.receive_memory = test.receive_memory;
  init.receive_capacity = options.capacity;
  init.receive_stride = receive_stride;
  init.srq_copy = reinterpret_cast<RecvWqe*>(test.srq_copy.data());
  init.replay = test.replay;
  hca.create_qp(test.qp, init);
  return test;
}

int Endpoint::modify(TestQp& qp, QpAttributes attributes, std::uint32_t mask) {
  return hca.modify_qp(now, qp.qp, attributes, mask,
                       facts_.peer_window_bytes == 0 ? nullptr : &peer);
}

void Endpoint::to_init(TestQp& qp) {
  using namespace qp_attribute;
  QpAttributes a;
  a.state = QpState::kInit;
  a.access = qp.options.access;
  a.qkey = qp.options.qkey;
  const std::uint32_t right = qp.qp.service == Service::kUd ? kQKey : kAccessFlags;
  if (modify(qp, a, kState | kPKeyIndex | kPort | right) != 0) std::abort();
}

void Endpoint::to_rtr(TestQp& qp, Qpn destination, Psn receive_psn) {
  using namespace qp_attribute;
  QpAttributes a;
  a.state = QpState::kRtr;
  a.path_mtu = qp.options.path_mtu;
  a.destination_qpn = destination;
  a.receive_psn = receive_psn;
  a.max_dest_read_atomic = qp.options.max_dest_read_atomic;
  a.min_rnr_timer = qp.options.min_rnr_timer;
  std::uint32_t mask = kState;
  if (qp.qp.service != Service::kUd) {
    mask |= kAddressVector | kPathMtu | kDestinationQpn | kReceivePsn;
  }
  const bool responds = qp.qp.service == Service::kRc || qp.qp.service == Service::kXrcTarget;
  if (responds) mask |= kMaxDestReadAtomic | kMinRnrTimer;
  if (modify(qp, a, mask) != 0) std::abort();
}

void Endpoint::to_rts(TestQp& qp, Psn send_psn) {
  using namespace qp_attribute;
  QpAttributes a;
  a.state = QpState::kRts;
  a.timeout = qp.options.timeout;
  a.retry_count = qp.options.retry_count;
  a.rnr_retry = qp.options.rnr_retry;
  a.send_psn = send_psn;
  a.max_read_atomic = qp.options.max_read_atomic;
  std::uint32_t mask = kState | kSendPsn;
  const bool requests = qp.qp.service == Service::kRc || qp.qp.service == Service::kXrcInitiator;
  if (is_reliable(qp.qp.service)) mask |= kTimeout;
  if (requests) mask |= kRetryCount | kRnrRetry | kMaxReadAtomic;
  if (modify(qp, a, mask) != 0) std::abort();
}

void Endpoint::post_send(TestQp& test, const SendRequest& request) {
  SendQueue& queue = test.qp.send_queue;
  if (queue.free_slots() == 0) std::abort();
  SendWqe& wqe = queue.at(queue.next_post());
  wqe = SendWqe{};
  wqe.wr_id = request.wr_id;
  wqe.operation = request.operation;
  wqe.remote_address = request.remote_address;
  wqe.rkey = request.rkey;
  wqe.immediate = request.immediate;
  wqe.compare_add = request.compare_add;
  wqe.swap = request.swap;
  wqe.flags = request.flags;
  if (request.operation == SendOperation::kBindWindow) wqe.set_window_part(request.part);
  if (request.target) {
    wqe.set_target(*request.target);
    if (request.target->path != nullptr) ++request.target->path->users;
  }
  if (!request.inline_data.empty()) {
    wqe.flags |= send_flag::kInline;
    wqe.length = static_cast<std::uint32_t>(request.inline_data.size());
    std::memcpy(wqe.inline_data(), request.inline_data.data(), request.inline_data.size());
  } else {
    wqe.sge_count = static_cast<std::uint16_t>(request.sges.size());
    wqe.length = static_cast<std::uint32_t>(memory::total_bytes(request.sges));
    std::copy(request.sges.begin(), request.sges.end(), wqe.sges());
  }
  if (request.srq) wqe.set_srq(*request.srq);
  queue.post(1);
  hca.on_doorbell(now, test.qp);
}

void Endpoint::post_receive(TestQp& test, std::uint64_t wr_id, std::vector<memory::Sge> sges) {
  post_receive(test.qp.srq != nullptr ? test.qp.srq->queue : test.qp.receive_queue, wr_id, sges);
  if (test.qp.state.load() == QpState::kErr) hca.on_doorbell(now, test.qp);
}

void Endpoint::post_receive(RecvQueue& queue, std::uint64_t wr_id,
                            std::span<const memory::Sge> sges) {
  if (queue.free_slots() == 0) std::abort();
  RecvWqe& wqe = queue.at(queue.next_post());
  wqe.wr_id = wr_id;
  wqe.sge_count = static_cast<std::uint32_t>(sges.size());
  wqe.length = static_cast<std::uint32_t>(memory::total_bytes(sges));
  std::copy(sges.begin(), sges.end(), wqe.sges());
  queue.post(1);
}

void Endpoint::receive(const Packet& packet) {
  const RxPacket received = packet.received();
  hca.on_packets(now, kLocalLink, {&received, 1});
}

void Endpoint::send(TxFrame& frame, std::vector<Packet>& out) const {
  wire::PayloadCursor payload(frame.payload());
  if (facts_.trusted_memory) {
    Packet packet;
    packet.is_run = true;
    packet.packet_count = frame.packet_count;
    packet.bytes.assign(frame.headers().begin(), frame.headers().end());
    packet.has_addresses = frame.carries_addresses;
    packet.source = frame.path->source;
    packet.destination = frame.path->destination;
    packet.payload.resize(frame.payload_bytes);
    if (frame.payload_bytes != 0) payload.copy(packet.payload);
    out.push_back(std::move(packet));
    return;
  }
  for (unsigned i = 0; i < frame.packet_count; ++i) {
    std::array<std::byte, kMaxHeaderBytes> header;  // NOLINT: written by run_headers
    const std::size_t header_bytes = wire::run_headers(frame, i, header);
    const std::uint32_t bytes = wire::run_payload_bytes(frame, i);
    Packet packet;
    packet.has_addresses = frame.carries_addresses;
    packet.source = frame.path->source;
    packet.destination = frame.path->destination;
    packet.bytes.resize(header_bytes + bytes + (-bytes & 3U));
    std::memcpy(packet.bytes.data(), header.data(), header_bytes);
    if (bytes != 0) payload.copy(std::span(packet.bytes).subspan(header_bytes, bytes));
    out.push_back(std::move(packet));
  }
}

std::vector<Packet> Endpoint::transmit() {
  std::vector<Packet> out;
  hca.retry_refused(kLocalLink);
  for (;;) {
    burst_->clear();
    if (!hca.poll_transmit(now, kLocalLink, *burst_)) break;
    if (refuses) {
      for (TxFrame& frame : burst_->frames()) frame.refused = true;
      hca.on_refused(now, burst_->frames());
      break;
    }
    for (TxFrame& frame : burst_->frames()) send(frame, out);
  }
  hca.publish_completions(now);
  while (hca.poll_notification() != nullptr) {
  }
  return out;
}

std::optional<Cqe> Endpoint::poll() {
  const Cqe* entry = cq.front();
  if (entry == nullptr) return std::nullopt;
  const Cqe copy = *entry;
  cq.pop();
  return copy;
}

std::vector<Cqe> Endpoint::poll_all() {
  std::vector<Cqe> all;
  while (auto entry = poll()) all.push_back(*entry);
  return all;
}

std::optional<Event> Endpoint::event() {
  Event event;
  if (!hca.poll_event(event)) return std::nullopt;
  return event;
}

memory::Sge Endpoint::sge(std::size_t offset, std::uint32_t bytes) const {
  return {address(offset), bytes, {kKey}};
}

std::uint64_t Endpoint::address(std::size_t offset) const {
  return reinterpret_cast<std::uintptr_t>(buffer.data() + offset);
}

}  // namespace uroce::test
