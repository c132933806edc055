// SPDX-License-Identifier: BSD-2-Clause
// Asks the scheduler to run the calling thread soon and briefly (sched_setattr(2), `sched_runtime`
// of SCHED_OTHER; Linux 6.12, ignored before). The helper thread works for some microseconds when
// something arrives, often on the processor that the application spins on; with the slice that all
// threads have, the scheduler lets it wait for a tick every so often: 3.5 ms, measured.
//
// Needs no privilege, takes nothing from others (a shorter slice is no larger share), and changes
// nothing for a thread that is not SCHED_OTHER.
#pragma once

namespace uroce::engine {

void ask_for_short_slices();

}  // namespace uroce::engine
