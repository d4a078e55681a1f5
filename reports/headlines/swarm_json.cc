// Writes the outcome of a swarm: rates, moves, losses and traffic over seeds.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/swarm_json.h"

#include <nlohmann/json.hpp>

#include "reports/headlines/run_json.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Spread scaled(const Spread& spread, double factor) {
  return {.mean = spread.mean * factor,
          .deviation = spread.deviation * factor,
          .p5 = spread.p5 * factor,
          .p50 = spread.p50 * factor,
          .p95 = spread.p95 * factor};
}

}  // namespace

Json swarm_json(const SwarmResult& swarm, bool samples_known) {
  const SwarmStatistics& statistics = swarm.statistics;
  const SwarmInputs& inputs = swarm.inputs;
  Json json{{"peers", inputs.peers.size()},
            {"in_flight", *inputs.in_flight},
            {"duration_s", inputs.duration.value()},
            {"warm_up_s", inputs.warm_up.value()},
            {"seeds", statistics.seeds},
            {"samples_per_s", nullptr}};
  if (samples_known) {
    json["samples_per_s"] =
        spread_json(scaled(statistics.micro_batches_per_s, inputs.samples_per_micro_batch));
  }
  json["micro_batches_per_s"] = spread_json(statistics.micro_batches_per_s);
  json["share_of_best"] = spread_json(statistics.share_of_best);
  json["steps"] = spread_json(statistics.steps);
  json["failures"] = spread_json(statistics.failures);
  json["joins"] = spread_json(statistics.joins);
  json["moves"] = spread_json(statistics.moves);
  json["redone"] = spread_json(statistics.redone);
  json["gradients_dropped"] = spread_json(statistics.gradients_dropped);
  json["without_a_peer_s"] = spread_json(statistics.without_a_peer_s);
  json["stage_utilisation"] = statistics.stage_utilisation;
  json["peer_busy"] = statistics.peer_busy;
  const auto traffic = [&](SwarmMessage kind) {
    return statistics.traffic[static_cast<std::size_t>(kind)].value();
  };
  json["traffic_bytes"] = {{"activations", traffic(SwarmMessage::Activation)},
                           {"gradients", traffic(SwarmMessage::Gradient)},
                           {"averaging", traffic(SwarmMessage::Averaging)},
                           {"state", traffic(SwarmMessage::State)},
                           {"lost", statistics.lost.value()}};
  return json;
}

}  // namespace interlock
