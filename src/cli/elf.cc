// SPDX-License-Identifier: BSD-2-Clause
#include "cli/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "host/files.h"
#include "posix/descriptor.h"

namespace uroce::cli {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;
#endif

constexpr std::size_t kProgramHeadersMax = 64;
constexpr std::size_t kDynamicMax = 1024;
constexpr std::size_t kNameBytesMax = 256;

// Every length in the file is the file's word: nothing is read beyond what a read returned.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  template <typename T>
  std::vector<T> table(std::uint64_t offset, std::size_t count) const {
    std::vector<T> result(count);
    const ssize_t n =
        pread(file_.get(), result.data(), count * sizeof(T), static_cast<off_t>(offset));
    result.resize(n < 0 ? 0 : static_cast<std::size_t>(n) / sizeof(T));
    return result;
  }

  std::string name_at(std::uint64_t offset) const {
    const std::vector<char> bytes = table<char>(offset, kNameBytesMax);
    return std::string(bytes.data(), strnlen(bytes.data(), bytes.size()));
  }

 private:
  posix::Descriptor file_;
};

// Addresses in the dynamic section are of the loaded image.
std::uint64_t file_offset(std::span<const Elf64_Phdr> segments, std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return 0;
}

void read_needed(const ElfFile& file, std::span<const Elf64_Phdr> segments,
                 const Elf64_Phdr& dynamic, ElfFacts& facts) {
  const std::size_t count = std::min(dynamic.p_filesz / sizeof(Elf64_Dyn), kDynamicMax);
  const std::vector<Elf64_Dyn> entries = file.table<Elf64_Dyn>(dynamic.p_offset, count);
  std::uint64_t names = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) names = file_offset(segments, entry.d_un.d_ptr);
  }
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) facts.needed.push_back(file.name_at(names + entry.d_un.d_val));
  }
}

}  // namespace

std::optional<ElfFacts> read_elf(const std::string& path) {
  const ElfFile file(path);
  const std::vector<Elf64_Ehdr> headers = file.table<Elf64_Ehdr>(0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) {
    return std::nullopt;
  }
  const Elf64_Ehdr& header = headers[0];
  ElfFacts facts;
  facts.is_our_machine = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine;
  if (!facts.is_our_machine) return facts;
  const std::vector<Elf64_Phdr> segments = file.table<Elf64_Phdr>(
      header.e_phoff, std::min<std::size_t>(header.e_phnum, kProgramHeadersMax));
  for (const Elf64_Phdr& segment : segments) {
    // A static position-independent program has a dynamic section too, but no interpreter.
    if (segment.p_type == PT_INTERP) facts.is_dynamic = true;
    if (segment.p_type == PT_DYNAMIC) read_needed(file, segments, segment, facts);
  }
  facts.is_dynamic = facts.is_dynamic || !facts.needed.empty();
  return facts;
}

std::string sanitizer_runtime(const ElfFacts& facts) {
  constexpr std::array<std::string_view, 3> kRuntimes = {"libasan.so", "libtsan.so",
                                                         "libclang_rt.asan"};
  for (const std::string& needed : facts.needed) {
    for (const std::string_view runtime : kRuntimes) {
      if (needed.starts_with(runtime)) return needed;
    }
  }
  return {};
}

}  // namespace uroce::cli
