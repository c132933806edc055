// SPDX-License-Identifier: BSD-2-Clause
// main() of a fuzz target without a fuzzer, with any compiler: gives it every file below the
// folders named, one after another. The last name printed is that of the input that failed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace {

std::vector<std::filesystem::path> files_below(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::filesystem::path& path) {
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::uint8_t> data(text.begin(), text.end());
  (void)LLVMFuzzerTestOneInput(data.data(), data.size());
}

}  // namespace

int main(int count, char** folders) {
  std::size_t replayed = 0;
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::exists(folders[i])) continue;
    for (const auto& path : files_below(folders[i])) {
      replay(path);
      ++replayed;
    }
  }
  std::printf("%zu inputs\n", replayed);
  return replayed == 0 ? 1 : 0;
}
