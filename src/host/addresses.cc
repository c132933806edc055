// SPDX-License-Identifier: BSD-2-Clause
#include "host/addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace uroce::host {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void append_hex(std::string& text, std::uint8_t byte) {
  text += kHexDigits[byte >> 4];
  text += kHexDigits[byte & 15];
}

// Bytes as hexadecimal with a colon after every `group` of them.
std::string format_groups(std::span<const std::uint8_t> bytes, std::size_t group) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i != 0 && i % group == 0) text += ':';
    append_hex(text, bytes[i]);
  }
  return text;
}

}  // namespace

std::optional<Gid> parse_address(std::string_view text) {
  const std::string copy(text);
  Gid gid;
  if (inet_pton(AF_INET6, copy.c_str(), gid.bytes.data()) == 1) return gid;
  gid.bytes[10] = gid.bytes[11] = 0xff;
  if (inet_pton(AF_INET, copy.c_str(), gid.bytes.data() + 12) == 1) return gid;
  return std::nullopt;
}

std::optional<PrefixAddress> parse_prefix_address(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<Gid> gid = parse_address(text.substr(0, slash));
  if (!gid || gid->is_zero()) return std::nullopt;
  const std::string_view digits = text.substr(slash + 1);
  std::uint8_t length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  const int longest = gid->is_ipv4() ? 32 : 128;
  if (error != std::errc{} || end != digits.data() + digits.size() || length > longest) {
    return std::nullopt;
  }
  return PrefixAddress{*gid, length};
}

std::string format_address(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (gid.is_ipv4()) {
    inet_ntop(AF_INET, gid.bytes.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, gid.bytes.data(), text, sizeof text);
  }
  return text;
}

std::string format_prefix_address(const PrefixAddress& address) {
  return format_address(address.gid) + "/" + std::to_string(address.prefix_length);
}

std::string format_gid(const Gid& gid) { return format_groups(gid.bytes, 2); }

std::optional<Gid> parse_gid(std::string_view text) {
  // sysfs text is a valid IPv6 address, whatever the address means.
  Gid gid;
  const std::string copy(text.substr(0, text.find('\n')));
  if (inet_pton(AF_INET6, copy.c_str(), gid.bytes.data()) != 1) return std::nullopt;
  return gid;
}

std::string format_mac(const MacAddress& mac) { return format_groups(mac, 1); }

std::string format_guid(std::uint64_t node_guid) {
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(node_guid >> (56 - 8 * i));
  }
  return format_groups(bytes, 2);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

std::string join(std::span<const std::string> pieces, std::string_view separator) {
  std::string text;
  for (const std::string& piece : pieces) {
    if (!text.empty()) text += separator;
    text += piece;
  }
  return text;
}

}  // namespace uroce::host
