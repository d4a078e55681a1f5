// Draws shapes, and asks the models what work they are.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/probe_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/random.h"
#include "models/layers/operators.h"

namespace interlock {
namespace {

constexpr double kLeastBytes = 4096;
constexpr std::int64_t kWidth = 256;  // of matrices that are moved, not multiplied
constexpr std::int64_t kSquare = 16;  // rows of these that make a square of 64, for a softmax

/// Even in logarithms; a multiple of eight where it is large, as the sizes of models are.
std::int64_t drawn(double least, double most, Random& random) {
  const double value = least * std::pow(std::max(1.0, most / least), random.uniform());
  const auto size = static_cast<std::int64_t>(std::round(value));
  return size < 16 ? std::max<std::int64_t>(1, size) : size / 8 * 8;
}

/// Returns a probe for each role that `op` has.
std::vector<Probe> probes_of(const Operator& op, const Probe& like) {
  const Module module = make_module({}, {op}, {.precision = like.precision});
  std::vector<Probe> probes;
  for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight}) {
    for (const Work& work : *works) {
      probes.push_back(like);
      probes.back().work = work;
    }
  }
  return probes;
}

void append(std::vector<Probe>& probes, const std::vector<Probe>& more) {
  probes.insert(probes.end(), more.begin(), more.end());
}

Operator batched(const ProductShape& shape, double element) {
  const double read = shape.m * shape.k + shape.k * shape.n, made = shape.m * shape.n;
  const Work forward = {.op_class = OpClass::Attention,
                        .flops = Flops(2 * shape.m * shape.n * shape.k * shape.batch),
                        .bytes = Bytes((read + made) * shape.batch * element),
                        .shape = shape};
  Work backward = forward;  // both operands' gradients, as models/transformer/attention counts them
  backward.flops = forward.flops * 2;
  backward.bytes = forward.bytes * 2;
  backward.launches = 2;
  return {.forward = forward, .input_gradient = backward};
}

std::vector<Probe> attention_probes(const GridSize& size, Precision precision, Random& random) {
  const double tokens = static_cast<double>(drawn(16, 1024, random));
  const double head = static_cast<double>(drawn(16, 128, random));
  const double most = size.most_flops.value() / (4 * tokens * tokens * head);
  const double batch = static_cast<double>(drawn(1, std::clamp(most, 1.0, 512.0), random));
  const double element = element_bytes(precision);
  std::vector<Probe> probes = probes_of(batched({tokens, tokens, head, batch}, element),
                                        {.kind = ProbeKind::Scores, .precision = precision});
  append(probes, probes_of(batched({tokens, head, tokens, batch}, element),
                           {.kind = ProbeKind::Values, .precision = precision}));
  return probes;
}

std::vector<Probe> convolution_probes(const GridSize& size, Precision precision, Random& random) {
  const std::int64_t side = drawn(4, 57, random), inputs = drawn(3, 256, random);
  const std::int64_t outputs = drawn(8, 256, random);
  const double pixels = static_cast<double>(side * side);
  const double each = 18 * pixels * static_cast<double>(inputs * outputs);
  const std::int64_t samples =
      drawn(1, std::clamp(size.most_flops.value() / each, 1.0, 64.0), random);
  const double positions = static_cast<double>(samples) * pixels;
  return probes_of(
      convolution({positions, positions, inputs, outputs, 3, false}, element_bytes(precision)),
      {.kind = ProbeKind::Convolution,
       .precision = precision,
       .rows = samples * side * side,
       .width = outputs,
       .inputs = inputs,
       .samples = samples,
       .side = side});
}

}  // namespace

std::vector<Probe> mover_probes(std::int64_t rows, std::int64_t width, Precision precision) {
  const double element = element_bytes(precision);
  const std::int64_t count = rows * width;
  const double elements = static_cast<double>(count);
  const auto with = [&](ProbeKind kind, const Operator& op) {
    return probes_of(op, {.kind = kind, .precision = precision, .rows = rows, .width = width});
  };
  std::vector<Probe> probes = with(ProbeKind::Relu, relu(elements, element));
  Elementwise curve = {.forward = 2 * elements, .backward = 3 * elements};
  curve.variant = OpVariant::Gelu;
  append(probes, with(ProbeKind::Gelu, elementwise(curve, element)));
  curve.variant = OpVariant::Softmax;
  append(probes, with(ProbeKind::Softmax, elementwise(curve, element)));
  append(probes, with(ProbeKind::Residual, residual(elements, element)));
  append(probes, with(ProbeKind::LayerNorm, normalisation(elements, 2 * width, element)));
  append(probes,
         with(ProbeKind::CrossEntropy, cross_entropy(static_cast<double>(rows), width, element)));
  Operator lookup;
  lookup.forward = {.op_class = OpClass::Embedding, .bytes = Bytes(2 * elements * element)};
  lookup.weight_gradient = {.op_class = OpClass::Embedding, .bytes = Bytes(3 * elements * element)};
  append(probes, with(ProbeKind::Embedding, lookup));
  for (const auto& [kind, optimizer] : {std::pair(ProbeKind::Momentum, Optimizer::SgdMomentum),
                                        std::pair(ProbeKind::Adam, Optimizer::Adam)}) {
    probes.push_back({.kind = kind, .precision = precision, .rows = rows, .width = width});
    probes.back().work = update_work(count, optimizer, precision).front();
  }
  return probes;
}

namespace {

/// Rows, inputs and outputs of a linear layer.
using LinearSizes = std::array<std::int64_t, 3>;

/// Draws sizes that are even in logarithms, of at most `most` multiplications.
LinearSizes drawn_sizes(double most, std::int64_t longest, Random& random) {
  const auto side = static_cast<double>(longest);
  const std::int64_t rows = drawn(8, side, random), inputs = drawn(8, side, random);
  const double left = most / static_cast<double>(rows * inputs);
  return {rows, inputs, drawn(8, std::clamp(left, 8.0, side), random)};
}

/// Draws sizes of models: tokens in powers of two, widths that published models have. Layers of
/// more than `most` multiplications have fewer tokens.
LinearSizes model_sizes(double most, std::int64_t longest, Random& random) {
  constexpr std::array<std::int64_t, 16> kWidths = {256,  512,   768,   1024, 1536, 2048,
                                                    2560, 3072,  4096,  5120, 6144, 8192,
                                                    9216, 11264, 12288, 16384};
  const auto width = [&] {
    const std::size_t at = static_cast<std::size_t>(random.integer(0, kWidths.size() - 1));
    return std::min(longest, kWidths[at]);
  };
  std::int64_t rows = std::int64_t{1} << random.integer(9, 14), inputs = width(), outputs = width();
  while (rows > 64 && static_cast<double>(rows * inputs * outputs) > most) rows /= 2;
  while (inputs > 256 && static_cast<double>(rows * inputs * outputs) > most) inputs /= 2;
  return {rows, inputs, outputs};
}

/// `count` sizes in bytes, even in logarithms.
std::vector<double> byte_sizes(int count, Bytes most) {
  std::vector<double> sizes;
  sizes.reserve(static_cast<std::size_t>(count));
  const double growth = most.value() / kLeastBytes;
  for (int i = 0; i < count; ++i) {
    sizes.push_back(kLeastBytes * std::pow(growth, i / std::max(1.0, count - 1.0)));
  }
  return sizes;
}

}  // namespace

std::vector<Probe> linear_probes(std::int64_t rows, std::int64_t inputs, std::int64_t outputs,
                                 Precision precision) {
  const Linear shape = {static_cast<double>(rows), inputs, outputs, true};
  return probes_of(linear(shape, element_bytes(precision)),
                   {.kind = ProbeKind::Linear, .precision = precision});
}

bool is_same_kernel(const Work& a, const Work& b) {
  const auto key = [](const Work& work) {
    return std::tie(work.op_class, work.role, work.variant, work.launches, work.flops, work.bytes);
  };
  return key(a) == key(b) && a.shape == b.shape;
}

std::vector<Probe> stream_probes(int count, Bytes most_bytes, Precision precision) {
  std::vector<Probe> probes;
  const double element = element_bytes(precision);
  for (const double bytes : byte_sizes(count, most_bytes)) {
    const auto elements = static_cast<std::int64_t>(bytes / (2 * element));
    Probe probe = {.kind = ProbeKind::Stream, .precision = precision, .rows = 1, .width = elements};
    probe.work.bytes = Bytes(2 * static_cast<double>(elements) * element);
    probes.push_back(probe);
  }
  return probes;
}

std::vector<Probe> probe_grid(const GridSize& size, Precision precision) {
  std::vector<Probe> probes;
  Random random(size.seed, 3);
  const double most = size.most_flops.value() / 2;
  for (int i = 0; i < size.linears; ++i) {
    const bool as_models = size.longest_side > 4096 && i % 2 == 1;
    const auto [rows, inputs, outputs] = as_models ? model_sizes(most, size.longest_side, random)
                                                   : drawn_sizes(most, size.longest_side, random);
    append(probes, linear_probes(rows, inputs, outputs, precision));
  }
  for (int i = 0; i < size.attentions; ++i) {
    append(probes, attention_probes(size, precision, random));
  }
  for (int i = 0; i < size.convolutions; ++i) {
    append(probes, convolution_probes(size, precision, random));
  }
  for (const double bytes : byte_sizes(size.sizes, size.most_bytes)) {
    const double row = 3 * element_bytes(precision) * static_cast<double>(kWidth);
    const std::int64_t rows = std::max<std::int64_t>(1, std::llround(bytes / row));
    append(probes,
           mover_probes(rows < kSquare ? rows : rows / kSquare * kSquare, kWidth, precision));
  }
  // Draws of large sizes may overshoot what a device is willing to run.
  std::erase_if(probes, [&](const Probe& probe) { return probe.work.flops > size.most_flops * 4; });
  return probes;
}

}  // namespace interlock
