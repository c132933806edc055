// SPDX-License-Identifier: BSD-2-Clause
#include "cli/installation.h"

#include <unistd.h>

#include <filesystem>

namespace uroce::cli {
namespace {

std::string first_with(const std::vector<std::string>& directories, const std::string& name) {
  for (const std::string& directory : directories) {
    std::string path = directory + "/" + name;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

// Without "..", so that the path can be shown.
std::string prefix_of(const std::string& executable_directory) {
  return std::filesystem::path(executable_directory).parent_path();
}

}  // namespace

std::string executable_directory() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string provider_file() { return "liburoce-rdmav" + std::to_string(kProviderAbi) + ".so"; }

Installation find_installation(const std::string& executable_directory) {
  const std::string build = executable_directory + "/lib";
  const std::string library = prefix_of(executable_directory) + "/" UROCE_LIBDIR;
  const std::vector<std::string> own = {build, library + "/uroce"};
  const std::vector<std::string> plug_ins = {build, library + "/libibverbs",
                                             UROCE_VERBS_PLUGIN_DIR};
  Installation result;
  result.plug_in_folder = UROCE_VERBS_PLUGIN_DIR;
  result.provider = first_with(plug_ins, provider_file());
  result.preload = first_with(own, "liburoce-kernel.so");
  result.dpdk_module = first_with(own, "liburoce-dpdk.so");
  result.looked_in = {build, library + "/uroce", library + "/libibverbs"};
  return result;
}

}  // namespace uroce::cli
