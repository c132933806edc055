// SPDX-License-Identifier: BSD-2-Clause
#include "tree.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "descriptor_path.h"
#include "interposed.h"
#include "node.h"

namespace uroce::kernel {

char tree_path[PATH_MAX / 2];

namespace {

constexpr std::string_view kRoots[] = {
    "/sys/class/infiniband",
    "/sys/class/infiniband_verbs",
    "/sys/class/misc/rdma_cm",
    kNodeFolder,
};

bool is_at_or_below(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool is_answered(std::string_view path) {
  bool answered = false;
  for (const std::string_view root : kRoots) answered |= is_at_or_below(path, root);
  return answered;
}

// An absolute path without empty, `.` and `..` components, built up piece by piece.
class PlainPath {
 public:
  // False if the result is too long for a path.
  bool append(std::string_view text) {
    while (!text.empty()) {
      const std::size_t bytes = std::min(text.find('/'), text.size());
      if (!append_component({text.data(), bytes})) return false;
      text.remove_prefix(std::min(bytes + 1, text.size()));
    }
    return true;
  }

  std::string_view view() const { return {text_, bytes_}; }
  // Some `..` was taken at or below a root, so the text may lead through what only the tree has.
  bool goes_up_from_root() const { return goes_up_from_root_; }

 private:
  bool append_component(std::string_view component) {
    if (component.empty() || component == ".") return true;
    if (component == "..") {
      go_up();
      return true;
    }
    if (bytes_ + 1 + component.size() >= sizeof text_) return false;
    text_[bytes_++] = '/';
    memcpy(text_ + bytes_, component.data(), component.size());
    bytes_ += component.size();
    return true;
  }

  void go_up() {
    goes_up_from_root_ |= is_answered(view());
    while (bytes_ > 0 && text_[--bytes_] != '/') {
    }
  }

  char text_[PATH_MAX];
  std::size_t bytes_ = 0;
  bool goes_up_from_root_ = false;
};

// Where a relative path starts. The kernel's own getcwd, since libc's may allocate.
bool append_folder(int folder, PlainPath& path) {
  char text[PATH_MAX];
  ssize_t bytes;
  if (folder == AT_FDCWD) {
    bytes = syscall(SYS_getcwd, text, sizeof text) - 1;
  } else {
    char link[kDescriptorPathBytes];
    write_descriptor_path(folder, link);
    bytes = next().readlink(link, text, sizeof text);
  }
  return bytes > 0 && text[0] == '/' && path.append({text, static_cast<std::size_t>(bytes)});
}

bool join(std::string_view first, std::string_view second, char (&place)[PATH_MAX]) {
  if (first.size() + second.size() >= sizeof place) return false;
  memcpy(place, first.data(), first.size());
  memcpy(place + first.size(), second.data(), second.size());
  place[first.size() + second.size()] = '\0';
  return true;
}

bool is_in_tree(std::string_view path, char (&place)[PATH_MAX], Stat& status) {
  return join(tree_path, path, place) && next().lstat(place, &status) == 0;
}

// `text` is what the program wrote and `plain` the same in full and without `..`. Where both lead
// to something in the tree the text is right: after a symbolic link `..` is not the folder before.
bool find_plain(std::string_view text, const PlainPath& plain, Want want, char (&place)[PATH_MAX]) {
  std::string_view path = plain.view();
  if (is_at_or_below(path, tree_path)) path.remove_prefix(strlen(tree_path));
  if (!is_answered(path))
    return plain.goes_up_from_root() && join(path.empty() ? "/" : path, "", place);

  Stat status;
  const bool as_written =
      want != Want::kPlainPlace && text.starts_with('/') && is_in_tree(text, place, status);
  if (!as_written && !is_in_tree(path, place, status)) return false;

  if (!is_in_node_folder(path) || !S_ISREG(status.st_mode)) return true;
  const NodeKind* kind = find_node_kind(path);
  if (kind == nullptr) return false;
  node_was_seen.store(true, std::memory_order_relaxed);
  return want != Want::kContent || join(kind->stand_in, "", place);
}

bool starts_with(const char* text, const char* word) {
  while (*word != '\0' && *text == *word) {
    ++text;
    ++word;
  }
  return *word == '\0';
}

}  // namespace

bool mentions_rdma(const char* path) {
  if (*path == '/') {
    const char* first = path;
    while (*first == '/') ++first;
    if (*first != 's' && *first != 'd' && *first != '.') return false;  // neither /sys nor /dev
  }
  for (; *path != '\0'; ++path) {
    const char c = *path;
    if (c == 'i' && starts_with(path, "infiniband")) return true;
    if (c == 'u' && starts_with(path, "uverbs")) return true;
    if (c == 'r' && starts_with(path, "rdma_cm")) return true;
  }
  return false;
}

// Reads the environment without getenv, which programs (bash is one) replace by their own. The
// value is copied: programs that set their process title write over the environment's memory.
void find_tree() {
  constexpr std::string_view kName = "UROCE_TREE=";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view value(*entry);
    if (!value.starts_with(kName)) continue;
    value.remove_prefix(kName.size());
    while (value.ends_with('/')) value.remove_suffix(1);
    if (!value.starts_with('/') || value.size() >= sizeof tree_path) return;
    memcpy(tree_path, value.data(), value.size());
    return;
  }
}

bool find_in_tree(int folder, const char* path, Want want, char (&place)[PATH_MAX]) {
  const int saved_errno = errno;
  const std::string_view text(path);
  PlainPath plain;
  const bool complete =
      (text.starts_with('/') || append_folder(folder, plain)) && plain.append(text);
  const bool found = complete && find_plain(text, plain, want, place);
  errno = saved_errno;
  return found;
}

}  // namespace uroce::kernel
