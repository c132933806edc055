// SPDX-License-Identifier: BSD-2-Clause
// A send request as its application and the oracle remember it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/arena.h"
#include "transport/work_request.h"

namespace uroce::sim {

inline constexpr std::uint32_t kSgesMax = 4;

struct Pieces {
  std::array<Range, kSgesMax> ranges;
  std::uint32_t count = 0;
  [[nodiscard]] std::span<const Range> all() const { return {ranges.data(), count}; }
  void add(Range r) { ranges[count++] = r; }
};

// What is wrong with a request, on purpose.
enum class Poison : std::uint8_t {
  kNone,
  kRemoteKey,     // no such R_Key
  kRemoteBounds,  // over the end of the region
  kLocalKey,      // no such L_Key
  kTooLong,       // longer than what the peer receives into
  kUnaligned,     // an atomic between two words
  kWindow,        // a window bound to no region
  kWindowKey,     // a local invalidate of no window
  kForeignQueue,  // of XRC: a receive queue of another domain
};

struct Request {
  transport::SendOperation operation = transport::SendOperation::kSend;
  std::uint64_t wr_id = 0;
  bool is_signaled = false;
  bool is_fenced = false;
  Poison poison = Poison::kNone;
  std::uint32_t length = 0;
  std::uint32_t immediate = 0;
  std::vector<std::byte> data;      // of a SEND or WRITE
  std::uint32_t remote_offset = 0;  // in the peer's arena
  Pieces local;                     // of a READ or atomic: where the answer goes
  std::uint64_t compare_add = 0, swap = 0;

  [[nodiscard]] bool is_send() const {
    return operation == transport::SendOperation::kSend ||
           operation == transport::SendOperation::kSendWithImmediate || has_invalidate();
  }
  [[nodiscard]] bool is_write() const {
    return operation == transport::SendOperation::kWrite ||
           operation == transport::SendOperation::kWriteWithImmediate ||
           operation == transport::SendOperation::kAtomicWrite;
  }
  // Answered by data.
  [[nodiscard]] bool fetches() const {
    return operation == transport::SendOperation::kRead || is_atomic(operation);
  }
  [[nodiscard]] bool has_invalidate() const {
    return operation == transport::SendOperation::kSendWithInvalidate;
  }
  [[nodiscard]] bool has_immediate() const {
    return operation == transport::SendOperation::kSendWithImmediate ||
           operation == transport::SendOperation::kWriteWithImmediate;
  }
  // It does nothing, nor does any request behind it. (A READ into memory that is not there fails
  // when the answer comes; meanwhile the others were sent.)
  [[nodiscard]] bool is_never_sent_past() const {
    return poison != Poison::kNone &&
           (poison != Poison::kLocalKey || operation != transport::SendOperation::kRead);
  }
  [[nodiscard]] bool takes_receive() const {
    return is_send() || operation == transport::SendOperation::kWriteWithImmediate;
  }
};

// How a poisoned request has to end.
constexpr transport::WcStatus status_of(Poison poison) {
  switch (poison) {
    case Poison::kNone:
      return transport::WcStatus::kSuccess;
    case Poison::kRemoteKey:
    case Poison::kRemoteBounds:
      return transport::WcStatus::kRemoteAccessError;
    case Poison::kLocalKey:
      return transport::WcStatus::kLocalProtectionError;
    case Poison::kWindow:
      return transport::WcStatus::kWindowBindError;
    case Poison::kWindowKey:
      return transport::WcStatus::kLocalQpOperationError;
    case Poison::kTooLong:
    case Poison::kUnaligned:
    case Poison::kForeignQueue:
      return transport::WcStatus::kRemoteInvalidRequest;
  }
  return transport::WcStatus::kSuccess;
}

}  // namespace uroce::sim
