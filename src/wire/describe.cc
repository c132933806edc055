// SPDX-License-Identifier: BSD-2-Clause
#include "wire/describe.h"

#include <algorithm>
#include <cstdint>

namespace uroce::wire {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Appends to a fixed buffer, and drops what does not fit.
class Line {
 public:
  explicit Line(std::span<char> out) : out_(out) {}

  Line& text(std::string_view part) {
    const std::size_t fits = std::min(part.size(), out_.size() - used_);
    std::copy_n(part.data(), fits, out_.data() + used_);
    used_ += fits;
    return *this;
  }

  Line& hex(std::string_view label, std::uint64_t value, std::size_t digits_min) {
    text(label).text("0x");
    return number(value, 16, digits_min);
  }

  Line& decimal(std::string_view label, std::uint64_t value) {
    return text(label).number(value, 10, 1);
  }

  Line& flag(std::string_view label, bool is_set) { return is_set ? text(label) : *this; }

  [[nodiscard]] std::string_view str() const { return {out_.data(), used_}; }

 private:
  Line& number(std::uint64_t value, unsigned base, std::size_t digits_min) {
    if (value >= base || digits_min > 1) {
      number(value / base, base, digits_min > 1 ? digits_min - 1 : 1);
    }
    return text({&kDigits[value % base], 1});
  }

  std::span<char> out_;
  std::size_t used_ = 0;
};

std::string_view name(Place place) {
  switch (place) {
    case Place::kMiddle:
      return "_MIDDLE";
    case Place::kFirst:
      return "_FIRST";
    case Place::kLast:
      return "_LAST";
    case Place::kOnly:
      return "_ONLY";
  }
  return "?";
}

void add_opcode(const OpcodeInfo& opcode, Line& line) {
  line.text(name(opcode.service)).text(" ").text(name(opcode.kind));
  const bool is_whole = opcode.kind == Kind::kAtomicWrite;  // has no other place
  if (opcode.payload && !is_whole) line.text(name(opcode.place));
  line.flag("_WITH_IMMEDIATE", opcode.immediate).flag("_WITH_INVALIDATE", opcode.ieth);
}

void add_bth(const Bth& bth, Line& line) {
  line.hex(" qpn=", bth.destination.value, 6).hex(" psn=", bth.psn.value(), 6);
  if (bth.pkey != PKey{}) line.hex(" pkey=", bth.pkey.value, 4);
  line.flag(" solicited", bth.solicited).flag(" ack_request", bth.ack_request);
  line.flag(" mig_req=0", !bth.mig_req).flag(" fecn", bth.fecn).flag(" becn", bth.becn);
}

void add_aeth(const Aeth& aeth, Line& line) {
  switch (aeth.syndrome.kind()) {
    case SyndromeKind::kAck:
      line.decimal(" ack credits=", aeth.syndrome.credit_code());
      break;
    case SyndromeKind::kRnrNak:
      line.decimal(" rnr_nak timer=", aeth.syndrome.rnr_timer());
      break;
    case SyndromeKind::kReserved:
      line.hex(" reserved syndrome=", aeth.syndrome.value, 2);
      break;
    case SyndromeKind::kNak:
      line.text(" nak=").text(name(aeth.syndrome.nak_code()));
      break;
  }
  line.decimal(" msn=", aeth.msn.value);
}

void add_extensions(const PacketView& view, Line& line) {
  const OpcodeInfo& opcode = *view.opcode;
  if (opcode.deth) {
    line.hex(" qkey=", view.deth.qkey.value, 8).hex(" source_qpn=", view.deth.source.value, 6);
  }
  if (opcode.xrceth) line.hex(" srq=", view.xrceth.srq.value, 6);
  if (opcode.feth) {
    line.decimal(" placement=", view.feth.placement);
    line.flag(" region", view.feth.selectivity == FlushSelectivity::kRegion);
  }
  if (opcode.reth) {
    line.hex(" va=", view.reth.virtual_address, 1).hex(" rkey=", view.reth.rkey.value, 8);
    line.decimal(" dma=", view.reth.dma_bytes);
  }
  if (opcode.atomic_eth) {
    const AtomicEth& eth = view.atomic_eth;
    line.hex(" va=", eth.virtual_address, 1).hex(" rkey=", eth.rkey.value, 8);
    if (opcode.kind == Kind::kFetchAdd) {
      line.hex(" add=", eth.swap_or_add, 1);
    } else {
      line.hex(" swap=", eth.swap_or_add, 1).hex(" compare=", eth.compare, 1);
    }
  }
  if (opcode.aeth) add_aeth(view.aeth, line);
  if (opcode.atomic_ack_eth) line.hex(" original=", view.atomic_ack_eth.original, 1);
  if (opcode.immediate) line.hex(" immediate=", view.immediate.value, 8);
  if (opcode.ieth) line.hex(" invalidate=", view.ieth.rkey.value, 8);
}

}  // namespace

std::string_view describe(const PacketView& view, std::span<char> out) {
  Line line(out);
  add_opcode(*view.opcode, line);
  add_bth(view.bth, line);
  add_extensions(view, line);
  if (view.opcode->payload) line.decimal(" payload=", view.payload.size());
  if (view.bth.pad_bytes != 0) line.decimal(" pad=", view.bth.pad_bytes);
  if (view.packet_count != 1) line.decimal(" packets=", view.packet_count);
  return line.str();
}

std::string_view describe(const RxPacket& packet, std::span<char> out) {
  PacketView view;
  const DropReason reason = parse(packet, view);
  if (reason == DropReason::kNone) return describe(view, out);
  return Line(out)
      .text("malformed (")
      .text(name(reason))
      .decimal("), bytes=", packet.bytes.size())
      .str();
}

std::string_view name(Service service) {
  switch (service) {
    case Service::kRc:
      return "RC";
    case Service::kUc:
      return "UC";
    case Service::kUd:
      return "UD";
    case Service::kXrc:
      return "XRC";
  }
  return "?";
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kReserved:
      return "RESERVED";
    case Kind::kSend:
      return "SEND";
    case Kind::kWrite:
      return "WRITE";
    case Kind::kReadRequest:
      return "READ_REQUEST";
    case Kind::kReadResponse:
      return "READ_RESPONSE";
    case Kind::kAcknowledge:
      return "ACKNOWLEDGE";
    case Kind::kAtomicAcknowledge:
      return "ATOMIC_ACKNOWLEDGE";
    case Kind::kCompareSwap:
      return "COMPARE_SWAP";
    case Kind::kFetchAdd:
      return "FETCH_ADD";
    case Kind::kFlush:
      return "FLUSH";
    case Kind::kAtomicWrite:
      return "ATOMIC_WRITE";
  }
  return "?";
}

std::string_view name(NakCode code) {
  switch (code) {
    case NakCode::kPsnSequence:
      return "psn_sequence";
    case NakCode::kInvalidRequest:
      return "invalid_request";
    case NakCode::kRemoteAccess:
      return "remote_access";
    case NakCode::kRemoteOperational:
      return "remote_operational";
    case NakCode::kInvalidRdRequest:
      return "invalid_rd_request";
  }
  return "reserved";
}

}  // namespace uroce::wire
