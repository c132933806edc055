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

// An option without a value; false: it is none.
bool parse_flag(std::string_view name, CommandLine& line) {
  if (name == "--trace") return line.has_trace = true;
  if (name == "--goodput") return line.has_goodput = true;
  if (name == "--help") return line.has_help = true;
  return false;
}

// One with a value, which may be missing.
bool parse_option(std::string_view name, const char* value, CommandLine& line) {
  if (name == "--seed") return line.has_seed = parse_number(value, line.seed);
  if (name == "--count") return parse_number(value, line.count);
  if (name == "--hours") return parse_number(value, line.hours);
  if (name == "--pcap") return (line.pcap = value) != nullptr;
  return false;
}

}  // namespace

const char* const kHelp =
    "usage: uroce-sim --seed N [--count K | --hours H] [--trace] [--pcap FILE]\n"
    "       uroce-sim --goodput\n"
    "\n"
    "Runs whole transport cores in virtual time over links with faults, all of it drawn from a\n"
    "seed, and checks that nothing happens that must not. Exits with 1 if something did.\n"
    "\n"
    "  --seed N    the first seed; the same seed does the same on every machine\n"
    "  --count K   so many seeds, one after another (1)\n"
    "  --hours H   the following seeds, until so many hours are over\n"
    "  --trace     prints every packet with its fate, and what the applications do\n"
    "  --pcap FILE every packet at both ends (pcapng), with its fate as a comment; virtual time\n"
    "  --goodput   prints the table of goodput under loss\n";

CommandLine parse_command_line(std::span<char* const> arguments) {
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const char* const value = i + 1 < arguments.size() ? arguments[i + 1] : nullptr;
    if (parse_flag(name, line)) continue;
    if (!parse_option(name, value, line)) {
      line.wrong = name.data();
      break;
    }
    ++i;
  }
  return line;
}

}  // namespace uroce::sim
