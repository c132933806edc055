// SPDX-License-Identifier: BSD-2-Clause
#include "cli/run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "datapath/tap/capture_file.h"

namespace uroce::cli {
namespace {

constexpr int kFailed = 1, kNotExecutable = 126, kNotFound = 127;

int fail(int status, const std::string& message) {
  for (const std::string& line : host::split(message, '\n')) std::cerr << "uroce: " << line << "\n";
  return status;
}

std::string join_preloads(std::vector<std::string> libraries) {
  std::vector<std::string> unique;
  for (std::string& library : libraries) {
    if (!library.empty() && std::ranges::find(unique, library) == unique.end()) {
      unique.push_back(std::move(library));
    }
  }
  return host::join(unique, ":");
}

std::string preloads(const host::Environment& environment, const std::string& ours,
                     const std::string& sanitizer_runtime) {
  std::string before(host::variable(environment, "LD_PRELOAD"));
  std::ranges::replace(before, ' ', ':');  // the loader takes both
  std::vector<std::string> libraries = host::split(before, ':');
  libraries.insert(libraries.begin(), sanitizer_runtime);
  libraries.push_back(ours);
  return join_preloads(std::move(libraries));
}

// libibverbs appends "-rdmav34.so" to each name of the list.
std::string drivers(const host::Environment& environment, const std::string& provider) {
  const std::string name = provider.substr(0, provider.rfind("-rdmav"));
  const std::vector<std::string> before =
      host::split(host::variable(environment, "RDMAV_DRIVERS"), ':');
  std::vector<std::string> names = {name};
  std::ranges::copy_if(before, std::back_inserter(names),
                       [&](const std::string& other) { return other != name; });
  return host::join(names, ":");
}

std::string trouble_with(const Installation& installation) {
  if (installation.provider.empty() || installation.preload.empty()) {
    const std::string missing =
        installation.provider.empty() ? "provider (liburoce-rdmav34.so)" : "liburoce-kernel.so";
    return "the " + missing + " was not found in " + host::join(installation.looked_in, ", ") +
           "; build or install uroce completely";
  }
  if (installation.preload.find_first_of(" :") != std::string::npos) {
    return installation.preload + ": a path with a space or a colon cannot be preloaded";
  }
  return {};
}

void warn_when_not_preloadable(const ProgramFacts& program) {
  const std::string reason = why_not_preloadable(program);
  if (reason.empty()) return;
  std::cerr << "uroce: warning: " << program.path << " " << reason
            << ", so nothing can be preloaded into it and it will see no device of uroce\n";
}

std::string runtime_for(const ProgramFacts& program, const Installation& installation) {
  if (program.elf) {
    if (std::string runtime = sanitizer_runtime(*program.elf); !runtime.empty()) return runtime;
  }
  const std::optional<ElfFacts> provider = read_elf(installation.provider);
  return provider ? sanitizer_runtime(*provider) : std::string{};
}

// The program may change its directory before it opens a device.
std::string prepare_capture(host::Config& config) {
  if (config.pcap.empty()) return {};
  config.pcap = std::filesystem::absolute(config.pcap);
  return datapath::tap::prepare_capture(config.pcap);
}

int become(const std::vector<std::string>& words, const host::Environment& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  std::vector<char*> arguments, variables;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : entries) variables.push_back(const_cast<char*>(entry.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  execvpe(arguments[0], arguments.data(), variables.data());
  const int code = errno;
  return fail(code == ENOENT ? kNotFound : kNotExecutable,
              words[0] + ": cannot be started: " + std::strerror(code));
}

}  // namespace

host::Environment run_environment(host::Environment environment, const Setup& setup,
                                  const PreparedTree& tree, const Installation& installation,
                                  const std::string& sanitizer_runtime) {
  host::Config config = setup.config;
  config.all_netdevs = false;
  config.netdevs.clear();
  for (const host::Device& device : setup.devices) {
    if (!device.netdev.empty()) config.netdevs.push_back(device.netdev);
  }
  host::export_config(config, environment);
  environment["UROCE_RUNTIME_DIR"] = tree.directory.path;
  environment["UROCE_TREE"] = tree.path;
  environment["SYSFS_PATH"] = tree.path + "/sys";
  environment["RDMAV_DRIVERS"] = drivers(environment, installation.provider);
  environment["LD_PRELOAD"] = preloads(environment, installation.preload, sanitizer_runtime);
  return environment;
}

int run_program(const Arguments& arguments) {
  const host::Environment environment = host::current_environment();
  const ProgramFacts program = examine_program(arguments.program[0], environment);
  if (program.path.empty()) return fail(kNotFound, arguments.program[0] + ": not found");
  if (!program.is_executable) return fail(kNotExecutable, program.path + ": not executable");
  Result<Setup> setup = resolve_setup(arguments, environment);
  if (!setup) return fail(kFailed, setup.error().message);
  const Installation installation = find_installation(executable_directory());
  if (const std::string trouble = trouble_with(installation); !trouble.empty()) {
    return fail(kFailed, trouble);
  }
  if (const std::string trouble = prepare_capture(setup->config); !trouble.empty()) {
    return fail(kFailed, trouble);
  }
  const Result<PreparedTree> tree = prepare_tree(*setup, environment);
  if (!tree) return fail(kFailed, tree.error().message);
  warn_when_not_preloadable(program);
  return become(arguments.program, run_environment(environment, *setup, *tree, installation,
                                                   runtime_for(program, installation)));
}

}  // namespace uroce::cli
