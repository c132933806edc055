// SPDX-License-Identifier: BSD-2-Clause
// Work queue elements as they lie in the rings: written by the application's thread, read by
// whoever runs the core. A SendWqe is followed in its slot by its SGEs, or by its inline data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "base/psn.h"
#include "memory/access.h"
#include "memory/sge.h"
#include "transport/address_path.h"

namespace uroce::transport {

enum class SendOperation : std::uint8_t {
  kSend,
  kSendWithImmediate,
  kWrite,
  kWriteWithImmediate,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kSendWithInvalidate,
  kBindWindow,
  kLocalInvalidate,
  kAtomicWrite,
};
inline constexpr std::size_t kSendOperationCount = 11;

// Is it one of these? Two instructions, however many they are.
template <SendOperation... kOperations>
constexpr bool is_any_of(SendOperation o) {
  constexpr std::uint32_t kSet = ((1U << static_cast<unsigned>(kOperations)) | ...);
  return (kSet >> static_cast<unsigned>(o) & 1U) != 0;
}

constexpr bool is_atomic(SendOperation o) {
  return is_any_of<SendOperation::kCompareSwap, SendOperation::kFetchAdd>(o);
}
// Answered each by itself, and so counted against max_rd_atomic.
constexpr bool is_read_or_atomic(SendOperation o) {
  return is_any_of<SendOperation::kRead, SendOperation::kCompareSwap, SendOperation::kFetchAdd,
                   SendOperation::kAtomicWrite>(o);
}
// Of one word, so of one packet.
constexpr bool is_word(SendOperation o) {
  return is_any_of<SendOperation::kCompareSwap, SendOperation::kFetchAdd,
                   SendOperation::kAtomicWrite>(o);
}
constexpr bool is_write(SendOperation o) {
  return is_any_of<SendOperation::kWrite, SendOperation::kWriteWithImmediate>(o);
}
// Carried out where it is posted: nothing is sent (local_operation.h).
constexpr bool is_local(SendOperation o) {
  return is_any_of<SendOperation::kBindWindow, SendOperation::kLocalInvalidate>(o);
}

namespace send_flag {
inline constexpr std::uint8_t kSignaled = 1;
inline constexpr std::uint8_t kFence = 2;
inline constexpr std::uint8_t kSolicited = 4;
inline constexpr std::uint8_t kInline = 8;
}  // namespace send_flag

// ibv_wc_status and ibv_wc_opcode have the same values (asserted in verbs/translate).
enum class WcStatus : std::uint8_t {
  kSuccess = 0,
  kLocalLengthError = 1,
  kLocalQpOperationError = 2,
  kLocalProtectionError = 4,
  kFlushed = 5,
  kWindowBindError = 6,
  kBadResponse = 7,
  kLocalAccessError = 8,
  kRemoteInvalidRequest = 9,
  kRemoteAccessError = 10,
  kRemoteOperationError = 11,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
  kFatal = 19,
  kGeneralError = 21,
};

enum class WcOpcode : std::uint8_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kCompareSwap = 3,
  kFetchAdd = 4,
  kBindWindow = 5,
  kLocalInvalidate = 6,
  kAtomicWrite = 9,
  kReceive = 128,
  kReceiveRdmaWithImmediate = 129,
};

// What a request binds a window to (memory::WindowBinding); the window is its rkey.
struct WindowPart {
  LKey region{};
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  memory::Access access = memory::Access::kNone;
};

struct SendWqe {
  std::uint64_t wr_id = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  RKey rkey;
  std::uint32_t length = 0;     // sum of the SGEs, or of the inline data
  std::uint32_t immediate = 0;  // four bytes as they go on the wire
  SendOperation operation = SendOperation::kSend;
  std::uint8_t flags = 0;
  std::uint16_t sge_count = 0;

  // The requester's, set when the request is first taken up.
  Psn first_psn;
  Psn last_psn;
  WcStatus status = WcStatus::kSuccess;  // a local fault waits here for its turn to complete
  bool is_carried_out = false;           // of a local operation: it waits for its turn to complete

  // Of a datagram, in place of an atomic's operands.
  void set_target(const DatagramTarget& target) {
    compare_add = reinterpret_cast<std::uintptr_t>(target.path);
    swap = std::uint64_t{target.qkey.value} << 32 | target.qpn.value;
  }
  [[nodiscard]] DatagramTarget target() const {
    return {reinterpret_cast<AddressPath*>(static_cast<std::uintptr_t>(compare_add)),
            {static_cast<std::uint32_t>(swap)},
            {static_cast<std::uint32_t>(swap >> 32)}};
  }

  // Of XRC: the peer's shared receive queue, where the operation has a place to spare. Set after
  // everything else.
  void set_srq(Qpn number) {
    if (is_atomic(operation)) {
      immediate = number.value;
    } else {
      compare_add = number.value;
    }
  }
  [[nodiscard]] Qpn srq() const {
    return {is_atomic(operation) ? immediate : static_cast<std::uint32_t>(compare_add)};
  }

  // Of a binding, in place of what a request to the peer has.
  void set_window_part(const WindowPart& part) {
    remote_address = part.address;
    compare_add = part.length;
    swap = std::uint64_t{part.region.value} << 32 | static_cast<std::uint32_t>(part.access);
  }
  [[nodiscard]] WindowPart window_part() const {
    return {{static_cast<std::uint32_t>(swap >> 32)},
            remote_address,
            compare_add,
            static_cast<memory::Access>(static_cast<std::uint32_t>(swap))};
  }

  [[nodiscard]] bool is_signaled() const { return (flags & send_flag::kSignaled) != 0; }
  [[nodiscard]] bool is_inline() const { return (flags & send_flag::kInline) != 0; }
  [[nodiscard]] memory::Sge* sges() { return reinterpret_cast<memory::Sge*>(this + 1); }
  [[nodiscard]] const memory::Sge* sges() const {
    return reinterpret_cast<const memory::Sge*>(this + 1);
  }
  [[nodiscard]] std::byte* inline_data() { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] const std::byte* inline_data() const {
    return reinterpret_cast<const std::byte*>(this + 1);
  }
};
static_assert(sizeof(SendWqe) == 64);

struct RecvWqe {
  std::uint64_t wr_id = 0;
  std::uint32_t length = 0;
  std::uint32_t sge_count = 0;

  [[nodiscard]] memory::Sge* sges() { return reinterpret_cast<memory::Sge*>(this + 1); }
  [[nodiscard]] const memory::Sge* sges() const {
    return reinterpret_cast<const memory::Sge*>(this + 1);
  }
};
static_assert(sizeof(RecvWqe) == 16);

}  // namespace uroce::transport
