// SPDX-License-Identifier: BSD-2-Clause
// One frame of a SEND or WRITE of a connected QP: which packets of the message, where their bytes
// are, and their headers. In a header, as every packet sent passes here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/sge_cursor.h"
#include "transport/burst.h"
#include "transport/hca_state.h"
#include "transport/segment.h"
#include "wire/build.h"

namespace uroce::transport {

// The pieces of memory that a frame refers to.
struct Gathered {
  std::size_t pieces = 0;
  bool is_fault = false;
};

inline Gathered gather(const HcaState& hca, const Qp& qp, const SendWqe& wqe, std::uint64_t offset,
                       std::uint32_t bytes, TxBurst& burst) {
  if (bytes == 0) return {};
  const std::span<ConstBytes> out = burst.free_pieces();
  if (wqe.is_inline()) {
    out[0] = {wqe.inline_data() + offset, bytes};
    return {.pieces = 1};
  }
  memory::SgeCursor cursor({wqe.sges(), wqe.sge_count});
  cursor.seek(offset);
  const auto taken = cursor.take(bytes, hca.regions, qp.pd, memory::Access::kNone, out);
  return {taken.pieces, taken.fault != memory::MemoryFault::kNone || taken.bytes != bytes};
}

// Some packets of a SEND or WRITE.
struct Slice {
  Psn psn;
  std::uint64_t offset = 0;
  std::uint32_t packets = 0;
  std::uint32_t bytes = 0;
  bool ends = false;
};

inline Slice make_slice(const Qp& qp, const SendWqe& wqe, Psn psn, std::uint32_t packets) {
  const std::uint64_t offset = offset_of(wqe.first_psn, psn, qp.path_mtu);
  const std::uint64_t left = wqe.length - offset;
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(left, std::uint64_t{packets} * qp.path_mtu));
  return {psn, offset, packets, bytes, bytes == left};
}

constexpr wire::Suffix suffix_of(SendOperation operation) {
  switch (operation) {
    case SendOperation::kSendWithImmediate:
    case SendOperation::kWriteWithImmediate:
      return wire::Suffix::kImmediate;
    case SendOperation::kSendWithInvalidate:
      return wire::Suffix::kInvalidate;
    case SendOperation::kSend:
    case SendOperation::kWrite:
    case SendOperation::kRead:
    case SendOperation::kCompareSwap:
    case SendOperation::kFetchAdd:
    case SendOperation::kBindWindow:
    case SendOperation::kLocalInvalidate:
      break;
  }
  return wire::Suffix::kNone;
}

inline void build_data_headers(TxFrame& frame, const Qp& qp, wire::Service service,
                               const SendWqe& wqe, const Slice& slice, bool ack_request) {
  const bool begins = slice.offset == 0;
  const bool is_write =
      wqe.operation == SendOperation::kWrite || wqe.operation == SendOperation::kWriteWithImmediate;
  const wire::Suffix suffix = suffix_of(wqe.operation);
  const bool has_immediate = suffix == wire::Suffix::kImmediate;
  const wire::Bth bth{
      .opcode = wire::pick_opcode(service, is_write ? wire::Kind::kWrite : wire::Kind::kSend,
                                  wire::make_place(begins, slice.ends), suffix),
      .solicited = slice.ends && (wqe.flags & send_flag::kSolicited) != 0,
      .pkey = qp.pkey,
      .destination = qp.attributes.destination_qpn,
      .ack_request = ack_request,
      .psn = slice.psn};
  const wire::Reth reth{wqe.remote_address, wqe.rkey, wqe.length};
  const wire::Immediate immediate{to_big(wqe.immediate)};
  if (is_write && begins) {
    if (slice.ends && has_immediate) {
      build(frame, bth, reth, immediate);
    } else {
      build(frame, bth, reth);
    }
  } else if (slice.ends && has_immediate) {
    build(frame, bth, immediate);
  } else if (slice.ends && suffix == wire::Suffix::kInvalidate) {
    build(frame, bth, wire::Ieth{wqe.rkey});
  } else {
    build(frame, bth);
  }
}

}  // namespace uroce::transport
