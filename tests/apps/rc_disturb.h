// SPDX-License-Identifier: BSD-2-Clause
// What programs do to themselves while RDMA goes on: pin, block signals, live with storms of them,
// fork in several ways, exec.
#ifndef UROCE_TESTS_APPS_RC_DISTURB_H
#define UROCE_TESTS_APPS_RC_DISTURB_H

// Before the device is opened. `name` may be NULL.
void disturb_before_open(const char* name);
// With a context open and a QP that has not been connected; "exec" does not return, and starts the
// program again without it. "child-stays" leaves a child that does nothing.
void disturb_after_open(const char* name, char** arguments);
// Between two messages.
void disturb_between(const char* name, int round);
// What must still hold at the end: the handler ran, the mask and the affinity are as they were set.
void check_disturbance(const char* name);

#endif
