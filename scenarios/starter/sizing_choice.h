// SizingChoice: which sizes are worth having, and which one is recommended.
// SPDX-License-Identifier: Apache-2.0
//
// The rule, with the days that are allowed and the budget as far as they are asked for:
//   days            the cheapest that is done in time; if none is, the quickest
//   budget          the quickest within it; if none is, the cheapest
//   days, budget    the cheapest within both; if none is, the one that exceeds them least
//   neither         the least time x cost: a size with twice the devices comes first where it is
//                   more than 1.41 times as fast (then time x cost falls)
//
// Example: sizes of {10 days, 100 USD}, {6, 120}, {5, 160} and {7, 130}. The front is the first
// three. Without aims the second comes first (720 day-USD; then 800, 910 and 1,000); within 8 days
// the second (then 130 and 160 USD, and the first, which is late); within 110 USD the first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "hardware/devices/money.h"

namespace interlock {

struct SizingAims {
  std::optional<Seconds> time;
  std::optional<Money> budget;
};

/// Returns the budget that `text` says: "2e6 USD". Throws: Error.
Money parse_budget(const std::string& text);

/// Time and cost of a size; costs are in one unit.
struct SizePrice {
  Seconds time;
  double cost = 0;
};

/// Returns whether `size` exceeds nothing of what is allowed.
bool is_within(const SizePrice& size, const SizingAims& aims);

/// Two sizes are equal in what they differ in by this share.
inline constexpr double kEqualShare = 0.001;

/// Returns, for each of `sizes`, whether no other takes less of one and no more of the other, where
/// differences of kEqualShare are none.
std::vector<bool> pareto_front(const std::vector<SizePrice>& sizes);

/// Returns the places of `sizes` in the order of recommendation.
std::vector<std::size_t> recommended_order(const std::vector<SizePrice>& sizes,
                                           const SizingAims& aims);

/// Returns the share by which steps of `later` have to be shorter, its time and cost with them, for
/// it to come before `first` in that order. REQUIRES: it comes behind.
double share_to_lead(const SizePrice& first, const SizePrice& later, const SizingAims& aims);

}  // namespace interlock
