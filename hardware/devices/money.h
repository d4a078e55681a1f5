// Money: an amount in a currency.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace interlock {

struct Money {
  double amount = 0;
  std::string currency;  // three capital letters (ISO 4217)
};

/// Returns "12.5 EUR" in parts; nothing if `text` is anything but a number and a currency.
std::optional<Money> parse_money(std::string_view text);

}  // namespace interlock
