// Writes the outcome of a training run: plan, checkpoints, and spreads over seeds.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/run_json.h"

#include <nlohmann/json.hpp>

namespace interlock {

using Json = nlohmann::ordered_json;

Json spread_json(const Spread& spread) {
  return {{"mean", spread.mean},
          {"deviation", spread.deviation},
          {"p5", spread.p5},
          {"p50", spread.p50},
          {"p95", spread.p95}};
}

namespace {

Json checkpoint_json(const RunResult& run) {
  const RunPlan& plan = run.plan;
  if (plan.checkpoint.interval == 0) return nullptr;
  const Seconds interval = static_cast<double>(plan.checkpoint.interval) * plan.step_time;
  Json json{{"interval_steps", plan.checkpoint.interval},
            {"interval_s", interval.value()},
            {"write_s", plan.checkpoint.write.value()}};
  for (const char* key : {"optimal_s", "young_s", "daly_s", "expected_wall_s"}) json[key] = nullptr;
  if (!run.costs) return json;
  json["optimal_s"] = optimal_interval(*run.costs).value();
  json["young_s"] = young_interval(*run.costs).value();
  json["daly_s"] = daly_interval(*run.costs).value();
  const Seconds work = static_cast<double>(plan.steps) * plan.step_time;
  const bool formula = plan.on_failure == OnFailure::Restart && !plan.checkpoint.asynchronous;
  if (formula) {
    json["expected_wall_s"] = expected_run_time(work, interval, *run.costs).value();
  }
  return json;
}

}  // namespace

Json run_json(const RunResult& run) {
  const RunPlan& plan = run.plan;
  const RunStatistics& statistics = run.statistics;
  Json json{{"steps", plan.steps},
            {"replicas", plan.replicas},
            {"devices_per_replica", plan.devices_per_replica},
            {"spares", plan.spares},
            {"seeds", statistics.seeds},
            {"fewest_replicas", statistics.fewest_replicas},
            {"mean_time_between_failures_s", nullptr},
            {"checkpoint", checkpoint_json(run)}};
  if (run.costs) {
    json["mean_time_between_failures_s"] = run.costs->mean_time_between_failures.value();
  }
  json["goodput"] = spread_json(statistics.goodput);
  json["wall_s"] = spread_json(statistics.wall);
  json["useful_s"] = spread_json(statistics.useful);
  json["lost_s"] = spread_json(statistics.lost);
  json["checkpoint_s"] = spread_json(statistics.checkpoint);
  json["restart_s"] = spread_json(statistics.restart);
  json["idle_s"] = spread_json(statistics.idle);
  json["failures"] = spread_json(statistics.failures);
  json["rollbacks"] = spread_json(statistics.rollbacks);
  json["checkpoints"] = spread_json(statistics.checkpoints);
  json["redone_steps"] = spread_json(statistics.redone_steps);
  json["redone_micro_batches"] = spread_json(statistics.redone_micro_batches);
  return json;
}

}  // namespace interlock
