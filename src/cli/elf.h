// SPDX-License-Identifier: BSD-2-Clause
// As much of an ELF file as decides whether a preloaded library gets into it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace uroce::cli {

struct ElfFacts {
  bool is_dynamic = false;      // has a program interpreter, or is a library
  bool is_our_machine = false;  // 64 bits and the processor that we were built for
  std::vector<std::string> needed;
};

// Nothing when the file is no ELF file (a script) or cannot be read.
[[nodiscard]] std::optional<ElfFacts> read_elf(const std::string& path);

// "libasan.so.8", where the file was linked with a sanitizer's shared runtime; else empty. Such a
// runtime insists on coming first in LD_PRELOAD.
[[nodiscard]] std::string sanitizer_runtime(const ElfFacts& facts);

}  // namespace uroce::cli
