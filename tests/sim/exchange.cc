// SPDX-License-Identifier: BSD-2-Clause
#include "sim/exchange.h"

#include <array>
#include <vector>

#include "sim/arena.h"
#include "sim/flow.h"
#include "sim/invariants.h"
#include "sim/node.h"
#include "sim/queue_pair.h"
#include "sim/receive_pool.h"

namespace uroce::test {
namespace {

using namespace transport;
using namespace sim;

constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kRequests = 2;
constexpr std::uint32_t kMessageBytes = 4 * kMtu;
constexpr std::uint32_t kSlotBytes = kMessageBytes + 64;
constexpr Range kReceives{64, kRequests* kSlotBytes};
constexpr Range kTarget{64, kRequests* kMessageBytes};

LinkOptions link_options(Script& script) {
  LinkOptions options;
  options.delay = microseconds(10);
  options.bits_per_second = 8'000'000 * (kMtu + 100);  // a packet in some kPacketSpacing
  options.script = &script;
  return options;
}

class Exchange {
 public:
  explicit Exchange(const ExchangeCase& the_case)
      : case_(the_case),
        there_(world_, link_options(case_.script), Prng(1), 0, 1, responder_),
        back_(world_, link_options(case_.script), Prng(1), 1, 0, requester_) {
    requester_.connect(kUplink, 1, there_);
    responder_.connect(kUplink, 0, back_);
    cq_.set_memory(cq_memory_, 16);
    peer_cq_.set_memory(peer_cq_memory_, 16);
    using enum memory::Access;
    requester_.add_region(local_.key(), local_.address(0), local_.memory(local_.whole()),
                          kLocalWrite);
    responder_.add_region(receive_.key(), receive_.address(0), receive_.memory(receive_.whole()),
                          kLocalWrite);
    responder_.add_region(target_.key(), target_.address(kTarget.offset), target_.memory(kTarget),
                          kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  }

  ExchangeOutcome run() {
    QueuePairOptions options;
    options.path_mtu = kMtu;
    QueuePair qp(requester_, options, cq_, cq_, nullptr);
    QueuePair peer(responder_, options, peer_cq_, peer_cq_, nullptr);
    const Psn psn(0xff'fffe);
    qp.connect(world_.now(), 1, peer.number(), psn, psn);
    peer.connect(world_.now(), 0, qp.number(), psn, psn);
    flow_.open(kMtu);
    for (std::uint32_t i = 0; i < kRequests; ++i) {
      const ReceivePool::Posted posted = pool_.post();
      peer.post_receive(posted.wr_id, {posted.sges.data(), posted.sge_count});
      post(qp, i);
    }
    while (world_.step(Instant::never())) {
    }
    poll(qp, peer);
    return outcome_;
  }

 private:
  Request make(std::uint32_t index) {
    Request request;
    request.operation = case_.operation;
    request.wr_id = index;
    request.is_signaled = true;
    request.length = is_atomic(case_.operation) ? 8 : case_.packets * kMtu - 3;
    request.immediate = 0x1234'0000 + index;
    request.remote_offset =
        is_atomic(case_.operation) ? kTarget.offset : kTarget.offset + index * kMessageBytes;
    request.compare_add = 5;
    const Range own{64 + index * kMessageBytes, request.length};
    if (is_read_or_atomic(case_.operation)) {
      request.local.add(own);
    } else {
      const Bytes data = local_.memory(own);
      request.data.assign(data.begin(), data.end());
    }
    return request;
  }

  void post(QueuePair& qp, std::uint32_t index) {
    const Request request = make(index);
    const SendRequest posted{.operation = request.operation,
                             .wr_id = request.wr_id,
                             .remote_address = target_.address(request.remote_offset),
                             .rkey = {target_.key()},
                             .immediate = request.immediate,
                             .compare_add = request.compare_add,
                             .flags = send_flag::kSignaled};
    const memory::Sge sge = local_.sge({64 + index * kMessageBytes, request.length});
    flow_.post(request);
    qp.post_send(posted, {&sge, 1});
  }

  void poll(QueuePair& qp, QueuePair& peer) {
    while (const Cqe* front = peer_cq_.front()) {
      pool_.on_completion(*front, flow_, peer.state() == QpState::kErr);
      peer_cq_.pop();
    }
    while (const Cqe* front = cq_.front()) {
      if (front->status == WcStatus::kRetryExceeded) ++outcome_.failed;
      if (front->status != WcStatus::kSuccess && outcome_.failed == 0) {
        oracle_.violated("status %u", static_cast<unsigned>(front->status));
      }
      flow_.on_completion(*front);
      cq_.pop();
    }
    if (!flow_.is_idle()) oracle_.violated("a completion is missing");
    if (outcome_.failed != 0) {
      flow_.settle(true);
    } else {
      if (flow_.unreceived() != 0) oracle_.violated("a message was not received");
      flow_.check_target();
    }
    for (Arena* arena : {&local_, &receive_}) {
      if (!arena->is_as_expected(arena->whole())) oracle_.violated("stray bytes");
    }
    check_limits(oracle_, qp.core());
    if (!world_.packets.is_unused()) oracle_.violated("packets are lost in the simulator");
    outcome_.violation = oracle_.story();
    outcome_.packets = case_.script.next;
  }

  ExchangeCase case_;
  World world_{kMtu + 128};
  Oracle oracle_{world_};
  Node requester_{world_, 0, {}, Prng(1)};
  Node responder_{world_, 1, {}, Prng(2)};
  Link there_, back_;
  Arena local_{1, 64 + kRequests* kMessageBytes + 64, Prng(3)};
  Arena receive_{2, kReceives.bytes + 128, Prng(4)};
  Arena target_{3, kTarget.bytes + 128, Prng(5)};
  ReceivePool pool_{oracle_, receive_, kReceives, kSlotBytes, kMessageBytes, false, Prng(6)};
  Flow flow_{oracle_, {&local_, &target_, target_.whole()}};
  std::array<Cqe, 16> cq_memory_, peer_cq_memory_;
  CompletionQueue cq_, peer_cq_;
  ExchangeOutcome outcome_;
};

}  // namespace

ExchangeOutcome run_exchange(const ExchangeCase& the_case) { return Exchange(the_case).run(); }

}  // namespace uroce::test
