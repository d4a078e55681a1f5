// Plans of stages: the forward, and parameters.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/stage_plan.h"

#include <algorithm>

#include "base/error.h"
#include "validate/network/stage_planner.h"

namespace interlock {

StagePlanner::StagePlanner(const PlanInputs& inputs) : inputs_(inputs) {}

StagePlan StagePlanner::plan() {
  const std::vector<Layer>& layers = inputs_.layers;
  CHECK(!layers.empty(), "a stage has layers");
  number_parameters(layers);
  for (const LayerRange& range : inputs_.again) again_.push_back({.layers = range});
  const bool tokens = layers.front().kind == LayerKind::Embedding;
  const int bytes = tokens ? kTokenBytes : inputs_.element;
  const Tensor input = {Place::Input, 0, inputs_.rows, inputs_.columns};
  plan_.input = input.size() * bytes;
  const LayerKind last = layers.back().kind;
  plan_.output = forward(layers, input, {.place = Place::Output}, false);
  if (inputs_.rebuilds) rebuild();
  if (last == LayerKind::CrossEntropy) plan_.output = {};
  plan_backward(has_loss(last));
  return std::move(plan_);
}

void StagePlanner::number_parameters(const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    const auto own = parameters_of("", {layer}).size();
    if (!layer.branch.empty()) {
      number_parameters(layer.branch);
      number_parameters(layer.shortcut);
      continue;
    }
    parameter_of_[&layer] = next_parameter_;
    next_parameter_ += static_cast<int>(own);
    for (const Parameter& parameter : parameters_of("", {layer})) {
      plan_.parameters += parameter.size();
    }
  }
}

Tensor StagePlanner::keep(std::int64_t rows, int columns, int bytes, LayerParts part) {
  const bool again = inside_ != nullptr && is_again(inside_->layers.parts, part);
  std::int64_t& end = again ? kept_again_ : plan_.stash;
  const Tensor tensor = {again ? Place::Again : Place::Stash, end, rows, columns};
  end += tensor.size() * bytes;
  return tensor;
}

/// Returns the output of `layer` for the input `x`, without a place yet.
Tensor StagePlanner::made(const Layer& layer, const Tensor& x) const {
  Tensor y = {.rows = x.rows, .columns = layer.outputs};
  if (layer.kind == LayerKind::Convolution) {
    const auto pixels = [&](int read) { return (read + layer.stride - 1) / layer.stride; };
    y.rows = std::int64_t{inputs_.samples} * pixels(layer.rows) * pixels(layer.columns);
  } else if (layer.kind == LayerKind::AveragePool) {
    y.rows = inputs_.samples;
  } else if (layer.kind == LayerKind::Residual && !layer.shortcut.empty()) {
    y.rows = made(layer.shortcut.front(), x).rows;
  }
  return y;
}

/// Returns the place where layer `index` reads the `tensor` before it: in the stash, for its
/// backward.
Tensor StagePlanner::home_before(const std::vector<Layer>& layers, std::size_t index, Tensor tensor,
                                 const Tensor& target, LayerParts part) {
  if (index == layers.size()) {
    Tensor home = target;
    home.rows = tensor.rows;
    home.columns = tensor.columns;
    return home;
  }
  const Layer& layer = layers[index];
  if (layer.kind == LayerKind::Relu) return home_before(layers, index + 1, tensor, target, part);
  if (layer.kind == LayerKind::Residual) return home_before(layer.branch, 0, tensor, target, part);
  const bool logits = layer.kind == LayerKind::CrossEntropy;
  return keep(tensor.rows, tensor.columns, logits ? std::max(4, inputs_.element) : inputs_.element,
              part);
}

Tensor StagePlanner::forward(const std::vector<Layer>& layers, Tensor x, const Tensor& target,
                             bool accumulate) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    if (is_top(layers)) begin_again(i, x);
    Again* const inside = inside_;
    if (is_top(layers) && leaves(i)) inside_ = nullptr;
    const bool in_place = layer.kind == LayerKind::Relu || layer.kind == LayerKind::CrossEntropy;
    const LayerParts part = layer.kind == LayerKind::Attention ? LayerParts() : layer.part;
    const Tensor y = in_place ? x : home_before(layers, i + 1, made(layer, x), target, part);
    inside_ = inside;
    const std::size_t first_step = plan_.forward.size();
    forward_layer(layer, x, y, accumulate && i + 1 == layers.size());
    if (is_top(layers)) end_again(i, first_step);
    x = y;
  }
  return x;
}

void StagePlanner::forward_layer(const Layer& layer, const Tensor& x, const Tensor& y,
                                 bool accumulate) {
  if (layer.kind == LayerKind::Residual) {
    kept_[&layer].x = x;
    forward(layer.branch, x, y, false);
    if (layer.shortcut.empty()) {
      plan_.forward.push_back({.kind = StepKind::Add, .x = x, .dx = y});
    } else {
      forward(layer.shortcut, x, y, true);
    }
    return;
  }
  Kept& kept = kept_[&layer];
  kept.x = x;
  if (layer.kind == LayerKind::Coupling) {
    const bool to = layer.to_second;
    forward(layer.branch, half_of(x, !to), half_of(y, to), false);
    plan_.forward.push_back({.kind = StepKind::Add, .x = half_of(x, to), .dx = half_of(y, to)});
    plan_.forward.push_back({.kind = StepKind::Copy, .x = half_of(x, !to), .dx = half_of(y, !to)});
    return;
  }
  if (layer.kind == LayerKind::Attention) {
    const std::int64_t rows = x.rows * layer.heads;
    if (layer.fused) {
      kept.statistics = keep(rows, 1, statistic_bytes(inputs_.element), layer.part);
      kept.output = y;
    } else {
      kept.probabilities = keep(rows, layer.positions, inputs_.element, layer.part);
    }
  }
  plan_.forward.push_back({.layer = &layer,
                           .parameter = parameter_of_[&layer],
                           .x = x,
                           .y = y,
                           .probabilities = kept.probabilities,
                           .statistics = kept.statistics,
                           .accumulate = accumulate});
}

void StagePlanner::plan_backward(bool loss) {
  const Tensor dy = {Place::OutputGradient, 0, plan_.output.rows, plan_.output.columns};
  Want want;
  switch (inputs_.input_gradient) {
    case Place::None:
      break;
    case Place::Workspace:
      want.kind = Want::Kind::Anywhere;
      break;
    default:
      want = {Want::Kind::At, {Place::InputGradient, 0, inputs_.rows, inputs_.columns}};
  }
  const Gradient top = {dy, false};
  for (const Again& module : again_) plan_.workspace = std::max(plan_.workspace, module.bytes);
  last_ = true;
  steps_ = &plan_.backward;
  backward(inputs_.layers, top, want, inputs_.input_rectified);
  settle_room();
  plan_.splits = splits();
  if (loss) return;
  last_ = false;
  steps_ = &plan_.passing;
  backward(inputs_.layers, top, want, inputs_.input_rectified);
  settle_room();
}

StagePlan plan_stage(const PlanInputs& inputs) { return StagePlanner(inputs).plan(); }

Tensor half_of(const Tensor& whole, bool second) {
  CHECK(whole.stride == 0 && whole.columns % 2 == 0, "a tensor has two halves");
  Tensor half = whole;
  half.stride = whole.columns;
  half.columns = whole.columns / 2;
  half.first_column = second ? half.columns : 0;
  return half;
}

bool ends_rectified(const std::vector<Layer>& layers) {
  return !layers.empty() && layers.back().kind == LayerKind::Relu;
}

}  // namespace interlock
