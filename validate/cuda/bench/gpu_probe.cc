// GpuProbe: noise, tokens and targets go up; then what training would call is called.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/bench/gpu_probe.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/draws.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

constexpr int kNumbers = 262'139;      // before they repeat; a prime, so that rows differ
constexpr std::int64_t kLabels = 512;  // bytes before the labels: the loss

std::int64_t rounded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

const std::vector<float>& noise() {
  static const std::vector<float> numbers = [] {
    Random random(1, 11);
    std::vector<float> drawn(kNumbers);
    for (float& number : drawn) number = static_cast<float>(draw_normal(random));
    return drawn;
  }();
  return numbers;
}

/// Runs the part of a probe: of an attention, of a step, or of a kernel that is not a step.
void run_part(const GpuKernel& k, ProbePlan::Call call) {
  const bool forward = k.step.kind == StepKind::Forward;
  if (call == ProbePlan::Call::Scores && forward) return attention_scores(k);
  if (call == ProbePlan::Call::Values && forward) return attention_values(k);
  const AttentionScratch scratch = attention_scratch(k);
  if (call == ProbePlan::Call::Values) return attention_value_gradients(k, scratch);
  set_queries_aside(k, scratch);
  attention_score_gradients(k, scratch);
}

void run_softmax(const GpuKernel& k) {
  const Matrix shape = shape_of(k.step.probabilities);
  char* weights = k.at(k.step.probabilities);
  if (k.step.kind == StepKind::Forward) return causal_softmax(k.stream(), weights, 1, shape);
  causal_softmax_gradient(k.stream(), k.at(k.step.dx), weights, 1, shape);
}

}  // namespace

void fill_with_noise(const Stream& stream, char* begin, std::int64_t bytes) {
  const std::vector<float>& numbers = noise();
  const std::int64_t period = kNumbers * bytes_of(stream.element);
  const std::int64_t first = std::min(bytes, period) / bytes_of(stream.element);
  const auto send = [&](const auto& host) {
    require(cudaMemcpyAsync(begin, host.data(), static_cast<std::size_t>(first) * sizeof(host[0]),
                            cudaMemcpyHostToDevice, stream.handle),
            "send noise");
    require(cudaStreamSynchronize(stream.handle), "send noise");
  };
  if (stream.element == Element::Fp32) {
    send(numbers);
  } else {
    std::vector<__nv_bfloat16> narrow(numbers.size());
    std::transform(numbers.begin(), numbers.end(), narrow.begin(),
                   [](float number) { return __float2bfloat16_rn(number); });
    send(narrow);
  }
  // The filled part is copied behind itself, so that the numbers go on repeating.
  for (std::int64_t filled = first * bytes_of(stream.element); filled > 0 && filled < bytes;) {
    const std::int64_t more = std::min(filled, bytes - filled);
    require(cudaMemcpyAsync(begin + filled, begin, static_cast<std::size_t>(more),
                            cudaMemcpyDeviceToDevice, stream.handle),
            "spread noise");
    filled += more;
  }
  require(cudaStreamSynchronize(stream.handle), "spread noise");
}

GpuProbe::GpuProbe(const Probe& probe, const KernelContext& context, Scratch& arena,
                   std::int64_t cache)
    : kind_(probe.kind), role_(probe.work.role), plan_(plan_probe(probe)), context_(context) {
  context_.stream.element = plan_.element;
  steps_ = {plan_.step};
  const std::int64_t each = operand_bytes(plan_), count = sets_of(each, cache);
  const std::int64_t labels = kLabels + rounded(plan_.tokens * 3 * std::int64_t{sizeof(int)});
  char* begin = arena.take(labels + count * each, context_.stream.handle);
  fill_with_noise(context_.stream, begin, labels + count * each);
  put_labels(begin);
  for (std::int64_t i = 0; i < count; ++i) add_set(begin + labels + i * each);
  issue(0);  // chooses algorithms, and makes scratch as large as it has to be
  fill_with_noise(context_.stream, context_.scratch->take(0, context_.stream.handle),
                  context_.scratch->bytes());
}

/// Tokens in no order that a processor could foresee; targets are the columns of a row by turns.
void GpuProbe::put_labels(char* to) {
  labels_.loss = reinterpret_cast<float*>(to);
  if (plan_.tokens == 0) return;
  const auto rows = static_cast<std::size_t>(plan_.tokens);
  const Layer& layer = plan_.layers->front();
  std::vector<std::int32_t> tokens(rows), order(rows), targets(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    tokens[row] =
        static_cast<std::int32_t>(row * 2654435761U % static_cast<std::size_t>(layer.inputs));
    targets[row] = static_cast<std::int32_t>(row % static_cast<std::size_t>(layer.outputs));
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return tokens[static_cast<std::size_t>(a)] < tokens[static_cast<std::size_t>(b)];
  });
  auto* at = reinterpret_cast<std::int32_t*>(to + kLabels);
  const auto send = [&](const std::vector<std::int32_t>& numbers) {
    require(cudaMemcpyAsync(at, numbers.data(), rows * sizeof(numbers[0]), cudaMemcpyHostToDevice,
                            context_.stream.handle),
            "send labels");
    require(cudaStreamSynchronize(context_.stream.handle), "send labels");
    at += rows;
    return at - rows;
  };
  labels_.tokens = send(tokens);
  labels_.order = send(order);
  labels_.targets = send(targets);
}

void GpuProbe::add_set(char* begin) {
  Set& set = sets_.emplace_back();
  set.operands = operands_at(plan_, begin);
  set.tensors.places = set.operands.places;
  set.tensors.weights = &set.operands.weights;
  set.tensors.gradients = &set.operands.gradients;
  set.tensors.samples = plan_.samples;
  set.tensors.rows_per_sample = plan_.rows_per_sample;
  // Squares of gradients are never negative.
  if (set.operands.state.second == nullptr) return;
  require(
      cudaMemsetAsync(set.operands.state.second, 0,
                      static_cast<std::size_t>(plan_.size) * sizeof(float), context_.stream.handle),
      "begin with zeros");
}

void GpuProbe::issue(int number) const {
  const Set& set = sets_[static_cast<std::size_t>(number) % sets_.size()];
  const GpuKernel kernel = {context_, steps_.front(), set.tensors, labels_};
  switch (plan_.call) {
    case ProbePlan::Call::Step:
      return run_steps(context_, steps_, set.tensors, labels_);
    case ProbePlan::Call::Scores:
    case ProbePlan::Call::Values:
      return run_part(kernel, plan_.call);
    case ProbePlan::Call::Softmax:
      return run_softmax(kernel);
    case ProbePlan::Call::Copy:
      return scale(context_.stream, set.operands.places[static_cast<std::size_t>(Place::Output)],
                   set.operands.places[static_cast<std::size_t>(Place::Input)], 1, plan_.size);
    case ProbePlan::Call::Descent:
      return descend(context_.stream, set.operands.state, plan_.descent, plan_.size);
  }
}

std::string GpuProbe::kernel() const {
  static const std::array<const char*, kProbeKinds> kinds = {
      "copy",     "",    "",        "",           "",          "relu",
      "gelu",     "add", "softmax", "layer-norm", "embedding", "cross-entropy",
      "momentum", "adam"};
  static const std::array<const char*, kOpRoles> roles = {"", " forward", " input-gradient",
                                                          " weight-gradient"};
  const std::string name = kinds[static_cast<std::size_t>(kind_)];
  return name.empty() ? context_.products->last_algorithm()
                      : name + roles[static_cast<std::size_t>(role_)];
}

}  // namespace interlock::cuda
