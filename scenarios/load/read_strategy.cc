// Reads training.strategy: which loss trains which stage.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr const char* kStrategyPath = "training.strategy";

// By the order of the names in the contract; "pairwise" is interlocking with n_wise 2.
constexpr std::array kKinds = {
    StrategyKind::Global,         StrategyKind::Local,        StrategyKind::Interlocking,
    StrategyKind::Greedy,         StrategyKind::Chunked,      StrategyKind::Overlapping,
    StrategyKind::ForwardForward, StrategyKind::BackLink,     StrategyKind::Tree,
    StrategyKind::Independent,    StrategyKind::Interlocking, StrategyKind::Inference};
constexpr int kPairwise = 10;

/// Reads how many stages losses reach: one number for all, one for each, or "auto".
void read_reach(Section& section, StrategyKeys& keys) {
  Strategy& strategy = keys.strategy;
  keys.reach = section.get("n_wise");
  const SoughtReach sought = {section.count("least_n"), section.number("slowdown")};
  const auto kind = keys.reach ? keys.reach->value->kind : JsonValue::Kind::Number;
  if (kind == JsonValue::Kind::String && keys.reach->value->text == "auto") {
    strategy.sought = sought;
  } else if (kind == JsonValue::Kind::Array) {
    for (const JsonNode& item : section.items_at("n_wise", *keys.reach, "wrong list of N",
                                                 "number: one for the loss of each stage")) {
      strategy.n_of_losses.push_back(section.count_at("n_wise", item).value_or(1));
    }
  } else if (kind == JsonValue::Kind::Number) {
    strategy.n_wise = section.count("n_wise");
  } else {
    report(section.diagnostics(), *keys.reach,
           "wrong type; expected a number of stages, a list with one for the loss of each stage, "
           "or \"auto\", got " +
               described(*keys.reach->value));
  }
  strategy.module_stages = section.count("module_stages");
  if (strategy.module_stages > 1 && (strategy.sought || !strategy.n_of_losses.empty())) {
    report(section.diagnostics(), *section.get("module_stages"),
           "gives modules one loss each; expected \"n_wise\" as one number of modules, got " +
               described(*keys.reach->value));
  }
  if (strategy.sought) return;
  for (const char* key : {"least_n", "slowdown"}) {
    if (const auto node = section.get(key)) {
      report(section.diagnostics(), *node,
             "bounds a search for N; expected it beside \"n_wise\": \"auto\"");
    }
  }
}

void read_object(Section& section, StrategyKeys& keys, int kind) {
  Strategy& strategy = keys.strategy;
  read_reach(section, keys);
  strategy.gradient = static_cast<GradientMode>(section.choice("gradient"));
  if (section.get("heads")) keys.all_heads = section.choice("heads", 0) == 1;
  strategy.skip_unneeded_input_gradients = section.choice("unneeded_input_gradients") == 1;
  strategy.recompute_shared_forward = section.choice("forward") == 1;
  keys.head = section.get("head");
  if (strategy.kind == StrategyKind::Chunked) {
    section.require("chunks", "the number of blocks of stages");
  }
  strategy.chunks = section.count("chunks", 1);
  if (strategy.kind == StrategyKind::BackLink) {
    section.require("modules", "the number of modules that the next stage's error goes down");
  }
  strategy.linked_modules = section.count("modules", 1);
  strategy.arity = section.count("arity");
  strategy.gradient_every = section.count("gradient_every");
  strategy.activation_format = static_cast<SentFormat>(section.choice("activation_format"));
  strategy.gradient_format = static_cast<SentFormat>(section.choice("gradient_format"));
  strategy.noise = static_cast<NoiseSchedule>(section.choice("noise"));
  strategy.module_gradients = section.choice("module_gradients") == 1;
  if (strategy.kind == StrategyKind::Overlapping && strategy.gradient == GradientMode::Mean) {
    report(section.diagnostics(), *section.get("gradient"),
           "an overlapping strategy has no \"mean\"; expected furthest or sum");
  }
  if (kind >= 0) section.refuse_unused(contract_names(kStrategyPath, "kind")[kind], "strategy");
}

/// Returns the digits of "3-wise" or "3wise"; empty for other names.
std::string wise_digits(const std::string& name) {
  const std::size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string rest = name.substr(end);
  return rest == "-wise" || rest == "wise" ? name.substr(0, end) : "";
}

/// Returns the place of the kind that `node` names; -1 and a diagnostic if there is none.
int read_kind_of(const JsonNode& node, Diagnostics& diagnostics) {
  const std::string n =
      node.value->kind == JsonValue::Kind::String ? wise_digits(node.value->text) : "";
  if (n.empty()) {
    return read_choice(node, contract_names(kStrategyPath, "kind"), diagnostics).value_or(-1);
  }
  report(diagnostics, node,
         "unknown name " + in_quotes(node.value->text) +
             "; expected {\"kind\": \"interlocking\", \"n_wise\": " + n + "}");
  return -1;
}

/// Returns what read_kind_of() does of a strategy that is its name alone.
int read_name(const JsonNode& node, Diagnostics& diagnostics) {
  const int kind = read_kind_of(node, diagnostics);
  if (kind >= 0 && kKinds[kind] == StrategyKind::Chunked) {
    report(diagnostics, node, "how many chunks? expected {\"kind\": \"chunked\", \"chunks\": 2}");
  } else if (kind >= 0 && kKinds[kind] == StrategyKind::BackLink) {
    report(diagnostics, node,
           "how many modules? expected {\"kind\": \"backlink\", \"modules\": 2}");
  }
  return kind;
}

}  // namespace

StrategyKeys read_strategy(const JsonNode& node, Diagnostics& diagnostics) {
  const Mistakes mistakes(diagnostics);
  StrategyKeys keys{.node = node};
  int kind = -1;
  if (node.value->kind == JsonValue::Kind::String) {
    kind = read_name(node, diagnostics);
  } else if (node.value->kind != JsonValue::Kind::Object) {
    report(diagnostics, node, "expected the name of a strategy or an object with its \"kind\"",
           true);
  }
  if (kind >= 0) keys.strategy.kind = kKinds[kind];
  if (node.value->kind == JsonValue::Kind::Object) {
    Section section(contract_object(kStrategyPath), node, diagnostics);
    if (const auto named = section.require("kind", "the name of a strategy, e.g. interlocking")) {
      kind = read_kind_of(*named, diagnostics);
    }
    if (kind >= 0) keys.strategy.kind = kKinds[kind];
    read_object(section, keys, kind);
    section.finish();
  }
  if (kind == kPairwise) keys.strategy.n_wise = 2;
  keys.valid = mistakes.none();
  return keys;
}

int read_readout_every(const JsonNode& head) {
  if (head.value->kind != JsonValue::Kind::Object) return 0;
  const JsonValue* weights = head.value->find("weights");
  if (!weights || weights->kind != JsonValue::Kind::Object) return 0;
  Diagnostics reported_elsewhere;
  Section section(contract_object("model.head.weights"), {weights, ""}, reported_elsewhere);
  return section.count("stale_every", 0);
}

}  // namespace interlock
