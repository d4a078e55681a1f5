// The three levels of a calibrated device: table, kernel, smooth roofline.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/calibrated_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace interlock {
namespace {

// Products of shapes further apart than this, in powers of two of m, n, k and batch together, say
// little about which kernel a library picks.
constexpr double kFurthest = 3;

auto key_of(const Work& work, Precision precision) {
  return std::tuple(precision, work.op_class, work.role, work.variant, work.launches, work.flops,
                    work.bytes, work.shape.m, work.shape.n, work.shape.k, work.shape.batch);
}

bool before(const MeasuredKernel& a, const MeasuredKernel& b) {
  return key_of(a.work, a.precision) < key_of(b.work, b.precision);
}

double octaves(double a, double b) {
  return a > 0 && b > 0 ? std::abs(std::log2(a / b)) : kInfinity;
}

double distance(const ProductShape& a, const ProductShape& b) {
  return octaves(a.m, b.m) + octaves(a.n, b.n) + octaves(a.k, b.k) + octaves(a.batch, b.batch);
}

KernelTime scaled(KernelTime time, double factor) {
  time.launch *= factor;
  time.compute *= factor;
  time.memory *= factor;
  return time;
}

}  // namespace

void sort_table(CalibratedModel& model) {
  std::stable_sort(model.table.begin(), model.table.end(), before);
}

Seconds stream_time(const std::vector<StreamPoint>& stream, Bytes bytes) {
  CHECK(!stream.empty(), "a measured stream");
  if (bytes <= Bytes(0)) return Seconds(0);
  const auto above = std::find_if(stream.begin(), stream.end(),
                                  [&](const StreamPoint& point) { return point.bytes >= bytes; });
  if (above == stream.begin()) return above->time * (bytes / above->bytes);
  const StreamPoint& low = *(above - 1);
  if (above == stream.end()) return low.time * (bytes / low.bytes);
  const double part = std::log(bytes / low.bytes) / std::log(above->bytes / low.bytes);
  return low.time * std::pow(above->time / low.time, part);
}

KernelTime smooth_time(const Work& work, const SmoothRoofline& roofline,
                       const std::vector<StreamPoint>& stream) {
  const double amount = roofline.counts_bytes ? work.bytes.value() : work.flops.value();
  const ProductShape& shape = work.shape;
  double filling = 1;
  if (shape.m > 0) filling += roofline.m0 / shape.m;
  if (shape.n > 0) filling += roofline.n0 / shape.n;
  if (shape.k > 0) filling += roofline.k0 / shape.k;
  const int launches = std::max(1, work.launches);
  const Seconds compute(amount * filling / roofline.rate);
  const Seconds memory = stream_time(stream, work.bytes / launches) * (launches / roofline.share);
  const Seconds longer = std::max(compute, memory);
  KernelTime time = {.launch = work.launches * roofline.launch,
                     .compute = compute,
                     .memory = memory,
                     .priced_by = PricedBy::Roofline};
  if (longer <= Seconds(0)) return time;
  // Both roofs are lifted alike, so that the longer of them is the smooth sum.
  const double shorter = std::min(compute, memory) / longer;
  const double lift = std::pow(1 + std::pow(shorter, roofline.sharpness), 1 / roofline.sharpness);
  time.compute *= lift;
  time.memory *= lift;
  return time;
}

const MeasuredKernel* measured_row(const CalibratedModel& model, const Work& work,
                                   Precision precision) {
  const MeasuredKernel wanted = {.precision = precision, .work = work};
  const auto [first, last] =
      std::equal_range(model.table.begin(), model.table.end(), wanted, before);
  return last - first == 1 ? &*first : nullptr;
}

int kernel_of(const CalibratedModel& model, const Work& work, Precision precision) {
  int nearest = -1, only = -1;
  double least = kFurthest;
  bool several = false;
  for (const MeasuredKernel& row : model.table) {
    if (row.kernel < 0 || row.precision != precision || row.work.op_class != work.op_class ||
        row.work.role != work.role || row.work.variant != work.variant) {
      continue;
    }
    several = several || (only >= 0 && only != row.kernel);
    only = row.kernel;
    const double away = distance(row.work.shape, work.shape);
    if (away > least) continue;
    least = away;
    nearest = row.kernel;
  }
  return several || only < 0 ? nearest : only;
}

std::optional<KernelTime> calibrated_time(const CalibratedModel& model, const Work& work,
                                          Precision precision) {
  const auto& roofline =
      model.rooflines[static_cast<std::size_t>(precision)][static_cast<std::size_t>(work.op_class)];
  if (!roofline) return std::nullopt;
  if (const MeasuredKernel* row = measured_row(model, work, precision)) {
    const KernelTime parts = smooth_time(work, *roofline, model.stream);
    KernelTime time = scaled(parts, row->time / parts.whole());
    time.priced_by = PricedBy::Table;
    return time;
  }
  const int kernel = kernel_of(model, work, precision);
  if (kernel < 0) return smooth_time(work, *roofline, model.stream);
  KernelTime time =
      smooth_time(work, model.kernels[static_cast<std::size_t>(kernel)].roofline, model.stream);
  time.priced_by = PricedBy::Kernel;
  return time;
}

Bytes sent_by_each(CollectiveKind kind, int members, Bytes bytes) {
  const double share = (members - 1.0) / members;
  return bytes * (kind == CollectiveKind::AllReduce ? 2 * share : share);
}

std::optional<Seconds> calibrated_time(const CalibratedModel& model, CollectiveKind kind,
                                       int members, Bytes bytes) {
  const auto found =
      std::find_if(model.collectives.begin(), model.collectives.end(),
                   [&](const auto& one) { return one.kind == kind && one.members == members; });
  if (found == model.collectives.end()) return std::nullopt;
  const auto& [latency, bandwidth, stated] = found->fit;
  if (found->measured.empty()) return latency + sent_by_each(kind, members, bytes) / bandwidth;
  const StreamPoint& least = found->measured.front();
  if (bytes >= least.bytes) return stream_time(found->measured, bytes);
  const Seconds start = std::min(latency, least.time);
  return start + (least.time - start) * (bytes / least.bytes);
}

}  // namespace interlock
