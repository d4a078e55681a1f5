// Plans of stages: the backwards.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "validate/network/stage_planner.h"

namespace interlock {
namespace {

bool same_place(const Tensor& a, const Tensor& b) {
  return a.place == b.place && a.offset == b.offset;
}

}  // namespace

/// Plans the backward through `layers`, last to first. `dy` itself stays the caller's.
Tensor StagePlanner::backward(const std::vector<Layer>& layers, const Gradient& dy,
                              const Want& want, bool rectified) {
  Gradient gradient = dy;
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (is_top(layers)) compute_again(i);
    const bool first = i == 0;
    const bool after_relu = first ? rectified : layers[i - 1].kind == LayerKind::Relu;
    Want own = first ? want : Want{.kind = Want::Kind::Anywhere};
    if (!first && layers[i - 1].kind == LayerKind::Goodness) own = {};  // which reads none
    const Tensor below = backward_layer(layers[i], gradient, own, after_relu);
    const bool made_here = !same_place(gradient.tensor, dy.tensor);
    if (made_here && !same_place(gradient.tensor, below)) give_back(gradient.tensor);
    const bool moved = !same_place(below, dy.tensor);
    gradient = {below, moved ? below.place == Place::Workspace : gradient.spare};
  }
  return gradient.tensor;
}

Tensor StagePlanner::backward_layer(const Layer& layer, const Gradient& dy, const Want& want,
                                    bool rectified) {
  switch (layer.kind) {
    case LayerKind::Relu:
      return dy.tensor;  // the layer after it has masked the gradient
    case LayerKind::Goodness:
      return backward_goodness(layer);
    case LayerKind::Residual:
      return backward_residual(layer, dy, want, rectified);
    case LayerKind::Coupling:
      CHECK(!rectified, "no Relu comes before a coupling");
      return backward_coupling(layer, dy, want);
    case LayerKind::Embedding:
      if (last_) steps_->push_back(step_of(StepKind::BackwardWeight, layer, dy.tensor));
      return {};
    case LayerKind::Linear:
    case LayerKind::Convolution:
      return backward_product(layer, dy, want, rectified);
    default:
      return backward_in_place(layer, dy, want, rectified);
  }
}

Step StagePlanner::step_of(StepKind kind, const Layer& layer, const Tensor& dy) {
  const bool makes_late = layer.kind == LayerKind::Linear || layer.kind == LayerKind::Embedding ||
                          layer.kind == LayerKind::Convolution;
  const Kept& kept = kept_[&layer];
  return {.kind = kind,
          .layer = &layer,
          .parameter = parameter_of_[&layer],
          .x = kept.x,
          .y = dy,
          .probabilities = kept.probabilities,
          .statistics = kept.statistics,
          .output = kept.output,
          .late = kind == StepKind::BackwardWeight && makes_late};
}

/// Turns the gradient of a Relu's output into that of its input.
void StagePlanner::mask(const Tensor& made, const Tensor& gradient) {
  CHECK(!same_place(made, gradient), "what a Relu made is there until its gradient is masked");
  steps_->push_back({.kind = StepKind::Mask, .x = made, .dx = gradient});
}

/// Plans a layer whose weight gradient reads what it kept.
Tensor StagePlanner::backward_product(const Layer& layer, const Gradient& dy, const Want& want,
                                      bool rectified) {
  Step step = step_of(StepKind::BackwardInput, layer, dy.tensor);
  if (want.kind != Want::Kind::Nowhere) {
    const bool given = want.kind == Want::Kind::At;
    step.dx = given ? want.at : take(step.x.rows, step.x.columns);
    step.accumulate = given && want.accumulate;
    steps_->push_back(step);
    if (rectified) mask(step.x, step.dx);
  }
  if (last_) steps_->push_back(step_of(StepKind::BackwardWeight, layer, dy.tensor));
  return step.dx;
}

/// Plans a layer whose input gradient is the last to read what it kept, and may take its place.
Tensor StagePlanner::backward_in_place(const Layer& layer, const Gradient& dy, const Want& want,
                                       bool rectified) {
  const bool weighted = layer.kind == LayerKind::LayerNorm || layer.kind == LayerKind::BatchNorm ||
                        layer.kind == LayerKind::Scale;
  if (last_ && weighted) {
    steps_->push_back(step_of(StepKind::BackwardWeight, layer, dy.tensor));
  }
  if (want.kind == Want::Kind::Nowhere) return {};
  Step step = step_of(StepKind::BackwardInput, layer, dy.tensor);
  const bool pools = layer.kind == LayerKind::AveragePool;
  CHECK(!rectified || pools, "a layer that masks the gradient of a Relu keeps what that made");
  step.rectified = rectified;
  const bool like_output = layer.kind != LayerKind::Attention && !pools;
  if (want.kind == Want::Kind::At) {
    step.dx = want.at;
    step.accumulate = want.accumulate;
  } else if (last_) {
    step.dx = step.x;
  } else if (like_output && dy.spare) {
    step.dx = dy.tensor;
  } else {
    step.dx = take(step.x.rows, step.x.columns);
  }
  if (layer.kind == LayerKind::Attention && !layer.fused) {
    const bool in_place = same_place(step.dx, step.x);  // a head's queries are set aside
    const int size = in_place ? layer.outputs / layer.heads : 0;
    step.scratch = take(layer.positions, layer.positions + size);
  }
  steps_->push_back(step);
  give_back(step.scratch);
  return step.dx;
}

/// Plans the gradient of a loss of its own, in the place of what it is made of, as all others
/// before it. Where a Relu made that, it is 0 of a 0, as after a mask.
Tensor StagePlanner::backward_goodness(const Layer& layer) {
  CHECK(last_, "a stage with a loss has one backward");
  Step step = step_of(StepKind::BackwardInput, layer, {});
  step.dx = step.x;
  steps_->push_back(step);
  return step.dx;
}

Tensor StagePlanner::backward_residual(const Layer& layer, const Gradient& dy, const Want& want,
                                       bool rectified) {
  const Tensor x = kept_[&layer].x;
  Tensor dx;
  if (!layer.shortcut.empty()) {
    dx = backward_shortcut(layer, dy, want);
  } else if (want.kind == Want::Kind::Anywhere && !last_ && dy.spare) {
    dx = backward(layer.branch, {dy.tensor, false}, {Want::Kind::At, dy.tensor, true}, false);
  } else {
    dx = backward(layer.branch, {dy.tensor, false}, want, false);
    if (want.kind != Want::Kind::Nowhere) {
      steps_->push_back({.kind = StepKind::Add, .x = dy.tensor, .dx = dx});
    }
  }
  if (rectified && want.kind != Want::Kind::Nowhere) mask(x, dx);
  return dx;
}

/// Plans a coupling: the half that the branch reads gets the gradient of its copy and that of the
/// branch; the gradient of the other half goes on as it is.
Tensor StagePlanner::backward_coupling(const Layer& layer, const Gradient& dy, const Want& want) {
  const bool to = layer.to_second;
  const Gradient of_branch = {half_of(dy.tensor, to), false};
  if (want.kind == Want::Kind::Nowhere) return backward(layer.branch, of_branch, want, false);
  Tensor dx = want.at;
  if (want.kind == Want::Kind::Anywhere) {
    if (!last_ && dy.spare) {
      backward(layer.branch, of_branch, {Want::Kind::At, half_of(dy.tensor, !to), true}, false);
      return dy.tensor;
    }
    const Tensor x = kept_[&layer].x;
    dx = last_ ? x : take(x.rows, x.columns);  // in place: the norm is the last to read it
  }
  CHECK(!want.accumulate, "a coupling is in no other layer");
  backward(layer.branch, of_branch, {Want::Kind::At, half_of(dx, !to), false}, false);
  steps_->push_back({.kind = StepKind::Add, .x = half_of(dy.tensor, !to), .dx = half_of(dx, !to)});
  steps_->push_back({.kind = StepKind::Copy, .x = half_of(dy.tensor, to), .dx = half_of(dx, to)});
  return dx;
}

Tensor StagePlanner::backward_shortcut(const Layer& layer, const Gradient& dy, const Want& want) {
  const Gradient shared = {dy.tensor, false};
  const Tensor dx = backward(layer.branch, shared, want, false);
  if (want.kind == Want::Kind::Nowhere) {
    backward(layer.shortcut, shared, want, false);
  } else {
    backward(layer.shortcut, shared, {Want::Kind::At, dx, true}, false);
  }
  return dx;
}

}  // namespace interlock
