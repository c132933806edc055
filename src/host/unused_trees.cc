// SPDX-License-Identifier: BSD-2-Clause
#include "host/unused_trees.h"

#include <sys/stat.h>

#include <cstdio>
#include <set>
#include <string_view>
#include <vector>

#include "host/addresses.h"
#include "host/device_tree.h"
#include "host/files.h"

namespace uroce::host {
namespace {

constexpr std::string_view kTreePrefix = "tree-";
constexpr std::string_view kGoing = ".old";

bool is_old(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && time(nullptr) - status.st_mtime >= kKeptFor;
}

// The trees that programs were started with.
std::set<std::string> trees_in_environments(const std::string& processes) {
  constexpr std::string_view kName = "UROCE_TREE=";
  std::set<std::string> trees;
  for (const std::string& process : list_directory(processes)) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = read_file(processes + "/" + process + "/environ").value_or("");
    for (const std::string& entry : split(text, '\0')) {
      if (entry.starts_with(kName)) trees.insert(entry.substr(kName.size()));
    }
  }
  return trees;
}

std::vector<std::string> old_trees(const std::string& folder) {
  std::vector<std::string> trees;
  for (const std::string& name : list_directory(folder)) {
    const std::string tree = folder + "/" + name;
    if (name.starts_with(kTreePrefix) && is_old(in_use_file(tree))) trees.push_back(tree);
  }
  return trees;
}

// False while somebody holds it.
bool put_aside(const std::string& tree) {
  const Result<posix::Descriptor> lock = try_lock_file(in_use_file(tree), LockKind::kExclusive);
  const std::string aside = tree + std::string(kGoing);
  return lock && lock->is_open() && rename(tree.c_str(), aside.c_str()) == 0;
}

void remove_from(const std::string& folder, const std::string& processes) {
  const Result<posix::Descriptor> lock =
      try_lock_file(trees_lock_file(folder), LockKind::kExclusive);
  if (!lock || !lock->is_open()) return;
  const std::vector<std::string> candidates = old_trees(folder);
  if (candidates.empty()) return;
  const std::set<std::string> wanted = trees_in_environments(processes);
  for (const std::string& tree : candidates) {
    if (wanted.contains(tree)) continue;
    // One that is aside already is what a crash left.
    if (tree.ends_with(kGoing)) {
      remove_tree(tree);
    } else if (put_aside(tree)) {
      remove_tree(tree + std::string(kGoing));
    }
  }
}

}  // namespace

void remove_unused_trees(const RuntimeDirectory& directory, const std::string& processes) {
  for (const std::string& name : list_directory(directory.path)) {
    const std::string folder = directory.path + "/" + name;
    if (name.starts_with("netns-") && !old_trees(folder).empty()) remove_from(folder, processes);
  }
}

}  // namespace uroce::host
