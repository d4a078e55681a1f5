// Plans of stages: modules that are computed again before they go back.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "validate/network/stage_planner.h"

namespace interlock {
namespace {

/// Returns the bytes that `parts` of layers, which read `rows` rows, make and do not keep.
std::int64_t bytes_of_parts(const std::vector<Layer>& layers, LayerParts parts, std::int64_t rows,
                            int element) {
  std::int64_t bytes = 0;
  for (const Layer& layer : layers) {
    bytes += bytes_of_parts(layer.branch, parts, rows, element);
    if (layer.part.empty() || !is_again(parts, layer.part)) continue;
    if (layer.kind == LayerKind::Attention) {
      const std::int64_t each =
          layer.fused ? statistic_bytes(element) : std::int64_t{layer.positions} * element;
      bytes += rows * layer.heads * each;
    } else {
      bytes += rows * layer.outputs * element;
    }
  }
  return bytes;
}

}  // namespace

/// Returns the module that is computed again and has `layer`; null if none has.
StagePlanner::Again* StagePlanner::again_at(std::size_t layer) {
  const auto found = std::find_if(again_.begin(), again_.end(), [&](const Again& module) {
    return module.layers.first <= layer && layer < module.layers.end;
  });
  return found == again_.end() ? nullptr : &*found;
}

/// Begins a module that is computed again if `layer`, which reads `x`, is its first. It keeps,
/// beside its input, what a stage of this module alone has for stash.
void StagePlanner::begin_again(std::size_t layer, const Tensor& x) {
  inside_ = again_at(layer);
  if (inside_ == nullptr || inside_->layers.first != layer) return;
  const auto begin = inputs_.layers.begin();
  const std::vector<Layer> own(begin + static_cast<std::ptrdiff_t>(layer),
                               begin + static_cast<std::ptrdiff_t>(inside_->layers.end));
  const LayerParts parts = inside_->layers.parts;
  inside_->bytes = !parts.empty() ? bytes_of_parts(own, parts, x.rows, inputs_.element)
                                  : plan_stage({.layers = own,
                                                .samples = inputs_.samples,
                                                .rows = x.rows,
                                                .columns = x.columns,
                                                .element = inputs_.element})
                                        .stash;
  kept_again_ = -inside_->bytes;
}

/// Returns whether the output of `layer` leaves its module: it is the input of the next one, which
/// is kept.
bool StagePlanner::leaves(std::size_t layer) const {
  if (inside_ == nullptr) return false;
  std::size_t reader = layer + 1;
  while (reader < inputs_.layers.size() && inputs_.layers[reader].kind == LayerKind::Relu) ++reader;
  return reader >= inside_->layers.end;
}

/// Ends the forward of `layer`, planned from `first_step` on: the steps that make a tensor of the
/// module are done again, those that make its output are not.
void StagePlanner::end_again(std::size_t layer, std::size_t first_step) {
  if (inside_ == nullptr) return;
  for (std::size_t i = first_step; i < plan_.forward.size(); ++i) {
    const Step& step = plan_.forward[i];
    const Tensor& made = step.kind == StepKind::Forward ? step.y : step.dx;
    const bool inner =
        step.probabilities.place == Place::Again || step.statistics.place == Place::Again;
    if (made.place == Place::Again || inner) {
      inside_->steps.push_back(step);
    }
  }
  if (layer + 1 < inside_->layers.end) return;
  CHECK(kept_again_ == 0, "what a module keeps again is what it keeps alone");
  inside_ = nullptr;
}

/// Plans what is computed again when a backward comes to `layer`. The last module is computed again
/// before all, even if others above it are not, where there is room for it beside their gradients;
/// each other one where it goes back.
void StagePlanner::compute_again(std::size_t layer) {
  const Again* const last = again_.empty() ? nullptr : &again_.back();
  const bool early = last != nullptr && inputs_.again_early;
  const Again* const module = early && layer >= last->layers.end ? last : again_at(layer);
  end_taken_.push_back({steps_->size(), module == nullptr ? 0 : module->bytes});
  if (module == nullptr) return;
  const bool begins = layer + 1 == inputs_.layers.size();
  if (early && module == last ? !begins : layer + 1 != module->layers.end) return;
  std::vector<Step>& steps = begins ? plan_.again : *steps_;
  if (begins) steps.clear();  // the same before either backward
  steps.insert(steps.end(), module->steps.begin(), module->steps.end());
}

/// Plans to compute again from the output to the input: y1 = x1 + F(x2) with y2 = x2 is undone by
/// x2 = y2, x1 = y1 - F(x2), which leaves the stash of F where its forward has it.
void StagePlanner::rebuild() {
  CHECK(again_.size() == 1, "all layers are computed again together");
  std::vector<Step>& steps = again_.front().steps;
  steps.clear();
  Tensor y = {Place::Returned, 0, plan_.output.rows, plan_.output.columns};
  const auto& layers = inputs_.layers;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (layer->kind != LayerKind::Coupling) return;
    const Tensor x = kept_[&*layer].x;
    const bool to = layer->to_second;
    steps.push_back({.kind = StepKind::Copy, .x = half_of(y, !to), .dx = half_of(x, !to)});
    const Layer *const first = &layer->branch.front(), *const last = &layer->branch.back();
    for (const Step& step : plan_.forward) {
      if (step.layer == nullptr || step.layer < first || step.layer > last) continue;
      steps.push_back(step);
      if (step.layer == last) steps.back().y = half_of(x, to);
    }
    steps.push_back({.kind = StepKind::Less, .x = half_of(y, to), .dx = half_of(x, to)});
    y = x;
  }
}

/// Returns whether the late weight gradients read tensors that stay: none of the workspace, and
/// those of no more than one module that is computed again, as the next one takes their place.
bool StagePlanner::splits() const {
  const auto modules = std::count_if(again_.begin(), again_.end(),
                                     [](const Again& module) { return module.bytes > 0; });
  return std::none_of(plan_.backward.begin(), plan_.backward.end(), [&](const Step& step) {
    const bool again = step.x.place == Place::Again || step.y.place == Place::Again;
    return step.late && (step.y.place == Place::Workspace || (again && modules > 1));
  });
}

}  // namespace interlock
