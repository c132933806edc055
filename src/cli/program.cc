// SPDX-License-Identifier: BSD-2-Clause
#include "cli/program.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <vector>

#include "host/addresses.h"

namespace uroce::cli {
namespace {

bool is_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string look_up(const std::string& name, const host::Environment& environment) {
  if (name.find('/') != std::string::npos) return is_file(name) ? name : "";
  std::string_view path = host::variable(environment, "PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  std::string not_executable;
  for (const std::string& directory : host::split(path, ':')) {
    const std::string candidate = directory + "/" + name;
    if (!is_file(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    if (not_executable.empty()) not_executable = candidate;
  }
  return not_executable;
}

}  // namespace

ProgramFacts examine_program(const std::string& name, const host::Environment& environment) {
  ProgramFacts facts;
  facts.name = name;
  facts.path = look_up(name, environment);
  if (facts.path.empty()) return facts;
  facts.is_executable = access(facts.path.c_str(), X_OK) == 0;
  struct stat status {};
  if (stat(facts.path.c_str(), &status) == 0) {
    // Of no effect for somebody who has that user and group already.
    facts.is_setuid = ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
                      ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid());
  }
  // Root gains nothing by file capabilities, and then the loader trusts the environment.
  facts.has_file_capabilities =
      geteuid() != 0 && getxattr(facts.path.c_str(), "security.capability", nullptr, 0) > 0;
  facts.elf = read_elf(facts.path);
  return facts;
}

std::string why_not_preloadable(const ProgramFacts& program) {
  if (program.is_setuid) return "is setuid or setgid";
  if (program.has_file_capabilities) return "has file capabilities";
  if (!program.elf) return {};
  if (!program.elf->is_our_machine) return "is built for another kind of machine than uroce";
  if (!program.elf->is_dynamic) return "is statically linked";
  return {};
}

}  // namespace uroce::cli
