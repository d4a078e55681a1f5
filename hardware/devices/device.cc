// The roofline: duration of a kernel from its arithmetic, its traffic and the device's rates.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device.h"

#include <cmath>

#include "base/error.h"
#include "hardware/devices/priced_class.h"

namespace interlock {
namespace {

std::size_t index_of(Precision precision) { return static_cast<std::size_t>(precision); }

/// Returns the rate in `precision` over that in 16 bits, for which ramps are told: the time to fill
/// and drain a kernel stays the same, so at another rate it is another number of steps.
double pace(const Device& device, Precision precision) {
  if (precision == Precision::Bf16 || precision == Precision::Fp16) return 1;
  const auto& sixteen = device.peak[index_of(Precision::Bf16)]
                            ? device.peak[index_of(Precision::Bf16)]
                            : device.peak[index_of(Precision::Fp16)];
  return sixteen ? *device.peak[index_of(precision)] / *sixteen : 1;
}

ProductTiles tiles_at(const Device& device, Precision precision) {
  ProductTiles tiles = device.tiles;
  tiles.ramp *= pace(device, precision);
  return tiles;
}

AttentionKernel attention_at(const Device& device, Precision precision) {
  AttentionKernel kernel = device.attention;
  kernel.ramp *= pace(device, precision);
  return kernel;
}

/// Returns the tiled share of `work`. Gradients of both operands are two products, whose inner
/// dimensions are the columns and the rows of the product that they are of.
double tiled_share(const Work& work, const ProductTiles& tiles) {
  const ProductShape& s = work.shape;
  if (work.op_class == OpClass::Gemm || work.launches != 2) return tiled_share(s, tiles);
  const double left = tiled_share({s.m, s.k, s.n, s.batch}, tiles);
  const double right = tiled_share({s.k, s.n, s.m, s.batch}, tiles);
  return 2 / (1 / left + 1 / right);
}

/// The share of the fp32 peak that products of single heads reach whose rows are no whole
/// kAligned elements, so that no load of 16 bytes is aligned and matrix units stay idle.
/// Source: fit on the runs of BigScience with 128 heads of 108 and with 96 of 150 elements
/// (validate/published/measurements/bigscience-176b.json, `fitted`): 8.7 to 9.9 TFLOP/s on A100,
/// from 1 to 8 samples a micro-batch. cuBLAS asks for 16 bytes (docs.nvidia.com, "Matrix
/// Multiplication Background", section 3); linear layers, whose operands begin at addresses of
/// their own, are not known to fall as deep and are left alone. Rows of scores, as long as the
/// sequence, lie in the same products and are held to the same: by the cause, as no published row
/// has a sequence that kAligned does not divide.
constexpr double kUnalignedShare = 0.47;
constexpr double kAligned = 8;  // elements of 16 bits

/// Returns true if `work` multiplies heads one by one whose rows begin at no whole 16 bytes.
bool is_unaligned(const Work& work, const Device& device, Precision precision) {
  const bool sixteen = precision == Precision::Bf16 || precision == Precision::Fp16;
  if (!sixteen || work.op_class != OpClass::Attention || priced_class(work) != OpClass::Gemm ||
      device.tiles.multiprocessors == 0 || !supports(device, Precision::Fp32)) {
    return false;
  }
  return std::fmod(work.shape.k, kAligned) != 0 || std::fmod(work.shape.n, kAligned) != 0;
}

/// Tells what a multiprocessor reaches in chunks of a state-space model, whose every score and
/// state is scaled by a decay: vector units limit it, not matrix units. Forward, measured: 11.7
/// million tokens a second on an H100 of 132 multiprocessors, 128 heads of 64 channels, one group
/// of 128 states, chunks of 256 tokens (6.33 Mflop a token without what lies beyond the diagonal),
/// 8192 to 262144 tokens, by Triton's kernels of state-spaces/mamba (vllm-project/vllm, pull
/// request 27299, "Original"; a fused kernel reaches twice as much). Backward: fit on one row,
/// Nemotron 3 Nano on eight GB300 with NeMo 26.04
/// (validate/published/measurements/nvidia-megatron-bridge.json).
constexpr FlopsPerSecond kStateSpaceForward{0.56e12}, kStateSpaceBackward{0.17e12};

/// Returns the least time that the vector units of `device` take for `work`.
Seconds vector_time(const Work& work, const Device& device) {
  const int multiprocessors = device.tiles.multiprocessors;
  if (work.variant != OpVariant::StateSpace || multiprocessors == 0) return Seconds();
  const bool backward = work.role == OpRole::InputGradient;
  return work.flops / ((backward ? kStateSpaceBackward : kStateSpaceForward) * multiprocessors);
}

/// The share of the fp32 peak that QR factorisations reach, one after the other by torch.linalg.qr,
/// their host's 7.5 ms included. Source: NVIDIA-NeMo/Emerging-Optimizers, pull request 118: 96 of
/// them on an H100 in 1225 ms and 2210 ms, of twelve layers of four matrices, 1024 and 2048 wide.
/// Queries, keys and values taken for one matrix, that is 4.5 and 6.0 TFLOP/s of 66.9. In groups on
/// several streams they reach 0.23.
constexpr double kFactoredShare = 0.08;

Seconds compute_time(const Work& work, const Device& device, Precision precision) {
  if (work.flops == Flops()) return Seconds();
  if (work.variant == OpVariant::Factored) {
    const Precision vectors = supports(device, Precision::Fp32) ? Precision::Fp32 : precision;
    CHECK(supports(device, vectors), "a peak rate of " + device.name + " for factorisations");
    return work.flops / (*device.peak[index_of(vectors)] * kFactoredShare);
  }
  // In training of 8 or 4 bits only the products of linear layers and convolutions have these.
  const bool narrow = precision == Precision::Fp8 || precision == Precision::Fp4;
  const bool product = work.op_class == OpClass::Gemm || work.op_class == OpClass::Convolution;
  const bool wide = narrow && (work.wide || !product) && supports(device, Precision::Bf16);
  if (wide) precision = Precision::Bf16;
  CHECK(supports(device, precision),
        "a peak rate of " + device.name + " in " + precision_names()[index_of(precision)]);
  if (is_unaligned(work, device, precision)) {
    return work.flops / (*device.peak[index_of(Precision::Fp32)] * kUnalignedShare);
  }
  const OpClass op_class = priced_class(work);
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(op_class)];
  double share = efficiency.compute;
  if (precision == Precision::Fp8) share = efficiency.compute_fp8.value_or(share);
  if (precision == Precision::Fp4) share = efficiency.compute_fp4.value_or(share);
  if (precision == Precision::Fp32) share = efficiency.compute_fp32.value_or(share);
  if (op_class == OpClass::Gemm) share *= tiled_share(work, tiles_at(device, precision));
  if (op_class == OpClass::Attention)
    share *=
        attention_share(work.shape, attention_at(device, precision), device.tiles.multiprocessors);
  return std::max(vector_time(work, device),
                  work.flops / (*device.peak[index_of(precision)] * share));
}

Seconds memory_time(const Work& work, const Device& device) {
  if (work.bytes == Bytes()) return Seconds();
  CHECK(has_rates(device), "a memory bandwidth of " + device.name);
  const double share = device.efficiency[static_cast<std::size_t>(priced_class(work))].memory;
  return work.bytes / (device.memory_bandwidth * share);
}

/// Adds a `share` of the shorter of the two times of arithmetic and memory, which nothing hides.
void add_exposed(KernelTime& time, double share) {
  const auto [shorter, longer] = std::minmax({time.compute, time.memory});
  if (longer <= Seconds()) return;
  const double lift = 1 + share * (shorter / longer);
  time.compute *= lift;
  time.memory *= lift;
}

}  // namespace

OpClass priced_class(const Work& work) {
  const bool products = work.op_class == OpClass::Attention && !stores_no_scores(work);
  return products ? OpClass::Gemm : work.op_class;
}

bool at_peak_rates(const Device& device, OpClass op_class) {
  const Efficiency& efficiency = device.efficiency[static_cast<std::size_t>(op_class)];
  return efficiency.compute >= 1 && efficiency.memory >= 1;
}

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names = {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"};
  return names;
}

const std::vector<std::string>& op_class_names() {
  static const std::vector<std::string> names = {"gemm",        "convolution",   "attention",
                                                 "elementwise", "normalisation", "embedding",
                                                 "loss",        "optimizer"};
  return names;
}

const std::vector<std::string>& priced_by_names() {
  static const std::vector<std::string> names = {"table", "kernel", "roofline", "datasheet"};
  return names;
}

bool has_rates(const Device& device) { return device.memory_bandwidth > BytesPerSecond(); }

bool supports(const Device& device, Precision precision) {
  return has_rates(device) && device.peak[index_of(precision)].has_value();
}

std::vector<std::string> supported_precisions(const Device& device) {
  std::vector<std::string> names;
  for (int i = 0; i < kPrecisions; ++i) {
    if (supports(device, static_cast<Precision>(i))) {
      names.push_back(precision_names()[static_cast<std::size_t>(i)]);
    }
  }
  return names;
}

KernelTime kernel_time(const Work& work, const Device& device, Precision precision) {
  if (work.op_class == OpClass::Measured) return {.compute = work.measured};
  if (device.calibrated && work.variant != OpVariant::Factored) {
    if (const auto time = calibrated_time(*device.calibrated, work, precision)) return *time;
  }
  KernelTime time = {work.launches * device.launch_overhead, compute_time(work, device, precision),
                     memory_time(work, device)};
  if (work.more_issues > 0) add_exposed(time, 1 - device.grouped_overlap);
  return time;
}

Seconds time_of(const Work& work, const Device& device, Precision precision) {
  return kernel_time(work, device, precision).whole();
}

Seconds time_of(const std::vector<Work>& work, const Device& device, Precision precision) {
  Seconds total;
  for (const Work& kernel : work) total += time_of(kernel, device, precision);
  return total;
}

}  // namespace interlock
