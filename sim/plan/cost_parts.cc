// Sums of costs.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/cost_parts.h"

#include <algorithm>
#include <vector>

namespace interlock {

namespace {

/// Adds to the count of an equal exchange, if there is one.
void add_exchange(std::vector<Exchange>& exchanges, const Exchange& added) {
  const auto same = std::find_if(exchanges.begin(), exchanges.end(),
                                 [&](const Exchange& known) { return alike(known, added); });
  if (same != exchanges.end()) {
    same->count += added.count;
  } else {
    exchanges.push_back(added);
  }
}

}  // namespace

void OpCost::mix(const OpCost& other, double sign) {
  const double own = time.value(), more = sign * other.time.value(), whole = own + more;
  const auto mixed = [&](double share, double others) {
    return whole > 0 ? std::clamp((share * own + others * more) / whole, 0.0, 1.0) : 0;
  };
  compute_bound = mixed(compute_bound, other.compute_bound);
  memory_bound = mixed(memory_bound, other.memory_bound);
  messages = mixed(messages, other.messages);
}

namespace {

constexpr double kRounding = 1e-12;  // of sums of times

}  // namespace

PlacedTimes OpCost::placed(double scale) const {
  PlacedTimes times{.apart = time * scale};
  for (std::size_t place = 0; place < kKernelPlaces; ++place) {
    times.at[place] = at[place] * scale;
    times.apart -= times.at[place];
  }
  if (times.apart < time * scale * kRounding) times.apart = Seconds(0);
  return times;
}

OpCost& OpCost::operator+=(const OpCost& other) {
  mix(other, 1);
  time += other.time;
  flops += other.flops;
  counted += other.counted;
  waiting += other.waiting;
  for (std::size_t place = 0; place < kKernelPlaces; ++place) at[place] += other.at[place];
  for (const Exchange& exchange : other.exchanges) add_exchange(exchanges, exchange);
  return *this;
}

OpCost& OpCost::operator-=(const OpCost& part) {
  mix(part, -1);
  time -= part.time;
  flops -= part.flops;
  counted -= part.counted;
  waiting -= part.waiting;
  for (std::size_t place = 0; place < kKernelPlaces; ++place) at[place] -= part.at[place];
  for (Exchange exchange : part.exchanges) {
    exchange.count = -exchange.count;
    add_exchange(exchanges, exchange);
  }
  std::erase_if(exchanges, [](const Exchange& exchange) { return exchange.count == 0; });
  return *this;
}

}  // namespace interlock
