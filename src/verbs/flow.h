// SPDX-License-Identifier: BSD-2-Clause
// A flow of the application (man ibv_create_flow): from an attribute list to an entry of the
// device's table of flows, and its queue pair is in use as long as it is there.
#pragma once

#include <infiniband/verbs.h>

#include "steering/flow_table.h"
#include "verbs/made.h"

namespace uroce::verbs {

struct Qp;

struct Flow final : Made {
  explicit Flow(Qp& target);

  Qp& qp;
  steering::Flow rule;

 private:
  void leave_device() override;
};

// Null, and errno: EPERM without CAP_NET_RAW; EINVAL or EOPNOTSUPP for what cannot be (see
// to_pattern); ENOMEM.
[[nodiscard]] Flow* create_flow(Qp& qp, const ibv_flow_attr& attributes);
void destroy_flow(Flow* flow);

}  // namespace uroce::verbs
