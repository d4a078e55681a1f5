// Chooses the sizes of the micro-batches of a step.
// SPDX-License-Identifier: Apache-2.0
//
// A step of one size is loaded as if that size had been written, and its partition is that of the
// size. A step of several sizes has the partition of the best step of one size.
#include <memory>
#include <string>

#include "scenarios/load/loader.h"
#include "scenarios/plan/choices.h"

namespace interlock {
namespace {

/// A mix gains where a batch is small; every size takes hundreds of prices.
constexpr int kMostSamplesMixed = 128;
constexpr int kLargestPart = 16;  // but for the whole batch

/// Returns `document` with `samples` in a micro-batch.
JsonValue sized(JsonValue document, int samples) {
  set_json(document, "training.micro_batch_size", parse_json(std::to_string(samples), ""), "");
  return document;
}

/// Returns `document` with one micro-batch of `samples` in a step, whose sequences are whole.
JsonValue of_one_part(const JsonValue& document, int samples) {
  JsonValue one = sized(document, samples);
  set_json(one, "training.global_batch_size", parse_json(std::to_string(samples), ""), "");
  set_json(one, "training.schedule", parse_json(R"({"kind": "terapipe", "slices": 1})", ""), "");
  return one;
}

/// Says that slices are chosen too: where they are written, so is their number.
bool balances_slices(const JsonValue& document) {
  const JsonValue* schedule = document.find("training")->find("schedule");
  if (!schedule || schedule->kind != JsonValue::Kind::Object) return true;
  const JsonValue* slices = schedule->find("slices");
  return !slices || holds_text(slices);
}

/// Builds the model for each number of samples that a part of the step may have.
std::vector<SizedBatch> part_sizes(const JsonValue& document, int batch) {
  std::vector<SizedBatch> sizes;
  KnownParts known;
  for (int samples = 1; samples <= batch; ++samples) {
    if (samples > kLargestPart && samples != batch) continue;
    Diagnostics diagnostics;
    Question one = load_question(of_one_part(document, samples), known, diagnostics);
    if (!diagnostics.empty()) continue;  // a key that only fits another size
    sizes.push_back(
        {samples, std::make_shared<const ModelGraph>(std::move(one.training().graph)), {}});
  }
  return sizes;
}

/// Divides the step into parts of several sizes, if that is faster.
void mix_sizes(const std::vector<SizedBatch>& sizes, int batch, Plan& plan) {
  BatchMix mixed = mix_batches(plan, sizes, batch);
  const double better = planned_span(plan).value() * (1 - 1e-9);  // than by rounding alone
  if (mixed.batches.empty() || mixed.span.value() >= better) return;
  const int micro_batches = static_cast<int>(mixed.batches.size());
  plan = with_micro_batches(std::move(plan), micro_batches);
  plan.sized_batches = std::move(mixed.batches);
  plan.slices.clear();
}

/// Returns the plan of the size that takes least of all that divide the batch.
Plan best_size(const Question& question) {
  Plan best = lay_out_one_size(question);
  const int batch = question.training().micro_batches;
  Seconds least = planned_span(best);
  KnownParts known;
  for (int samples = 2; samples <= batch; ++samples) {
    if (batch % samples != 0) continue;
    Diagnostics diagnostics;
    Question candidate = load_question(sized(*question.document, samples), known, diagnostics);
    if (!diagnostics.empty()) continue;  // a key that only fits another size
    Plan plan = lay_out_one_size(candidate);
    const Seconds span = planned_span(plan);
    if (span >= least) continue;
    least = span;
    best = std::move(plan);
  }
  best.question.document = question.document;
  best.question.swept = question.swept;
  best.question.training().balances_batch = false;
  return best;
}

}  // namespace

Plan balance_batch(const Question& question) {
  Plan plan = best_size(question);
  const int batch = question.training().micro_batches;
  const JsonValue& document = *question.document;
  const bool mixes = batch > 2 && batch <= kMostSamplesMixed && balances_slices(document);
  if (mixes) mix_sizes(part_sizes(document, batch), batch, plan);
  return plan;
}

}  // namespace interlock
