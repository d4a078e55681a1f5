// Linear layers, convolutions and attention on a GPU: which products they are.
// SPDX-License-Identifier: Apache-2.0
//
// A convolution is the product of its patches with its weights (kernel^2 * inputs, outputs).
#include <cmath>

#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/gpu_kernel.h"

namespace interlock::cuda {

namespace {

/// Returns the shape of y = x w, for the rows of x.
ProductShape forward_of(Matrix x, int outputs) {
  return {.role = ProductRole::Forward,
          .m = x.rows,
          .n = outputs,
          .k = x.columns,
          .lead_a = x.columns,
          .lead_b = outputs,
          .lead_c = outputs};
}

/// Returns the shape of dx = dy w'.
ProductShape input_gradient_of(Matrix x, int outputs) {
  return {.role = ProductRole::InputGradient,
          .m = x.rows,
          .n = x.columns,
          .k = outputs,
          .transpose_b = true,
          .lead_a = outputs,
          .lead_b = outputs,
          .lead_c = x.columns};
}

/// Returns the shape of dw += x' dy.
ProductShape weight_gradient_of(Matrix x, int outputs) {
  return {.role = ProductRole::WeightGradient,
          .m = x.columns,
          .n = outputs,
          .k = x.rows,
          .transpose_a = true,
          .lead_a = x.columns,
          .lead_b = outputs,
          .lead_c = outputs,
          .accumulate = true};
}

Patches patches_of(const GpuKernel& k) {
  const Layer& layer = k.layer();
  return {k.on.samples, layer.rows, layer.columns, layer.inputs, layer.kernel, layer.stride};
}

void add_bias_gradient(const GpuKernel& k) {
  const Matrix shape = shape_of(k.step.y);
  bias_gradient(k.stream(), k.gradient(1), k.at(k.step.y), shape, k.sums(column_scratch(shape, 1)));
}

/// Attention as batches of equal products: either of the heads of each sample, or of the samples of
/// each head, whichever makes fewer batches.
struct HeadBatches {
  int count = 1, batch = 1;
  std::int64_t width = 1, size = 1, tokens = 1;  // numbers of a token's output, of a head; tokens
  std::int64_t qkv_step = 0, out_step = 0, scores_step = 0;  // inside a batch
  std::int64_t qkv_next = 0, out_next = 0, scores_next = 0;  // from one batch to the next

  explicit HeadBatches(const GpuKernel& k) {
    const Layer& layer = k.layer();
    const int samples = static_cast<int>(k.step.x.rows / layer.positions);
    width = layer.outputs;
    size = width / layer.heads;
    tokens = layer.positions;
    const std::int64_t head[3] = {size, size, tokens * tokens};
    const std::int64_t sample[3] = {tokens * 3 * width, tokens * width,
                                    layer.heads * tokens * tokens};
    const bool by_sample = samples <= layer.heads;
    const std::int64_t* inside = by_sample ? head : sample;
    const std::int64_t* next = by_sample ? sample : head;
    count = by_sample ? samples : layer.heads;
    batch = by_sample ? layer.heads : samples;
    qkv_step = inside[0], out_step = inside[1], scores_step = inside[2];
    qkv_next = next[0], out_next = next[1], scores_next = next[2];
  }

  /// Returns the shape of scores = a b', of a and b (tokens, size), rows `lead_a` and `lead_b`
  /// apart.
  ProductShape scores(std::int64_t lead_a, std::int64_t step_a, std::int64_t lead_b,
                      std::int64_t step_b) const {
    return {.role = ProductRole::Attention,
            .m = tokens,
            .n = tokens,
            .k = size,
            .transpose_b = true,
            .lead_a = lead_a,
            .lead_b = lead_b,
            .lead_c = tokens,
            .batch = batch,
            .step_a = step_a,
            .step_b = step_b,
            .step_c = scores_step};
  }

  struct Rows {
    std::int64_t lead = 1, step = 0;
  };
  /// Returns the shape of c = scores b or scores' b, of b and c (tokens, size).
  ProductShape values(bool transposed, Rows b, Rows c) const {
    return {.role = ProductRole::Attention,
            .m = tokens,
            .n = size,
            .k = tokens,
            .transpose_a = transposed,
            .lead_a = tokens,
            .lead_b = b.lead,
            .lead_c = c.lead,
            .batch = batch,
            .step_a = scores_step,
            .step_b = b.step,
            .step_c = c.step};
  }
};

/// Returns the factor of scores: 1 over the root of a head's size.
float score_factor(const GpuKernel& k) {
  const int size = k.layer().outputs / k.layer().heads;
  return 1 / std::sqrt(static_cast<float>(size));
}

}  // namespace

void linear_forward(const GpuKernel& k) {
  ProductShape shape = forward_of(shape_of(k.step.x), k.layer().outputs);
  shape.bias = k.layer().bias;
  k.multiply(shape,
             {k.at(k.step.x), k.weight(), k.at(k.step.y), shape.bias ? k.weight(1) : nullptr});
}

void linear_input_gradient(const GpuKernel& k) {
  ProductShape shape = input_gradient_of(shape_of(k.step.dx), k.layer().outputs);
  shape.accumulate = k.step.accumulate;
  k.multiply(shape, {k.at(k.step.y), k.weight(), k.at(k.step.dx)});
}

void linear_weight_gradient(const GpuKernel& k) {
  k.multiply(weight_gradient_of(shape_of(k.step.x), k.layer().outputs),
             {k.at(k.step.x), k.at(k.step.y), k.gradient()});
  if (k.layer().bias) add_bias_gradient(k);
}

void convolution_forward(const GpuKernel& k) {
  const Patches patches = patches_of(k);
  char* gathered = k.scratch(patches.made().size() * k.element());
  gather_patches(k.stream(), gathered, k.at(k.step.x), patches);
  ProductShape shape = forward_of(patches.made(), k.layer().outputs);
  shape.bias = k.layer().bias;
  k.multiply(shape, {gathered, k.weight(), k.at(k.step.y), shape.bias ? k.weight(1) : nullptr});
}

void convolution_input_gradient(const GpuKernel& k) {
  const Patches patches = patches_of(k);
  const std::int64_t image = k.step.dx.size() * k.element();
  // The patches first, then, if it is added to what is there, the images.
  const std::int64_t whole = patches.made().size() * k.element();
  const std::int64_t beside = (whole + 255) / 256 * 256;
  char* gradient = k.scratch(beside + (k.step.accumulate ? image : 0));
  k.multiply(input_gradient_of(patches.made(), k.layer().outputs),
             {k.at(k.step.y), k.weight(), gradient});
  char* to = k.step.accumulate ? gradient + beside : k.at(k.step.dx);
  gather_patches_gradient(k.stream(), to, gradient, patches);
  if (k.step.accumulate) add(k.stream(), k.at(k.step.dx), k.at(k.step.dx), to, k.step.dx.size());
}

void convolution_weight_gradient(const GpuKernel& k) {
  const Patches patches = patches_of(k);
  char* gathered = k.scratch(patches.made().size() * k.element());
  gather_patches(k.stream(), gathered, k.at(k.step.x), patches);
  k.multiply(weight_gradient_of(patches.made(), k.layer().outputs),
             {gathered, k.at(k.step.y), k.gradient()});
  if (k.layer().bias) add_bias_gradient(k);
}

void attention_scores(const GpuKernel& k) {
  const HeadBatches h(k);
  const std::int64_t element = k.element(), lead = 3 * h.width;
  const char *queries = k.at(k.step.x), *keys = queries + h.width * element;
  for (std::int64_t i = 0; i < h.count; ++i) {
    const std::int64_t from = i * h.qkv_next * element;
    k.multiply(
        h.scores(lead, h.qkv_step, lead, h.qkv_step),
        {queries + from, keys + from, k.at(k.step.probabilities) + i * h.scores_next * element});
  }
}

void attention_values(const GpuKernel& k) {
  const HeadBatches h(k);
  const std::int64_t element = k.element(), lead = 3 * h.width;
  const char *weights = k.at(k.step.probabilities),
             *values = k.at(k.step.x) + 2 * h.width * element;
  for (std::int64_t i = 0; i < h.count; ++i) {
    k.multiply(h.values(false, {lead, h.qkv_step}, {h.width, h.out_step}),
               {weights + i * h.scores_next * element, values + i * h.qkv_next * element,
                k.at(k.step.y) + i * h.out_next * element});
  }
}

void attention_forward(const GpuKernel& k) {
  attention_scores(k);
  causal_softmax(k.stream(), k.at(k.step.probabilities), score_factor(k),
                 shape_of(k.step.probabilities));
  attention_values(k);
}

AttentionScratch attention_scratch(const GpuKernel& k) {
  const std::int64_t scores = k.step.probabilities.size() * k.element();
  const std::int64_t beside = (scores + 255) / 256 * 256;
  char* slopes = k.scratch(beside + k.step.x.rows * k.layer().outputs * k.element());
  return {slopes, slopes + beside};
}

void set_queries_aside(const GpuKernel& k, const AttentionScratch& scratch) {
  const auto row = static_cast<std::size_t>(k.layer().outputs * k.element());
  require(cudaMemcpy2DAsync(scratch.queries, row, k.at(k.step.x), 3 * row, row,
                            static_cast<std::size_t>(k.step.x.rows), cudaMemcpyDeviceToDevice,
                            k.stream().handle),
          "set queries aside");
}

void attention_value_gradients(const GpuKernel& k, const AttentionScratch& scratch) {
  const HeadBatches h(k);
  const std::int64_t element = k.element(), lead = 3 * h.width, value = 2 * h.width * element;
  const char *qkv = k.at(k.step.x), *weights = k.at(k.step.probabilities), *dy = k.at(k.step.y);
  for (std::int64_t i = 0; i < h.count; ++i) {
    const std::int64_t at = i * h.qkv_next * element, out = i * h.out_next * element;
    const std::int64_t score = i * h.scores_next * element;
    k.multiply(h.scores(h.width, h.out_step, lead, h.qkv_step),
               {dy + out, qkv + value + at, scratch.slopes + score});
    k.multiply(h.values(true, {h.width, h.out_step}, {lead, h.qkv_step}),
               {weights + score, dy + out, k.at(k.step.dx) + value + at});
  }
}

void attention_score_gradients(const GpuKernel& k, const AttentionScratch& scratch) {
  const HeadBatches h(k);
  const std::int64_t element = k.element(), lead = 3 * h.width, key = h.width * element;
  const char* keys = k.at(k.step.x) + key;
  char* dqkv = k.at(k.step.dx);
  for (std::int64_t i = 0; i < h.count; ++i) {
    const std::int64_t at = i * h.qkv_next * element, out = i * h.out_next * element;
    const std::int64_t score = i * h.scores_next * element;
    k.multiply(h.values(false, {lead, h.qkv_step}, {lead, h.qkv_step}),
               {scratch.slopes + score, keys + at, dqkv + at});
    k.multiply(h.values(true, {h.width, h.out_step}, {lead, h.qkv_step}),
               {scratch.slopes + score, scratch.queries + out, dqkv + key + at});
  }
}

/// Computes the gradient of attention. dqkv may be qkv: gradients of values and queries take the
/// place of values and queries only when these have been read for the last time; queries are read
/// once more and are set aside.
void attention_gradient(const GpuKernel& k) {
  const AttentionScratch scratch = attention_scratch(k);
  set_queries_aside(k, scratch);
  attention_value_gradients(k, scratch);
  causal_softmax_gradient(k.stream(), scratch.slopes, k.at(k.step.probabilities), score_factor(k),
                          shape_of(k.step.probabilities));
  attention_score_gradients(k, scratch);
}

}  // namespace interlock::cuda
