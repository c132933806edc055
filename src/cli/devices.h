// SPDX-License-Identifier: BSD-2-Clause
// `uroce devices`: the devices and GIDs that a program started now would see.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "host/device_files.h"
#include "host/device_table.h"

namespace uroce::cli {

struct ListedDevice {
  host::Device device;
  host::GidTable gids;  // as in the device tree: with the indices that running programs see
};

[[nodiscard]] std::string devices_text(const std::vector<ListedDevice>& devices);
[[nodiscard]] std::string devices_json(const std::vector<ListedDevice>& devices);

[[nodiscard]] int list_devices(const Arguments& arguments);

}  // namespace uroce::cli
