// SPDX-License-Identifier: BSD-2-Clause
// All that a provider needs: the public objects are its own (their layout belongs to rdma-core's
// private ABI), and each holds a pointer to ours, which these headers make, use and free. Any
// thread may call any function; what it waits for is said at its declaration.
#pragma once

#include "verbs/advise_mr.h"
#include "verbs/ah.h"
#include "verbs/context.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/dm.h"
#include "verbs/flow.h"
#include "verbs/limits.h"
#include "verbs/mr.h"
#include "verbs/multicast.h"
#include "verbs/mw.h"
#include "verbs/pd.h"
#include "verbs/qp.h"
#include "verbs/rwq_table.h"
#include "verbs/srq.h"
#include "verbs/wq.h"
#include "verbs/xrcd.h"
