// SPDX-License-Identifier: BSD-2-Clause
// The responder's half of a reliable connection (IBTA 9.7.4, 9.7.5): what is expected next, the
// message in hand, the responses due. The rules are in rc_responder_receive.cc and
// rc_responder_send.cc.
//
// Responses leave in the order of their PSNs, but for `parts`: READ and atomic responses from
// `replay`, in the order of `due`; then one ACK or NAK that covers everything before
// `expected_psn`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/psn.h"
#include "memory/sge_cursor.h"
#include "transport/fault.h"
#include "transport/work_request.h"
#include "uroce/time.h"
#include "wire/opcode.h"

namespace uroce::transport {

inline constexpr std::uint32_t kReplayMax = 128;  // max_dest_rd_atomic at most

// Packets of an answer to a READ.
struct ReadAnswer {
  Psn next;   // to send
  Psn first;  // says FIRST or ONLY
  Psn last;   // LAST or ONLY
};

// A READ, atomic, atomic write or FLUSH that was executed and may be asked for again
// (IBTA 9.7.5.1.1).
struct ReplayEntry {
  wire::Kind kind = wire::Kind::kReadRequest;
  bool is_used = false;
  bool is_due = false;     // in RcResponder::due
  bool is_repeat = false;  // what is due was sent before
  Psn first_psn;
  Psn last_psn;
  std::uint32_t msn = 0;
  std::uint64_t value = 0;    // of an atomic: the original, not recomputed
                              // of a READ with `granted`: its address there
  std::uint64_t address = 0;  // of a READ: where its first byte is
  std::uint32_t length = 0;
  RKey rkey;
  PdId pd;       // in which it may reach: that of the QP, or of the SRQ that it named (XRC)
  LKey granted;  // of a READ whose window was invalidated before its answer: the region's
  ReadAnswer answer;
};

// Parts of READs that a peer asks for again which keeps what comes behind a gap: they go first, and
// the answers that are being given go on. What has no room here the peer asks for once more.
struct ReadParts {
  struct Part {
    std::uint8_t entry = 0;  // of RcResponder::replay
    ReadAnswer answer;
  };
  static constexpr std::uint8_t kMax = 16;
  std::uint8_t count = 0;
  std::array<Part, kMax> parts;  // oldest first

  [[nodiscard]] bool has_of(std::uint32_t entry) const {
    return std::any_of(parts.begin(), parts.begin() + count,
                       [entry](const Part& part) { return part.entry == entry; });
  }
  void add(std::size_t at, const Part& part) {
    std::copy_backward(parts.begin() + at, parts.begin() + count, parts.begin() + count + 1);
    parts[at] = part;
    ++count;
  }
  void remove(std::size_t at) {
    std::copy(parts.begin() + at + 1, parts.begin() + count, parts.begin() + at);
    --count;
  }
};

// This QP's packets in the stash (stash.h), in the order of their PSNs; 0: none.
struct StashedPackets {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  std::uint32_t count = 0;
};

// What a requester that sends only what is missing may be told besides the expected PSN.
struct GapHints {
  static constexpr std::size_t kMax = 64;
  bool peer_selects = false;    // it has filled a gap and gone on where it was
  bool gap_was_told = false;    // a NAK has left
  bool gap_was_filled = false;  // ... and what comes next tells
  std::uint8_t count = 0;
  std::array<Psn, kMax> missing;
};

struct RcResponder {
  Psn expected_psn;
  std::uint32_t msn = 0;
  bool in_message = false;
  bool gap_reported = false;            // one NAK a gap
  wire::Kind kind = wire::Kind::kSend;  // of the message in hand

  StashedPackets stashed;

  // WRITE in hand.
  std::uint64_t write_address = 0;
  std::uint32_t write_left = 0;
  RKey write_rkey;
  std::uint32_t message_bytes = 0;  // so far

  // Receive WQE in hand.
  RecvWqe* receive = nullptr;
  memory::SgeCursor receive_cursor;

  Instant last_request_at{};     // whatever became of it
  bool has_seen_losses = false;  // something was missing, or came again

  // What is owed.
  bool ack_due = false;
  bool nak_due = false;        // instead of the ACK
  bool owes_response = false;  // any of these, or of `due`, or a hint
  Fault nak_fault = Fault::kNone;

  std::span<ReplayEntry> replay;   // replay_limit of them at least, of verbs
  std::uint32_t replay_limit = 0;  // max_dest_rd_atomic
  std::uint32_t replay_next = 0;   // the entry to use next: the oldest
  std::uint32_t due_head = 0;
  std::uint32_t due_tail = 0;
  GapHints hints;
  ReadParts parts;
  std::array<std::uint8_t, kReplayMax> due{};  // ring of replay indices to answer
};

}  // namespace uroce::transport
