// Reads how long a scenario trains, and counts its steps.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/goal.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/question.h"

namespace interlock {
namespace {

using Unit = TrainingLength::Unit;

void read_further_steps(Section& section, TrainingLength& length) {
  length.further_steps = section.count("further_steps");
  const auto node = section.get("further_steps");
  if (!node || length.unit != Unit::Steps) return;
  report(section.diagnostics(), *node,
         "steps beside steps; expected \"samples\" or \"tokens\" beside it, or all in \"steps\"");
}

/// Returns what a name of interlocking ends with where modules have `stages` stages.
std::string of_modules(int stages) {
  const Strategy pairs = {.kind = StrategyKind::Interlocking, .n_wise = 2, .module_stages = stages};
  return name_of(pairs).substr(std::string("pairwise").size());
}

/// Returns `name` without the stages of modules, if it ends with these.
std::string without_modules(const std::string& name) {
  const std::size_t end = name.find(" of ");
  if (end == name.npos) return name;
  const int stages = std::atoi(name.c_str() + end + 4);
  return stages > 1 && name.substr(end) == of_modules(stages) ? name.substr(0, end) : name;
}

/// Returns whether `name` has the form "3-wise" or "1-2-1-wise": an interlocking strategy with 3,
/// or with a number for the loss of each stage.
bool names_n_wise(const std::string& name) {
  bool digit = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (digit && name.substr(i) == "-wise") return true;
    const bool is_digit = name[i] >= '0' && name[i] <= '9';
    if (!is_digit && !(digit && name[i] == '-')) return false;
    digit = is_digit;
  }
  return false;
}

void check_strategy_name(const JsonNode& node, const std::string& name, Diagnostics& diagnostics) {
  std::vector<std::string> known = contract_names("training.strategy", "kind");
  const std::string kind = without_modules(name);
  if (kind != name && (kind == "pairwise" || names_n_wise(kind))) return;
  if (names_n_wise(name) || std::find(known.begin(), known.end(), name) != known.end()) return;
  known.push_back("3-wise");
  std::string message = "unknown strategy " + in_quotes(name) + "; expected " + join_choices(known);
  if (const auto meant = nearest(name, known))
    message += " (did you mean " + in_quotes(*meant) + "?)";
  report(diagnostics, node, message);
}

void read_strategies(const JsonNode& node, Goal& goal, Diagnostics& diagnostics) {
  if (node.value->kind != JsonValue::Kind::Object) {
    report(diagnostics, node,
           "wrong type; expected an object of lengths by strategy, got " + described(*node.value));
    return;
  }
  for (const JsonMember& member : node.value->members) {
    const JsonNode own = node.child(member.first);
    check_strategy_name(own, member.first, diagnostics);
    Section section(contract_object("goal.strategies"), own, diagnostics);
    goal.strategies.emplace_back(member.first, read_length(section));
    section.finish();
  }
}

/// Names that may stand under "strategies" for `strategy`, the most particular first.
std::vector<std::string> names_for(const Strategy& strategy) {
  if (strategy.kind == StrategyKind::Inference) return {"inference"};
  const std::vector<std::string>& kinds = contract_names("training.strategy", "kind");
  std::vector<std::string> names = {name_of(strategy),
                                    kinds[static_cast<std::size_t>(strategy.kind)]};
  const bool one_n = strategy.n_of_losses.empty() && !strategy.sought;
  if (strategy.kind != StrategyKind::Interlocking || !one_n) return names;
  const std::string wise = std::to_string(strategy.n_wise) + "-wise";
  if (strategy.module_stages == 1) {
    names.insert(names.begin(), wise);
    return names;
  }
  std::vector<std::string> more = {wise + of_modules(strategy.module_stages), wise};
  if (strategy.n_wise == 1) more.push_back("chunked");
  if (strategy.n_wise == 2) more.push_back("pairwise");
  names.insert(names.begin() + 1, more.begin(), more.end());
  return names;
}

}  // namespace

double steps_of(const TrainingLength& length, const StepContent& step) {
  if (length.unit == Unit::Steps) return length.amount;
  const std::optional<double>& each = length.unit == Unit::Samples ? step.samples : step.tokens;
  CHECK(each && *each > 0, "a length in samples or tokens knows those of a step");
  return std::max(std::ceil(length.amount / *each) + length.further_steps, 1.0);
}

TrainingLength read_length(Section& section) {
  TrainingLength length;
  Diagnostics& diagnostics = section.diagnostics();
  const std::optional<JsonNode> steps = section.get("steps"), samples = section.get("samples"),
                                tokens = section.get("tokens");
  if (int{steps.has_value()} + int{samples.has_value()} + int{tokens.has_value()} != 1) {
    if (section.node().value->kind == JsonValue::Kind::Object) {
      report(diagnostics, section.node(),
             "expected how long to train as one of \"steps\", \"samples\" and \"tokens\"");
      length.unit = Unit::Samples;  // further steps are no second mistake
    }
  } else if (steps) {
    length.amount = section.count("steps", 1);
  } else {
    length.unit = samples ? Unit::Samples : Unit::Tokens;
    length.amount = section.written_number(samples ? "samples" : "tokens").value_or(1);
  }
  read_further_steps(section, length);
  return length;
}

void check_length(const Question& question, const TrainingLength& length, const JsonNode& node,
                  Diagnostics& diagnostics) {
  const ModelGraph& graph = question.training().graph;
  const bool tokens = length.unit == Unit::Tokens;
  if (length.unit == Unit::Steps) return;
  if (!graph.samples_per_micro_batch) {
    report(diagnostics, node.child(tokens ? "tokens" : "samples"),
           "nothing says how many samples a micro-batch holds; expected \"steps\", or "
           "training.global_batch_size");
  } else if (tokens && !graph.tokens_per_sample) {
    report(diagnostics, node.child("tokens"),
           "the model has no tokens; expected \"samples\" or \"steps\"");
  }
}

Goal read_goal(const JsonNode& node, Diagnostics& diagnostics) {
  Goal goal;
  Section section(contract_object("goal"), node, diagnostics);
  goal.length = read_length(section);
  if (const auto own = section.get("strategies")) read_strategies(*own, goal, diagnostics);
  section.finish();
  return goal;
}

void check_goal(Question& question, const JsonNode& node, Diagnostics& diagnostics) {
  Goal& goal = *question.goal;
  for (const std::string& name : names_for(question.training().strategy)) {
    for (const auto& [own, length] : goal.strategies) {
      if (own != name) continue;
      goal.length = length;
      return check_length(question, length, node.child("strategies").child(name), diagnostics);
    }
  }
  check_length(question, goal.length, node, diagnostics);
}

}  // namespace interlock
