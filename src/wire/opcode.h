// SPDX-License-Identifier: BSD-2-Clause
// The BTH opcodes (IBTA 9.2.1): what each means, which headers it carries, which may come next.
//
// An opcode is a service (high three bits) and an operation (low five), and every service numbers
// its operations alike, so the whole table follows from the 25 operations of RC below. Whatever can
// be computed from kind, place and headers is computed. The 192 numbers that no service of ours
// uses stay kReserved, and a packet that bears one is dropped. Those of XRC have no names here:
// they are RC's, in_service(..., Service::kXrc).
//
//   const OpcodeInfo& info = opcode_info(Opcode::kRcWriteFirst);   // info.reth, info.header_bytes
//   Opcode next = pick_opcode(Service::kRc, Kind::kWrite, Place::kLast, Suffix::kImmediate);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace uroce::wire {

enum class Opcode : std::uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImmediate = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImmediate = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImmediate = 0x09,
  kRcWriteOnly = 0x0a,
  kRcWriteOnlyImmediate = 0x0b,
  kRcReadRequest = 0x0c,
  kRcReadResponseFirst = 0x0d,
  kRcReadResponseMiddle = 0x0e,
  kRcReadResponseLast = 0x0f,
  kRcReadResponseOnly = 0x10,
  kRcAcknowledge = 0x11,
  kRcAtomicAcknowledge = 0x12,
  kRcCompareSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInvalidate = 0x16,
  kRcSendOnlyInvalidate = 0x17,
  kRcFlush = 0x1c,
  kRcAtomicWrite = 0x1d,
  kUcSendFirst = 0x20,
  kUcSendMiddle = 0x21,
  kUcSendLast = 0x22,
  kUcSendLastImmediate = 0x23,
  kUcSendOnly = 0x24,
  kUcSendOnlyImmediate = 0x25,
  kUcWriteFirst = 0x26,
  kUcWriteMiddle = 0x27,
  kUcWriteLast = 0x28,
  kUcWriteLastImmediate = 0x29,
  kUcWriteOnly = 0x2a,
  kUcWriteOnlyImmediate = 0x2b,
  kUdSendOnly = 0x64,
  kUdSendOnlyImmediate = 0x65,
};

// The high three bits of an opcode. 2 is RD, which nothing here speaks.
enum class Service : std::uint8_t { kRc = 0, kUc = 1, kUd = 3, kXrc = 5 };
inline constexpr std::size_t kServiceNumbers = 6;

// The same operation as RC's, of another service.
constexpr Opcode in_service(Opcode rc, Service service) {
  return static_cast<Opcode>(static_cast<unsigned>(service) << 5 | static_cast<unsigned>(rc));
}

enum class Kind : std::uint8_t {
  kReserved,
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAcknowledge,
  kAtomicAcknowledge,
  kCompareSwap,
  kFetchAdd,
  kFlush,        // IBTA annex 19: what was written is to be visible, or persistent
  kAtomicWrite,  // ... and 8 bytes, at once
};
inline constexpr std::size_t kKindCount = 11;

// Where in its message a packet stands. Bit 0: it begins the message; bit 1: it ends it.
enum class Place : std::uint8_t { kMiddle = 0, kFirst = 1, kLast = 2, kOnly = 3 };

constexpr bool begins_message(Place place) { return (static_cast<unsigned>(place) & 1) != 0; }
constexpr bool ends_message(Place place) { return (static_cast<unsigned>(place) & 2) != 0; }
constexpr Place make_place(bool begins, bool ends) {
  return static_cast<Place>((begins ? 1 : 0) | (ends ? 2 : 0));
}

// What the last packet of a SEND or WRITE carries on top.
enum class Suffix : std::uint8_t { kNone, kImmediate, kInvalidate };

struct OpcodeInfo {
  Opcode opcode{};
  Service service = Service::kRc;
  Kind kind = Kind::kReserved;
  Place place = Place::kOnly;
  // Extension headers, in the order in which they follow the BTH.
  bool deth = false;
  bool xrceth : 1 = false;
  bool feth : 1 = false;
  bool reth : 1 = false;
  bool atomic_eth = false;
  bool aeth = false;
  bool atomic_ack_eth = false;
  bool immediate = false;
  bool ieth = false;
  // Computed from the above.
  std::uint8_t header_bytes = 0;   // BTH and the extension headers
  bool payload = false;            // may carry any
  bool is_request = false;         // for the responder, else for the requester
  bool takes_receive = false;      // needs a receive WQE now: the beginning of a SEND, the end of a
                                   // WRITE with immediate
  bool completes_receive = false;  // ends the message for which one was taken

  [[nodiscard]] constexpr bool is_valid() const { return kind != Kind::kReserved; }
  [[nodiscard]] constexpr bool begins() const { return begins_message(place); }
  [[nodiscard]] constexpr bool ends() const { return ends_message(place); }
  // A request whose answer is an acknowledgement that may wait for others.
  [[nodiscard]] constexpr bool is_acknowledged() const {
    return kind == Kind::kSend || kind == Kind::kWrite;
  }
  [[nodiscard]] constexpr Suffix suffix() const {
    return immediate ? Suffix::kImmediate : ieth ? Suffix::kInvalidate : Suffix::kNone;
  }
};
static_assert(sizeof(OpcodeInfo) == 16);

inline constexpr std::size_t kBthBytes = 12;
inline constexpr std::size_t kDethBytes = 8;
inline constexpr std::size_t kXrcethBytes = 4;
inline constexpr std::size_t kFethBytes = 4;
inline constexpr std::size_t kRethBytes = 16;
inline constexpr std::size_t kAtomicEthBytes = 28;
inline constexpr std::size_t kAethBytes = 4;
inline constexpr std::size_t kAtomicAckEthBytes = 8;
inline constexpr std::size_t kImmediateBytes = 4;
inline constexpr std::size_t kIethBytes = 4;

namespace opcode_table {

inline constexpr OpcodeInfo kRcOperations[] = {
    {.opcode = Opcode::kRcSendFirst, .kind = Kind::kSend, .place = Place::kFirst},
    {.opcode = Opcode::kRcSendMiddle, .kind = Kind::kSend, .place = Place::kMiddle},
    {.opcode = Opcode::kRcSendLast, .kind = Kind::kSend, .place = Place::kLast},
    {.opcode = Opcode::kRcSendLastImmediate,
     .kind = Kind::kSend,
     .place = Place::kLast,
     .immediate = true},
    {.opcode = Opcode::kRcSendOnly, .kind = Kind::kSend, .place = Place::kOnly},
    {.opcode = Opcode::kRcSendOnlyImmediate,
     .kind = Kind::kSend,
     .place = Place::kOnly,
     .immediate = true},
    {.opcode = Opcode::kRcWriteFirst, .kind = Kind::kWrite, .place = Place::kFirst, .reth = true},
    {.opcode = Opcode::kRcWriteMiddle, .kind = Kind::kWrite, .place = Place::kMiddle},
    {.opcode = Opcode::kRcWriteLast, .kind = Kind::kWrite, .place = Place::kLast},
    {.opcode = Opcode::kRcWriteLastImmediate,
     .kind = Kind::kWrite,
     .place = Place::kLast,
     .immediate = true},
    {.opcode = Opcode::kRcWriteOnly, .kind = Kind::kWrite, .place = Place::kOnly, .reth = true},
    {.opcode = Opcode::kRcWriteOnlyImmediate,
     .kind = Kind::kWrite,
     .place = Place::kOnly,
     .reth = true,
     .immediate = true},
    {.opcode = Opcode::kRcReadRequest, .kind = Kind::kReadRequest, .reth = true},
    {.opcode = Opcode::kRcReadResponseFirst,
     .kind = Kind::kReadResponse,
     .place = Place::kFirst,
     .aeth = true},
    {.opcode = Opcode::kRcReadResponseMiddle, .kind = Kind::kReadResponse, .place = Place::kMiddle},
    {.opcode = Opcode::kRcReadResponseLast,
     .kind = Kind::kReadResponse,
     .place = Place::kLast,
     .aeth = true},
    {.opcode = Opcode::kRcReadResponseOnly,
     .kind = Kind::kReadResponse,
     .place = Place::kOnly,
     .aeth = true},
    {.opcode = Opcode::kRcAcknowledge, .kind = Kind::kAcknowledge, .aeth = true},
    {.opcode = Opcode::kRcAtomicAcknowledge,
     .kind = Kind::kAtomicAcknowledge,
     .aeth = true,
     .atomic_ack_eth = true},
    {.opcode = Opcode::kRcCompareSwap, .kind = Kind::kCompareSwap, .atomic_eth = true},
    {.opcode = Opcode::kRcFetchAdd, .kind = Kind::kFetchAdd, .atomic_eth = true},
    {.opcode = Opcode::kRcSendLastInvalidate,
     .kind = Kind::kSend,
     .place = Place::kLast,
     .ieth = true},
    {.opcode = Opcode::kRcSendOnlyInvalidate,
     .kind = Kind::kSend,
     .place = Place::kOnly,
     .ieth = true},
    {.opcode = Opcode::kRcFlush, .kind = Kind::kFlush, .feth = true, .reth = true},
    {.opcode = Opcode::kRcAtomicWrite, .kind = Kind::kAtomicWrite, .reth = true},
};

constexpr bool exists_in(Service service, const OpcodeInfo& operation) {
  const bool is_send = operation.kind == Kind::kSend;
  switch (service) {
    case Service::kRc:
    case Service::kXrc:
      return true;
    case Service::kUc:
      return (is_send || operation.kind == Kind::kWrite) && !operation.ieth;
    case Service::kUd:
      return is_send && operation.place == Place::kOnly && !operation.ieth;
  }
  return false;
}

constexpr std::size_t header_bytes(const OpcodeInfo& info) {
  return kBthBytes + (info.deth ? kDethBytes : 0) + (info.xrceth ? kXrcethBytes : 0) +
         (info.feth ? kFethBytes : 0) + (info.reth ? kRethBytes : 0) +
         (info.atomic_eth ? kAtomicEthBytes : 0) + (info.aeth ? kAethBytes : 0) +
         (info.atomic_ack_eth ? kAtomicAckEthBytes : 0) + (info.immediate ? kImmediateBytes : 0) +
         (info.ieth ? kIethBytes : 0);
}

constexpr OpcodeInfo complete(Service service, OpcodeInfo info) {
  const bool is_send = info.kind == Kind::kSend;
  const bool is_response = info.kind == Kind::kReadResponse || info.kind == Kind::kAcknowledge ||
                           info.kind == Kind::kAtomicAcknowledge;
  const bool is_write_with_immediate = info.kind == Kind::kWrite && info.immediate;
  info.opcode = in_service(info.opcode, service);
  info.service = service;
  info.deth = service == Service::kUd;
  info.xrceth = service == Service::kXrc && !is_response;  // IBTA annex 14: in every request
  info.header_bytes = static_cast<std::uint8_t>(header_bytes(info));
  info.payload = is_send || info.kind == Kind::kWrite || info.kind == Kind::kReadResponse ||
                 info.kind == Kind::kAtomicWrite;
  info.is_request = !is_response;
  info.takes_receive = (is_send && info.begins()) || is_write_with_immediate;
  info.completes_receive = (is_send && info.ends()) || is_write_with_immediate;
  return info;
}

constexpr std::array<OpcodeInfo, 256> make() {
  std::array<OpcodeInfo, 256> table{};
  for (unsigned number = 0; number < table.size(); ++number) {
    table[number].opcode = static_cast<Opcode>(number);
  }
  for (const Service service : {Service::kRc, Service::kUc, Service::kUd, Service::kXrc}) {
    for (const OpcodeInfo& operation : kRcOperations) {
      if (!exists_in(service, operation)) continue;
      const OpcodeInfo info = complete(service, operation);
      table[static_cast<std::size_t>(info.opcode)] = info;
    }
  }
  return table;
}

}  // namespace opcode_table

inline constexpr std::array<OpcodeInfo, 256> kOpcodes = opcode_table::make();

constexpr const OpcodeInfo& opcode_info(Opcode opcode) {
  return kOpcodes[static_cast<std::size_t>(opcode)];
}

// Is `next` the legal next packet of the message at hand? (IBTA 9.8.2.2: the order of opcodes)
constexpr bool follows(bool in_message, Kind current, const OpcodeInfo& next) {
  return in_message ? !next.begins() && next.kind == current : next.begins();
}

namespace opcode_table {

inline constexpr std::size_t kSuffixCount = 3;

constexpr std::size_t pick_index(Service service, Kind kind, Place place, Suffix suffix) {
  return ((static_cast<std::size_t>(service) * kKindCount + static_cast<std::size_t>(kind)) * 4 +
          static_cast<std::size_t>(place)) *
             kSuffixCount +
         static_cast<std::size_t>(suffix);
}

// The table of opcodes the other way round; 0xff (reserved) where there is none. A suffix asked for
// in a packet that does not end the message gives the plain opcode.
constexpr auto make_picks() {
  std::array<Opcode, kServiceNumbers * kKindCount * 4 * kSuffixCount> picks{};
  picks.fill(static_cast<Opcode>(0xff));
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.is_valid()) continue;
    picks[pick_index(info.service, info.kind, info.place, info.suffix())] = info.opcode;
    if (info.ends()) continue;
    for (const Suffix suffix : {Suffix::kImmediate, Suffix::kInvalidate}) {
      picks[pick_index(info.service, info.kind, info.place, suffix)] = info.opcode;
    }
  }
  return picks;
}
inline constexpr auto kPicks = make_picks();

}  // namespace opcode_table

// The opcode of a packet at `place` of a message that ends with `suffix`. That the service knows
// such a message is the caller's to see to.
constexpr Opcode pick_opcode(Service service, Kind kind, Place place,
                             Suffix suffix = Suffix::kNone) {
  const Opcode opcode =
      opcode_table::kPicks[opcode_table::pick_index(service, kind, place, suffix)];
  UROCE_CHECK(opcode_info(opcode).is_valid());
  return opcode;
}

static_assert(std::ranges::count_if(kOpcodes, &OpcodeInfo::is_valid) ==
              64);  // RC and XRC 25, UC 12, UD 2
static_assert(std::ranges::all_of(kOpcodes, [](const OpcodeInfo& info) {
  return !info.is_valid() ||
         pick_opcode(info.service, info.kind, info.place, info.suffix()) == info.opcode;
}));
static_assert(std::ranges::all_of(kOpcodes, [](const OpcodeInfo& info) {
  return info.header_bytes % 4 == 0 && (!info.is_valid() || info.header_bytes >= kBthBytes);
}));
static_assert(opcode_info(Opcode::kRcWriteOnlyImmediate).header_bytes == 32);
static_assert(opcode_info(Opcode::kRcFlush).header_bytes == 32);
static_assert(opcode_info(Opcode::kRcCompareSwap).header_bytes == 40);
static_assert(opcode_info(Opcode::kUdSendOnlyImmediate).header_bytes == 24);
static_assert(opcode_info(in_service(Opcode::kRcSendMiddle, Service::kXrc)).header_bytes == 16);
static_assert(opcode_info(in_service(Opcode::kRcAcknowledge, Service::kXrc)).header_bytes == 16);
static_assert(pick_opcode(Service::kUc, Kind::kWrite, Place::kFirst, Suffix::kImmediate) ==
              Opcode::kUcWriteFirst);
static_assert(follows(true, Kind::kWrite, opcode_info(Opcode::kRcWriteLastImmediate)) &&
              !follows(true, Kind::kWrite, opcode_info(Opcode::kRcSendLast)) &&
              !follows(true, Kind::kWrite, opcode_info(Opcode::kRcWriteOnly)) &&
              !follows(false, Kind::kWrite, opcode_info(Opcode::kRcWriteMiddle)));

}  // namespace uroce::wire
