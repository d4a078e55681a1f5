// Cuts sequences into token slices, and steps into micro-batches of several sizes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/plan/orders/token_slices.h"
#include "sim/plan/stage_cost.h"

namespace interlock {
namespace {

/// Balanced slices are whole multiples of a 128th of the sequence; more would take seconds.
constexpr int kUnits = 128;
/// Slices of equal time are priced one by one, and may be finer.
constexpr int kTimeUnits = 1024, kUnitsOfSlice = 32;
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

/// Returns the time of the busiest rank for one slice of micro-batches of `graph`, forward and
/// backward.
Seconds busiest_rank(const Plan& plan, const ModelGraph& graph, const TokenSlice& slice) {
  const Question& question = plan.question;
  const int stages = question.layout.stages;
  const Training& training = question.training();
  const std::vector<StageRole> roles = make_roles(training.strategy, stages, false);
  const auto places = places_on_machines(question);
  Seconds busiest(0);
  for (std::size_t machine = 0; machine < places.size(); ++machine) {
    if (!places[machine]) continue;
    const std::vector<StageCost> costs = price_stages(
        *priced_in_stages(question, graph.slice(slice), *places[machine], plan.partition),
        plan.partition, training.strategy, roles);
    std::vector<Seconds> busy(question.layout.ranks());
    for (int stage = 0; stage < stages; ++stage) {
      const int rank = plan.rank_of_stage[stage];
      const std::vector<std::size_t> machines = machines_of(question, rank);
      if (std::find(machines.begin(), machines.end(), machine) == machines.end()) continue;
      busy[rank] += costs[stage].forward.time + costs[stage].recompute.time;
      busy[rank] +=
          traversal_cost(costs[stage], training.strategy, roles[stage].traversals.back()).time;
    }
    busiest = std::max(busiest, *std::max_element(busy.begin(), busy.end()));
  }
  return busiest;
}

SliceTime slice_time(const Plan& plan, const ModelGraph& graph, const Grain& grain) {
  return [&plan, &graph, grain](int length, int context) {
    return busiest_rank(plan, graph, grain.slice(length, context));
  };
}

SliceInputs slice_inputs(const Plan& plan, const Grain& grain) {
  return {.units = grain.units(),
          .stages = plan.question.layout.ranks(),
          .sequences = plan.micro_batches,
          .time = slice_time(plan, plan.question.training().graph, grain)};
}

/// Returns slices of `lengths` tokens, one behind the other.
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

/// Returns slices of `lengths` units of `grain`.
std::vector<TokenSlice> in_grains(const std::vector<int>& lengths, const Grain& grain) {
  std::vector<TokenSlice> slices;
  int context = 0;
  for (const int length : lengths) {
    slices.push_back(grain.slice(length, context));
    context += length;
  }
  return slices;
}

Division divide(const Plan& plan, const std::vector<SizedBatch>& sizes, int samples,
                const Grain& grain) {
  StepInputs inputs{
      .units = grain.units(), .stages = plan.question.layout.ranks(), .samples = samples};
  for (const SizedBatch& size : sizes) {
    inputs.sizes.push_back({size.samples, slice_time(plan, *size.graph, grain)});
  }
  return balanced_batches(inputs);
}

/// Returns those of `sizes` that `division` uses.
std::vector<SizedBatch> used_sizes(const std::vector<SizedBatch>& sizes, const Division& division) {
  std::vector<SizedBatch> used;
  for (const SizedBatch& size : sizes) {
    const auto& batches = division.batches;
    const auto is_size = [&](const SlicedBatch& batch) { return batch.samples == size.samples; };
    if (std::any_of(batches.begin(), batches.end(), is_size)) used.push_back(size);
  }
  return used;
}

}  // namespace

std::vector<TokenSlice> cut_sequences(const Plan& plan, const SliceRule& rule) {
  const ModelGraph& graph = plan.question.training().graph;
  const int tokens = graph.tokens_per_sample ? tokens_of(graph) : rule.count;
  switch (rule.kind) {
    case SliceRule::Kind::Explicit:
      return in_a_row(rule.lengths);
    case SliceRule::Kind::Equal:
      return in_a_row(equal_slices(tokens, rule.count));
    case SliceRule::Kind::EqualTime: {
      const Grain fine = Grain::of(tokens, std::max(kTimeUnits, kUnitsOfSlice * rule.count));
      return in_grains(equal_time_slices(fine.units(), rule.count, slice_time(plan, graph, fine)),
                       fine);
    }
    case SliceRule::Kind::Balanced:
      break;
  }
  const Grain grain = Grain::of(tokens, kUnits);
  return in_grains(balanced_slices(slice_inputs(plan, grain)).lengths, grain);
}

Seconds planned_span(const Plan& plan) {
  std::vector<int> lengths;
  for (const TokenSlice& slice : plan.slices) lengths.push_back(slice.length);
  return span_of(slice_inputs(plan, {plan.slices.front().of, 1}), lengths);
}

BatchMix mix_batches(const Plan& plan, std::vector<SizedBatch> sizes, int samples) {
  const int tokens = tokens_of(plan.question.training().graph);
  sizes = used_sizes(sizes, divide(plan, sizes, samples, Grain::of(tokens, kCoarseUnits)));
  if (sizes.size() < 2) return {};
  const Grain grain = Grain::of(tokens, kUnits);
  const Division division = divide(plan, sizes, samples, grain);
  if (used_sizes(sizes, division).size() < 2) return {};
  BatchMix found{.span = division.span};
  for (const SlicedBatch& batch : division.batches) {
    const auto size = std::find_if(sizes.begin(), sizes.end(),
                                   [&](const SizedBatch& s) { return s.samples == batch.samples; });
    found.batches.push_back({batch.samples, size->graph, in_grains(batch.lengths, grain)});
  }
  return found;
}

}  // namespace interlock
