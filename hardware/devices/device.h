// Device: what one accelerator can do, and how long a kernel takes on it (roofline).
// SPDX-License-Identifier: Apache-2.0
//
// A device of a uniform cluster may be nothing but memory: it can run what was measured (a
// profile), but has no rates to price anything else with. Callers that price a model ask
// has_rates() and supports() first and tell the user; here a missing rate is our own mistake.
//
// Example: a peak of 100 TFLOP/s of which products reach half, 1 TB/s of memory bandwidth of which
// they reach 0.8, launches of 5 us. A product of 1 Gflop that moves 1 MB takes 5 + max(20, 1.25) =
// 25 us.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/work.h"
#include "hardware/devices/calibrated_model.h"
#include "hardware/devices/kernel_time.h"
#include "hardware/devices/running_costs.h"
#include "hardware/kernels/attention_share.h"
#include "hardware/kernels/product_tiles.h"

namespace interlock {

/// Share of the peak rates that kernels of one class reach.
struct Efficiency {
  double compute = 1;                       // of the peak flop rate, in (0, 1]
  double memory = 1;                        // of the memory bandwidth, in (0, 1]
  std::optional<double> compute_fp8 = {};   // of the peak in 8 bits; none: as `compute`
  std::optional<double> compute_fp4 = {};   // of the peak in 4 bits, likewise
  std::optional<double> compute_fp32 = {};  // of the peak in fp32, likewise
};

/// Names the device that one without efficiencies has them from.
struct BorrowedEfficiency {
  std::string from;  // a device's name in the catalogue
  std::string why;   // what the two have in common, in words
};

/// One accelerator. Figures come from the catalogue, which names the origin of each.
struct Device {
  std::string name;
  std::string architecture;                                     // "NVIDIA Hopper"; empty: not told
  std::array<std::optional<FlopsPerSecond>, kPrecisions> peak;  // by Precision; none: unsupported
  BytesPerSecond memory_bandwidth;                              // 0: unknown, see has_rates()
  Bytes memory;
  std::array<Efficiency, kOpClasses> efficiency;    // by OpClass
  std::optional<BorrowedEfficiency> borrowed = {};  // none: the efficiencies are the device's own
  Seconds launch_overhead;                          // per kernel launch
  ProductTiles tiles;                               // of products of the class Gemm
  double grouped_overlap = 1;  // of traffic and arithmetic of several experts' products
  AttentionKernel attention;   // of fused attention
  /// Shares of the multiprocessors, from 0 to 0.9, that a collective and a message take away from
  /// the kernels beside them.
  double collective_sms = 0, message_sms = 0;
  std::optional<DevicePower> power = {};  // none: unknown
  /// The model of a device that was measured; it comes before rates and efficiencies.
  std::shared_ptr<const CalibratedModel> calibrated = nullptr;
};

/// Returns "gemm", "convolution", ..., by OpClass, without Measured, which no device prices.
const std::vector<std::string>& op_class_names();
/// Returns "table", "kernel", "roofline" and "datasheet", by PricedBy.
const std::vector<std::string>& priced_by_names();

/// Returns "fp32", "tf32", "fp16", "bf16", "fp8" and "fp4", by Precision, as scenarios and
/// catalogue files write it.
const std::vector<std::string>& precision_names();

/// Returns true if `device` can price work whose duration was not measured.
bool has_rates(const Device& device);
/// Returns true if `device` can price work in `precision` whose duration was not measured.
bool supports(const Device& device, Precision precision);
/// Returns the names of the precisions that `device` supports.
std::vector<std::string> supported_precisions(const Device& device);

/// Returns the duration of `work` alone on `device`:
///   launches * overhead + max(flops / (compute * tiled share * peak), bytes / (memory *
///   bandwidth)).
/// The tiled share is that of matrix products, see product_tiles.h: those of OpClass::Gemm, and of
/// attention that no kernel fuses, which has the efficiency of Gemm, too; 1 for others. Heads of 16
/// bits whose rows begin at no whole 16 bytes take a share of the fp32 peak instead. Attention in
/// one kernel has the share that attention_share.h tells.
/// OpClass::Measured returns its own duration, and what was calibrated is as it was measured.
/// REQUIRES: device.peak[precision] is known, unless the work is measured or has no flops; the
/// memory bandwidth likewise, unless it has no bytes.
/// Source: roofline model, Williams et al., CACM 52(4), 2009.
KernelTime kernel_time(const Work& work, const Device& device, Precision precision);
Seconds time_of(const Work& work, const Device& device, Precision precision);
Seconds time_of(const std::vector<Work>& work, const Device& device, Precision precision);

}  // namespace interlock
