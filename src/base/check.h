// SPDX-License-Identifier: BSD-2-Clause
// UROCE_CHECK(condition): our own fault if it does not hold; prints where, and aborts. Never for
// what a peer, the network, a file or the application can cause.
#pragma once

namespace uroce {

// Set once by the engine (prints, dumps, aborts); without it a failed check traps.
using CheckHook = void (*)(const char* condition, const char* file, int line);
extern constinit CheckHook check_hook;

[[noreturn, gnu::cold]] void check_failed(const char* condition, const char* file, int line);

}  // namespace uroce

#define UROCE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::uroce::check_failed(#condition, __FILE__, __LINE__))
