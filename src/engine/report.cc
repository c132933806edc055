// SPDX-License-Identifier: BSD-2-Clause
#include "engine/report.h"

#include <cstdint>
#include <string_view>

namespace uroce::engine {
namespace {

class Line {
 public:
  explicit Line(std::string title) : text_(std::move(title)) {}
  Line& add(const char* name, std::uint64_t value) {
    if (value != 0) text_.append(" ").append(name).append("=").append(std::to_string(value));
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  std::string text_;
};

std::string describe(const transport::Counters& c) {
  std::uint64_t malformed = 0;
  for (const std::uint64_t n : c.rx_malformed) malformed += n;
  return Line("transport:")
      .add("rx_requests", c.rx_requests)
      .add("rx_responses", c.rx_responses)
      .add("rx_malformed", malformed)
      .add("rx_unknown_qpn", c.rx_unknown_qpn)
      .add("rx_wrong_service", c.rx_wrong_service)
      .add("rx_wrong_state", c.rx_wrong_state)
      .add("rx_bad_pkey", c.rx_bad_pkey)
      .add("rx_bad_qkey", c.rx_bad_qkey)
      .add("unreliable_dropped", c.unreliable_dropped)
      .add("datagrams_to_nobody", c.datagrams_to_nobody)
      .add("raw_received", c.raw_received)
      .add("raw_dropped", c.raw_dropped)
      .add("rx_wrong_address", c.rx_wrong_address)
      .add("rx_stale_response", c.rx_stale_response)
      .add("duplicate_requests", c.duplicate_requests)
      .add("out_of_sequence", c.out_of_sequence)
      .add("acks_sent", c.acks_sent)
      .add("naks_sent", c.naks_sent)
      .add("rnr_naks_sent", c.rnr_naks_sent)
      .add("naks_received", c.naks_received)
      .add("sequence_naks_received", c.sequence_naks_received)
      .add("rnr_naks_received", c.rnr_naks_received)
      .add("implied_naks", c.implied_naks)
      .add("timeouts", c.timeouts)
      .add("rewinds", c.rewinds)
      .add("retransmitted_packets", c.retransmitted_packets)
      .add("selective_retransmissions", c.selective_retransmissions)
      .add("hints_sent", c.hints_sent)
      .add("hints_received", c.hints_received)
      .add("early_retransmissions", c.early_retransmissions)
      .add("frames_refused", c.frames_refused)
      .add("retry_exceeded", c.retry_exceeded)
      .add("rnr_retry_exceeded", c.rnr_retry_exceeded)
      .text();
}

std::string describe(std::string_view name, const DatapathCounters& c) {
  return Line(std::string(name) + ":")
      .add("rx_packets", c.rx_packets)
      .add("rx_bytes", c.rx_bytes)
      .add("tx_packets", c.tx_packets)
      .add("tx_bytes", c.tx_bytes)
      .add("rx_bad_icrc", c.rx_bad_icrc)
      .add("rx_truncated", c.rx_truncated)
      .add("rx_not_roce", c.rx_not_roce)
      .add("tx_errors", c.tx_errors)
      .add("tx_refused", c.tx_refused)
      .add("wakeups_sent", c.wakeups_sent)
      .add("faults_lost", c.faults_lost)
      .add("faults_duplicated", c.faults_duplicated)
      .add("faults_reordered", c.faults_reordered)
      .add("faults_corrupted", c.faults_corrupted)
      .add("faults_delayed", c.faults_delayed)
      .text();
}

}  // namespace

std::vector<std::string> describe_counters(Engine& engine) {
  const PortCounters counters = engine.counted();
  std::vector<std::string> lines{describe(counters.transport)};
  for (transport::LinkId id = 0; id < transport::kLinkCount; ++id) {
    const Datapath* link = engine.link(id);
    if (link != nullptr) lines.push_back(describe(link->capabilities().name, counters.links[id]));
  }
  return lines;
}

}  // namespace uroce::engine
