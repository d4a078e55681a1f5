// One device that keeps stash with its host: its steps worked out op by op.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/host_copies.h"

#include <algorithm>
#include <map>
#include <vector>

namespace interlock {
namespace {

/// The most of what is taken and given back; changes of one instant count together.
double peak_of(const std::map<double, double>& changes) {
  double held = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, held += change);
  return peak;
}

}  // namespace

StepOutcome offloaded_step(const OffloadedStep& step) {
  const int k = step.micro_batches;
  double now = 0, out_free = 0, back_free = 0;
  std::vector<double> left(k), back(k);
  std::map<double, double> device, host;
  const auto ask_for = [&](int b) {
    now = std::max(now, left[b]);
    back[b] = back_free = std::max(now, back_free) + step.back;
    device[now] += step.share;
    host[back[b]] -= step.share;
  };
  for (int b = 0; b < k; ++b) {
    device[now] += 1;
    if (b == k - 1) ask_for(0);
    now += step.forward;
    now = std::max(now, out_free);
    left[b] = out_free = now + step.out;
    host[now] += step.share;
    device[left[b]] -= step.share;
  }
  for (int b = 0; b < k; ++b) {
    now = std::max(now, back[b]);
    if (b + 1 < k) ask_for(b + 1);
    now += step.backward;
    device[now] -= 1;
  }
  return {now, peak_of(device), peak_of(host)};
}

}  // namespace interlock
