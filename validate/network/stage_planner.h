// StagePlanner: how a StagePlan is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "validate/network/stage_plan.h"

namespace interlock {

class StagePlanner {
 public:
  static constexpr int kTokenBytes = 8;  // as models/ counts them

  explicit StagePlanner(const PlanInputs& inputs);
  StagePlan plan();

 private:
  struct Kept {
    Tensor x, probabilities, statistics, output;
  };
  /// A gradient on its way down; `spare`: it has no further reader.
  struct Gradient {
    Tensor tensor;
    bool spare = false;
  };
  /// The place that a gradient shall have.
  struct Want {
    enum class Kind : std::uint8_t { Nowhere, Anywhere, At };
    Kind kind = Kind::Nowhere;
    Tensor at = {};
    bool accumulate = false;
  };
  /// A module that is computed again: bytes of what it makes, and the steps that make it.
  struct Again {
    LayerRange layers;
    std::int64_t bytes = 0;
    std::vector<Step> steps = {};
  };
  /// A tensor of the workspace. Until all are known its offset is a number of its own. Example: 64
  /// bytes for steps [0, 2), 96 for [1, 3) and 64 for [2, 4) take 160: the third lies where the
  /// first did.
  struct Taken {
    std::int64_t offset = 0, bytes = 0;
    std::size_t begin = 0, end = 0;  // steps that it lives through: [begin, end)
  };
  /// From step `begin` on, `bytes` at the end belong to a module that is computed again.
  struct EndTaken {
    std::size_t begin = 0;
    std::int64_t bytes = 0;
  };

  void number_parameters(const std::vector<Layer>& layers);
  /// Keeps a tensor, unless `part`, which makes it, is computed again.
  Tensor keep(std::int64_t rows, int columns, int bytes, LayerParts part);
  bool is_top(const std::vector<Layer>& layers) const { return &layers == &inputs_.layers; }
  Tensor made(const Layer& layer, const Tensor& x) const;
  Tensor home_before(const std::vector<Layer>& layers, std::size_t index, Tensor tensor,
                     const Tensor& target, LayerParts part);
  Tensor forward(const std::vector<Layer>& layers, Tensor x, const Tensor& target, bool accumulate);
  void forward_layer(const Layer& layer, const Tensor& x, const Tensor& y, bool accumulate);

  // stage_again.cc
  Again* again_at(std::size_t layer);
  void begin_again(std::size_t layer, const Tensor& x);
  bool leaves(std::size_t layer) const;
  void end_again(std::size_t layer, std::size_t first_step);
  void compute_again(std::size_t layer);
  void rebuild();
  bool splits() const;

  void plan_backward(bool loss);
  Tensor backward(const std::vector<Layer>& layers, const Gradient& dy, const Want& want,
                  bool rectified);
  Tensor backward_layer(const Layer& layer, const Gradient& dy, const Want& want, bool rectified);
  Tensor backward_product(const Layer& layer, const Gradient& dy, const Want& want, bool rectified);
  Tensor backward_in_place(const Layer& layer, const Gradient& dy, const Want& want,
                           bool rectified);
  Tensor backward_goodness(const Layer& layer);
  Tensor backward_residual(const Layer& layer, const Gradient& dy, const Want& want,
                           bool rectified);
  Tensor backward_coupling(const Layer& layer, const Gradient& dy, const Want& want);
  Tensor backward_shortcut(const Layer& layer, const Gradient& dy, const Want& want);
  Step step_of(StepKind kind, const Layer& layer, const Tensor& dy);
  void mask(const Tensor& made, const Tensor& gradient);
  // stage_room.cc
  Tensor take(std::int64_t rows, int columns);
  void give_back(const Tensor& tensor);
  std::int64_t end_taken(const Taken& tensor) const;
  std::int64_t most_alive() const;
  std::int64_t lay_out(const std::vector<std::size_t>& order, std::optional<std::int64_t> ends,
                       std::vector<std::int64_t>& offsets) const;
  std::vector<std::int64_t> best_offsets(std::int64_t& needed) const;
  void settle_room();

  const PlanInputs& inputs_;
  StagePlan plan_;
  std::map<const Layer*, int> parameter_of_;
  std::map<const Layer*, Kept> kept_;
  int next_parameter_ = 0;
  bool last_ = true;  // of the backwards: makes weight gradients
  std::vector<Step>* steps_ = nullptr;
  std::vector<Taken> taken_;
  std::int64_t next_offset_ = 0;
  std::vector<EndTaken> end_taken_;
  std::vector<Again> again_;
  Again* inside_ = nullptr;      // of these: what the layers at hand keep is theirs
  std::int64_t kept_again_ = 0;  // of inside_: where the next tensor lies
};

}  // namespace interlock
