// SPDX-License-Identifier: BSD-2-Clause
// man rdma_set_option.
#include <cerrno>
#include <cstring>
#include <utility>

#include "cma/agent.h"

namespace uroce::cma {
namespace {

template <typename Value>
std::optional<Value> read(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

constexpr std::uint8_t kAckTimeoutMax = 31;

int set_type_of_service(Id& id, std::span<const std::byte> value) {
  const auto tos = read<std::uint8_t>(value);
  if (!tos) return EINVAL;
  id.type_of_service = id.route.traffic_class = *tos;
  return 0;
}

// Whoever shares a port may have to go on doing so. Of a port that is listened to, one listens.
std::optional<bool> reuse_address(const Id& id, std::span<const std::byte> value) {
  const auto reuse = read<int>(value);
  const bool is_allowed =
      id.state == IdState::kIdle || (id.state != IdState::kListening && reuse != 0);
  return reuse && is_allowed ? std::optional(*reuse != 0) : std::nullopt;
}

std::optional<bool> only_own_family(const Id& id, std::span<const std::byte> value) {
  const auto only = read<int>(value);
  const bool is_allowed = id.state == IdState::kIdle || id.state == IdState::kBound;
  return only && is_allowed ? std::optional(*only != 0) : std::nullopt;
}

int set_ack_timeout(Id& id, std::span<const std::byte> value) {
  const auto timeout = read<std::uint8_t>(value);
  const bool has_timer = id.qp_type == IBV_QPT_RC || id.qp_type == IBV_QPT_XRC_SEND;
  if (!timeout || *timeout > kAckTimeoutMax || !has_timer) return EINVAL;
  id.ack_timeout = *timeout;
  return 0;
}

}  // namespace

// What other processes go by, too: for them and for us, or not at all. No value is none allowed.
template <typename Option>
int Agent::set_for_all(Id& id, Option Id::*option, std::optional<bool> value) {
  if (!value) return EINVAL;
  const Option former = std::exchange(id.*option, *value);
  const int error = tell_of_claim(id);
  if (error != 0) id.*option = former;
  return error;
}

int Agent::set_option(Id& id, std::uint32_t level, std::uint32_t name,
                      std::span<const std::byte> value) {
  if (level == RDMA_OPTION_IB) {
    // A path record from elsewhere stands for the route; ours has nothing that it could change.
    if (name != RDMA_OPTION_IB_PATH || value.empty() ||
        value.size() % sizeof(ib_path_rec_data) != 0) {
      return name == RDMA_OPTION_IB_PATH ? EINVAL : ENOSYS;
    }
    return resolve_route(id);
  }
  if (level != RDMA_OPTION_ID) return ENOSYS;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      return set_type_of_service(id, value);
    case RDMA_OPTION_ID_REUSEADDR:
      return set_for_all(id, &Id::reuses_address, reuse_address(id, value));
    case RDMA_OPTION_ID_AFONLY:
      return set_for_all(id, &Id::only_own_family, only_own_family(id, value));
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return set_ack_timeout(id, value);
    default:
      return ENOSYS;
  }
}

}  // namespace uroce::cma
