// Reads training.schedule.slices, and cuts sequences into token slices as it says.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/slice_tokens.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/plan/stage_cost.h"
#include "sim/plan/token_slices.h"

namespace interlock {
namespace {

constexpr int kMostSlices = 65'536;
/// Balanced slices are whole multiples of a 128th of the sequence; more would take seconds.
constexpr int kUnits = 128;
/// In which parts of a step are searched first, as there are many sizes.
constexpr int kCoarseUnits = 32;

/// Tokens of a sequence and the units that a search cuts it into, the last one perhaps shorter.
struct Grain {
  int tokens, unit;
  static Grain of(int tokens, int units) { return {tokens, (tokens - 1) / units + 1}; }
  int units() const { return (tokens - 1) / unit + 1; }
  TokenSlice slice(int length, int context) const {
    const int begin = context * unit;
    return {std::min(tokens, (context + length) * unit) - begin, begin, tokens};
  }
};

int tokens_of(const ModelGraph& graph) { return static_cast<int>(*graph.tokens_per_sample); }

/// Time of the busiest rank for one slice of micro-batches of `graph`, forward and backward.
Seconds busiest_rank(const Scenario& scenario, const ModelGraph& graph, const TokenSlice& slice) {
  const int stages = static_cast<int>(scenario.rank_of_stage.size());
  const std::vector<StageRole> roles = make_roles(scenario.strategy, stages, false);
  const PriceInputs prices = price_inputs(scenario);
  const std::vector<StageCost> costs = price_stages(price_modules(graph.slice(slice), prices),
                                                    scenario.partition, scenario.strategy, roles);
  std::vector<Seconds> busy(scenario.ranks);
  for (int stage = 0; stage < stages; ++stage) {
    Seconds& rank = busy[scenario.rank_of_stage[stage]];
    rank += costs[stage].forward.time + costs[stage].recompute.time;
    rank += traversal_cost(costs[stage], scenario.strategy, roles[stage].traversals.back()).time;
  }
  return *std::max_element(busy.begin(), busy.end());
}

SliceTime slice_time(const Scenario& scenario, const ModelGraph& graph, const Grain& grain) {
  return [&scenario, &graph, grain](int length, int context) {
    return busiest_rank(scenario, graph, grain.slice(length, context));
  };
}

SliceInputs slice_inputs(const Scenario& scenario, const Grain& grain) {
  return {.units = grain.units(),
          .stages = scenario.ranks,
          .sequences = scenario.micro_batches,
          .time = slice_time(scenario, scenario.graph, grain)};
}

/// Slices of `lengths` tokens, one behind the other.
std::vector<TokenSlice> in_a_row(const std::vector<int>& lengths) {
  const int of = std::accumulate(lengths.begin(), lengths.end(), 0);
  std::vector<TokenSlice> slices;
  int context = 0;
  for (const int length : lengths) {
    slices.push_back({length, context, of});
    context += length;
  }
  return slices;
}

/// Slices of `lengths` units of `grain`.
std::vector<TokenSlice> in_grains(const std::vector<int>& lengths, const Grain& grain) {
  std::vector<TokenSlice> slices;
  int context = 0;
  for (const int length : lengths) {
    slices.push_back(grain.slice(length, context));
    context += length;
  }
  return slices;
}

Division divide(const Scenario& scenario, const std::vector<BatchPart>& sizes, int samples,
                const Grain& grain) {
  StepInputs inputs{.units = grain.units(), .stages = scenario.ranks, .samples = samples};
  for (const BatchPart& size : sizes) {
    inputs.sizes.push_back({size.samples, slice_time(scenario, *size.graph, grain)});
  }
  return balanced_parts(inputs);
}

/// Of `sizes`, those that `division` uses.
std::vector<BatchPart> used_sizes(const std::vector<BatchPart>& sizes, const Division& division) {
  std::vector<BatchPart> used;
  for (const BatchPart& size : sizes) {
    const auto& parts = division.parts;
    const auto is_size = [&](const SlicedPart& part) { return part.samples == size.samples; };
    if (std::any_of(parts.begin(), parts.end(), is_size)) used.push_back(size);
  }
  return used;
}

std::string in_tokens(std::int64_t tokens) { return std::to_string(tokens) + " tokens"; }

void check_lengths(const SliceKeys& keys, int tokens, Diagnostics& diagnostics) {
  const std::int64_t sum =
      std::accumulate(keys.lengths.begin(), keys.lengths.end(), std::int64_t{0});
  if (keys.kind == SliceKeys::Kind::Explicit && sum != tokens) {
    report(diagnostics, *keys.node,
           "adds up to " + in_tokens(sum) + "; expected the " + std::to_string(tokens) +
               " of a sequence");
  } else if (keys.kind == SliceKeys::Kind::Equal && keys.count > tokens) {
    report(diagnostics, *keys.node,
           "more slices than a sequence has tokens; expected at most " + std::to_string(tokens) +
               ", got " + std::to_string(keys.count));
  }
}

}  // namespace

SliceKeys read_slices(const std::optional<JsonNode>& schedule, Diagnostics& diagnostics) {
  SliceKeys keys;
  if (!schedule || schedule->value->kind != JsonValue::Kind::Object) return keys;
  if (!schedule->value->find("slices")) return keys;
  keys.node = schedule->child("slices");
  const JsonValue& value = *keys.node->value;
  if (value.kind == JsonValue::Kind::Array && !value.items.empty()) {
    keys.kind = SliceKeys::Kind::Explicit;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const auto length = read_count(keys.node->item(i), 1, 1'000'000'000, diagnostics);
      keys.lengths.push_back(length.value_or(1));
    }
    keys.count = static_cast<int>(keys.lengths.size());
  } else if (value.kind == JsonValue::Kind::Number) {
    keys.kind = SliceKeys::Kind::Equal;
    keys.count = read_count(*keys.node, 1, kMostSlices, diagnostics).value_or(1);
  } else if (value.kind == JsonValue::Kind::String) {
    read_choice(*keys.node, contract_names("training.schedule", "slices"), diagnostics);
    keys.count = kUnits;
  } else {
    report(diagnostics, *keys.node,
           "expected \"balanced\", a number of equal slices, or a list with the tokens of each");
  }
  return keys;
}

void check_slices(const TrainingKeys& training, const ModelGraph& graph, Diagnostics& diagnostics) {
  const SliceKeys& keys = training.slices;
  const JsonNode place = keys.node.value_or(training.schedule.value_or(training.node));
  if (!graph.slice) {
    report(diagnostics, place,
           "the samples of " + graph.name +
               " are no sequences of tokens; expected a transformer "
               "or a profile with this schedule");
  } else if (!graph.tokens_per_sample) {
    if (keys.kind != SliceKeys::Kind::Equal) {
      report(diagnostics, place,
             "a profile does not say what a slice costs, so it is cut into equal parts; expected "
             "their number, {\"kind\": \"terapipe\", \"slices\": 8}");
    }
    if (training.balances_batch) {
      report(diagnostics, training.node.child("micro_batch_size"),
             "a profile was measured with one size of micro-batch; expected that size");
    }
  } else {
    check_lengths(keys, tokens_of(graph), diagnostics);
  }
}

void choose_slices(Scenario& scenario, const SliceKeys& keys) {
  const bool counted = !scenario.graph.tokens_per_sample;
  const int tokens = counted ? keys.count : tokens_of(scenario.graph);
  if (keys.kind == SliceKeys::Kind::Explicit) {
    scenario.slices = in_a_row(keys.lengths);
  } else if (keys.kind == SliceKeys::Kind::Equal) {
    scenario.slices = in_a_row(equal_slices(tokens, keys.count));
  } else {
    const Grain grain = Grain::of(tokens, kUnits);
    scenario.slices = in_grains(balanced_slices(slice_inputs(scenario, grain)).lengths, grain);
  }
}

Seconds planned_span(const Scenario& scenario) {
  std::vector<int> lengths;
  for (const TokenSlice& slice : scenario.slices) lengths.push_back(slice.length);
  return span_of(slice_inputs(scenario, {scenario.slices.front().of, 1}), lengths);
}

PartsPlan plan_parts(const Scenario& scenario, std::vector<BatchPart> sizes, int samples) {
  const int tokens = tokens_of(scenario.graph);
  sizes = used_sizes(sizes, divide(scenario, sizes, samples, Grain::of(tokens, kCoarseUnits)));
  if (sizes.size() < 2) return {};
  const Grain grain = Grain::of(tokens, kUnits);
  const Division division = divide(scenario, sizes, samples, grain);
  if (used_sizes(sizes, division).size() < 2) return {};
  PartsPlan plan{.span = division.span};
  for (const SlicedPart& part : division.parts) {
    const auto size = std::find_if(sizes.begin(), sizes.end(),
                                   [&](const BatchPart& s) { return s.samples == part.samples; });
    plan.parts.push_back({part.samples, size->graph, in_grains(part.lengths, grain)});
  }
  return plan;
}

}  // namespace interlock
