// The products of a training step, as the layers of validate/network compute them.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/cpu_kernels.h"

#include <array>

#include "base/error.h"
#include "validate/calibration/cpu_movers.h"
#include "validate/cpu/layers/attention_kernels.h"
#include "validate/cpu/layers/dense_kernels.h"
#include "validate/cpu/layers/spatial_kernels.h"

namespace interlock {
namespace {

using Eigen::Index;

Index index_of(double size) { return static_cast<Index>(size); }

/// y = x W + b, and its gradients. See Work::shape for what m, n and k are.
std::function<void()> linear_kernel(const Work& work) {
  const Index m = index_of(work.shape.m), n = index_of(work.shape.n), k = index_of(work.shape.k);
  const Operand made = normal_operand(m, n, 1), bias = normal_operand(1, n, 4);
  if (work.role == OpRole::Forward) {
    const Operand x = normal_operand(m, k, 2), weight = normal_operand(k, n, 3);
    return [=] { linear_forward<float>(read(x), read(weight), bias->data(), write(made)); };
  }
  if (work.role == OpRole::InputGradient) {
    const Operand dy = normal_operand(m, k, 2), weight = normal_operand(n, k, 3);
    return [=] { linear_backward_input<float>(read(dy), read(weight), write(made), false); };
  }
  const Operand x = normal_operand(k, m, 2), dy = normal_operand(k, n, 3);
  return [=] { linear_backward_weight<float>(read(x), read(dy), write(made), bias->data()); };
}

std::function<void()> convolution_kernel(const Probe& probe) {
  const auto whole = [](std::int64_t size) { return static_cast<int>(size); };
  const ConvolutionSizes sizes = {.samples = whole(probe.samples),
                                  .rows = whole(probe.side),
                                  .columns = whole(probe.side),
                                  .inputs = whole(probe.inputs),
                                  .outputs = whole(probe.width),
                                  .kernel = 3};
  const Operand x = normal_operand(probe.rows, probe.inputs, 1);
  const Operand weight = normal_operand(9 * probe.inputs, probe.width, 2);
  const Operand y = normal_operand(probe.rows, probe.width, 3);
  switch (probe.work.role) {
    case OpRole::InputGradient:
      return
          [=] { convolution_backward_input(sizes, y->data(), weight->data(), x->data(), false); };
    case OpRole::WeightGradient:
      return [=] { convolution_backward_weight(sizes, x->data(), y->data(), weight->data()); };
    default:
      return
          [=] { convolution_forward<float>(sizes, x->data(), weight->data(), nullptr, y->data()); };
  }
}

/// Queries, keys and values of all blocks, and what goes with them.
struct AttentionOperands {
  AttentionShape shape;
  std::int64_t blocks;
  Operand qkv, dqkv, scores, y, scratch;

  StridedView<float> part(std::int64_t block, int number) const {
    return block_of(shape, block, qkv->data(), kParts, number);
  }
  StridedView<float> gradient(std::int64_t block, int number) const {
    return block_of(shape, block, dqkv->data(), kParts, number);
  }
  StridedView<float> made(std::int64_t block) const { return block_of(shape, block, y->data()); }
  MatrixView<float> square(std::int64_t block) const {
    const std::int64_t n = shape.positions;
    return {scores->data() + block * n * n, n, n};
  }
  ConstMatrixView<float> read_square(std::int64_t block) const {
    return {square(block).data(), shape.positions, shape.positions};
  }
};

/// As many heads a sample as there are blocks for, up to sixteen.
AttentionOperands attention_operands(const ProductShape& product, bool scores) {
  const auto blocks = static_cast<std::int64_t>(product.batch);
  AttentionShape shape = {.positions = static_cast<int>(product.m),
                          .heads = 16,
                          .size = static_cast<int>(scores ? product.k : product.n)};
  while (blocks % shape.heads != 0) shape.heads /= 2;
  const Index rows = blocks / shape.heads * shape.positions;
  const Index width = Index{shape.heads} * shape.size;
  return {.shape = shape,
          .blocks = blocks,
          .qkv = normal_operand(rows, kParts * width, 1),
          .dqkv = normal_operand(rows, kParts * width, 2),
          .scores = normal_operand(blocks * shape.positions, shape.positions, 3),
          .y = normal_operand(rows, width, 4),
          .scratch = normal_operand(shape.positions, shape.positions + shape.size, 5)};
}

std::function<void()> scores_kernel(const Work& work) {
  const AttentionOperands o = attention_operands(work.shape, true);
  if (work.role == OpRole::Forward) {
    return [=] {
      for (std::int64_t b = 0; b < o.blocks; ++b) {
        block_scores(o.part(b, kQuery), o.part(b, kKey), o.square(b));
      }
    };
  }
  return [=] {
    const MatrixView<float> scratch(o.scratch->data(), o.shape.positions, o.shape.size);
    for (std::int64_t b = 0; b < o.blocks; ++b) {
      block_scores_backward<float>(
          {o.read_square(b), o.part(b, 0), o.part(b, 1), o.part(b, 0), o.part(b, 1), scratch});
    }
  };
}

std::function<void()> values_kernel(const Work& work) {
  const AttentionOperands o = attention_operands(work.shape, false);
  if (work.role == OpRole::Forward) {
    return [=] {
      for (std::int64_t b = 0; b < o.blocks; ++b) {
        block_values(o.read_square(b), o.part(b, kValue), o.made(b));
      }
    };
  }
  return [=] {
    const MatrixView<float> gradient(o.scratch->data(), o.shape.positions, o.shape.positions);
    for (std::int64_t b = 0; b < o.blocks; ++b) {
      block_values_backward<float>(
          {o.read_square(b), o.part(b, kValue), o.made(b), gradient, o.gradient(b, kValue)});
    }
  };
}

std::string name_of(const Probe& probe) {
  static const std::array<const char*, kProbeKinds> kinds = {
      "copy", "linear",  "convolution", "scores",    "values",        "relu",     "gelu",
      "add",  "softmax", "layernorm",   "embedding", "cross-entropy", "momentum", "adam"};
  static const std::array<const char*, kOpRoles> roles = {"", " forward", " input-gradient",
                                                          " weight-gradient"};
  return std::string("eigen ") + kinds[static_cast<std::size_t>(probe.kind)] +
         roles[static_cast<std::size_t>(probe.work.role)];
}

}  // namespace

CpuKernel cpu_kernel(const Probe& probe) {
  CHECK(probe.precision == Precision::Fp32, "fp32 on a CPU");
  CpuKernel kernel = {.name = name_of(probe)};
  switch (probe.kind) {
    case ProbeKind::Linear:
      kernel.run = linear_kernel(probe.work);
      break;
    case ProbeKind::Convolution:
      kernel.run = convolution_kernel(probe);
      break;
    case ProbeKind::Scores:
      kernel.run = scores_kernel(probe.work);
      break;
    case ProbeKind::Values:
      kernel.run = values_kernel(probe.work);
      break;
    default:
      kernel.run = mover_kernel(probe);
  }
  return kernel;
}

}  // namespace interlock
