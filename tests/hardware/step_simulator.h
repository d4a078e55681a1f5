// A small simulator of single messages on shared links, to judge what is planned as whole flows.
// SPDX-License-Identifier: Apache-2.0
//
// Progressive filling: the rates of all messages under way rise together; those on a link that is
// full stay as they are, the others rise on. It is done anew whenever a message begins or ends.
// A message first takes its route's latency, which occupies nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "hardware/networks/cluster.h"

namespace interlock {

/// One message of one step, sent as soon as those it waits for have arrived.
struct StepMessage {
  int from = 0;
  int to = 0;
  double bytes = 0;
  std::vector<std::size_t> after;   // messages; the latency follows their arrival
  std::vector<std::size_t> behind;  // messages that leave the wire to it, whose latency has passed
  int chunk = 0;                    // of the data
};

struct StepRun {
  double end = 0;
  std::vector<std::size_t> order;  // messages by arrival
};

/// Max-min fair rates of messages on these routes.
inline std::vector<double> fair_rates(const Cluster& cluster,
                                      const std::vector<std::vector<LinkId>>& routes) {
  std::vector<double> rates(routes.size(), 0);
  std::vector<bool> fixed(routes.size(), false);
  std::map<LinkId, double> left;
  for (const auto& links : routes) {
    for (const LinkId id : links) left[id] = link(cluster, id).bandwidth.value();
  }
  for (std::size_t done = 0; done < routes.size();) {
    std::map<LinkId, int> users;
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (fixed[i]) continue;
      for (const LinkId id : routes[i]) ++users[id];
    }
    double rise = std::numeric_limits<double>::infinity();
    LinkId full = -1;
    for (const auto& [id, count] : users) {
      if (left[id] / count < rise) {
        rise = left[id] / count;
        full = id;
      }
    }
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (fixed[i]) continue;
      rates[i] += rise;
      for (const LinkId id : routes[i]) left[id] -= rise;
    }
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (fixed[i] || std::find(routes[i].begin(), routes[i].end(), full) == routes[i].end()) {
        continue;
      }
      fixed[i] = true;
      ++done;
    }
  }
  return rates;
}

inline StepRun simulate_steps(const Cluster& cluster, const std::vector<StepMessage>& messages) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<LinkId>> routes;
  std::vector<double> latency;
  std::vector<double> left;
  std::vector<double> begins(messages.size(), 0);
  std::vector<std::size_t> waits;
  std::vector<std::vector<std::size_t>> before(messages.size());
  std::vector<std::vector<std::size_t>> ahead(messages.size());
  std::vector<bool> ended(messages.size(), false);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Route way = route(cluster, messages[i].from, messages[i].to);
    routes.push_back(way.links);
    latency.push_back(way.latency.value());
    left.push_back(messages[i].bytes);
    waits.push_back(messages[i].after.size() + messages[i].behind.size());
    if (messages[i].after.empty()) begins[i] = latency[i];
    for (const std::size_t other : messages[i].after) before[other].push_back(i);
    for (const std::size_t other : messages[i].behind) ahead[other].push_back(i);
  }
  StepRun run;
  while (run.order.size() < messages.size()) {
    std::vector<std::size_t> active;
    std::vector<std::vector<LinkId>> ways;
    double next = kNever;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (ended[i] || waits[i] > 0) continue;
      if (begins[i] <= run.end) {
        active.push_back(i);
        ways.push_back(routes[i]);
      } else {
        next = std::min(next, begins[i]);
      }
    }
    const std::vector<double> rates = fair_rates(cluster, ways);
    for (std::size_t k = 0; k < active.size(); ++k) {
      next = std::min(next, run.end + left[active[k]] / rates[k]);
    }
    if (next == kNever) break;  // a message that waits for ever
    const double passed = next - run.end;
    run.end = next;
    for (std::size_t k = 0; k < active.size(); ++k) {
      const std::size_t i = active[k];
      left[i] -= rates[k] * passed;
      if (left[i] > 1e-9 * messages[i].bytes) continue;
      ended[i] = true;
      run.order.push_back(i);
      for (const std::size_t waiting : before[i]) {
        --waits[waiting];
        begins[waiting] = std::max(begins[waiting], run.end + latency[waiting]);
      }
      for (const std::size_t waiting : ahead[i]) --waits[waiting];
    }
  }
  return run;
}

}  // namespace interlock
