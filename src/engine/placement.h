// SPDX-License-Identifier: BSD-2-Clause
// Which link carries a connection: shared memory if the destination is an address of this host and
// a process here owns the QP and uses shared memory too; else the uplink. Decided once, when the
// path is opened, by each end for itself. Both come to the same link, because each looks at the
// other: a QP takes packets from its own link only.
#pragma once

#include <array>
#include <memory>

#include "transport/hca.h"
#include "uroce/datapath.h"

namespace uroce::engine {

using Links = std::array<std::unique_ptr<Datapath>, transport::kLinkCount>;

// Opens `path` and sets `link`. 0, or an errno: ENETUNREACH where no link leads there, else what
// the link said.
[[nodiscard]] int open_on_some_link(const Links& links, bool destination_is_own, Path& path,
                                    Qpn destination, std::uint8_t& link);

// Which link multicast leaves by and comes from: the uplink, which also brings what this host
// sends, or shared memory where there is none.
[[nodiscard]] Datapath& group_link(const Links& links);

}  // namespace uroce::engine
