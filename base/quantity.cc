// Quantities in and out: one table of units for reading, ladders of them for writing.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "base/text.h"

namespace interlock {
namespace {

using Dimension = WrittenQuantity::Dimension;

/// A unit of `size / parts` SI units: both are exact, so that "3 us" is the double nearest to 3e-6.
struct Unit {
  std::string_view name;
  double size;
  double parts = 1;

  constexpr double in_si() const { return size / parts; }
};

// Each ladder ascends.
constexpr double kKi = 1024, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi, kPi = kTi * kKi;
constexpr std::array kTimes{Unit{"ns", 1, 1e9}, Unit{"us", 1, 1e6}, Unit{"ms", 1, 1e3},
                            Unit{"s", 1},       Unit{"min", 60.0},  Unit{"h", 3600},
                            Unit{"d", 86400}};
constexpr std::array kBinarySizes{Unit{"B", 1},     Unit{"KiB", kKi}, Unit{"MiB", kMi},
                                  Unit{"GiB", kGi}, Unit{"TiB", kTi}, Unit{"PiB", kPi}};
constexpr std::array kDecimalSizes{Unit{"kB", 1e3}, Unit{"MB", 1e6}, Unit{"GB", 1e9},
                                   Unit{"TB", 1e12}, Unit{"PB", 1e15}};
constexpr std::array kByteRates{Unit{"B/s", 1},    Unit{"kB/s", 1e3},  Unit{"MB/s", 1e6},
                                Unit{"GB/s", 1e9}, Unit{"TB/s", 1e12}, Unit{"PB/s", 1e15}};
constexpr std::array kBinaryByteRates{Unit{"KiB/s", kKi}, Unit{"MiB/s", kMi}, Unit{"GiB/s", kGi},
                                      Unit{"TiB/s", kTi}, Unit{"PiB/s", kPi}};
constexpr std::array kBitRates{Unit{"b/s", 1, 8}, Unit{"kb/s", 1e3, 8}, Unit{"Mb/s", 1e6, 8},
                               Unit{"Gb/s", 1e9, 8}, Unit{"Tb/s", 1e12, 8}};
constexpr std::array kFlopRates{Unit{"FLOP/s", 1},    Unit{"kFLOP/s", 1e3},  Unit{"MFLOP/s", 1e6},
                                Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15},
                                Unit{"EFLOP/s", 1e18}};
constexpr std::array kPowers{Unit{"mW", 1, 1e3}, Unit{"W", 1}, Unit{"kW", 1e3}, Unit{"MW", 1e6},
                             Unit{"GW", 1e9}};
constexpr std::array kJoules{Unit{"J", 1}, Unit{"kJ", 1e3}, Unit{"MJ", 1e6}, Unit{"GJ", 1e9}};
constexpr std::array kWattHours{Unit{"Wh", 3600}, Unit{"kWh", 3.6e6}, Unit{"MWh", 3.6e9},
                                Unit{"GWh", 3.6e12}};
// Bills count kWh; a step may take less than one.
constexpr std::array kShownEnergies{Unit{"J", 1}, Unit{"kJ", 1e3}, Unit{"kWh", 3.6e6},
                                    Unit{"MWh", 3.6e9}, Unit{"GWh", 3.6e12}};

struct Ladder {
  Dimension dimension;
  std::span<const Unit> units;
};
constexpr std::array kLadders{
    Ladder{Dimension::Time, kTimes},
    Ladder{Dimension::Size, kBinarySizes},
    Ladder{Dimension::Size, kDecimalSizes},
    Ladder{Dimension::Bandwidth, kByteRates},
    Ladder{Dimension::Bandwidth, kBinaryByteRates},
    Ladder{Dimension::Bandwidth, kBitRates},
    Ladder{Dimension::FlopRate, kFlopRates},
    Ladder{Dimension::Power, kPowers},
    Ladder{Dimension::Energy, kJoules},
    Ladder{Dimension::Energy, kWattHours},
};

/// Three significant digits, and all digits of a whole number up to a million.
std::string three_digits(double value) {
  const double size = std::abs(value);
  char digits[32];
  if (size >= 1e6 || size < 0.0995) {
    std::snprintf(digits, sizeof digits, "%.3g", value);
  } else {
    const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
  }
  return digits;
}

/// Returns the value in the largest unit in which it is still at least 1, as it is shown.
std::string on_ladder(double value, std::span<const Unit> units, std::string_view zero) {
  if (value == 0) return std::string(zero);
  const Unit* unit = &units.front();
  for (const Unit& larger : units) {
    const std::string shown = three_digits(std::abs(value) / larger.in_si());
    if (std::strtod(shown.c_str(), nullptr) >= 1) unit = &larger;
  }
  return three_digits(value / unit->in_si()) + " " + std::string(unit->name);
}

}  // namespace

std::optional<WrittenQuantity> parse_quantity(std::string_view text) {
  WrittenQuantity result;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, result.value);
  if (failed != std::errc{}) return std::nullopt;
  std::string_view name(rest, static_cast<std::size_t>(end - rest));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Ladder& ladder : kLadders) {
    for (const Unit& unit : ladder.units) {
      if (unit.name != name) continue;
      result.value = result.value * unit.size / unit.parts;
      result.dimension = ladder.dimension;
      if (!std::isfinite(result.value)) return std::nullopt;
      return result;
    }
  }
  return std::nullopt;
}

std::vector<std::string> unit_names(WrittenQuantity::Dimension dimension) {
  std::vector<std::string> names;
  for (const Ladder& ladder : kLadders) {
    if (ladder.dimension != dimension) continue;
    for (const Unit& unit : ladder.units) names.emplace_back(unit.name);
  }
  return names;
}

std::string format(Seconds value) { return on_ladder(value.value(), kTimes, "0 s"); }
std::string format(Bytes value) { return on_ladder(value.value(), kBinarySizes, "0 B"); }
std::string format(BytesPerSecond value) { return on_ladder(value.value(), kByteRates, "0 B/s"); }
std::string format(FlopsPerSecond value) {
  return on_ladder(value.value(), kFlopRates, "0 FLOP/s");
}
std::string format(Watts value) { return on_ladder(value.value(), kPowers, "0 W"); }
std::string format(Joules value) { return on_ladder(value.value(), kShownEnergies, "0 J"); }

std::string format_percent(double fraction) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.1f%%", 100 * fraction);
  const std::string text = digits;
  return text == "-0.0%" ? "0.0%" : text;
}

std::string format_number(double value) {
  const double size = std::abs(value);
  if (size < 1000 && value == std::floor(value)) return std::to_string(static_cast<int>(value));
  if (!(size >= 999.5)) return three_digits(value);
  constexpr std::array kThousands{Unit{"k", 1e3}, Unit{"M", 1e6}, Unit{"G", 1e9}, Unit{"T", 1e12}};
  return on_ladder(value, kThousands, "0");
}

}  // namespace interlock
