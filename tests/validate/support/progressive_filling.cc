// Max-min fair flows by progressive filling.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/progressive_filling.h"

#include <algorithm>
#include <limits>

namespace interlock {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

struct Filling {
  std::vector<FluidFlow>& flows;
  const std::vector<double>& bandwidths;
  std::vector<int> active = {};  // flows under way
  std::vector<double> left = {}, rates = {};

  /// The rates of the active flows.
  void fill() {
    std::vector<double> room = bandwidths;
    std::vector<int> rising = active;
    double level = 0;
    while (!rising.empty()) {
      std::vector<int> users(bandwidths.size(), 0);
      for (const int flow : rising) {
        for (const int link : flows[flow].links) ++users[link];
      }
      double step = kForever;
      for (std::size_t l = 0; l < room.size(); ++l) {
        if (users[l] > 0) step = std::min(step, room[l] / users[l]);
      }
      level += step;
      std::vector<bool> full(room.size(), false);
      for (std::size_t l = 0; l < room.size(); ++l) {
        if (users[l] == 0) continue;
        full[l] = room[l] / users[l] <= step * (1 + 1e-12);
        room[l] -= step * users[l];
      }
      const auto stops = [&](int flow) {
        return std::any_of(flows[flow].links.begin(), flows[flow].links.end(),
                           [&](int link) { return full[link]; });
      };
      for (const int flow : rising) rates[flow] = level;
      std::erase_if(rising, stops);
    }
  }

  void run() {
    left.assign(flows.size(), 0);
    rates.assign(flows.size(), 0);
    std::vector<int> waiting;
    for (std::size_t f = 0; f < flows.size(); ++f) waiting.push_back(static_cast<int>(f));
    std::sort(waiting.begin(), waiting.end(),
              [&](int a, int b) { return flows[a].start > flows[b].start; });
    double now = 0;
    while (!waiting.empty() || !active.empty()) {
      fill();
      double next = kForever;
      if (!waiting.empty()) next = flows[waiting.back()].start;
      for (const int flow : active) next = std::min(next, now + left[flow] / rates[flow]);
      for (const int flow : active) {
        left[flow] -= rates[flow] * (next - now);
        if (left[flow] <= 1e-9 * flows[flow].bytes) flows[flow].end = next;
      }
      std::erase_if(active, [&](int flow) { return left[flow] <= 1e-9 * flows[flow].bytes; });
      now = next;
      for (; !waiting.empty() && flows[waiting.back()].start <= now; waiting.pop_back()) {
        left[waiting.back()] = flows[waiting.back()].bytes;
        active.push_back(waiting.back());
      }
    }
  }
};

}  // namespace

void fill_progressively(std::vector<FluidFlow>& flows, const std::vector<double>& bandwidths) {
  Filling{flows, bandwidths}.run();
}

}  // namespace interlock
