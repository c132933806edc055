// SPDX-License-Identifier: BSD-2-Clause
// For tests that fork beside a helper thread.
#pragma once

namespace uroce::test {

// gcc 12's sanitizers fork with the locks of their allocators as they are, and a thread that is
// just starting may hold one for good in the child: below them this waits until each helper thread
// of the process has gone to sleep, 10 s at most, and fails the test then. Without them it does
// nothing.
void wait_for_quiet_helpers();

}  // namespace uroce::test
