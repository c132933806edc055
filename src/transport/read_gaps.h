// SPDX-License-Identifier: BSD-2-Clause
// READ responses behind one that was lost. The standard's requester drops them and asks for
// everything again; but a READ may be asked for again in parts (C9-110), and where its bytes go
// nobody looks before it completes. So they are placed as they come, and only the holes are asked
// for again: while Recovery::is_reading, the QP's holes, in the order of their PSNs, are all that
// is missing before `read_frontier`.
//
// Linux's rxe forgets where a READ began when it is asked for a part, and serves nothing before
// that part again. So it is the oldest hole only that is asked for, until a peer answers the middle
// of a READ by a packet that begins one, FIRST or ONLY, which rxe does not do.
//
// What comes of requests behind these READs waits, and is no reason to ask for any of it again.
//
// That what was asked for again was lost as well is told by what comes that was asked for later, or
// by the early timer (recovery.h).
#pragma once

#include <cstdint>

#include "transport/hca_state.h"
#include "wire/parse.h"

namespace uroce::transport {

// The READ at `psn`, with nothing but READs before it that are unfinished; null: it is no such.
[[nodiscard, gnu::cold]] const SendWqe* read_at(const Qp& qp, Psn psn);

// From here on what comes behind the oldest packet is kept.
[[gnu::cold]] void begin_reading(Qp& qp);

// Of so many packets from `first` on, how many are missing from the first on, and can be noted.
[[nodiscard, gnu::cold]] std::uint32_t missing_packets(HcaState& hca, Qp& qp, Psn first,
                                                       std::uint32_t packets);
// They have come, and are placed.
[[gnu::cold]] void note_read(HcaState& hca, Qp& qp, const wire::PacketView& view,
                             std::uint32_t packets);

// The first that has not come.
[[nodiscard, gnu::cold]] Psn oldest_missing(const Qp& qp);

// The oldest hole is asked for once more.
[[gnu::cold]] void ask_again(HcaState& hca, Qp& qp);

}  // namespace uroce::transport
