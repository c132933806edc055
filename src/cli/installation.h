// SPDX-License-Identifier: BSD-2-Clause
// Where the parts of uroce are that this executable belongs to: in the build tree (<build>/lib), or
// installed under the prefix two levels up.
#pragma once

#include <string>
#include <vector>

namespace uroce::cli {

// rdma-core 34 to 56: IBVERBS_PRIVATE_34, and plug-ins called *-rdmav34.so.
inline constexpr int kProviderAbi = 34;

struct Installation {
  std::string provider;     // liburoce-rdmav34.so; empty: not found
  std::string preload;      // liburoce-kernel.so
  std::string dpdk_module;  // liburoce-dpdk.so
  std::vector<std::string> looked_in;
  std::string plug_in_folder;  // where libibverbs itself looks, whatever our prefix is
};

// `executable_directory`: that of the running executable.
[[nodiscard]] Installation find_installation(const std::string& executable_directory);
[[nodiscard]] std::string executable_directory();
// The provider's file name.
[[nodiscard]] std::string provider_file();

}  // namespace uroce::cli
