// SPDX-License-Identifier: BSD-2-Clause
#include "datapath/tap/fault_spec.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>

#include "base/prng.h"

namespace uroce::datapath::tap {
namespace {

using std::string_literals::operator""s;

struct Unit {
  std::string_view name;
  unsigned digits;  // of a nanosecond's powers of ten
};
// "s" last, because the others end in it too.
constexpr std::array<Unit, 4> kUnits = {{{"ns", 0}, {"us", 3}, {"ms", 6}, {"s", 9}}};

constexpr std::uint64_t power_of_ten(unsigned digits) {
  std::uint64_t power = 1;
  while (digits-- != 0) power *= 10;
  return power;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool is_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || !is_digits(text)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

// "12.5" with 3 digits is 12,500. Nothing where it is no such number, or a finer one.
std::optional<std::uint64_t> decimal(std::string_view text, unsigned digits) {
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  while (fraction.ends_with('0')) fraction.remove_suffix(1);
  if (fraction.size() > digits || !is_digits(fraction)) return std::nullopt;
  const std::string shifted =
      std::string(text.substr(0, point)).append(fraction).append(digits - fraction.size(), '0');
  if (point == 0 || shifted.size() > 18) return std::nullopt;
  return whole_number(shifted);
}

std::string parse_rate(std::string_view text, std::uint32_t& rate) {
  const bool is_percent = text.ends_with('%');
  std::string_view number = text;
  if (is_percent) number.remove_suffix(1);
  const auto value = decimal(trimmed(number), is_percent ? 4 : 6);
  if (!value) return "expected a rate such as 1% or 0.01, no finer than one in a million";
  if (*value > Prng::kMillion) {
    return is_percent ? "above 100%"s
                      : "above 1, which is 100%; for a percentage write "s.append(text) + "%";
  }
  rate = static_cast<std::uint32_t>(*value);
  return {};
}

std::string parse_time(std::string_view text, Duration& time) {
  constexpr const char* kExpected = "expected a time with its unit, such as 50us, 2ms or 50us..2ms";
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto value =
        decimal(trimmed(text.substr(0, text.size() - unit.name.size())), unit.digits);
    if (!value) return kExpected;
    if (*value > static_cast<std::uint64_t>(kFaultDelayMax.ns)) return "longer than 10s";
    time = nanoseconds(static_cast<std::int64_t>(*value));
    return {};
  }
  return kExpected;
}

std::string parse_delay(std::string_view text, FaultSpec& spec) {
  const std::size_t dots = text.find("..");
  std::string trouble = parse_time(trimmed(text.substr(0, dots)), spec.delay_min);
  if (!trouble.empty()) return trouble;
  spec.delay_max = spec.delay_min;
  if (dots == std::string_view::npos) return {};
  trouble = parse_time(trimmed(text.substr(dots + 2)), spec.delay_max);
  if (trouble.empty() && spec.delay_max < spec.delay_min) return "the range is backwards";
  return trouble;
}

std::string parse_burst(std::string_view text, FaultSpec& spec) {
  const auto value = whole_number(text);
  if (!value || *value == 0 || *value > kFaultBurstMax) return "expected a number from 1 to 1000";
  spec.burst = static_cast<std::uint32_t>(*value);
  return {};
}

std::string parse_number(std::string_view text, std::uint64_t& number) {
  const auto value = whole_number(text);
  if (!value) return "expected a whole number";
  number = *value;
  return {};
}

struct Key {
  std::string_view name;
  // Nothing when the value is good, else what was expected.
  std::string (*parse)(std::string_view value, FaultSpec& spec);
};
constexpr std::array<Key, 8> kKeys = {{
    {"loss", [](std::string_view v, FaultSpec& s) { return parse_rate(v, s.loss); }},
    {"burst", parse_burst},
    {"dup", [](std::string_view v, FaultSpec& s) { return parse_rate(v, s.duplicate); }},
    {"reorder", [](std::string_view v, FaultSpec& s) { return parse_rate(v, s.reorder); }},
    {"delay", parse_delay},
    {"corrupt", [](std::string_view v, FaultSpec& s) { return parse_rate(v, s.corrupt); }},
    {"packets", [](std::string_view v, FaultSpec& s) { return parse_number(v, s.packets); }},
    {"seed", [](std::string_view v, FaultSpec& s) { return parse_number(v, s.seed); }},
}};

std::string names_of_keys() {
  std::string names;
  for (const Key& key : kKeys) names.append(names.empty() ? "" : ", ").append(key.name);
  return names;
}

// Reads "key=value"; `seen` are the keys that came before.
std::string parse_setting(std::string_view setting, FaultSpec& spec,
                          std::array<bool, kKeys.size()>& seen) {
  const std::size_t equals = setting.find('=');
  const std::string name(trimmed(setting.substr(0, equals)));
  const auto key = std::ranges::find(kKeys, name, &Key::name);
  if (key == kKeys.end()) return "'" + name + "' is no kind of fault; there are " + names_of_keys();
  if (equals == std::string_view::npos) return name + ": expected " + name + "=VALUE";
  bool& is_known = seen[static_cast<std::size_t>(key - kKeys.begin())];
  if (is_known) return name + " is given twice";
  is_known = true;
  const std::string_view value = trimmed(setting.substr(equals + 1));
  const std::string trouble = key->parse(value, spec);
  return trouble.empty() ? trouble : (name + "=").append(value).append(": ") + trouble;
}

std::string format_decimal(std::uint64_t value, unsigned digits) {
  std::string text = std::to_string(value / power_of_ten(digits));
  std::string fraction = std::to_string(value % power_of_ten(digits));
  fraction.insert(0, digits - std::min<std::size_t>(digits, fraction.size()), '0');
  while (fraction.ends_with('0')) fraction.pop_back();
  return fraction.empty() ? text : text + "." + fraction;
}

std::string format_time(Duration time) {
  const Unit* best = &kUnits[0];
  const auto ns = static_cast<std::uint64_t>(time.ns);
  for (const Unit& unit : kUnits) {
    if (ns != 0 && ns % power_of_ten(unit.digits) == 0) best = &unit;
  }
  return std::to_string(ns / power_of_ten(best->digits)).append(best->name);
}

void append_setting(std::string& text, const char* key, const std::string& value) {
  text.append(text.empty() ? "" : ",").append(key).append("=").append(value);
}

void append_rate(std::string& text, const char* key, std::uint32_t rate) {
  if (rate != 0) append_setting(text, key, format_decimal(rate, 4) + "%");
}

}  // namespace

Result<FaultSpec> parse_fault_spec(std::string_view text) {
  FaultSpec spec;
  if (trimmed(text) == "off") return spec;
  std::array<bool, kKeys.size()> seen{};
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string trouble = parse_setting(trimmed(text.substr(0, comma)), spec, seen);
    if (!trouble.empty()) return Error{EINVAL, std::move(trouble)};
    if (more) text.remove_prefix(comma + 1);
  }
  return spec;
}

std::string format_fault_spec(const FaultSpec& spec) {
  const FaultSpec defaults;
  std::string text;
  append_rate(text, "loss", spec.loss);
  if (spec.burst != defaults.burst) append_setting(text, "burst", std::to_string(spec.burst));
  append_rate(text, "dup", spec.duplicate);
  append_rate(text, "reorder", spec.reorder);
  if (spec.delays()) {
    std::string delay = format_time(spec.delay_min);
    if (spec.delay_min != spec.delay_max) delay += ".." + format_time(spec.delay_max);
    append_setting(text, "delay", delay);
  }
  append_rate(text, "corrupt", spec.corrupt);
  if (spec.packets != 0) append_setting(text, "packets", std::to_string(spec.packets));
  if (spec.seed != defaults.seed) append_setting(text, "seed", std::to_string(spec.seed));
  return text;
}

}  // namespace uroce::datapath::tap
