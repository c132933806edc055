// SPDX-License-Identifier: BSD-2-Clause
#include "posix/interface.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "posix/descriptor.h"

namespace uroce::posix {
namespace {

bool ask(const std::string& interface, unsigned long what, ifreq& request) {
  if (interface.size() >= sizeof request.ifr_name) return false;
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  const Descriptor socket_descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket_descriptor.is_open() && ioctl(socket_descriptor.get(), what, &request) == 0;
}

bool ask(const std::string& interface, void* ethtool_command) {
  ifreq request{};
  request.ifr_data = static_cast<char*>(ethtool_command);
  return ask(interface, SIOCETHTOOL, request);
}

// An ethtool command with an array behind it. uint64_t storage, so that it is aligned for any.
template <typename Command>
struct Variable {
  explicit Variable(std::size_t array_bytes)
      : storage((sizeof(Command) + array_bytes + 7) / 8, 0), command(new (storage.data()) Command) {
    std::memset(storage.data(), 0, storage.size() * 8);
  }
  std::vector<std::uint64_t> storage;
  Command* command;
};

std::uint32_t feature_count(const std::string& interface) {
  Variable<ethtool_sset_info> info(sizeof(std::uint32_t));
  info.command->cmd = ETHTOOL_GSSET_INFO;
  info.command->sset_mask = 1ULL << ETH_SS_FEATURES;
  if (!ask(interface, info.command) || info.command->sset_mask == 0) return 0;
  return info.command->data[0];
}

std::optional<std::uint32_t> feature_index(const std::string& interface, std::uint32_t count,
                                           std::string_view feature) {
  Variable<ethtool_gstrings> names(std::size_t{count} * ETH_GSTRING_LEN);
  names.command->cmd = ETHTOOL_GSTRINGS;
  names.command->string_set = ETH_SS_FEATURES;
  names.command->len = count;
  if (!ask(interface, names.command)) return std::nullopt;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* name = static_cast<const char*>(static_cast<const void*>(names.command->data)) +
                       std::size_t{i} * ETH_GSTRING_LEN;
    if (feature == std::string_view(name, strnlen(name, ETH_GSTRING_LEN))) return i;
  }
  return std::nullopt;
}

}  // namespace

unsigned interface_flags(const std::string& interface) {
  ifreq request{};
  if (!ask(interface, SIOCGIFFLAGS, request)) return 0;
  return static_cast<unsigned short>(request.ifr_flags);
}

std::string driver_of(const std::string& interface) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  return ask(interface, &driver) ? driver.driver : "";
}

std::uint32_t link_speed(const std::string& interface) {
  // The driver answers with the negative number of words it wants for its link mode masks.
  constexpr std::size_t kMaskWordsMax = 127;
  Variable<ethtool_link_settings> settings(3 * kMaskWordsMax * sizeof(std::uint32_t));
  settings.command->cmd = ETHTOOL_GLINKSETTINGS;
  if (!ask(interface, settings.command)) return 0;
  settings.command->cmd = ETHTOOL_GLINKSETTINGS;
  settings.command->link_mode_masks_nwords =
      static_cast<std::int8_t>(-settings.command->link_mode_masks_nwords);
  if (!ask(interface, settings.command)) return 0;
  const std::uint32_t speed = settings.command->speed;
  return speed == static_cast<std::uint32_t>(SPEED_UNKNOWN) ? 0 : speed;
}

std::optional<bool> is_offload_on(const std::string& interface, std::string_view feature) {
  const std::uint32_t count = feature_count(interface);
  const std::optional<std::uint32_t> index = feature_index(interface, count, feature);
  if (!index) return std::nullopt;
  const std::uint32_t blocks = (count + 31) / 32;
  Variable<ethtool_gfeatures> features(blocks * sizeof(ethtool_get_features_block));
  features.command->cmd = ETHTOOL_GFEATURES;
  features.command->size = blocks;
  if (!ask(interface, features.command)) return std::nullopt;
  return (features.command->features[*index / 32].active >> (*index % 32) & 1) != 0;
}

}  // namespace uroce::posix
