// SPDX-License-Identifier: BSD-2-Clause
#include "wire/run.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/headers.h"

namespace uroce::wire {
namespace {

const OpcodeInfo& whole_opcode(const TxFrame& frame) {
  return opcode_info(static_cast<Opcode>(frame.header[0]));
}

bool is_last_of_run(const TxFrame& frame, unsigned index) {
  return index + 1 == frame.packet_count;
}

BthWords bth_of(const TxFrame& frame, unsigned index, Opcode opcode) {
  BthWords bth = load_bth(frame.header.data());
  bth.set_opcode(opcode);
  bth.set_psn(bth.psn() + index);
  if (!is_last_of_run(frame, index)) {
    bth.set_pad(0);
    bth.opcode_flags_pkey &= ~BthWords::kSolicited;
    bth.ack_request_and_psn &= ~BthWords::kAckRequest;
  }
  return bth;
}

// Copies those of the run's extension headers that the packet has too.
class ExtensionFilter {
 public:
  ExtensionFilter(const std::byte* from, std::byte* to) : from_(from), to_(to) {}

  void pass(bool in_run, bool in_packet, std::size_t bytes) {
    if (in_packet) to_ = std::copy_n(from_, bytes, to_);
    if (in_run) from_ += bytes;
  }

 private:
  const std::byte* from_;
  std::byte* to_;
};

}  // namespace

const OpcodeInfo& run_opcode(const TxFrame& frame, unsigned index) {
  const OpcodeInfo& whole = whole_opcode(frame);
  const Place place =
      make_place(whole.begins() && index == 0, whole.ends() && is_last_of_run(frame, index));
  if (place == whole.place) return whole;
  return opcode_info(pick_opcode(whole.service, whole.kind, place, whole.suffix()));
}

std::size_t run_headers(const TxFrame& frame, unsigned index,
                        std::span<std::byte, kMaxHeaderBytes> out) {
  const OpcodeInfo& whole = whole_opcode(frame);
  const OpcodeInfo& packet = run_opcode(frame, index);
  std::byte* at = store_bth(out.data(), bth_of(frame, index, packet.opcode));
  if (packet.header_bytes == kBthBytes) return kBthBytes;
  ExtensionFilter filter(frame.header.data() + kBthBytes, at);
  filter.pass(whole.deth, packet.deth, kDethBytes);
  filter.pass(whole.xrceth, packet.xrceth, kXrcethBytes);
  filter.pass(whole.feth, packet.feth, kFethBytes);
  filter.pass(whole.reth, packet.reth, kRethBytes);
  filter.pass(whole.atomic_eth, packet.atomic_eth, kAtomicEthBytes);
  filter.pass(whole.aeth, packet.aeth, kAethBytes);
  filter.pass(whole.atomic_ack_eth, packet.atomic_ack_eth, kAtomicAckEthBytes);
  filter.pass(whole.immediate, packet.immediate, kImmediateBytes);
  filter.pass(whole.ieth, packet.ieth, kIethBytes);
  return packet.header_bytes;
}

std::uint32_t run_payload_bytes(const TxFrame& frame, unsigned index) {
  if (!is_last_of_run(frame, index)) return frame.segment_bytes;
  return frame.payload_bytes - std::uint32_t{frame.segment_bytes} * index;
}

std::uint32_t run_packet_bytes(const TxFrame& frame, unsigned index) {
  const std::uint32_t payload_bytes = run_payload_bytes(frame, index);
  return run_opcode(frame, index).header_bytes + payload_bytes + pad_bytes_for(payload_bytes);
}

unsigned train_packets(const TxFrame& frame, unsigned index, unsigned limit) {
  const unsigned last = frame.packet_count - 1u;
  if (index == last || limit == 1) return 1;
  const std::uint32_t bytes = run_packet_bytes(frame, index);
  unsigned count = 1;
  if (index + 1 < last) {
    const std::uint32_t middle_bytes = run_packet_bytes(frame, index + 1);
    if (middle_bytes < bytes) return 2;  // a shorter packet ends the train
    count = last - index;                // all packets between the first and the last are alike
  }
  if (run_packet_bytes(frame, last) <= bytes) ++count;
  return std::min(count, limit);
}

ConstBytes PayloadCursor::take(std::size_t limit) {
  while (!gather_.empty() && offset_ == gather_.front().size()) {
    gather_ = gather_.subspan(1);
    offset_ = 0;
  }
  UROCE_CHECK(!gather_.empty());
  const ConstBytes rest = gather_.front().subspan(offset_);
  const ConstBytes piece = rest.first(std::min(limit, rest.size()));
  offset_ += piece.size();
  return piece;
}

void PayloadCursor::copy(Bytes out) {
  while (!out.empty()) {
    const ConstBytes piece = take(out.size());
    std::memcpy(out.data(), piece.data(), piece.size());
    out = out.subspan(piece.size());
  }
}

}  // namespace uroce::wire
