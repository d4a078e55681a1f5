// Chooses the sizes of the micro-batches of a step.
// SPDX-License-Identifier: Apache-2.0
//
// A step of one size is loaded as if that size had been written, and its partition is that of the
// size. A step of several sizes has the partition of the best step of one size.
#include "scenarios/simulate/balance_batch.h"

#include <algorithm>
#include <memory>
#include <string>

#include "scenarios/simulate/slice_tokens.h"

namespace interlock {
namespace {

/// A mix gains where a batch is small; every size takes hundreds of prices.
constexpr int kMostSamplesMixed = 128;
constexpr int kLargestPart = 16;  // but for the whole batch

/// `document` with `samples` in a micro-batch.
JsonValue sized(JsonValue document, int samples) {
  set_json(document, "training.micro_batch_size", parse_json(std::to_string(samples), ""), "");
  return document;
}

/// `document` with one micro-batch of `samples` in a step, whose sequences are whole.
JsonValue of_one_part(const JsonValue& document, int samples) {
  JsonValue one = sized(document, samples);
  set_json(one, "training.global_batch_size", parse_json(std::to_string(samples), ""), "");
  set_json(one, "training.schedule", parse_json(R"({"kind": "terapipe", "slices": 1})", ""), "");
  return one;
}

/// Whether slices are chosen too: where they are written, so is their number.
bool balances_slices(const JsonValue& document) {
  const JsonValue* schedule = document.find("training")->find("schedule");
  if (!schedule || schedule->kind != JsonValue::Kind::Object) return true;
  const JsonValue* slices = schedule->find("slices");
  return !slices || holds_text(slices);
}

std::vector<BatchPart> part_sizes(const JsonValue& document, const LoadScenario& load, int batch) {
  std::vector<BatchPart> sizes;
  for (int samples = 1; samples <= batch; ++samples) {
    if (samples > kLargestPart && samples != batch) continue;
    Diagnostics diagnostics;
    Scenario one = load(of_one_part(document, samples), diagnostics);
    if (!diagnostics.empty()) continue;  // a key that only fits another size
    sizes.push_back({samples, std::make_shared<const ModelGraph>(std::move(one.graph)), {}});
  }
  return sizes;
}

/// Divides the step into parts of several sizes, if that is faster.
void mix_sizes(const std::vector<BatchPart>& sizes, int batch, Scenario& scenario) {
  PartsPlan plan = plan_parts(scenario, sizes, batch);
  const double better = planned_span(scenario).value() * (1 - 1e-9);  // than by rounding alone
  if (plan.parts.empty() || plan.span.value() >= better) return;
  scenario.parts = std::move(plan.parts);
  scenario.slices.clear();
  scenario.micro_batches = static_cast<int>(scenario.parts.size());
  scenario.schedule.update_every = scenario.micro_batches;
}

}  // namespace

void balance_batch(const JsonValue& document, const LoadScenario& load, Scenario& scenario) {
  if (!holds_text(document.find("training")->find("micro_batch_size"))) return;
  const int batch = scenario.micro_batches;
  Seconds least = planned_span(scenario);
  for (int samples = 2; samples <= batch; ++samples) {
    if (batch % samples != 0) continue;
    Diagnostics diagnostics;
    Scenario candidate = load(sized(document, samples), diagnostics);
    if (!diagnostics.empty()) continue;  // a key that only fits another size
    const Seconds span = planned_span(candidate);
    if (span >= least) continue;
    least = span;
    scenario = std::move(candidate);
  }
  const bool mixes = batch > 2 && batch <= kMostSamplesMixed && balances_slices(document);
  if (mixes) mix_sizes(part_sizes(document, load, batch), batch, scenario);
}

}  // namespace interlock
