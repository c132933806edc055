// SPDX-License-Identifier: BSD-2-Clause
// What the tests of the preloaded library share: a tree like the one that `uroce run` prepares,
// and a way to start programs with the library in front of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace uroce::kernel {

// A folder of its own with one device, uroce97 on uverbs97: numbers that no host has. Removed at
// the end.
class Tree {
 public:
  Tree();
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& file, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

struct Outcome {
  int exit_status = -1;  // -1: a signal ended it
  std::string output;    // both streams, without the last line end
};

using Arguments = std::vector<std::string>;

// Runs a program, found in PATH, with exactly this environment and PATH.
Outcome run(const Arguments& arguments, const Arguments& environment);

// The environment that `uroce run` makes: the library preloaded, UROCE_TREE set.
Arguments preloaded(const Tree& tree);
// The library preloaded, without a tree.
Arguments preloaded();

}  // namespace uroce::kernel
