// SPDX-License-Identifier: BSD-2-Clause
#include "host/runtime_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "host/files.h"

namespace uroce::host {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// Empty when `path` is a directory that is ours and that nobody else can enter.
std::string trouble_with(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return "cannot be looked at";
  if (S_ISLNK(status.st_mode)) return "is a symbolic link";
  if (!S_ISDIR(status.st_mode)) return "is not a directory";
  if (status.st_uid != geteuid()) return "belongs to user " + std::to_string(status.st_uid);
  // Not closed by us: whoever names /proc or /tmp does not want to lose it.
  if ((status.st_mode & kOthers) != 0) return "can be entered by others";
  return {};
}

Result<Done> make_private(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error(path, "the runtime directory cannot be made");
  }
  const std::string trouble = trouble_with(path);
  if (trouble.empty()) return Done{};
  return Error{EPERM,
               path + ": not usable as the runtime directory: it " + trouble +
                   "; set UROCE_RUNTIME_DIR to a directory of your own that nobody else can enter"};
}

bool is_usable_base(const std::string& path) {
  struct stat status {};
  return path.starts_with('/') && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && access(path.c_str(), W_OK | X_OK) == 0;
}

std::string choose_path(const Environment& environment) {
  const std::string_view named = variable(environment, "UROCE_RUNTIME_DIR");
  if (!named.empty()) return std::string(named);
  const std::string user = std::to_string(geteuid());
  for (const std::string& base :
       {std::string(variable(environment, "XDG_RUNTIME_DIR")), "/run/user/" + user}) {
    if (is_usable_base(base)) return base + "/uroce";
  }
  return "/tmp/uroce-" + user;
}

}  // namespace

Result<RuntimeDirectory> open_runtime_directory(const Environment& environment,
                                                std::uint64_t network_namespace) {
  RuntimeDirectory directory;
  directory.path = choose_path(environment);
  if (!directory.path.starts_with('/')) {
    return Error{EINVAL, "UROCE_RUNTIME_DIR=" + directory.path + ": expected an absolute path"};
  }
  directory.network_path = directory.path + "/netns-" + std::to_string(network_namespace);
  for (const std::string& path : {directory.path, directory.network_path}) {
    if (Result<Done> made = make_private(path); !made) return made.error();
  }
  return directory;
}

}  // namespace uroce::host
