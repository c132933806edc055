// SPDX-License-Identifier: BSD-2-Clause
// The configuration: a TOML file, and the same text as the value of every key. What is wrong is
// said in one line an error, beginning with its place; what is right comes through the environment
// unchanged, as it goes from `uroce run` to the provider.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/check.h"
#include "host/config_file.h"

namespace uroce::fuzz {
namespace {

using namespace host;

// What a process gets of its environment: text up to the first NUL.
Environment inherited(const Config& config) {
  Environment environment;
  export_config(config, environment);
  for (auto& [name, value] : environment) value = value.c_str();
  return environment;
}

void check_resolved(const Result<Config>& config) {
  if (!config) {
    check(!config.error().message.empty(), "an error says something");
    return;
  }
  const Result<Config> again = config_from(inherited(*config));
  check(again && *again == *config, "a configuration comes through the environment unchanged");
}

}  // namespace
}  // namespace uroce::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace uroce;
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  if (const auto assignments = host::parse_config_file(text, "file")) {
    fuzz::check_resolved(host::resolve_config(*assignments));
  } else {
    fuzz::check(assignments.error().message.starts_with("file:"), "an error names its file");
  }
  for (const host::ConfigKey& key : host::config_keys()) {
    const host::Assignment assignment{std::string(key.name), text, "here"};
    fuzz::check_resolved(host::resolve_config({&assignment, 1}));
  }
  return 0;
}
