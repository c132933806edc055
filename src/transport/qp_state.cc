// SPDX-License-Identifier: BSD-2-Clause
#include "transport/qp_state.h"

#include <array>
#include <cerrno>

#include "transport/rc_requester.h"
#include "transport/rc_responder.h"

namespace uroce::transport {
namespace {

using namespace qp_attribute;

using Row = std::array<StateChange, kQpStateCount>;
using Table = std::array<Row, kQpStateCount>;

constexpr std::size_t index(QpState s) { return static_cast<std::size_t>(s); }
constexpr std::size_t index(Service s) {
  switch (s) {
    case Service::kRc:
      return 0;
    case Service::kUc:
      return 1;
    case Service::kUd:
      return 2;
    case Service::kXrcInitiator:
      return 3;
    case Service::kXrcTarget:
      return 4;
    case Service::kRawPacket:
      return 5;
  }
  return 0;
}

// What each service asks for, by the change of state.
struct Needs {
  std::uint32_t to_init, to_init_optional;
  std::uint32_t to_rtr, to_rtr_optional;
  std::uint32_t to_rts, to_rts_optional;
  std::uint32_t in_rts_optional;
  std::uint32_t in_sqd_optional;
  std::uint32_t from_sqe_optional;
};

constexpr Needs kRcNeeds = {
    .to_init = kPKeyIndex | kPort | kAccessFlags,
    .to_init_optional = 0,
    .to_rtr = kAddressVector | kPathMtu | kDestinationQpn | kReceivePsn | kMaxDestReadAtomic |
              kMinRnrTimer,
    .to_rtr_optional = kAlternatePath | kAccessFlags | kPKeyIndex,
    .to_rts = kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxReadAtomic,
    .to_rts_optional =
        kCurrentState | kAlternatePath | kAccessFlags | kMinRnrTimer | kPathMigrationState,
    .in_rts_optional =
        kCurrentState | kAlternatePath | kAccessFlags | kMinRnrTimer | kPathMigrationState,
    .in_sqd_optional = kPort | kAddressVector | kTimeout | kRetryCount | kRnrRetry |
                       kMaxReadAtomic | kMaxDestReadAtomic | kAlternatePath | kAccessFlags |
                       kPKeyIndex | kMinRnrTimer | kPathMigrationState,
    .from_sqe_optional = 0,
};

constexpr Needs kUcNeeds = {
    .to_init = kPKeyIndex | kPort | kAccessFlags,
    .to_init_optional = 0,
    .to_rtr = kAddressVector | kPathMtu | kDestinationQpn | kReceivePsn,
    .to_rtr_optional = kAlternatePath | kAccessFlags | kPKeyIndex,
    .to_rts = kSendPsn,
    .to_rts_optional = kCurrentState | kAlternatePath | kAccessFlags | kPathMigrationState,
    .in_rts_optional = kCurrentState | kAlternatePath | kAccessFlags | kPathMigrationState,
    .in_sqd_optional =
        kAddressVector | kAlternatePath | kAccessFlags | kPKeyIndex | kPathMigrationState,
    .from_sqe_optional = kCurrentState | kAccessFlags,
};

constexpr Needs kUdNeeds = {
    .to_init = kPKeyIndex | kPort | kQKey,
    .to_init_optional = 0,
    .to_rtr = 0,
    .to_rtr_optional = kPKeyIndex | kQKey,
    .to_rts = kSendPsn,
    .to_rts_optional = kCurrentState | kQKey,
    .in_rts_optional = kCurrentState | kQKey,
    .in_sqd_optional = kPKeyIndex | kQKey,
    .from_sqe_optional = kCurrentState | kQKey,
};

// The halves of RC's.
constexpr Needs kXrcInitiatorNeeds = {
    .to_init = kPKeyIndex | kPort | kAccessFlags,
    .to_init_optional = 0,
    .to_rtr = kAddressVector | kPathMtu | kDestinationQpn | kReceivePsn,
    .to_rtr_optional = kAlternatePath | kAccessFlags | kPKeyIndex,
    .to_rts = kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxReadAtomic,
    .to_rts_optional = kCurrentState | kAlternatePath | kAccessFlags | kPathMigrationState,
    .in_rts_optional = kCurrentState | kAlternatePath | kAccessFlags | kPathMigrationState,
    .in_sqd_optional = kPort | kAddressVector | kTimeout | kRetryCount | kRnrRetry |
                       kMaxReadAtomic | kAlternatePath | kAccessFlags | kPKeyIndex |
                       kPathMigrationState,
    .from_sqe_optional = 0,
};

constexpr Needs kXrcTargetNeeds = {
    .to_init = kPKeyIndex | kPort | kAccessFlags,
    .to_init_optional = 0,
    .to_rtr = kAddressVector | kPathMtu | kDestinationQpn | kReceivePsn | kMaxDestReadAtomic |
              kMinRnrTimer,
    .to_rtr_optional = kAlternatePath | kAccessFlags | kPKeyIndex,
    .to_rts = kTimeout | kSendPsn,
    .to_rts_optional =
        kCurrentState | kAlternatePath | kAccessFlags | kMinRnrTimer | kPathMigrationState,
    .in_rts_optional =
        kCurrentState | kAlternatePath | kAccessFlags | kMinRnrTimer | kPathMigrationState,
    .in_sqd_optional = kPort | kAddressVector | kTimeout | kMaxDestReadAtomic | kAlternatePath |
                       kAccessFlags | kPKeyIndex | kMinRnrTimer | kPathMigrationState,
    .from_sqe_optional = 0,
};

// Addresses, partitions and numbers are in the frames, or nowhere.
constexpr Needs kRawPacketNeeds = {
    .to_init = kPort,
    .to_init_optional = 0,
    .to_rtr = 0,
    .to_rtr_optional = 0,
    .to_rts = 0,
    .to_rts_optional = 0,
    .in_rts_optional = 0,
    .in_sqd_optional = 0,
    .from_sqe_optional = 0,
};

constexpr Table make_table(const Needs& needs, bool has_sqe) {
  using enum QpState;
  Table table{};
  for (Row& row : table) {
    row[index(kReset)] = {true, 0, 0};
    row[index(kErr)] = {true, 0, 0};
  }
  table[index(kReset)][index(kErr)].is_allowed = false;  // nothing is there that could fail
  const auto allow = [&table](QpState from, QpState to, std::uint32_t required,
                              std::uint32_t optional) {
    table[index(from)][index(to)] = {true, required, optional};
  };
  allow(kReset, kInit, needs.to_init, needs.to_init_optional);
  allow(kInit, kInit, 0, needs.to_init);
  allow(kInit, kRtr, needs.to_rtr, needs.to_rtr_optional);
  allow(kRtr, kRts, needs.to_rts, needs.to_rts_optional);
  allow(kRts, kRts, 0, needs.in_rts_optional);
  allow(kRts, kSqd, 0, kEnableSqdNotify);
  allow(kSqd, kSqd, 0, needs.in_sqd_optional);
  allow(kSqd, kRts, 0, needs.in_rts_optional);
  if (has_sqe) allow(kSqe, kRts, 0, needs.from_sqe_optional);
  return table;
}

constexpr std::array<Table, 6> kTables = {
    make_table(kRcNeeds, false),        make_table(kUcNeeds, true),
    make_table(kUdNeeds, true),         make_table(kXrcInitiatorNeeds, false),
    make_table(kXrcTargetNeeds, false), make_table(kRawPacketNeeds, true)};
static_assert(kTables[index(Service::kRc)][index(QpState::kInit)][index(QpState::kRtr)].is_allowed);
static_assert(
    !kTables[index(Service::kRc)][index(QpState::kInit)][index(QpState::kRts)].is_allowed);
static_assert(!kTables[index(Service::kRc)][index(QpState::kSqe)][index(QpState::kRts)].is_allowed);

bool is_path_mtu(std::uint16_t bytes) {
  return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
}

bool are_values_valid(const QpAttributes& a, std::uint32_t mask) {
  const auto wrong = [mask](std::uint32_t bit, bool is_valid) {
    return (mask & bit) != 0 && !is_valid;
  };
  return !wrong(kPort, a.port == 1) && !wrong(kPKeyIndex, a.pkey_index == 0) &&
         !wrong(kPathMtu, is_path_mtu(a.path_mtu)) && !wrong(kTimeout, a.timeout < 32) &&
         !wrong(kRetryCount, a.retry_count < 8) && !wrong(kRnrRetry, a.rnr_retry < 8) &&
         !wrong(kMinRnrTimer, a.min_rnr_timer < 32) &&
         !wrong(kMaxReadAtomic, a.max_read_atomic <= kReadAtomicMax) &&
         !wrong(kMaxDestReadAtomic, a.max_dest_read_atomic <= kReplayMax) &&
         !wrong(kDestinationQpn, a.destination_qpn.value <= 0xff'ffff);
}

}  // namespace

const StateChange& state_change(Service service, QpState from, QpState to) {
  return kTables[index(service)][index(from)][index(to)];
}

int check_modify(Service service, QpState from, const QpAttributes& attributes,
                 std::uint32_t mask) {
  if ((mask & kCurrentState) != 0 && attributes.current_state != from) return EINVAL;
  const QpState to = (mask & kState) != 0 ? attributes.state : from;
  if (index(to) >= kQpStateCount) return EINVAL;
  const StateChange& change = state_change(service, from, to);
  if (!change.is_allowed) return EINVAL;
  const std::uint32_t given = mask & ~kState;
  if ((given & change.required) != change.required) return EINVAL;
  if ((given & ~(change.required | change.optional)) != 0) return EINVAL;
  return are_values_valid(attributes, mask) ? 0 : EINVAL;
}

}  // namespace uroce::transport
