// SPDX-License-Identifier: BSD-2-Clause
// What one run is made of, drawn from its seed. Each kind of fault is on in some runs and off in
// others (swarm testing), so that no fault hides what another would show.
#pragma once

#include <array>
#include <cstdint>

#include "sim/link.h"
#include "sim/node.h"
#include "sim/request.h"
#include "transport/hca_state.h"

namespace uroce::sim {

// Wrongs that the oracle must find: it is tested by them.
enum class Sabotage : std::uint8_t {
  kNone,
  kFlippedPayload,      // a byte of a payload, behind the ICRC's back
  kLostCompletion,      // of a signalled request
  kRepeatedCompletion,  // of a signalled request
  kStrayByte,           // outside of every target
  kRepeatedAtomic,      // an atomic takes effect twice
  kForgottenReceive,    // a receive completion is lost
};
inline constexpr std::uint32_t kSabotageCount = 7;

struct Scenario {
  std::uint64_t seed = 0;
  unsigned nodes = 2;
  unsigned connections = 1;
  unsigned unreliable_connections = 0;
  unsigned xrc_connections = 0;
  unsigned datagram_ends = 0;  // each sends to all of them

  // The network. Memory joins the same nodes; a connection uses one of the two.
  LinkOptions uplink, memory;
  transport::LinkFacts uplink_facts, memory_facts;
  std::array<NodeOptions, kNodesMax> node;
  std::uint32_t memory_share = 0;  // so many connections of a million are over memory

  // Applications.
  std::uint32_t message_bytes = 4096;  // at most
  std::uint32_t capacity = 16;         // of each queue
  std::uint32_t requests = 40;         // that each end posts in all
  std::array<std::uint32_t, transport::kSendOperationCount> weights{};
  Duration think = microseconds(20);  // between two looks at the queues, on average half as much
  std::uint32_t late_poll = 0, late_receive = 0;  // so many looks of a million leave it out
  std::uint32_t disturb = 0;                      // ... and so many change or destroy the QP
  std::uint32_t poison = 0;                       // so many requests are wrong
  std::uint32_t signal = 500'000, fence = 0, use_inline = 0;
  bool has_srq = false;
  bool by_event = false;  // polls only when told

  std::uint8_t timeout_min = 14, timeout_max = 14;
  std::uint8_t retry_min = 7;
  std::uint8_t rnr_retry_min = 7;
  std::uint8_t read_atomic_max = 16;
  bool may_fail = false;      // a connection may run out of retries while there are faults ...
  bool is_impatient = false;  // ... or at any time: its time-outs are shorter than the round trip

  Duration faulty_for = milliseconds(20);
  // After that, everything has to be over within this. Nothing waits for longer than some retries,
  // each of some tenths of a second.
  Duration time_to_finish = milliseconds(60'000);
  Sabotage sabotage = Sabotage::kNone;
};

[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);

// For the end of the time-out that a QP's attribute names.
constexpr Duration timeout_of(std::uint8_t timeout) {
  return nanoseconds(std::int64_t{4096} << timeout);
}

}  // namespace uroce::sim
