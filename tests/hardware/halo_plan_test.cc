// Halo exchanges as plans: who sends whom how much, beside the movement of index sets.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <utility>

#include "tests/hardware/movement.h"

namespace interlock::halo_plan_test {
namespace {

constexpr double kBandwidth = 50e9;
constexpr double kLatency = 2e-6;

/// Devices of one node, each with a port of its own.
Cluster node_of(int devices) {
  return {.name = "node",
          .machines = {{.devices_per_node = devices,
                        .port_latency = Seconds(kLatency),
                        .port_bandwidth = BytesPerSecond(kBandwidth)}},
          .devices = devices};
}

std::vector<int> first(int devices) {
  std::vector<int> group(static_cast<std::size_t>(devices));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

using Volumes = std::map<std::pair<int, int>, double>;

Volumes volumes(const std::vector<Flow>& flows) {
  Volumes sums;
  for (const Flow& flow : flows) sums[{flow.from, flow.to}] += flow.bytes.value();
  return sums;
}

}  // namespace

TEST_CASE("a halo exchange sends to neighbours what the movement of even bands sends them") {
  // 24 rows of 10 pixels of 2 bytes, under a 7 x 7 window of stride 2: 3 rows down, 2 rows up.
  const Window window = {.kernel = 7, .stride = 2, .padding = 3};
  for (const int bands : {2, 3, 4}) {
    const Movement movement =
        halo_exchange({{24, 10}, Bytes(2)}, {{bands, 1}, first(bands)}, {window, window});
    const Exchange exchange = {.kind = CollectiveKind::Halo,
                               .axis = MeshAxis::ContextRows,
                               .bytes = Bytes(3 * 10 * 2),
                               .back = Bytes(2 * 10 * 2)};
    const CollectivePlan plan = plan_exchange(node_of(bands), first(bands), exchange);
    CAPTURE(bands);
    CHECK(movement.steps[1].empty());  // columns are whole
    CHECK(volumes(plan.flows) == volumes(movement.steps[0]));
    CHECK(static_cast<int>(plan.flows.size()) == 2 * (bands - 1));
  }
}

TEST_CASE("both ways are under way at once: two bands wait for the larger, inner ones for both") {
  Exchange exchange = {.kind = CollectiveKind::Halo, .bytes = Bytes(3e6), .back = Bytes(2e6)};
  const auto time = [&](int bands) {
    const Cluster node = node_of(bands);
    return time_alone(node, plan_exchange(node, first(bands), exchange)).value();
  };
  const double hop = route(node_of(2), 0, 1).latency.value();
  CHECK(time(1) == 0);
  CHECK(time(2) == doctest::Approx(hop + 3e6 / kBandwidth));
  CHECK(time(3) == doctest::Approx(hop + 5e6 / kBandwidth));
  CHECK(time(8) == time(3));
  exchange.back = Bytes(0);
  CHECK(time(3) == doctest::Approx(hop + 3e6 / kBandwidth));
  std::swap(exchange.bytes, exchange.back);  // what goes back only is something too
  CHECK(time(3) == doctest::Approx(hop + 3e6 / kBandwidth));
  exchange.back = Bytes(0);
  CHECK(time(3) == 0);
}

}  // namespace interlock::halo_plan_test
