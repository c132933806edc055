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

// data_frame.cc
Gathered gather_elements(const HcaState& hca, const Qp& qp, const SendWqe& wqe,
                         std::uint64_t offset, std::uint32_t bytes, std::span<ConstBytes> out);

// Inlined by force: the compiler weighs up all that the core has, and what is said here is on the
// way of every packet. `gather_seldom` is the same for whoever is not.
[[gnu::always_inline]] inline Gathered gather(const HcaState& hca, const Qp& qp, const SendWqe& wqe,
                                              std::uint64_t offset, std::uint32_t bytes,
                                              TxBurst& burst) {
  if (bytes == 0) return {};
  const std::span<ConstBytes> out = burst.free_pieces();
  if (wqe.is_inline()) {
    out[0] = {wqe.inline_data() + offset, bytes};
    return {.pieces = 1};
  }
  if (wqe.sge_count == 1) {  // which has all the message
    const memory::Sge& sge = *wqe.sges();
    const auto at =
        hca.regions.resolve(sge.lkey, sge.address + offset, bytes, memory::Access::kNone, qp.pd);
    out[0] = {at.base, bytes};
    return {.pieces = 1, .is_fault = at.fault != memory::MemoryFault::kNone};
  }
  return gather_elements(hca, qp, wqe, offset, bytes, out);
}

Gathered gather_seldom(const HcaState& hca, const Qp& qp, const SendWqe& wqe, std::uint64_t offset,
                       std::uint32_t bytes, TxBurst& burst);

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
  using enum SendOperation;
  if (is_any_of<kSendWithImmediate, kWriteWithImmediate>(operation)) {
    return wire::Suffix::kImmediate;
  }
  return operation == kSendWithInvalidate ? wire::Suffix::kInvalidate : wire::Suffix::kNone;
}

[[gnu::always_inline]] inline void build_data_headers(TxFrame& frame, const Qp& qp,
                                                      wire::Service service, const SendWqe& wqe,
                                                      const Slice& slice, bool ack_request) {
  const bool begins = slice.offset == 0;
  const auto kind = is_write(wqe.operation) ? wire::Kind::kWrite : wire::Kind::kSend;
  const auto suffix = slice.ends ? suffix_of(wqe.operation) : wire::Suffix::kNone;
  wire::HeaderWriter writer(
      frame,
      {.opcode = wire::pick_opcode(service, kind, wire::make_place(begins, slice.ends), suffix),
       .solicited = slice.ends && (wqe.flags & send_flag::kSolicited) != 0,
       .pkey = qp.pkey,
       .destination = qp.attributes.destination_qpn,
       .ack_request = ack_request,
       .psn = slice.psn});
  if (begins && kind == wire::Kind::kWrite) {
    writer.add(wire::Reth{wqe.remote_address, wqe.rkey, wqe.length});
  }
  if (suffix == wire::Suffix::kImmediate) writer.add(wire::Immediate{to_big(wqe.immediate)});
  if (suffix == wire::Suffix::kInvalidate) writer.add(wire::Ieth{wqe.rkey});
  writer.finish();
}

}  // namespace uroce::transport
