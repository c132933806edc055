// SPDX-License-Identifier: BSD-2-Clause
// Which changes of state ibv_modify_qp may make, and with which attributes (IBTA 11.2.5.2, table of
// QP attributes; the same table the Linux core enforces).
//
//            INIT        RTR         RTS        SQD (RTS <-> SQD)
//   RESET ---------> o ---------> o ---------> o ---------> o
//     ^                                        ^
//     |  from every state                 SQE -+ (UC, UD)
//     +---- ERR <---- from every state
#pragma once

#include <cstdint>

#include "transport/qp_attributes.h"

namespace uroce::transport {

struct StateChange {
  bool is_allowed = false;
  std::uint32_t required = 0;
  std::uint32_t optional = 0;
};

[[nodiscard]] const StateChange& state_change(Service service, QpState from, QpState to);

// 0 or EINVAL: the change, the set of attributes, and the value of each.
[[nodiscard]] int check_modify(Service service, QpState from, const QpAttributes& attributes,
                               std::uint32_t mask);

}  // namespace uroce::transport
