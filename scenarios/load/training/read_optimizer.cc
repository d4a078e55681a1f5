// Reading "training.optimizer": its kind, formats of its states, bases and predictions.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/training/read_optimizer.h"

#include <array>
#include <string>
#include <string_view>

#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr std::array kOptimizers = {
    Optimizer::Sgd,       Optimizer::SgdMomentum, Optimizer::Adam,
    Optimizer::Adam,      Optimizer::Adam,        Optimizer::Lion,
    Optimizer::Adafactor, Optimizer::Muon,        Optimizer::BasisRotation};
constexpr int kEightBitAdam = 4;
constexpr std::array kMoments = {NumberFormat::Fp32, NumberFormat::Fp16, NumberFormat::Bf16,
                                 NumberFormat::Fp8, NumberFormat::Int8};
constexpr int kNoMasters = 3;

OptimizerRule rule_of(int kind) {
  OptimizerRule rule(kOptimizers[static_cast<std::size_t>(kind)]);
  if (kind == kEightBitAdam) rule.first = rule.second = NumberFormat::Int8;
  return rule;
}

/// Reads what only optimisers with bases have.
void read_bases(Section& section, OptimizerRule& rule) {
  rule.shorter_sides = section.choice("sides") == 1;
  rule.basis_every = section.count("basis_every");
  if (rule.kind == Optimizer::BasisRotation) return;
  for (const char* key : {"sides", "basis_every"}) {
    if (const auto node = section.get(key)) {
      report(section.diagnostics(), *node, "only \"basis-rotation\" has bases");
    }
  }
}

/// Reads how many copies of the weights are predicted, which takes a momentum.
void read_predictions(Section& section, OptimizerRule& rule) {
  rule.predictions = section.count("predictions");
  const bool moves = rule.kind != Optimizer::Sgd && rule.kind != Optimizer::Adafactor;
  if (rule.predictions == 0 || moves) return;
  report(section.diagnostics(), *section.get("predictions"),
         "weights are moved on along a first moment, which this optimiser has not; expected 0");
}

}  // namespace

OptimizerRule read_optimizer(const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::String) {
    const auto kind = read_choice(node, contract_names("training", "optimizer"), diagnostics);
    return kind ? rule_of(*kind) : OptimizerRule();
  }
  if (node.value->kind != JsonValue::Kind::Object) {
    report(diagnostics, node, "expected \"adam\" or {\"kind\": \"adam\", \"masters\": \"none\"}",
           true);
    return {};
  }
  Section section(contract_object("training.optimizer"), node, diagnostics);
  section.require("kind", "an optimiser, e.g. \"adam\"");
  OptimizerRule rule = rule_of(section.choice("kind", 1));
  const int masters = section.choice("masters");
  rule.masters = masters != kNoMasters;
  if (rule.masters) rule.master = kMoments[static_cast<std::size_t>(masters)];
  const auto moment = [&](std::string_view key, NumberFormat& format) {
    if (!section.get(key)) return;
    format = kMoments[static_cast<std::size_t>(section.choice(key, 0))];
  };
  moment("first_moment", rule.first);
  moment("second_moment", rule.second);
  read_bases(section, rule);
  read_predictions(section, rule);
  const int feedback = section.choice("error_feedback");
  if (feedback > 0) rule.feedback = kMoments[static_cast<std::size_t>(feedback) - 1];
  section.finish();
  return rule;
}

void check_optimizer(const Question& question, const JsonNode& document, Diagnostics& diagnostics) {
  const Training& training = question.training();
  const OptimizerRule& rule = training.optimizer;
  const int zero_stage = question.layout.data_parallel.zero_stage;
  const auto refuse = [&](const char* why) {
    report(diagnostics, document.child("parallel").child("zero_stage"), why);
  };
  if (rule.kind == Optimizer::Muon && zero_stage >= 3) {
    refuse("divides every matrix, and muon makes whole ones orthogonal; expected 0 to 2");
  }
  if (rule.kind == Optimizer::BasisRotation && zero_stage >= 3) {
    refuse("divides every matrix, and basis-rotation turns whole ones; expected 0 to 2");
  }
  if (rule.predictions > 0 && zero_stage > 0) {
    refuse("predicted weights are whole on every device; expected 0");
  }
  const ScheduleEntry& schedule = *training.schedule.kind;
  if (!schedule.flushes) return;
  const auto nothing_to = [&](const char* key, const char* what) {
    report(diagnostics, document.child("training").child("optimizer").child(key),
           "every gradient of " + schedule.name +
               " is of the newest weights, so that there is nothing to " + what);
  };
  if (rule.predictions > 0) nothing_to("predictions", "predict; expected 0");
  if (rule.feedback) nothing_to("error_feedback", "correct; expected \"none\"");
}

}  // namespace interlock
