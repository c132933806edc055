// SPDX-License-Identifier: BSD-2-Clause
#include "host/kernel_rdma.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "host/files.h"

namespace uroce::host {
namespace {

constexpr std::string_view kVerbsClass = "/sys/class/infiniband_verbs/";
constexpr std::string_view kDeviceClass = "/sys/class/infiniband/";
constexpr std::string_view kNodes = "/dev/infiniband/";
constexpr std::string_view kUverbs = "uverbs";

bool is_ours(std::string_view device) { return device.starts_with("uroce"); }

std::optional<std::uint32_t> uverbs_number(std::string_view name) {
  if (!name.starts_with(kUverbs)) return std::nullopt;
  name.remove_prefix(kUverbs.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

class Reader {
 public:
  explicit Reader(const std::string& root) { found_.root = root; }

  KernelRdma read() {
    for (const std::string& name : names_in(kVerbsClass)) add_uverbs(name);
    for (const std::string& name : names_in(kDeviceClass)) {
      if (!is_ours(name)) add(kDeviceClass, name);
    }
    for (const std::string& name : names_in(kNodes)) {
      if (!nodes_of_ours_.contains(name)) add(kNodes, name);
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::vector<std::string> names_in(std::string_view folder) const {
    return list_directory(found_.root + std::string(folder));
  }

  // The folder has a file besides, abi_version, which the tree has too.
  void add_uverbs(const std::string& name) {
    if (!uverbs_number(name)) return;
    const std::string path = found_.root + std::string(kVerbsClass) + name;
    if (is_ours(read_line(path + "/ibdev"))) {
      nodes_of_ours_.insert(name);
    } else {
      add(kVerbsClass, name);
    }
  }

  void add(std::string_view folder, const std::string& name) {
    found_.paths.push_back(std::string(folder) + name);
    if (const auto number = uverbs_number(name)) {
      found_.first_free_uverbs = std::max(found_.first_free_uverbs, *number + 1);
    }
  }

  KernelRdma found_;
  std::set<std::string> nodes_of_ours_;
};

}  // namespace

KernelRdma read_kernel_rdma(const std::string& root) { return Reader(root).read(); }

}  // namespace uroce::host
