// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/flow_pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace uroce::verbs {
namespace {

using steering::FrameKey;
using steering::KeyWords;
using steering::Pattern;
namespace layer = steering::layer;

constexpr std::uint16_t kTypeIpv4 = 0x0800;
constexpr std::uint16_t kTypeIpv6 = 0x86dd;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint32_t kFlowLabelMax = 0xf'ffff;

// Fields of filters are in network order already.
Be16 as_it_is(std::uint16_t field) { return std::bit_cast<Be16>(field); }
Be32 as_it_is(std::uint32_t field) { return std::bit_cast<Be32>(field); }

// A filter's fields at their places in a key: of its values, and of its masks.
FrameKey key_of(const ibv_flow_eth_filter& filter) {
  FrameKey key;
  std::ranges::copy(filter.dst_mac, key.destination_mac.begin());
  std::ranges::copy(filter.src_mac, key.source_mac.begin());
  key.ether_type = as_it_is(filter.ether_type);
  key.vlan_tag = as_it_is(filter.vlan_tag);
  return key;
}

void put_addresses(FrameKey& key, std::uint32_t source, std::uint32_t destination) {
  std::memcpy(key.source.data(), &source, sizeof source);
  std::memcpy(key.destination.data(), &destination, sizeof destination);
}

FrameKey key_of(const ibv_flow_ipv4_filter& filter) {
  FrameKey key;
  put_addresses(key, filter.src_ip, filter.dst_ip);
  return key;
}

FrameKey key_of(const ibv_flow_ipv4_ext_filter& filter) {
  FrameKey key;
  put_addresses(key, filter.src_ip, filter.dst_ip);
  key.protocol = filter.proto;
  key.traffic_class = filter.tos;
  key.hop_limit = filter.ttl;
  key.ipv4_flags = filter.flags;
  return key;
}

FrameKey key_of(const ibv_flow_ipv6_filter& filter) {
  FrameKey key;
  std::ranges::copy(filter.src_ip, key.source.begin());
  std::ranges::copy(filter.dst_ip, key.destination.begin());
  key.flow_label = as_it_is(filter.flow_label);
  key.protocol = filter.next_hdr;
  key.traffic_class = filter.traffic_class;
  key.hop_limit = filter.hop_limit;
  return key;
}

FrameKey key_of(const ibv_flow_tcp_udp_filter& filter) {
  FrameKey key;
  key.source_port = as_it_is(filter.src_port);
  key.destination_port = as_it_is(filter.dst_port);
  return key;
}

// Adds what another spec demands. False: the two contradict each other.
bool demand(Pattern& pattern, const FrameKey& value, const FrameKey& mask) {
  auto all_values = std::bit_cast<KeyWords>(pattern.value);
  auto all_masks = std::bit_cast<KeyWords>(pattern.mask);
  const auto v = std::bit_cast<KeyWords>(value);
  const auto m = std::bit_cast<KeyWords>(mask);
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (((all_values[i] ^ v[i]) & all_masks[i] & m[i]) != 0) return false;
    all_values[i] |= v[i] & m[i];
    all_masks[i] |= m[i];
  }
  pattern.value = std::bit_cast<FrameKey>(all_values);
  pattern.mask = std::bit_cast<FrameKey>(all_masks);
  return true;
}

bool demand_layer(Pattern& pattern, std::uint8_t which) {
  FrameKey key;
  key.layers = which;
  return demand(pattern, key, key);
}

bool demand_ether_type(Pattern& pattern, std::uint16_t type) {
  FrameKey value;
  FrameKey mask;
  value.ether_type.set(type);
  mask.ether_type.set(0xffff);
  return demand(pattern, value, mask);
}

bool demand_protocol(Pattern& pattern, std::uint8_t protocol) {
  FrameKey value;
  FrameKey mask;
  value.protocol = protocol;
  mask.protocol = 0xff;
  return demand(pattern, value, mask);
}

// `which` is the layer that the spec is of, or 0.
template <typename Spec>
bool add(Pattern& pattern, std::span<const std::byte> bytes, std::uint8_t which) {
  Spec spec;
  if (bytes.size() != sizeof spec) return false;
  std::memcpy(&spec, bytes.data(), sizeof spec);
  return demand_layer(pattern, which) && demand(pattern, key_of(spec.val), key_of(spec.mask));
}

bool add_ethernet(Pattern& pattern, std::span<const std::byte> bytes) {
  if (!add<ibv_flow_spec_eth>(pattern, bytes, 0)) return false;
  return pattern.mask.vlan_tag.get() == 0 || demand_layer(pattern, layer::kVlan);
}

template <typename Spec>
bool add_ipv4(Pattern& pattern, std::span<const std::byte> bytes) {
  constexpr unsigned kFlags = steering::kDontFragment | steering::kMoreFragments;
  return demand_ether_type(pattern, kTypeIpv4) && add<Spec>(pattern, bytes, layer::kIpv4) &&
         (pattern.mask.ipv4_flags & ~kFlags) == 0;
}

bool add_ipv6(Pattern& pattern, std::span<const std::byte> bytes) {
  return demand_ether_type(pattern, kTypeIpv6) &&
         add<ibv_flow_spec_ipv6>(pattern, bytes, layer::kIpv6) &&
         pattern.mask.flow_label.get() <= kFlowLabelMax;
}

bool add_ports(Pattern& pattern, std::span<const std::byte> bytes, bool is_tcp) {
  return demand_protocol(pattern, is_tcp ? kProtocolTcp : kProtocolUdp) &&
         add<ibv_flow_spec_tcp_udp>(pattern, bytes, is_tcp ? layer::kTcp : layer::kUdp);
}

// Those that have names, and that we have not.
bool is_known(std::uint32_t type) {
  constexpr std::array<std::uint32_t, 8> kTypes{
      IBV_FLOW_SPEC_ESP,           IBV_FLOW_SPEC_VXLAN_TUNNEL, IBV_FLOW_SPEC_GRE,
      IBV_FLOW_SPEC_MPLS,          IBV_FLOW_SPEC_ACTION_TAG,   IBV_FLOW_SPEC_ACTION_DROP,
      IBV_FLOW_SPEC_ACTION_HANDLE, IBV_FLOW_SPEC_ACTION_COUNT};
  return (type & IBV_FLOW_SPEC_INNER) != 0 || std::ranges::find(kTypes, type) != kTypes.end();
}

int add_spec(Pattern& pattern, std::uint32_t type, std::span<const std::byte> bytes) {
  const auto error = [](bool is_added) { return is_added ? 0 : EINVAL; };
  switch (type) {
    case IBV_FLOW_SPEC_ETH:
      return error(add_ethernet(pattern, bytes));
    case IBV_FLOW_SPEC_IPV4:
      return error(add_ipv4<ibv_flow_spec_ipv4>(pattern, bytes));
    case IBV_FLOW_SPEC_IPV4_EXT:
      return error(add_ipv4<ibv_flow_spec_ipv4_ext>(pattern, bytes));
    case IBV_FLOW_SPEC_IPV6:
      return error(add_ipv6(pattern, bytes));
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP:
      return error(add_ports(pattern, bytes, type == IBV_FLOW_SPEC_TCP));
    default:
      return is_known(type) ? EOPNOTSUPP : EINVAL;
  }
}

}  // namespace

// As libibverbs does, by the specs' own sizes; that of `attributes` is not looked at.
int to_pattern(const ibv_flow_attr& attributes, Pattern& pattern) {
  const auto* at = reinterpret_cast<const std::byte*>(&attributes + 1);
  for (unsigned i = 0; i < attributes.num_of_specs; ++i) {
    std::uint32_t type = 0;
    std::uint16_t size = 0;
    std::memcpy(&type, at + offsetof(ibv_flow_spec_eth, type), sizeof type);
    std::memcpy(&size, at + offsetof(ibv_flow_spec_eth, size), sizeof size);
    if (const int error = add_spec(pattern, type, {at, size}); error != 0) return error;
    at += size;
  }
  return 0;
}

}  // namespace uroce::verbs
