// SPDX-License-Identifier: BSD-2-Clause
#include "cma/port_table.h"

#include <algorithm>

#include "datapath/directory/directory.h"

namespace uroce::cma {
namespace {

// As /proc/sys/net/ipv4/ip_local_port_range has it by default.
constexpr std::uint32_t kFirstEphemeral = 32'768;
constexpr std::uint32_t kLastEphemeral = 60'999;
constexpr std::uint32_t kEphemeralCount = kLastEphemeral - kFirstEphemeral + 1;
// A prime number, since processes with several devices have slots at regular distances.
constexpr std::uint32_t kSliceCount = 29;
constexpr std::uint32_t kPortsInSlice = kEphemeralCount / kSliceCount;
// Before all are tried in turn: where some are left, this finds one in most cases.
constexpr int kDraws = 64;

bool differ(const Gid& one, const Gid& other) {
  return !one.is_zero() && !other.is_zero() && one != other;
}
bool differ(std::uint16_t one, std::uint16_t other) {
  return one != 0 && other != 0 && one != other;
}

}  // namespace

void PortTable::insert(const Id& id) { by_service_.emplace(id.service_id(id.source.port), &id); }

void PortTable::erase(const Id& id) {
  const auto [begin, end] = by_service_.equal_range(id.service_id(id.source.port));
  const auto found =
      std::find_if(begin, end, [&id](const auto& entry) { return entry.second == &id; });
  if (found != end) by_service_.erase(found);
}

int PortTable::check(const Id& id, bool to_listen) const {
  const ServiceAddress address = id.service_address();
  const auto [begin, end] = by_service_.equal_range(id.service_id(id.source.port));
  for (auto entry = begin; entry != end; ++entry) {
    const Id& other = *entry->second;
    const bool both_share =
        id.reuses_address && other.reuses_address && other.state != IdState::kListening;
    if (&other == &id || (both_share && !to_listen)) continue;
    const ServiceAddress taken = other.service_address();
    if (taken.overlaps(address)) return datapath::in_use(taken, address);
  }
  return 0;
}

// What is not known yet may become anything.
bool PortTable::is_unique(const Id& id, std::uint16_t port) const {
  const auto [begin, end] = by_service_.equal_range(id.service_id(port));
  return std::all_of(begin, end, [&id](const auto& entry) {
    const Id& other = *entry.second;
    return &other == &id || differ(id.source.gid, other.source.gid) ||
           differ(id.destination.gid, other.destination.gid) ||
           differ(id.destination.port, other.destination.port);
  });
}

std::optional<std::uint16_t> PortTable::first_unique(const Id& id, Range range,
                                                     std::uint32_t offset) const {
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const auto port = static_cast<std::uint16_t>(range.first + (offset + i) % range.count);
    if (is_unique(id, port)) return port;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> PortTable::choose(const Id& id, std::uint32_t slot,
                                               Prng& random) const {
  const Range slice{kFirstEphemeral + slot % kSliceCount * kPortsInSlice, kPortsInSlice};
  const auto of_slice = first_unique(id, slice, random.below(slice.count));
  if (of_slice) return of_slice;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto port = static_cast<std::uint16_t>(random.between(kFirstEphemeral, kLastEphemeral));
    if (is_unique(id, port)) return port;
  }
  return first_unique(id, {kFirstEphemeral, kEphemeralCount}, random.below(kEphemeralCount));
}

}  // namespace uroce::cma
