// SPDX-License-Identifier: BSD-2-Clause
// What a device and its port say of themselves. Every number is one that is kept.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "verbs/context.h"

namespace uroce::verbs {

[[nodiscard]] int query_device_ex(const Context& context, ibv_device_attr_ex& attributes,
                                  std::size_t size);
// ibv_query_rt_values_ex: the clock of completion timestamps.
[[nodiscard]] int query_rt_values(const Context& context, ibv_values_ex& values);
// Enhanced connection establishment (man ibv_set_ece): what two devices of one vendor agree upon
// beyond the standard. Ours has nothing there; librdmacm goes on without. 0, or EINVAL for options
// and for another vendor's language.
void query_ece(ibv_ece& ece);
[[nodiscard]] int set_ece(const ibv_ece& ece);
[[nodiscard]] int query_port(const Context& context, std::uint8_t port, ibv_port_attr& attributes);

}  // namespace uroce::verbs
