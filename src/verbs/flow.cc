// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/flow.h"

#include <cerrno>
#include <memory>
#include <new>

#include "posix/capability.h"
#include "verbs/failed.h"
#include "verbs/flow_pattern.h"
#include "verbs/number_of.h"
#include "verbs/qp.h"

namespace uroce::verbs {
namespace {

using engine::Engine;
using steering::FlowKind;

constexpr unsigned kSpecsMax = 10;  // as the kernel

static_assert(static_cast<int>(FlowKind::kRule) == IBV_FLOW_ATTR_NORMAL);
static_assert(static_cast<int>(FlowKind::kAllDefault) == IBV_FLOW_ATTR_ALL_DEFAULT);
static_assert(static_cast<int>(FlowKind::kMulticastDefault) == IBV_FLOW_ATTR_MC_DEFAULT);
static_assert(static_cast<int>(FlowKind::kSniffer) == IBV_FLOW_ATTR_SNIFFER);

int check_flags(const ibv_flow_attr& a) {
  constexpr std::uint32_t kKnown = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;
  if ((a.flags & ~kKnown) != 0) return EINVAL;
  if ((a.flags & IBV_FLOW_ATTR_FLAGS_EGRESS) != 0) return EOPNOTSUPP;
  const bool lets_pass = (a.flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) != 0;
  return lets_pass && number_of(a.type) != IBV_FLOW_ATTR_NORMAL ? EINVAL : 0;
}

int check(const Qp& qp, const ibv_flow_attr& a) {
  if (a.comp_mask != 0) return EINVAL;
  if (!posix::has_capability(CAP_NET_RAW)) return EPERM;
  if (const int error = check_flags(a); error != 0) return error;
  if (number_of(a.type) > IBV_FLOW_ATTR_SNIFFER || a.port != 1 || a.num_of_specs > kSpecsMax)
    return EINVAL;
  // The other kinds say all by themselves.
  if (a.type != IBV_FLOW_ATTR_NORMAL && a.num_of_specs != 0) return EINVAL;
  if (qp.service == transport::Service::kRawPacket) return 0;
  // For datagrams the manual page allows it; theirs come by numbers here.
  return qp.service == transport::Service::kUd ? EOPNOTSUPP : EINVAL;
}

}  // namespace

Flow::Flow(Qp& target) : Made(Kind::kFlow, target.context), qp(target) {}

Flow* create_flow(Qp& qp, const ibv_flow_attr& attributes) {
  Engine& engine = qp.context.engine();
  if (engine.is_abandoned()) return failed(EIO);
  if (const int error = check(qp, attributes); error != 0) return failed(error);
  std::unique_ptr<Flow> flow(new (std::nothrow) Flow(qp));
  if (flow == nullptr) return failed(ENOMEM);
  steering::Flow& rule = flow->rule;
  rule.kind = static_cast<FlowKind>(attributes.type);
  rule.traps = (attributes.flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) == 0;
  rule.priority = attributes.priority;
  rule.target = &qp.core;
  if (const int error = to_pattern(attributes, rule.pattern); error != 0) return failed(error);
  if (!engine.quotas().flows.take()) return failed(ENOMEM);
  qp.flows.fetch_add(1, std::memory_order_relaxed);
  {
    Engine::Section section(engine);
    section.insert(rule);
  }
  flow->begin();
  return flow.release();
}

void Flow::leave_device() {
  Engine& engine = context.engine();
  {
    Engine::Section section(engine);
    section.erase(rule);
  }
  engine.quotas().flows.give_back();
}

void destroy_flow(Flow* flow) {
  const std::unique_ptr<Flow> destroyed(flow);
  flow->end();
  flow->qp.flows.fetch_sub(1, std::memory_order_release);
}

}  // namespace uroce::verbs
