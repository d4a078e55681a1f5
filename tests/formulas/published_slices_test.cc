// The published step times of TeraPipe, met by simulating slices of a fitted time.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "sim/engines/engines.h"
#include "sim/lower/lower.h"
#include "sim/plan/orders/token_slices.h"

namespace interlock::published_slices_test {
namespace {

constexpr double kTolerance = 0.06;

const JsonValue& published() {
  static const JsonValue file =
      read_json_file(data_folder("validate/published") + "/terapipe.json");
  return file;
}

double number(const JsonValue& object, const char* key) { return object.find(key)->number; }
int count(const JsonValue& object, const char* key) {
  return static_cast<int>(number(object, key));
}

/// t(l, c) of the file, in tokens.
SliceTime slice_time(const JsonValue& fit) {
  const double floor = number(fit, "floor"), fixed = number(fit, "fixed");
  const double token = number(fit, "token"), pair = number(fit, "pair");
  return [=](int length, int context) {
    const double work = token * length + pair * length * (context + length / 2.0);
    return Seconds(std::max(floor, fixed + work));
  };
}

/// One step of equal stages under the schedule, a third of each slice's time forward.
double simulated_step(const SliceInputs& inputs, const std::vector<int>& lengths) {
  const int slices = static_cast<int>(lengths.size());
  LowerInputs lowered{
      .policy = {.kind = &schedule_named("terapipe"), .update_every = inputs.sequences * slices}};
  lowered.cluster = {
      .machines = {{.devices_per_node = inputs.stages, .port_bandwidth = BytesPerSecond(1e9)}},
      .devices = inputs.stages,
      .mesh = true};
  int context = 0;
  for (const int length : lengths) {
    const Seconds third = inputs.time(length, context) / 3;
    const StageCost cost{.forward = {third, Flops(0)},
                         .backward_input = {third, Flops(0)},
                         .backward_weight = {third, Flops(0)}};
    lowered.stages.insert(lowered.stages.end(), inputs.stages, cost);
    context += length;
  }
  lowered.roles = make_roles({}, inputs.stages, false);
  ScheduleInputs order{.stages = inputs.stages,
                       .slices = slices,
                       .micro_batches = inputs.sequences * slices,
                       .roles = lowered.roles,
                       .policy = lowered.policy};
  for (int stage = 0; stage < inputs.stages; ++stage) order.rank_of_stage.push_back(stage);
  lowered.schedule = make_schedule(order);
  return run_native(lower(lowered), {}).makespan.value();
}

/// Slicings in units of `unit` tokens, for the search and for the simulation alike.
struct Case {
  SliceInputs inputs;
  Case(const JsonValue& fit, const JsonValue& sizes, int units, int stages) {
    const int unit = count(sizes, "tokens") / units;
    const SliceTime time = slice_time(fit);
    inputs = {units, stages, count(sizes, "sequences"),
              [=](int length, int context) { return time(length * unit, context * unit); }};
  }
  double step(int slices) const {
    return simulated_step(inputs, equal_slices(inputs.units, slices));
  }
};

double error(double ours, double theirs) { return ours / theirs - 1; }

TEST_CASE("175 G parameters in 1 to 128 slices: the published step times, and where they turn") {
  const JsonValue& fit = *published().find("slice_counts");
  const Case whole(fit, fit, 128, count(fit, "stages"));
  std::map<double, int> ours, theirs;
  std::printf("TeraPipe, GPT-3 175B, 96 stages, two sequences of 2048 tokens\n");
  for (const JsonValue& row : fit.find("rows")->items) {
    const int slices = count(row, "slices");
    const double expected = number(row, "step_s"), found = whole.step(slices);
    std::printf("  %3d slices: published %5.3f s, simulated %5.3f s, %+.1f%%\n", slices, expected,
                found, 100 * error(found, expected));
    CHECK(std::abs(error(found, expected)) < kTolerance);
    ours[found] = slices;
    theirs[expected] = slices;
  }
  CHECK(ours.begin()->second == theirs.begin()->second);  // 16 slices are the best number of them
  const Slicing best = balanced_slices(whole.inputs);
  const double found = simulated_step(whole.inputs, best.lengths);
  const double expected = number(fit, "balanced_step_s");
  std::printf(
      "  balanced, %zu slices of %d to %d tokens: published %5.3f s, simulated %5.3f s, "
      "%+.1f%%\n",
      best.lengths.size(), 16 * best.lengths.front(), 16 * best.lengths.back(), expected, found,
      100 * error(found, expected));
  CHECK(std::abs(error(found, expected)) < kTolerance);
  CHECK(found < ours.begin()->first);
  CHECK(std::is_sorted(best.lengths.rbegin(), best.lengths.rend()));
}

TEST_CASE("the gain of slicing grows with the length of sequences as published") {
  const JsonValue& fit = *published().find("sequence_lengths");
  double before = 1;
  std::printf("TeraPipe, GPT-3 13B, 40 stages\n");
  for (const JsonValue& row : fit.find("rows")->items) {
    const Case sized(fit, row, 64, count(fit, "stages"));
    const Slicing best = balanced_slices(sized.inputs);
    const double whole = sized.step(1), sliced = simulated_step(sized.inputs, best.lengths);
    const double gain = whole / sliced, expected = number(row, "speedup");
    std::printf(
        "  %d tokens: whole %+.1f%%, %zu slices %+.1f%%; gain published %.2f, simulated "
        "%.2f, %+.1f%%\n",
        count(row, "tokens"), 100 * error(whole, number(row, "whole_s")), best.lengths.size(),
        100 * error(sliced, number(row, "balanced_s")), expected, gain,
        100 * error(gain, expected));
    CHECK(std::abs(error(whole, number(row, "whole_s"))) < kTolerance);
    CHECK(std::abs(error(sliced, number(row, "balanced_s"))) < kTolerance);
    CHECK(std::abs(error(gain, expected)) < kTolerance);
    CHECK(gain > before);
    before = gain;
  }
}

}  // namespace
}  // namespace interlock::published_slices_test
