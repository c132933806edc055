// SPDX-License-Identifier: BSD-2-Clause
#include "cli/devices.h"

#include <iomanip>
#include <iostream>
#include <sstream>

#include "cli/setup.h"
#include "host/port_attributes.h"

namespace uroce::cli {
namespace {

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u" << std::hex << std::setw(4) << std::setfill('0') << static_cast<int>(c);
    } else {
      out << c;
    }
  }
  out << '"';
  return out.str();
}

std::string where(const host::Device& device) {
  return device.netdev.empty() ? "without an interface of the kernel" : "on " + device.netdev;
}

void print_gids(std::ostream& out, const host::GidTable& gids) {
  bool any = false;
  for (std::size_t i = 0; i < host::GidTable::kLength; ++i) {
    const Gid& gid = gids.slots()[i];
    if (gid.is_zero()) continue;
    if (!any) out << "    GID  type     address\n";
    any = true;
    out << std::setw(7) << i << "  RoCE v2  " << host::format_address(gid) << "\n";
  }
  if (!any) out << "    no GID: the interface has no usable address\n";
}

// `{"index": 0, ...}, ...`
void json_gids(std::ostream& out, const ListedDevice& listed) {
  const char* separator = "";
  for (std::size_t i = 0; i < host::GidTable::kLength; ++i) {
    const Gid& gid = listed.gids.slots()[i];
    if (gid.is_zero()) continue;
    out << separator << "\n      {\"index\": " << i
        << ", \"type\": \"RoCE v2\", \"address\": " << quoted(host::format_address(gid))
        << ", \"gid\": " << quoted(host::format_gid(gid))
        << ", \"netdev\": " << quoted(listed.device.netdev) << "}";
    separator = ",";
  }
}

Result<std::vector<ListedDevice>> collect(const Setup& setup,
                                          const host::Environment& environment) {
  const Result<PreparedTree> tree = prepare_tree(setup, environment);
  if (!tree) return tree.error();
  std::vector<ListedDevice> result;
  for (const host::Device& device : setup.devices) {
    const std::string path = tree->path + "/sys/class/infiniband/" + device.name;
    result.push_back({device, host::read_device_files(path, device.name).gids});
  }
  return result;
}

}  // namespace

std::string devices_text(const std::vector<ListedDevice>& devices) {
  std::ostringstream out;
  for (const ListedDevice& listed : devices) {
    const host::Device& device = listed.device;
    out << device.name << "  " << where(device) << ", " << (device.active ? "active" : "down")
        << "\n    node GUID " << host::format_guid(device.node_guid) << ", MTU " << device.mtu_bytes
        << ", path MTU " << host::port_path_mtu(device.mtu_bytes) << ", "
        << host::port_rate(device.megabits_per_second).text << "\n";
    print_gids(out, listed.gids);
  }
  return out.str();
}

std::string devices_json(const std::vector<ListedDevice>& devices) {
  std::ostringstream out;
  out << "[";
  const char* separator = "";
  for (const ListedDevice& listed : devices) {
    const host::Device& device = listed.device;
    out << separator << "\n  {\"name\": " << quoted(device.name)
        << ", \"netdev\": " << quoted(device.netdev)
        << ", \"state\": " << (device.active ? "\"active\"" : "\"down\"")
        << ",\n    \"node_guid\": " << quoted(host::format_guid(device.node_guid))
        << ", \"mtu\": " << device.mtu_bytes
        << ", \"path_mtu\": " << host::port_path_mtu(device.mtu_bytes) << ",\n    \"gids\": [";
    json_gids(out, listed);
    out << "]}";
    separator = ",";
  }
  out << "\n]\n";
  return out.str();
}

int list_devices(const Arguments& arguments) {
  const host::Environment environment = host::current_environment();
  const Result<Setup> setup = resolve_setup(arguments, environment);
  const auto devices = setup ? collect(*setup, environment) : setup.error();
  if (!devices) {
    for (const std::string& line : host::split(devices.error().message, '\n')) {
      std::cerr << "uroce: " << line << "\n";
    }
    return 1;
  }
  std::cout << (arguments.json ? devices_json(*devices) : devices_text(*devices));
  const LoopbackHint hint = loopback_hint(*setup);
  if (!hint.what.empty()) std::cerr << "uroce: " << hint.what << "; " << hint.advice << "\n";
  return 0;
}

}  // namespace uroce::cli
