// SPDX-License-Identifier: BSD-2-Clause
#include "host/unused_trees.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string_view>
#include <vector>

#include "host/addresses.h"
#include "host/device_tree.h"
#include "host/files.h"

namespace uroce::host {
namespace {

constexpr std::string_view kTreePrefix = "tree-", kFolderPrefix = "netns-";
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
    if (!name.starts_with(kTreePrefix)) continue;
    if (name.ends_with(kGoing) || is_old(in_use_file(tree))) trees.push_back(tree);
  }
  return trees;
}

void remove_by_rename(const std::string& path) {
  const std::string aside = path + std::string(kGoing);
  if (rename(path.c_str(), aside.c_str()) == 0) remove_tree(aside);
}

void remove_unless_held(const std::string& tree) {
  const Result<posix::Descriptor> lock = try_lock_file(in_use_file(tree), LockKind::kExclusive);
  if (lock && lock->is_open()) remove_by_rename(tree);
}

void remove_old_trees(const std::string& folder, const std::string& processes) {
  const std::vector<std::string> candidates = old_trees(folder);
  if (candidates.empty()) return;
  const std::set<std::string> wanted = trees_in_environments(processes);
  for (const std::string& tree : candidates) {
    if (tree.ends_with(kGoing)) {
      remove_tree(tree);  // what a crash left
    } else if (!wanted.contains(tree)) {
      remove_unless_held(tree);
    }
  }
}

bool has_trees(const std::string& folder) {
  const std::vector<std::string> names = list_directory(folder);
  return std::ranges::any_of(names,
                             [](const std::string& name) { return name.starts_with(kTreePrefix); });
}

void remove_from(const std::string& folder, const std::string& processes) {
  const std::string lock_file = trees_lock_file(folder);
  const Result<posix::Descriptor> lock = try_lock_file(lock_file, LockKind::kExclusive);
  if (!lock || !lock->is_open()) return;
  remove_old_trees(folder, processes);
  if (is_old(lock_file) && !has_trees(folder)) remove_by_rename(folder);
}

}  // namespace

void remove_unused_trees(const RuntimeDirectory& directory, const std::string& processes) {
  for (const std::string& name : list_directory(directory.path)) {
    const std::string folder = directory.path + "/" + name;
    if (!name.starts_with(kFolderPrefix)) continue;
    if (name.ends_with(kGoing)) {
      remove_tree(folder);
    } else if (is_old(trees_lock_file(folder)) || !old_trees(folder).empty()) {
      remove_from(folder, processes);
    }
  }
}

}  // namespace uroce::host
