// Finds the Pareto front of sizes, and puts them in order.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/starter/sizing_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace interlock {
namespace {

std::vector<std::size_t> places(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// Returns by how much a size exceeds what is allowed, as a ratio; 1: by nothing.
double excess(const SizePrice& size, const SizingAims& aims) {
  double most = 1;
  if (aims.time) most = std::max(most, size.time / *aims.time);
  if (aims.budget) most = std::max(most, size.cost / aims.budget->amount);
  return most;
}

/// Returns what the recommended size has least of, among those that exceed nothing.
double wanted(const SizePrice& size, const SizingAims& aims) {
  if (aims.time) return size.cost;
  return aims.budget ? size.time.value() : size.time.value() * size.cost;
}

}  // namespace

Money parse_budget(const std::string& text) {
  const std::optional<Money> budget = parse_money(text);
  if (budget && budget->amount > 0) return *budget;
  throw Error("--budget " + in_quotes(text) +
              ": expected an amount and a currency of three capital letters such as '2e6 USD'");
}

bool is_within(const SizePrice& size, const SizingAims& aims) { return excess(size, aims) <= 1; }

std::vector<bool> pareto_front(const std::vector<SizePrice>& sizes) {
  constexpr double kMore = 1 + kEqualShare;
  const auto beats = [](const SizePrice& one, const SizePrice& other) {
    const bool no_worse = one.time <= other.time * kMore && one.cost <= other.cost * kMore;
    return no_worse && (one.time * kMore < other.time || one.cost * kMore < other.cost);
  };
  std::vector<bool> front;
  for (const SizePrice& size : sizes) {
    front.push_back(
        std::ranges::none_of(sizes, [&](const SizePrice& other) { return beats(other, size); }));
  }
  return front;
}

std::vector<std::size_t> recommended_order(const std::vector<SizePrice>& sizes,
                                           const SizingAims& aims) {
  std::vector<std::size_t> order = places(sizes.size());
  const auto key = [&](std::size_t i) {
    return std::pair(excess(sizes[i], aims), wanted(sizes[i], aims));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

double share_to_lead(const SizePrice& first, const SizePrice& later, const SizingAims& aims) {
  const double allowed = excess(first, aims), own = excess(later, aims);
  if (allowed > 1) return 1 - allowed / own;
  const double times = wanted(first, aims) / wanted(later, aims);
  const bool squared = !aims.time && !aims.budget;  // time x cost
  const double within = squared ? std::sqrt(times) : times;
  return 1 - std::min({1.0, within, 1 / own});
}

}  // namespace interlock
