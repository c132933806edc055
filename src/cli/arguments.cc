// SPDX-License-Identifier: BSD-2-Clause
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <map>
#include <memory>

namespace uroce::cli {
namespace {

constexpr const char* kRunFooter =
    "Examples:\n"
    "  uroce run -- ibv_devinfo -v\n"
    "  uroce run -- ib_write_bw              in one terminal, and in another\n"
    "  uroce run -- ib_write_bw localhost\n"
    "  uroce run --netdev eth1 --uplink dpdk:net_af_packet0,iface=eth1 -- ib_write_bw\n";

constexpr int kUsageError = 2;

// Flags without a value; every other one takes the next word, unless "=" is in it.
bool takes_value(const std::string& flag) {
  constexpr std::array<std::string_view, 4> kSwitches = {"-h", "--help", "--json", "--version"};
  return flag.find('=') == std::string::npos &&
         std::ranges::find(kSwitches, flag) == kSwitches.end();
}

// Cuts PROGRAM and its arguments off `words`, which begin after the command.
std::vector<std::string> cut_program(std::vector<std::string>& words) {
  auto at = words.begin();
  while (at != words.end() && at->starts_with('-') && *at != "--") {
    at += takes_value(*at) ? std::min<std::ptrdiff_t>(2, words.end() - at) : 1;
  }
  const auto program = at != words.end() && *at == "--" ? at + 1 : at;
  std::vector<std::string> result(program, words.end());
  words.erase(at, words.end());
  return result;
}

// CLI11 does not know of PROGRAM, so its usage line must be told.
class ProgramFormatter : public CLI::Formatter {
 public:
  explicit ProgramFormatter(std::string program) : program_(std::move(program)) {}
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    while (usage.ends_with('\n')) usage.pop_back();
    return usage + program_ + "\n";
  }

 private:
  std::string program_;
};

// One line, like all that we say, and where to find more.
std::string failure_text(const CLI::App*, const CLI::Error& error) {
  std::string text = error.what();
  // Nothing but the command is required; CLI11 does not say which ones there are.
  if (error.get_name() == "RequiredError") text = "expected a command: run, devices or doctor";
  text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  return "uroce: " + text + "\nRun with --help for more information.\n";
}

class Parser {
 public:
  Parser() {
    app_.set_version_flag("--version", "uroce " UROCE_VERSION);
    app_.require_subcommand(1);
    app_.failure_message(failure_text);
    run_ = app_.add_subcommand("run", "Run a program with RDMA devices of uroce");
    run_->footer(kRunFooter);
    run_->formatter(std::make_shared<ProgramFormatter>(" [--] PROGRAM [ARGUMENTS...]"));
    devices_ = app_.add_subcommand("devices", "List the devices and GIDs that a program would see");
    devices_->add_flag("--json", arguments_.json, "for programs");
    doctor_ = app_.add_subcommand("doctor", "Say what is wrong with the set-up, and what to do");
    doctor_->formatter(std::make_shared<ProgramFormatter>(" [-- PROGRAM]"));
    for (CLI::App* command : {run_, devices_, doctor_}) add_config_options(*command);
  }

  std::variant<Arguments, int> parse(std::vector<std::string> words) {
    if (!words.empty() && (words[0] == "run" || words[0] == "doctor")) {
      std::vector<std::string> options(words.begin() + 1, words.end());
      arguments_.program = cut_program(options);
      options.insert(options.begin(), words[0]);
      words = std::move(options);
    }
    std::ranges::reverse(words);  // CLI11 takes them from the back
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? 0 : kUsageError;
    }
    return finish();
  }

 private:
  void add_config_options(CLI::App& command) {
    for (const host::ConfigKey& key : host::config_keys()) {
      const std::string flag = "--" + std::string(key.name);
      command.add_option(flag, values_[std::string(key.name)], std::string(key.help))
          ->type_name(std::string(key.placeholder));
    }
    command.add_option("--config", arguments_.config_file, "TOML file with these keys")
        ->type_name("FILE");
  }

  std::variant<Arguments, int> finish() {
    for (const host::ConfigKey& key : host::config_keys()) {
      const std::string name(key.name), value = values_[name];
      if (!value.empty()) arguments_.flags.push_back({name, value, "--" + name + " " + value});
    }
    if (run_->parsed() && arguments_.program.empty()) {
      std::cerr << "uroce: no program was named; try 'uroce run -- ibv_devices'\n";
      return kUsageError;
    }
    arguments_.command = run_->parsed()       ? Command::kRun
                         : devices_->parsed() ? Command::kDevices
                                              : Command::kDoctor;
    return arguments_;
  }

  CLI::App app_{"RDMA (RoCE v2) without an RDMA NIC and without a kernel module", "uroce"};
  CLI::App* run_ = nullptr;
  CLI::App* devices_ = nullptr;
  CLI::App* doctor_ = nullptr;
  Arguments arguments_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::variant<Arguments, int> parse_arguments(std::vector<std::string> words) {
  return Parser().parse(std::move(words));
}

}  // namespace uroce::cli
