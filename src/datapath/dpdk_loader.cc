// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/dpdk_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#ifndef UROCE_MODULE_FOLDER
#define UROCE_MODULE_FOLDER ""
#endif

namespace uroce::datapath {
namespace {

constexpr const char* kModuleName = "liburoce-dpdk.so";

// Of the library or program that this code was linked into. The module lies beside the plug-in of
// libibverbs in a build tree, and in lib/ beside the program; when installed, in a folder beside
// the plug-in's, whose path is compiled in for the program.
std::string own_folder() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&open_dpdk), &self) == 0 || self.dli_fname == nullptr) {
    return {};
  }
  const std::string file = self.dli_fname;
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

Result<DpdkOpenFunction> load_module() {
  std::string reason = "it is not installed";
  const std::string own = own_folder();
  for (const std::string& folder :
       {own, own + "/lib", own + "/uroce", own + "/../uroce", std::string(UROCE_MODULE_FOLDER)}) {
    const std::string path = folder + '/' + kModuleName;
    if (folder.empty() || access(path.c_str(), F_OK) != 0) continue;
    // Local: nothing of DPDK may meet the program's own symbols. Never closed: DPDK's threads run
    // in it until the process ends.
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      reason = dlerror();
      continue;
    }
    if (void* open = dlsym(module, kDpdkOpenSymbol); open != nullptr) {
      return reinterpret_cast<DpdkOpenFunction>(open);
    }
  }
  return Error{ENOENT,
               "the DPDK datapath (" + std::string(kModuleName) + ") cannot be loaded: " + reason};
}

}  // namespace

Result<DpdkPort> open_dpdk(const DpdkOptions& options) {
  static const Result<DpdkOpenFunction> open = load_module();
  if (!open) return open.error();
  DpdkOpenRequest request;
  request.options = &options;
  if (!(*open)(&request)) return std::move(request.error);
  return std::move(request.port);
}

}  // namespace uroce::datapath
