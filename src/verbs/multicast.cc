// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/multicast.h"

#include <cerrno>
#include <memory>
#include <new>

#include "verbs/qp.h"
#include "verbs/translate.h"

namespace uroce::verbs {
namespace {

using engine::Engine;
using transport::MulticastMember;

// Null: it is not in this group. Under the shard's lock.
MulticastMember* find(Qp& qp, const Gid& group) {
  MulticastMember* member = qp.groups.front();
  while (member != nullptr && member->group != group) member = qp.groups.next(*member);
  return member;
}

}  // namespace

int attach_multicast(Qp& qp, const ibv_gid& group) {
  const Gid gid = to_gid(group);
  if (!gid.is_multicast() || qp.service != transport::Service::kUd) return EINVAL;
  Engine& engine = qp.context.engine();
  if (engine.is_abandoned()) return EIO;
  auto member = std::unique_ptr<MulticastMember>(new (std::nothrow) MulticastMember);
  if (member == nullptr) return ENOMEM;
  member->group = gid;
  member->qp = &qp.core;
  Engine::Section section(engine);
  if (find(qp, gid) != nullptr) return 0;
  if (const int error = section.attach(*member); error != 0) return error;
  qp.groups.push_back(*member.release());
  return 0;
}

int detach_multicast(Qp& qp, const ibv_gid& group) {
  Engine& engine = qp.context.engine();
  if (engine.is_abandoned()) return EIO;
  std::unique_ptr<MulticastMember> member;
  Engine::Section section(engine);
  member.reset(find(qp, to_gid(group)));
  if (member == nullptr) return EINVAL;
  member->qp_hook.unlink();
  section.detach(*member);
  return 0;
}

}  // namespace uroce::verbs
