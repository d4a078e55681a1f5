// A trial: one scenario of a chain of stages, written as the document a user would write, and run.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/trial.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"

namespace interlock {
namespace {

constexpr double kReferenceBandwidth = 1024 * 1000;  // bytes a second: 1000 B a tick

std::string quoted(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "\"%.17g %s\"", value, unit);
  return text;
}

std::string member(const char* key, double value, const char* unit) {
  return "\"" + std::string(key) + "\": " + quoted(value, unit);
}

std::string module_text(const TrialStage& stage) {
  return "{" + member("forward", stage.times.forward.value(), "s") + ", " +
         member("backward_input", stage.times.backward_input.value(), "s") + ", " +
         member("backward_weight", stage.times.backward_weight.value(), "s") + ", " +
         member("update", stage.times.update.value(), "s") + ", " +
         member("head", stage.times.head.value(), "s") + ", " +
         member("output", stage.output.value(), "B") + ", " +
         member("stash", stage.stash.value(), "B") + ", " +
         member("parameters", stage.parameters.value(), "B") + "}";
}

template <class Items, class Text>
std::string list(const Items& items, Text text) {
  std::string joined;
  for (const auto& item : items) joined += (joined.empty() ? "" : ", ") + text(item);
  return "[" + joined + "]";
}

int ranks_of(const Trial& trial) {
  if (trial.placement.empty()) return static_cast<int>(trial.stages.size()) - trial.overlap;
  return *std::max_element(trial.placement.begin(), trial.placement.end()) + 1;
}

std::string cluster_text(const Trial& trial) {
  if (!trial.cluster.empty()) return trial.cluster;
  return "{\"kind\": \"uniform\", \"devices\": " + std::to_string(ranks_of(trial)) +
         ", \"memory\": \"80 GiB\", \"link\": {" + member("latency", trial.latency.value(), "s") +
         ", " + member("bandwidth", trial.bandwidth.value(), "B/s") + "}}";
}

std::string parallel_text(const Trial& trial) {
  std::string text = "{\"pipeline\": " + std::to_string(ranks_of(trial)) +
                     ", \"stages\": " + std::to_string(trial.stages.size() - trial.overlap);
  if (!trial.placement.empty()) {
    text += ", \"placement\": " + list(trial.placement, [](int r) { return std::to_string(r); });
  }
  return text + "}";
}

std::string queue_text(int depth) {
  if (depth < 0) return "\"unlimited\"";
  if (depth == 0) return "\"rendezvous\"";
  return "{\"buffered\": " + std::to_string(depth) + "}";
}

Ticks in_ticks(Seconds time) { return std::llround(time.value() / kTick); }

}  // namespace

std::vector<TrialStage> equal_stages(int count, const StageTimes& times, Seconds occupancy) {
  return std::vector<TrialStage>(count, {.times = times, .output = Bytes(occupancy.value() * 1e9)});
}

EqualChain chain_of(const Trial& trial) {
  const TrialStage& stage = trial.stages.front();
  return {static_cast<int>(trial.stages.size()), stage.times,
          trial.latency + stage.output / trial.bandwidth};
}

std::string n_wise(int n, bool all_heads, bool skipped) {
  return interlocking(std::to_string(n), all_heads, skipped);
}

std::string interlocking(const std::string& n, bool all_heads, bool skipped) {
  return "{\"kind\": \"interlocking\", \"n_wise\": " + n + ", \"heads\": \"" +
         (all_heads ? "all" : "minimal") + "\", \"unneeded_input_gradients\": \"" +
         (skipped ? "skipped" : "computed") + "\"}";
}

std::string rendezvous(const std::string& kind) {
  return "{\"kind\": \"" + kind + "\", \"backward\": \"fused\", \"queue\": \"rendezvous\"}";
}

std::string document(const Trial& trial) {
  return "{\"name\": \"trial\", \"model\": {\"kind\": \"profile\", \"modules\": " +
         list(trial.stages, module_text) + "},\n\"cluster\": " + cluster_text(trial) +
         ",\n\"parallel\": " + parallel_text(trial) + ", \"partition\": " +
         list(trial.stages, [](const TrialStage&) { return std::string("1"); }) +
         ",\n\"training\": {\"strategy\": " + trial.strategy + ", \"schedule\": " + trial.schedule +
         ", \"micro_batches\": " + std::to_string(trial.micro_batches) +
         ", \"steps\": " + std::to_string(trial.steps) + "},\n\"simulate\": {\"engine\": \"" +
         trial.engine + "\"}}";
}

Question load(const Trial& trial) {
  const std::vector<Question> scenarios = load_questions(parse_json(document(trial), "trial"));
  CHECK(scenarios.size() == 1, "a trial is one scenario");
  return scenarios.front();
}

Measurement simulate(const Trial& trial) { return run_scenario(load(trial), false).measurement; }

Traced trace(const Trial& trial) {
  const Question scenario = load(trial);
  Traced traced{.program = lower_plan(make_plan(scenario), scenario.training().steps)};
  run_program(traced.program, scenario.simulation.engine, log_sink(traced.log));
  return traced;
}

double step_time(const Trial& trial) {
  const Metrics metrics = simulate(trial).metrics;
  CHECK(metrics.steady, "no steady state in\n" + document(trial));
  return metrics.step_time.value();
}

Trial trial_of(const ReferenceCase& reference) {
  Trial trial;
  for (const ReferenceStage& stage : reference.stages) {
    const auto seconds = [](Ticks ticks) { return Seconds(static_cast<double>(ticks) * kTick); };
    trial.stages.push_back(
        {.times = {seconds(stage.forward), seconds(stage.backward_input),
                   seconds(stage.backward_weight), seconds(stage.head), seconds(stage.update)},
         .output = Bytes(1000.0 * static_cast<double>(stage.occupancy))});
  }
  const std::vector<int>& own = reference.n_of_losses;
  trial.strategy = !own.empty() ? interlocking(list(own, [](int n) { return std::to_string(n); }),
                                               reference.all_heads, reference.skip_unneeded)
                   : reference.n_wise == 1
                       ? std::string("{\"kind\": \"local\", \"unneeded_input_gradients\": \"") +
                             (reference.skip_unneeded ? "skipped" : "computed") + "\"}"
                       : n_wise(reference.n_wise, reference.all_heads, reference.skip_unneeded);
  trial.schedule = std::string("{\"kind\": \"") + (reference.list ? "list" : "eager") +
                   "\", \"backward\": \"" + (reference.fused ? "fused" : "split") +
                   "\", \"queue\": " + queue_text(reference.depth) +
                   ", \"in_flight\": " + std::to_string(reference.in_flight) +
                   ", \"update_every\": " + std::to_string(reference.update_every) + "}";
  trial.latency = Seconds(static_cast<double>(reference.latency) * kTick);
  trial.bandwidth = BytesPerSecond(kReferenceBandwidth);
  trial.placement = reference.rank_of_stage;
  trial.micro_batches = reference.batches;
  trial.steps = 1;
  return trial;
}

std::vector<ReferenceSpan> spans_of(const Traced& traced) {
  std::vector<ReferenceSpan> spans;
  for (const Span& span : traced.log.spans) {
    const OpInfo& op = traced.program.ops[span.op];
    spans.push_back({letter(op.kind), op.stage, span.micro_batch, op.loss, in_ticks(span.start),
                     in_ticks(span.end)});
  }
  std::sort(spans.begin(), spans.end());
  return spans;
}

bool close(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace interlock
