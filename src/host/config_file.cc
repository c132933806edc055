// SPDX-License-Identifier: BSD-2-Clause
#include "host/config_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "host/files.h"

// toml++ 3.3 asserts what does not hold of "[/a]", and then says properly what is wrong.
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace uroce::host {
namespace {

constexpr const char* kSystemFile = "/etc/uroce.toml";

std::string user_file(const Environment& environment) {
  const std::string_view base = variable(environment, "XDG_CONFIG_HOME");
  if (!base.empty()) return std::string(base).append("/uroce/uroce.toml");
  const std::string_view home = variable(environment, "HOME");
  if (!home.empty()) return std::string(home).append("/.config/uroce/uroce.toml");
  return {};
}

// A scalar as it would be written in a variable; nothing for what no key can hold.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return std::string(truth->get() ? "on" : "off");
  return std::nullopt;
}

std::optional<std::string> node_text(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return scalar_text(node);
  std::vector<std::string> pieces;
  for (const toml::node& element : *list) {
    const std::optional<std::string> piece = scalar_text(element);
    if (!piece) return std::nullopt;
    pieces.push_back(*piece);
  }
  return join(pieces, ",");
}

}  // namespace

std::string find_config_file(const Environment& environment) {
  if (const std::string_view named = variable(environment, "UROCE_CONFIG"); !named.empty()) {
    return std::string(named);
  }
  if (const std::string own = user_file(environment);
      !own.empty() && access(own.c_str(), F_OK) == 0) {
    return own;
  }
  return access(kSystemFile, F_OK) == 0 ? kSystemFile : "";
}

Result<std::vector<Assignment>> read_config_file(const std::string& path) {
  struct stat status {};
  const bool is_there = stat(path.c_str(), &status) == 0;
  if (is_there && !S_ISREG(status.st_mode) && path != "/dev/null") {
    return Error{EINVAL, path + ": is no regular file"};  // a pipe would keep us waiting
  }
  const std::optional<std::string> text = read_file(path);
  if (!text) return system_error(path, "cannot be read");
  return parse_config_file(*text, path);
}

Result<std::vector<Assignment>> parse_config_file(std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{EINVAL, path + ":" + std::to_string(error.source().begin.line) + ": " +
                             std::string(error.description())};
  }
  std::vector<Assignment> result;
  for (const auto& [key, node] : parsed.table()) {
    std::string place = path + ":" + std::to_string(node.source().begin.line) + ": ";
    const std::optional<std::string> value = node_text(node);
    if (!value) {
      return Error{EINVAL, place + std::string(key.str()) +
                               ": expected text, a number, true or false, or a list of these"};
    }
    place.append(key.str()).append(" = ").append(*value);
    result.push_back({std::string(key.str()), *value, std::move(place)});
  }
  return result;
}

}  // namespace uroce::host
