// SPDX-License-Identifier: BSD-2-Clause
#include "steering/flow_table.h"

namespace uroce::steering {

void FlowTable::insert(Flow& flow) {
  Flows& flows = of(flow.kind);
  // From behind: rules mostly come with one priority, or in its order.
  Flow* before = flows.back();
  while (before != nullptr && before->priority > flow.priority) before = flows.previous(*before);
  flows.insert_after(before, flow);
  ++count_;
}

void FlowTable::erase(Flow& flow) {
  flow.hook.unlink();
  --count_;
}

}  // namespace uroce::steering
