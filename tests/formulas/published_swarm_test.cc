// The published figures of SWARM: utilisation on slow links, and what rebalancing brings.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>

#include "base/file.h"
#include "base/json/json.h"
#include "sim/plan/schedules/message_bytes.h"
#include "sim/swarm/swarm.h"

namespace interlock::published_swarm_test {
namespace {

constexpr double kTolerance = 10;  // points, see the file

const JsonValue& published() {
  static const JsonValue file = read_json_file(data_folder("validate/published") + "/swarm.json");
  return file;
}

double number(const JsonValue& object, const char* key) { return object.find(key)->number; }

/// A chain of equal blocks that one micro-batch goes through alone, up and down.
SwarmInputs lone_chain(int stages, Seconds compute, Bytes message, Seconds latency) {
  SwarmInputs inputs;
  const BytesPerSecond bandwidth(number(*published().find("table_1"), "bandwidth_b_per_s") / 8);
  for (int stage = 0; stage < stages; ++stage) {
    const bool last = stage + 1 == stages;  // runs its forward once
    inputs.stages.push_back({.forward = last ? compute / 2 : compute / 4,
                             .backward = compute / 2,
                             .input = stage > 0 ? message : Bytes(0),
                             .gradient_message = stage > 0 ? message : Bytes(0)});
    inputs.peers.push_back(
        {.stage = stage, .up = bandwidth, .down = bandwidth, .latency = latency / 2});
  }
  inputs.in_flight = 1;
  inputs.micro_batches = 100;
  inputs.duration = 60 * stages * (compute + 2 * latency + 2 * (message / bandwidth));
  return inputs;
}

TEST_CASE("utilisation grows with the size of a block as published, by formula and simulation") {
  const JsonValue& table = *published().find("table_1");
  for (const JsonValue& row : table.find("rows")->items) {
    const double hidden = number(row, "hidden_size");
    Bytes message(number(table, "tokens") * hidden * 2);
    if (row.find("int8")->boolean) message = cast_bytes(SentFormat::Int8, message, 2);
    const Seconds compute(number(row, "compute_ms") / 1e3);
    const Seconds wire(message.value() * 8 / number(table, "bandwidth_b_per_s"));
    for (std::size_t i = 0; i < table.find("latency_ms")->items.size(); ++i) {
      const Seconds latency(table.find("latency_ms")->items[i].number / 1e3);
      const double told = row.find("utilisation_percent")->items[i].number;
      // An activation comes and a gradient comes, and nothing is computed meanwhile.
      const double formula = 100 * (compute / (compute + 2 * wire + 2 * latency));
      const int stages = 40;
      const SwarmOutcome outcome = simulate_swarm(lone_chain(stages, compute, message, latency), 1);
      double simulated = 0;  // each of the stages computes once while it goes round
      for (const double busy : outcome.peer_busy) simulated += 100 * busy;
      char line[160];
      std::snprintf(
          line, sizeof line, "%-8s %4.0f ms: published %5.2f, formula %5.2f, simulated %5.2f",
          row.find("name")->text.c_str(), 1e3 * latency.value(), told, formula, simulated);
      MESSAGE(line);
      CHECK(std::abs(formula - told) <= kTolerance);
      CHECK(std::abs(simulated - told) <= kTolerance);
      // The chain has one way less than blocks in each direction.
      const Seconds ways = (2 - 2.0 / stages) * (wire + latency);
      CHECK(simulated == doctest::Approx(100 * (compute / (compute + ways))).epsilon(0.02));
    }
  }
}

/// 160 peers that serve 32 stages, each lost once a day and back after eight hours: five peers a
/// stage at first, 3.75 on average.
SwarmInputs preemptible(int stages) {
  SwarmInputs inputs;
  for (int stage = 0; stage < stages; ++stage) {
    const bool last = stage + 1 == stages;
    inputs.stages.push_back({.forward = Seconds(last ? 10 : 5),
                             .backward = Seconds(10),
                             .input = Bytes(1e6),
                             .gradient_message = Bytes(1e6),
                             .gradients = Bytes(1e7),
                             .state = Bytes(6e8)});
  }
  for (int i = 0; i < 5 * stages; ++i) {
    inputs.peers.push_back({.stage = i % stages,
                            .up = BytesPerSecond(25e6),
                            .down = BytesPerSecond(25e6),
                            .latency = Seconds(0.02)});
  }
  inputs.micro_batches = 100'000;  // no averaging, as there
  inputs.redo_lost = false;
  inputs.failures.kinds = {{.mean_life = Seconds(24 * 3600.0), .parts = 5 * stages}};
  inputs.failures.replacement = Seconds(8 * 3600.0);
  inputs.duration = Seconds(32 * 3600.0);
  inputs.warm_up = Seconds(3600);
  return inputs;
}

TEST_CASE("moving a peer every five minutes wins more than ten points of the best rate") {
  const JsonValue& told = *published().find("rebalancing");
  SwarmInputs inputs = preemptible(static_cast<int>(number(told, "stages")));
  double still = 0, moving = 0;
  const int seeds = 2;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    inputs.rebalance_every.reset();
    const SwarmOutcome without = simulate_swarm(inputs, seed);
    still += 100 * without.samples_per_s / without.best_samples_per_s / seeds;
    inputs.rebalance_every = Seconds(number(told, "period_s"));
    const SwarmOutcome with = simulate_swarm(inputs, seed);
    moving += 100 * with.samples_per_s / with.best_samples_per_s / seeds;
    CHECK(with.moves > 10);
  }
  const JsonValue& percent = *told.find("percent_of_optimal");
  MESSAGE("of the best rate: " << still << " % without, " << moving
                               << " % with moves (Poisson failures); published "
                               << number(percent, "not") << " % and "
                               << number(percent, "rebalanced") << " % on the authors' trace");
  CHECK(moving - still > 10);
  CHECK(moving > number(percent, "rebalanced") - 10);
  CHECK(moving < 100);
}

}  // namespace
}  // namespace interlock::published_swarm_test
