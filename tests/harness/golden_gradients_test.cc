// The gradients that the tests of the authors' interlocking library expect, to the last digit.
// SPDX-License-Identifier: Apache-2.0
//
// Source: github.com/oscarkey/interlocking-backprop, commit e9b2f72, its tests: modules that scale
// their input element by element, heads that do the same by 1, one sample, target 1, a gradient of
// 0.1 at the last output, steps of size 1.
#include <doctest/doctest.h>

#include <array>
#include <map>

#include "sim/plan/schedules/strategy.h"
#include "validate/cpu/cpu_steps.h"

namespace interlock::golden_gradients_test {
namespace {

using Pair = std::array<double, 2>;

std::vector<Layer> scale_layers(bool loss) {
  std::vector<Layer> layers = {
      {.kind = LayerKind::Scale, .name = "scale", .inputs = 2, .outputs = 2}};
  if (loss) layers.push_back({.kind = LayerKind::CrossEntropy, .inputs = 2, .outputs = 2});
  return layers;
}

constexpr std::int32_t kTarget = 1;  // of the only row

char* address(Pair& pair) { return reinterpret_cast<char*>(pair.data()); }

/// A stage of one scale, or a head of one scale and a loss.
struct ScaleStage {
  std::vector<Layer> layers;
  StagePlan plan;
  Pair weight{}, gradient{}, input{}, output{}, stash{}, workspace{};

  StageTensors tensors(const std::vector<char*>& weights, const std::vector<char*>& gradients,
                       Pair* dy, Pair* dx) {
    StageTensors all;
    all.weights = &weights;
    all.gradients = &gradients;
    const auto set = [&](Place place, Pair* pair) {
      all.places[static_cast<std::size_t>(place)] = pair == nullptr ? nullptr : address(*pair);
    };
    set(Place::Input, &input);
    set(Place::Stash, &stash);
    set(Place::Workspace, &workspace);
    set(Place::Output, &output);
    set(Place::OutputGradient, dy);
    set(Place::InputGradient, dx);
    return all;
  }
};

ScaleStage make_scale(bool loss, Pair weight) {
  ScaleStage stage = {.layers = scale_layers(loss), .weight = weight};
  stage.plan = plan_stage({.layers = stage.layers, .samples = 1, .columns = 2, .element = 8});
  return stage;
}

/// Returns the output of `stage` for `input`.
Pair forward(ScaleStage& stage, const Pair& input) {
  const std::vector<char*> weights = {address(stage.weight)}, none = {address(stage.gradient)};
  stage.input = input;
  run_steps<double>(stage.plan.forward, stage.tensors(weights, none, nullptr, nullptr), &kTarget);
  return stage.output;
}

/// The gradient of its input, where `dy` is that of its output.
Pair backward(ScaleStage& stage, Pair dy, bool makes_weight_gradients) {
  const std::vector<char*> weights = {address(stage.weight)}, all = {address(stage.gradient)};
  Pair dx{};
  run_steps<double>(makes_weight_gradients ? stage.plan.backward : stage.plan.passing,
                    stage.tensors(weights, all, &dy, &dx), &kTarget);
  return dx;
}

/// The gradient of a head's loss at what it reads.
Pair head_gradient(const Pair& output) {
  ScaleStage head = make_scale(true, {1, 1});
  const std::vector<char*> weights = {address(head.weight)}, all = {address(head.gradient)};
  Pair dx{};
  head.input = output;
  auto tensors = head.tensors(weights, all, nullptr, &dx);
  run_steps<double>(head.plan.forward, tensors, &kTarget);
  run_steps<double>(head.plan.backward, tensors, &kTarget);
  return dx;
}

/// The weights after one step under `strategy`.
std::vector<Pair> after_a_step(const Strategy& strategy, const std::vector<double>& first,
                               Pair input) {
  const int stages = static_cast<int>(first.size());
  const std::vector<StageRole> roles = make_roles(strategy, stages, false);
  std::vector<ScaleStage> all;
  all.reserve(first.size());
  for (const double weight : first) all.push_back(make_scale(false, {weight, weight}));
  for (ScaleStage& stage : all) input = forward(stage, input);
  std::vector<std::map<int, Pair>> gradients(first.size());  // of outputs, by loss
  for (int s = stages - 1; s >= 0; --s) {
    const auto at = static_cast<std::size_t>(s);
    if (s == stages - 1) gradients[at][s] = {0.1, 0.1};
    if (roles[at].head) gradients[at][s] = head_gradient(all[at].output);
    for (const Traversal& traversal : roles[at].traversals) {
      const Pair dx = backward(all[at], gradients[at].at(traversal.loss), traversal.weights);
      if (traversal.to_previous) gradients[at - 1][traversal.loss] = dx;
    }
  }
  std::vector<Pair> updated;
  updated.reserve(all.size());
  for (const ScaleStage& stage : all) {
    updated.push_back({stage.weight[0] - stage.gradient[0], stage.weight[1] - stage.gradient[1]});
  }
  return updated;
}

void check_step(const Strategy& strategy, const std::vector<double>& first, Pair input,
                const std::vector<Pair>& expected) {
  const std::vector<Pair> updated = after_a_step(strategy, first, input);
  for (std::size_t s = 0; s < expected.size(); ++s) {
    INFO(name_of(strategy), ", module ", s + 1, ": ", updated[s][0], " ", updated[s][1]);
    CHECK(updated[s][0] == doctest::Approx(expected[s][0]).epsilon(1e-14));
    CHECK(updated[s][1] == doctest::Approx(expected[s][1]).epsilon(1e-14));
  }
}

TEST_CASE("the authors' golden gradients come out, under each of their four modes") {
  // End to end their modules have one number each; the second element of the input is zero.
  check_step({.kind = StrategyKind::Global}, {2, 3, 4}, {1, 0}, {{0.8, 2}, {2.2, 3}, {3.4, 4}});
  check_step({.kind = StrategyKind::Local}, {2, 3, 4}, {1, 1}, {{1.5, 2.5}, {2, 4}, {3.4, 3.4}});
  check_step({.kind = StrategyKind::Interlocking, .n_wise = 2}, {2, 3, 4}, {1, 1},
             {{0.5, 3.5}, {2.2, 2.2}, {3.4, 3.4}});
  check_step({.kind = StrategyKind::Interlocking, .n_wise = 3}, {2, 3, 4, 5}, {1, 1},
             {{-4, 8}, {-1, -1}, {1, 1}, {2.6, 2.6}});
}

}  // namespace
}  // namespace interlock::golden_gradients_test
