// Options of interlock plan, read into the question that they ask.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/sizing_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/console/swept_overrides.h"
#include "hardware/networks/network_size.h"
#include "scenarios/contract/limits.h"
#include "scenarios/sweep/sweep_range.h"

namespace interlock {
namespace {

constexpr double kSecondsOfDay = 86400;

/// Returns a count such as "15e12" or "4M", with letters that stand for powers of `thousand`.
double count_of(const char* option, const std::string& text, double thousand, const char* such) {
  double count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, count);
  const std::string_view letters(rest, static_cast<std::size_t>(end - rest));
  static constexpr std::string_view kLetters = "kMGT";
  const std::string_view letter = letters == "B" ? "G" : letters;
  const std::size_t power = letter.empty() ? 0 : kLetters.find(letter) + 1;
  const bool known = letter.size() <= 1 && (letter.empty() || power > 0);
  count *= std::pow(thousand, static_cast<double>(power));
  if (failed == std::errc{} && known && count >= 1 && count <= kMostAmount) return count;
  throw Error(std::string(option) + " " + in_quotes(text) +
              ": expected a number from 1 to 1e18 such as " + such);
}

/// Returns the sizes, ascending and each once.
std::vector<int> sizes_of(const std::string& text) {
  const auto refuse = [&](const std::string& what) {
    throw Error("--devices " + in_quotes(text) + ": " + what +
                "; expected numbers from 1 to 1000000 such as 64,128,256, 8..512x2 or 64..512..64");
  };
  std::vector<int> sizes;
  const auto take = [&](const JsonValue& value) {
    const double number = value.number;
    const bool whole = value.kind == JsonValue::Kind::Number && number == std::floor(number);
    if (!whole) refuse(described(value) + " is no number of devices");
    if (number < 1 || number > kMostDevices) refuse(described(value) + " is out of range");
    sizes.push_back(static_cast<int>(number));
  };
  const std::optional<JsonValue> axis = swept_axis(text, "--devices");
  if (!axis) {
    take(parse_override(text, "--devices"));
  } else if (axis->kind == JsonValue::Kind::Array) {
    for (const JsonValue& value : axis->items) take(value);
  } else {
    Diagnostics diagnostics;
    for (const JsonValue& value : read_range({&*axis, ""}, diagnostics)) take(value);
    diagnostics.throw_if_any();
  }
  return ascending(std::move(sizes));
}

/// Returns the machines, each once, with what --price says of them.
std::vector<SizedMachine> machines_of(const PlanOptions& options) {
  std::vector<SizedMachine> machines;
  std::vector<std::string> names;
  for (const std::string& list : options.machines) {
    std::istringstream stream(list);
    for (std::string name; std::getline(stream, name, ',');) {
      if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
      names.push_back(name);
      machines.push_back({name, ""});
    }
  }
  const auto is_named = [](const std::string& price) { return price.find('=') != price.npos; };
  for (const std::string& price : options.prices) {
    if (is_named(price)) continue;
    for (SizedMachine& machine : machines) machine.price = price;
  }
  for (const std::string& price : options.prices) {
    if (!is_named(price)) continue;
    const std::size_t equals = price.find('=');
    const std::string name = price.substr(0, equals);
    const auto named = std::find(names.begin(), names.end(), name);
    if (named == names.end()) {
      throw Error("--price: " + in_quotes(name) + " is none of the machines; expected " +
                  join_choices(names));
    }
    machines[static_cast<std::size_t>(named - names.begin())].price = price.substr(equals + 1);
  }
  return machines;
}

/// Returns the time of `text`: days, or a time with its unit.
Seconds days_of(const std::string& text) {
  double days = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, days);
  Seconds time(days * kSecondsOfDay);
  bool known = failed == std::errc{};
  if (known && rest != end) {
    const std::string unit(rest + (*rest == ' ' ? 1 : 0), end);
    const std::optional<WrittenQuantity> written = parse_quantity(text);
    known = unit == "d" || unit == "day" || unit == "days";
    if (written && written->dimension == WrittenQuantity::Dimension::Time) {
      known = true;
      time = Seconds(written->value);
    }
  }
  if (known && time > Seconds(0) && time < Seconds(kInfinity)) return time;
  throw Error("--days " + in_quotes(text) +
              ": expected a number of days above 0, or a time with its unit, e.g. --days 30 or "
              "--days '36 h'");
}

}  // namespace

SizingQuestion sizing_question(const PlanOptions& options) {
  if (options.tokens.empty() == options.samples.empty()) {
    throw Error("expected one of --tokens and --samples, e.g. --tokens 15e12");
  }
  SizingQuestion question{.model = options.model,
                          .machines = machines_of(options),
                          .devices = sizes_of(options.devices),
                          .sequence_length = options.sequence_length,
                          .in_samples = !options.samples.empty(),
                          .weak = options.weak,
                          .device_mtbf = options.mtbf,
                          .overrides = options.overrides};
  question.length = question.in_samples
                        ? count_of("--samples", options.samples, 1000, "1e9 or 300M")
                        : count_of("--tokens", options.tokens, 1000, "15e12 or 15T");
  if (!options.batch.empty()) {
    question.batch = count_of("--batch", options.batch, question.in_samples ? 1000 : 1024,
                              question.in_samples ? "1024" : "4M or 4194304");
  }
  if (!options.days.empty()) question.aims.time = days_of(options.days);
  if (!options.budget.empty()) question.aims.budget = parse_budget(options.budget);
  return question;
}

}  // namespace interlock
