// SPDX-License-Identifier: BSD-2-Clause
#include "sim/goodput.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/node.h"
#include "sim/queue_pair.h"
#include "sim/world.h"
#include "transport/segment.h"

namespace uroce::sim {
namespace {

using namespace transport;

inline constexpr std::uint64_t kBytesAtMost = 96ULL << 20;
inline constexpr Duration kTimeAtMost = milliseconds(1000);
inline constexpr std::uint32_t kPacketBytesMax = 4096 + 128;
// Ethernet with preamble, gap and check sequence, IPv4, UDP, BTH, ICRC.
inline constexpr double kHeadersOnWire = 14 + 4 + 20 + 20 + 8 + 12 + 4;
// As much as two bandwidth-delay products of the longest path, for which the receiver has room.
inline constexpr LinkFacts kFacts{.max_run_packets = 256,
                                  .max_run_bytes = 60 << 10,
                                  .peer_window_bytes = 4 << 20,
                                  .trusted_memory = false};
inline constexpr NodeOptions kNode{.inbox_packets = 8192, .stash_packets = 8192};
inline constexpr std::uint32_t kKey = 0x1234'5600;
inline constexpr std::uint64_t kSourceIova = 0x1000'0000;
inline constexpr std::uint64_t kTargetIova = 0x2000'0000;

LinkOptions link_options(const GoodputCase& the_case) {
  LinkOptions options;
  options.delay = nanoseconds(the_case.round_trip.ns / 2);
  options.bits_per_second = kGoodputBitsPerSecond;
  options.loss = the_case.loss;
  return options;
}

// Two nodes, one connection, and an application that posts as soon as it may.
class Stream final : private NodeUser {
 public:
  explicit Stream(const GoodputCase& the_case)
      : case_(the_case),
        world_(kPacketBytesMax),
        requester_(world_, 0, kNode, Prng(1)),
        responder_(world_, 1, kNode, Prng(2)),
        there_(world_, link_options(the_case), Prng(3), 0, 1, responder_),
        back_(world_, link_options(the_case), Prng(4), 1, 0, requester_),
        source_(kGoodputMessageBytes),
        target_(kGoodputMessageBytes),
        cq_memory_(CompletionQueue::ring_slots(kCompletions)) {
    connect_links();
    cq_.set_memory(cq_memory_, kCompletions);
    peer_cq_.set_memory(peer_cq_memory_, kPeerCompletions);
    QueuePairOptions options;
    options.path_mtu = the_case.path_mtu;
    options.capacity = std::max<std::uint32_t>(the_case.outstanding, 16);
    qp_ = std::make_unique<QueuePair>(requester_, options, cq_, cq_, nullptr);
    peer_qp_ = std::make_unique<QueuePair>(responder_, options, peer_cq_, peer_cq_, nullptr);
    const Psn psn(0xff'f000);
    qp_->connect(world_.now(), 1, peer_qp_->number(), psn, psn);
    peer_qp_->connect(world_.now(), 0, qp_->number(), psn, psn);
    requester_.set_user(this);
  }

  Goodput run() {
    const Instant start = world_.now();
    const Instant end = start + kTimeAtMost;
    cq_.arm(Arm::kAny);
    for (std::uint32_t i = 0; i < case_.outstanding; ++i) post();
    while (result_.bytes < kBytesAtMost && !result_.is_broken && world_.step(end)) {
    }
    result_.elapsed = (result_.bytes < kBytesAtMost ? end : world_.now()) - start;
    result_.packets_sent = world_.packets_sent;
    return result_;
  }

 private:
  static constexpr std::uint32_t kCompletions = 256;
  static constexpr std::uint32_t kPeerCompletions = 16;

  void connect_links() {
    for (Node* node : {&requester_, &responder_}) node->set_link(kUplink, kFacts);
    requester_.connect(kUplink, 1, there_);
    responder_.connect(kUplink, 0, back_);
    const bool is_read = case_.operation == SendOperation::kRead;
    const auto access =
        memory::Access::kLocalWrite | memory::Access::kRemoteRead | memory::Access::kRemoteWrite;
    requester_.add_region(kKey, is_read ? kTargetIova : kSourceIova, is_read ? target_ : source_,
                          access);
    responder_.add_region(kKey, is_read ? kSourceIova : kTargetIova, is_read ? source_ : target_,
                          access);
  }

  void post() {
    const bool is_read = case_.operation == SendOperation::kRead;
    const SendRequest request{.operation = case_.operation,
                              .remote_address = is_read ? kSourceIova : kTargetIova,
                              .rkey = {kKey},
                              .flags = send_flag::kSignaled};
    const memory::Sge sge{is_read ? kTargetIova : kSourceIova, kGoodputMessageBytes, {kKey}};
    qp_->post_send(request, {&sge, 1});
  }

  void on_notification(CompletionQueue& cq) override {
    cq.arm(Arm::kAny);
    while (const Cqe* entry = cq.front()) {
      const bool is_good = entry->status == WcStatus::kSuccess;
      cq.pop();
      if (!is_good) {
        result_.is_broken = true;
        return;
      }
      result_.bytes += kGoodputMessageBytes;
      post();
    }
  }
  void on_async_event(const Event&) override {}

  GoodputCase case_;
  World world_;
  Node requester_, responder_;
  Link there_, back_;
  std::vector<std::byte> source_, target_;
  std::vector<Cqe> cq_memory_;
  std::array<Cqe, kPeerCompletions> peer_cq_memory_;
  CompletionQueue cq_, peer_cq_;
  std::unique_ptr<QueuePair> qp_, peer_qp_;
  Goodput result_;
};

// --- The table -----------------------------------------------------------------------------------

inline constexpr std::array<std::uint32_t, 5> kLosses = {0, 100, 1'000, 10'000, 50'000};
inline constexpr std::array<std::uint16_t, 2> kPathMtus = {1024, 4096};
inline constexpr std::array<std::int64_t, 3> kRoundTripsUs = {10, 100, 1000};
inline constexpr std::array<std::uint32_t, 3> kOutstanding = {1, 8, 64};

void add_cell(std::string& line, const GoodputCase& the_case) {
  const Goodput goodput = measure_goodput(the_case);
  const double reached = goodput.bits_per_second();
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), " %.2f (%.0f %%)%s |", reached / 1e9,
                100 * reached / ideal_bits_per_second(the_case),
                goodput.is_broken ? " broken" : "");
  line.append(text.data());
}

std::string row(GoodputCase the_case) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "| %u | %lld us | %u |", the_case.path_mtu,
                static_cast<long long>(the_case.round_trip.ns / 1000), the_case.outstanding);
  std::string line = text.data();
  for (const std::uint32_t loss : kLosses) {
    the_case.loss = loss;
    add_cell(line, the_case);
  }
  line.push_back('\n');
  return line;
}

std::string rows(SendOperation operation) {
  std::string text =
      "| path MTU | RTT | outstanding | no loss | 0.01 % | 0.1 % | 1 % | 5 % |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const std::uint16_t path_mtu : kPathMtus) {
    for (const std::int64_t round_trip : kRoundTripsUs) {
      for (const std::uint32_t outstanding : kOutstanding) {
        text += row({operation, path_mtu, microseconds(round_trip), outstanding, 0});
      }
    }
  }
  return text;
}

}  // namespace

Goodput measure_goodput(const GoodputCase& the_case) { return Stream(the_case).run(); }

double ideal_bits_per_second(const GoodputCase& the_case) {
  const double packets = packets_in(kGoodputMessageBytes, the_case.path_mtu);
  const double wire_bytes = kGoodputMessageBytes + packets * kHeadersOnWire;
  const double serialised = wire_bytes * 8 / static_cast<double>(kGoodputBitsPerSecond);
  const double arrives = 1 - static_cast<double>(the_case.loss) / 1e6;
  const double cycle = serialised / arrives + static_cast<double>(the_case.round_trip.ns) / 1e9;
  const double in_flight = kGoodputMessageBytes * 8.0 * the_case.outstanding / cycle;
  return std::min(kGoodputMessageBytes * 8.0 / serialised * arrives, in_flight);
}

std::string goodput_table() {
  return "# Goodput under loss\n\n"
         "Gbit/s of 1 MiB requests over a link of 10 Gbit/s that loses packets at random in both\n"
         "directions, and in brackets how much that is of what could be reached at best. Written\n"
         "by `uroce-sim --goodput`.\n\n"
         "## WRITE\n\n" +
         rows(SendOperation::kWrite) + "\n## READ\n\n" + rows(SendOperation::kRead);
}

}  // namespace uroce::sim
