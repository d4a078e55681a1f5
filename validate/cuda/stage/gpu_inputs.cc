// GpuInputs: gathers what the job says of every micro-batch, and sends it in one go.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_inputs.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

/// Returns the positions by their token, those of one token in order.
std::vector<std::int32_t> by_token(const std::vector<std::int32_t>& tokens) {
  std::vector<std::int32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return tokens[a] < tokens[b]; });
  return order;
}

void check_range(const std::vector<std::int32_t>& numbers, int end) {
  for (const std::int32_t number : numbers) {
    CHECK(number >= 0 && number < end, "tokens and targets are among those of the model");
  }
}

template <class Number>
std::int64_t size_of(const std::vector<Number>& numbers) {
  return static_cast<std::int64_t>(numbers.size() * sizeof(Number));
}

template <class Number>
Number* send(const std::vector<Number>& numbers, const char* what, std::vector<void*>& blocks) {
  if (numbers.empty()) return nullptr;
  const auto bytes = static_cast<std::size_t>(size_of(numbers));
  void* block =
      allocate(static_cast<std::int64_t>(bytes), std::string(what) + " of all micro-batches");
  blocks.push_back(block);
  require(cudaMemcpy(block, numbers.data(), bytes, cudaMemcpyHostToDevice), "send inputs");
  return static_cast<Number*>(block);
}

}  // namespace

GpuInputs::GpuInputs(const Job& job, int stage, bool loss)
    : batches_(static_cast<std::size_t>(count_batches(job.program))) {
  const bool first = model_stage(job.program, stage) == 0;
  if (!first && !loss) return;
  const NeuralNetwork& network = job.network;
  const auto samples = static_cast<std::size_t>(network.samples_per_micro_batch);
  const std::size_t rows = samples * static_cast<std::size_t>(network.rows_per_sample);
  const bool words = network.samples == SampleKind::Tokens;
  std::vector<std::int32_t> tokens, order, targets;
  std::vector<float> features;
  std::size_t targets_each = 0;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const Batch batch = job.batch(batch_number(job.program, stage, static_cast<int>(i)));
    if (first && words) {
      CHECK(batch.tokens.size() == rows, "a batch has a token for each row of the input");
      const std::vector<std::int32_t> sorted = by_token(batch.tokens);
      tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
      order.insert(order.end(), sorted.begin(), sorted.end());
    } else if (first) {
      CHECK(batch.features.size() == rows * static_cast<std::size_t>(network.features),
            "a batch has the features of each row of the input");
      features.insert(features.end(), batch.features.begin(), batch.features.end());
    }
    targets_each = batch.targets.size();
    if (loss) targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
  }
  check_range(tokens, words ? network.modules.front().layers.front().inputs : 0);
  check_range(targets, network.classes);
  const std::int32_t* at_tokens = send(tokens, "the tokens", blocks_);
  const std::int32_t* at_order = send(order, "the order of tokens", blocks_);
  const std::int32_t* at_targets = send(targets, "the targets", blocks_);
  const float* at_features = send(features, "the features", blocks_);
  bytes_ = size_of(tokens) + size_of(order) + size_of(targets) + size_of(features);
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    GpuBatch& batch = batches_[i];
    if (at_tokens != nullptr) batch.tokens = at_tokens + i * rows;
    if (at_order != nullptr) batch.order = at_order + i * rows;
    if (at_targets != nullptr) batch.targets = at_targets + i * targets_each;
    if (at_features != nullptr) {
      batch.features = at_features + i * rows * static_cast<std::size_t>(network.features);
    }
  }
}

GpuInputs::~GpuInputs() {
  for (void* block : blocks_) cudaFree(block);
}

}  // namespace interlock::cuda
