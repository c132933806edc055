// SPDX-License-Identifier: BSD-2-Clause
// man rdma_join_multicast. Joining gives the program what it needs to reach the group; that the
// host takes part in it follows from ibv_attach_mcast, which librdmacm calls. A group may be joined
// again: each time is a membership of its own.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cma/agent.h"

namespace uroce::cma {

int Agent::join(Id& id, std::uint64_t uid, const Address& group, std::uint32_t& number) {
  if (!id.is_datagram() || id.device == nullptr || id.state == IdState::kListening ||
      id.state == IdState::kRemoved) {
    return EINVAL;
  }
  if (id.is_infiniband) return ENODEV;
  if (!group.gid.is_multicast()) return EINVAL;
  auto membership = std::make_unique<Membership>();
  membership->number = number = ++last_number_;
  membership->uid = uid;
  membership->group = group.gid;
  if (id.qkey == 0) id.qkey = kDatagramQKey;

  PendingEvent event = event_for(id, EventType::kMulticastJoin, 0);
  event.answer.uid = uid;
  event.answer.id = number;
  event.membership = membership.get();
  rdma_ucm_ud_param& parameters = event.answer.param.ud;
  fill_parameters(id, {}, event.answer);
  std::memcpy(parameters.ah_attr.grh.dgid, group.gid.bytes.data(),
              sizeof parameters.ah_attr.grh.dgid);
  parameters.qp_num = kMulticastQpn.value;
  members_.emplace(number, &id);
  id.memberships.push_back(std::move(membership));
  id.file->push(event);
  return 0;
}

std::optional<std::uint32_t> Agent::leave(const EventFile& file, std::uint32_t number) {
  const auto found = members_.find(number);
  if (found == members_.end() || found->second->file != &file) return std::nullopt;
  Id& id = *found->second;
  const auto membership = std::ranges::find_if(
      id.memberships, [number](const auto& one) { return one->number == number; });
  id.file->take_out(
      [&](const PendingEvent& event) { return event.membership == membership->get(); }, nullptr);
  const std::uint32_t reported = (*membership)->events_reported;
  id.memberships.erase(membership);
  members_.erase(found);
  return reported;
}

}  // namespace uroce::cma
