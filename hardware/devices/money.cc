// Reads amounts of money.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/money.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace interlock {

std::optional<Money> parse_money(std::string_view text) {
  Money money;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, money.amount);
  if (failed != std::errc{} || !std::isfinite(money.amount)) return std::nullopt;
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (unit.size() != 3 || !std::all_of(unit.begin(), unit.end(), capital)) return std::nullopt;
  money.currency = unit;
  return money;
}

}  // namespace interlock
