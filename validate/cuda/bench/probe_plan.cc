// ProbePlan: from probes to layers, from layers to steps.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/bench/probe_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace interlock::cuda {

namespace {

constexpr std::int64_t kBlock = 256;
constexpr int kMostHeads = 16;     // of a sample; further ones are of further samples
constexpr int kTableRows = 4096;   // of embeddings: what look-ups are drawn from
constexpr double kReading = 2e-4;  // s, that a reading shall take at least
constexpr double kClockShare = 0.02;

std::int64_t rounded(std::int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

/// A layer and the rows and columns that it reads.
struct PlacedLayer {
  Layer layer;
  int samples = 1;
  std::int64_t rows = 1;
  int columns = 1;
};

PlacedLayer linear_of(const Probe& probe) {
  const Work& work = probe.work;
  const auto m = std::llround(work.shape.m), n = std::llround(work.shape.n);
  const auto k = std::llround(work.shape.k);
  std::int64_t rows = m, inputs = k, outputs = n;
  if (work.role == OpRole::InputGradient) inputs = n, outputs = k;
  if (work.role == OpRole::WeightGradient) rows = k, inputs = m, outputs = n;
  const Layer layer = {.kind = LayerKind::Linear,
                       .inputs = static_cast<int>(inputs),
                       .outputs = static_cast<int>(outputs),
                       .bias = probe.bias};
  return {layer, 1, rows, static_cast<int>(inputs)};
}

PlacedLayer convolution_of(const Probe& probe) {
  Layer layer = {.kind = LayerKind::Convolution,
                 .inputs = static_cast<int>(probe.inputs),
                 .outputs = static_cast<int>(probe.width),
                 .bias = false};
  layer.kernel = 3;
  layer.rows = layer.columns = static_cast<int>(probe.side);
  return {layer, static_cast<int>(probe.samples), probe.rows, layer.inputs};
}

/// As many heads a sample as models have, as far as they divide the batch.
PlacedLayer attention_of(const Probe& probe) {
  const ::interlock::ProductShape& shape = probe.work.shape;
  const int batch = static_cast<int>(std::lround(shape.batch));
  const int tokens = static_cast<int>(std::lround(shape.m));
  const double size = probe.kind == ProbeKind::Scores ? shape.k : shape.n;
  Layer layer = {.kind = LayerKind::Attention};
  layer.heads = std::min(batch, probe.heads > 0 ? probe.heads : kMostHeads);
  while (batch % layer.heads != 0) --layer.heads;
  layer.positions = tokens;
  layer.outputs = layer.heads * static_cast<int>(std::lround(size));
  layer.inputs = 3 * layer.outputs;
  const int samples = batch / layer.heads;
  return {layer, samples, std::int64_t{samples} * tokens, layer.inputs};
}

PlacedLayer layer_of(const Probe& probe) {
  const int width = static_cast<int>(probe.width);
  Layer layer = {.inputs = width, .outputs = width};
  switch (probe.kind) {
    case ProbeKind::Linear:
      return linear_of(probe);
    case ProbeKind::Convolution:
      return convolution_of(probe);
    case ProbeKind::Scores:
    case ProbeKind::Values:
      return attention_of(probe);
    case ProbeKind::Embedding:
      layer.kind = LayerKind::Embedding;
      layer.inputs = probe.words > 0 ? probe.words : kTableRows;
      return {layer, 1, probe.rows, 1};
    case ProbeKind::LayerNorm:
      layer.kind = LayerKind::LayerNorm;
      break;
    case ProbeKind::CrossEntropy:
      layer.kind = LayerKind::CrossEntropy;
      break;
    case ProbeKind::Relu:
      layer.kind = LayerKind::Relu;
      break;
    default:
      layer.kind = LayerKind::Gelu;
  }
  return {layer, 1, probe.rows, width};
}

/// Returns the step of `role` that training plans for a stage of that layer alone.
Step step_of(const PlacedLayer& placed, ProbePlan& plan, OpRole role) {
  plan.layers = std::make_shared<const std::vector<Layer>>(std::vector<Layer>{placed.layer});
  const bool words = placed.layer.kind == LayerKind::Embedding;
  const StagePlan stage =
      plan_stage({.layers = *plan.layers,
                  .samples = placed.samples,
                  .rows = placed.rows,
                  .columns = placed.columns,
                  .element = static_cast<int>(bytes_of(plan.element)),
                  .input_gradient = words ? Place::None : Place::InputGradient});
  if (role == OpRole::Forward) return stage.forward.front();
  const StepKind kind =
      role == OpRole::InputGradient ? StepKind::BackwardInput : StepKind::BackwardWeight;
  const auto found = std::find_if(stage.backward.begin(), stage.backward.end(),
                                  [&](const Step& step) { return step.kind == kind; });
  CHECK(found != stage.backward.end(), "a probe's layer has the gradient of its role");
  return *found;
}

/// dx is changed by x: the sum of a residual, or the gradient behind a Relu.
Step pair_step(StepKind kind, const Probe& probe) {
  const int columns = static_cast<int>(probe.width);
  return {.kind = kind,
          .x = {Place::Input, 0, probe.rows, columns},
          .dx = {Place::InputGradient, 0, probe.rows, columns}};
}

void note_block(ProbePlan& plan, const Tensor& tensor) {
  if (tensor.place == Place::None) return;
  std::int64_t& bytes = plan.bytes[static_cast<std::size_t>(tensor.place)];
  bytes = std::max(bytes, tensor.offset + tensor.size() * bytes_of(plan.element));
}

/// Returns true if the step reads what its layer read: the input gradient of a product does not.
bool reads_input(const Step& step) {
  if (step.layer == nullptr) return true;
  if (step.layer->kind == LayerKind::Embedding) return false;  // tokens are elsewhere
  const bool product =
      step.layer->kind == LayerKind::Linear || step.layer->kind == LayerKind::Convolution;
  return !(product && step.kind == StepKind::BackwardInput);
}

void note_memory(ProbePlan& plan) {
  const Step& step = plan.step;
  if (reads_input(step)) note_block(plan, step.x);
  // A loss in a forward makes nothing but a number.
  const bool loss = step.layer != nullptr && step.layer->kind == LayerKind::CrossEntropy;
  if (!loss) note_block(plan, step.y);
  note_block(plan, step.dx);
  note_block(plan, step.probabilities);
  if (step.layer == nullptr) return;
  for (const Parameter& parameter : parameters_of("", *plan.layers)) {
    plan.weights.push_back(parameter.size() * bytes_of(plan.element));
  }
  if (step.kind == StepKind::BackwardWeight) plan.gradients = plan.weights;
}

void plan_step(const Probe& probe, ProbePlan& plan) {
  const PlacedLayer placed = layer_of(probe);
  plan.samples = placed.samples;
  plan.rows_per_sample = static_cast<int>(placed.rows / placed.samples);
  const bool labelled = probe.kind == ProbeKind::Embedding || probe.kind == ProbeKind::CrossEntropy;
  plan.tokens = labelled ? placed.rows : 0;
  const bool pair = probe.kind == ProbeKind::Residual ||
                    (probe.kind == ProbeKind::Relu && probe.work.role != OpRole::Forward);
  if (pair) {
    plan.step = pair_step(probe.kind == ProbeKind::Relu ? StepKind::Mask : StepKind::Add, probe);
  } else {
    plan.step = step_of(placed, plan, probe.work.role);
  }
  if (probe.kind == ProbeKind::Scores) plan.call = ProbePlan::Call::Scores;
  if (probe.kind == ProbeKind::Values) plan.call = ProbePlan::Call::Values;
  note_memory(plan);
}

/// That of attention, without the products on both sides: rows of scores, in place.
void plan_softmax(const Probe& probe, ProbePlan& plan) {
  const int columns = static_cast<int>(probe.width);
  plan.call = ProbePlan::Call::Softmax;
  plan.step.probabilities = {Place::Stash, 0, probe.rows, columns};
  if (probe.work.role != OpRole::Forward) {
    plan.step.kind = StepKind::BackwardInput;
    plan.step.dx = {Place::Workspace, 0, probe.rows, columns};
  }
  note_memory(plan);
}

DescentStep descent_of(const Probe& probe) {
  DescentStep step = {.kind = probe.kind == ProbeKind::Adam ? 2 : 1};
  step.rate = 1e-6F;
  step.momentum = 0.9F;
  step.beta1 = 0.9F;
  step.beta2 = 0.999F;
  step.epsilon = 1e-8F;
  return step;
}

/// Blocks after one another, or only how long they are together.
class Places {
 public:
  explicit Places(char* begin) : begin_(begin) {}
  char* take(std::int64_t bytes) {
    if (bytes == 0) return nullptr;
    char* block = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += rounded(bytes);
    return block;
  }
  float* take_fp32(std::int64_t numbers) {
    return reinterpret_cast<float*>(take(numbers * static_cast<std::int64_t>(sizeof(float))));
  }
  std::int64_t used() const { return used_; }

 private:
  char* begin_;
  std::int64_t used_ = 0;
};

ProbeOperands deal_out(const ProbePlan& plan, Places& places) {
  ProbeOperands on;
  for (std::size_t i = 0; i < on.places.size(); ++i) on.places[i] = places.take(plan.bytes[i]);
  for (const std::int64_t bytes : plan.weights) on.weights.push_back(places.take(bytes));
  for (const std::int64_t bytes : plan.gradients) on.gradients.push_back(places.take(bytes));
  if (plan.call != ProbePlan::Call::Descent) return on;
  on.state.weights = on.weights.front();
  on.state.gradients = on.gradients.front();
  if (plan.element == Element::Bf16) on.state.masters = places.take_fp32(plan.size);
  on.state.first = places.take_fp32(plan.size);
  if (plan.descent.kind == 2) on.state.second = places.take_fp32(plan.size);
  return on;
}

}  // namespace

ProbePlan plan_probe(const Probe& probe) {
  CHECK(probe.precision == Precision::Fp32 || probe.precision == Precision::Bf16,
        "GPUs are measured in fp32 and bf16");
  ProbePlan plan;
  plan.element = probe.precision == Precision::Bf16 ? Element::Bf16 : Element::Fp32;
  const std::int64_t size = probe.rows * probe.width, bytes = size * bytes_of(plan.element);
  switch (probe.kind) {
    case ProbeKind::Stream:
      plan.call = ProbePlan::Call::Copy;
      plan.size = size;
      plan.bytes[static_cast<std::size_t>(Place::Input)] = bytes;
      plan.bytes[static_cast<std::size_t>(Place::Output)] = bytes;
      return plan;
    case ProbeKind::Momentum:
    case ProbeKind::Adam:
      plan.call = ProbePlan::Call::Descent;
      plan.size = size;
      plan.descent = descent_of(probe);
      plan.weights = plan.gradients = {bytes};
      return plan;
    case ProbeKind::Softmax:
      plan_softmax(probe, plan);
      return plan;
    default:
      plan_step(probe, plan);
      return plan;
  }
}

ProbeOperands operands_at(const ProbePlan& plan, char* begin) {
  Places places(begin);
  return deal_out(plan, places);
}

std::int64_t operand_bytes(const ProbePlan& plan) {
  Places places(nullptr);
  deal_out(plan, places);
  return places.used();
}

int sets_of(std::int64_t operand_bytes, std::int64_t cache) {
  if (cache == 0) return 1;
  const std::int64_t enough = 2 * cache / std::max<std::int64_t>(1, operand_bytes) + 2;
  return static_cast<int>(std::min<std::int64_t>(enough, kMostRepeats));
}

int repeats_of(double once) {
  return static_cast<int>(std::clamp(std::ceil(kReading / std::max(once, 1e-9)), 1.0,
                                     static_cast<double>(kMostRepeats)));
}

bool clock_moved(int before, int after) {
  if (before == 0 || after == 0) return false;
  return std::abs(after - before) > kClockShare * before;
}

}  // namespace interlock::cuda
