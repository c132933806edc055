// SPDX-License-Identifier: BSD-2-Clause
// What a test has to know of the sanitizer that it runs below.
#pragma once

namespace uroce::test {

// Whatever is measured in rounds takes ten times as long then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace uroce::test
