// SPDX-License-Identifier: BSD-2-Clause
#include "sim/command_line.h"

#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>

namespace uroce::sim {
namespace {

bool parse_number(const char* text, std::uint64_t& value) {
  if (text == nullptr) return false;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc{} && stop == end;
}

}  // namespace

const char* const kHelp =
    "usage: uroce-sim --seed N [--count K | --hours H] [--trace]\n"
    "       uroce-sim --goodput\n"
    "\n"
    "Runs whole transport cores in virtual time over links with faults, all of it drawn from a\n"
    "seed, and checks that nothing happens that must not. Exits with 1 if something did.\n"
    "\n"
    "  --seed N    the first seed; the same seed does the same on every machine\n"
    "  --count K   so many seeds, one after another (1)\n"
    "  --hours H   the following seeds, until so many hours are over\n"
    "  --trace     prints every packet with its fate, and what the applications do\n"
    "  --goodput   prints the table of goodput under loss\n";

CommandLine parse_command_line(std::span<char* const> arguments) {
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const char* const value = i + 1 < arguments.size() ? arguments[i + 1] : nullptr;
    bool is_right = true;
    if (name == "--trace") {
      line.has_trace = true;
    } else if (name == "--goodput") {
      line.has_goodput = true;
    } else if (name == "--help") {
      line.has_help = true;
    } else {
      ++i;
      if (name == "--seed") {
        is_right = line.has_seed = parse_number(value, line.seed);
      } else if (name == "--count") {
        is_right = parse_number(value, line.count);
      } else if (name == "--hours") {
        is_right = parse_number(value, line.hours);
      } else {
        is_right = false;
      }
    }
    if (!is_right) {
      line.wrong = name.data();
      return line;
    }
  }
  return line;
}

}  // namespace uroce::sim
