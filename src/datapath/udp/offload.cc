// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/udp/offload.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "posix/descriptor.h"

namespace uroce::datapath::udp {
namespace {

// An ethtool request: a struct that begins with the command, and room behind it.
class EthtoolRequest {
 public:
  EthtoolRequest(int socket, const std::string& interface) : socket_(socket) {
    interface.copy(request_.ifr_name, IFNAMSIZ - 1);
  }

  bool ask(void* data) {
    request_.ifr_data = static_cast<char*>(data);
    return ioctl(socket_, SIOCETHTOOL, &request_) == 0;
  }

 private:
  int socket_;
  ifreq request_{};
};

bool is_loopback(int socket, const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_LOOPBACK) != 0;
}

// The kernel's words for its features, 32 bytes each; the index is the bit.
std::vector<char> feature_names(EthtoolRequest& ethtool) {
  std::array<std::uint32_t, sizeof(ethtool_sset_info) / 4 + 1> sets{};  // and one count
  const std::uint64_t wanted = std::uint64_t{1} << ETH_SS_FEATURES;
  sets[0] = ETHTOOL_GSSET_INFO;
  std::memcpy(&sets[offsetof(ethtool_sset_info, sset_mask) / 4], &wanted, sizeof wanted);
  if (!ethtool.ask(sets.data()) || sets.back() == 0) return {};
  const std::array<std::uint32_t, 3> head = {ETHTOOL_GSTRINGS, ETH_SS_FEATURES, sets.back()};
  std::vector<char> answer(sizeof head + std::size_t{sets.back()} * ETH_GSTRING_LEN);
  std::memcpy(answer.data(), head.data(), sizeof head);
  if (!ethtool.ask(answer.data())) return {};
  answer.erase(answer.begin(), answer.begin() + sizeof head);
  return answer;
}

bool is_active(EthtoolRequest& ethtool, std::size_t bit, std::size_t feature_count) {
  const std::size_t blocks = (feature_count + 31) / 32;
  std::vector<std::uint32_t> answer(2 + blocks * 4);  // ethtool_gfeatures and its blocks
  answer[0] = ETHTOOL_GFEATURES;
  answer[1] = static_cast<std::uint32_t>(blocks);
  if (!ethtool.ask(answer.data())) return true;
  constexpr std::size_t kActive = offsetof(ethtool_get_features_block, active) / 4;
  return (answer[2 + bit / 32 * 4 + kActive] >> (bit % 32) & 1) != 0;
}

bool cuts_by_itself(EthtoolRequest& ethtool) {
  const std::vector<char> names = feature_names(ethtool);
  const std::size_t count = names.size() / ETH_GSTRING_LEN;
  for (std::size_t bit = 0; bit < count; ++bit) {
    const char* name = names.data() + bit * ETH_GSTRING_LEN;
    if (std::string_view(name, strnlen(name, ETH_GSTRING_LEN)) != "tx-udp-segmentation") continue;
    return is_active(ethtool, bit, count);
  }
  return true;
}

}  // namespace

bool kernel_cuts_trains(const std::string& interface) {
  const posix::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (is_loopback(socket.get(), interface)) return true;
  EthtoolRequest ethtool(socket.get(), interface);
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (ethtool.ask(&driver) && std::string_view(driver.driver) == "veth") return true;
  return !cuts_by_itself(ethtool);
}

}  // namespace uroce::datapath::udp
