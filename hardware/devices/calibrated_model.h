// CalibratedModel: how long kernels take on a device that was measured, in three levels.
// SPDX-License-Identifier: Apache-2.0
//
// The table has the very kernels that were measured. A product that is not in it takes as long as
// the model of the kernel that ran at the nearest measured shape says; everything else is priced by
// the smooth roofline of its class. `interlock calibrate` writes the files; docs/calibration.md has
// the protocol.
//
// Example: with the points 1 kB in 1 us and 1 MB in 10 us, 31.6 kB, half way between their
// logarithms, take 3.16 us; 2 MB take 20 us, at the bandwidth of the last point, and 500 bytes 0.5
// us.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/exchange.h"
#include "base/work.h"
#include "hardware/devices/kernel_time.h"
#include "hardware/topologies/link.h"

namespace interlock {

/// The time that a device takes to move a number of bytes, launches left out. Times do not
/// decrease.
struct StreamPoint {
  Bytes bytes;
  Seconds time;
};

/// The time of a kernel with smooth crossings between what limits it:
///   launches * launch + ((A (1 + m0/m + n0/n + k0/k) / rate)^g + (stream(bytes) / share)^g)^(1/g)
/// A is its flops, or its bytes where the class has no flops. What a product does to its operands
/// once and not for each multiplication (packing, windows of images, filling a pipeline) goes with
/// (m, k), (k, n) and (m, n): shares 1/n, 1/m and 1/k of its flops.
struct SmoothRoofline {
  Seconds launch;
  double rate = 1;  // A per second
  double m0 = 0, n0 = 0, k0 = 0;
  double share = 1;      // of the speed of a plain stream
  double sharpness = 4;  // g >= 1; the higher, the sharper the corner
  bool counts_bytes = false;
};

/// A kernel of a library, as its name for itself, and what was fitted to its measurements.
struct KernelModel {
  std::string name;
  SmoothRoofline roofline;
};

/// One row of the table.
struct MeasuredKernel {
  Precision precision = Precision::Fp32;
  Work work;
  Seconds time;
  int kernel = -1;  // in CalibratedModel::kernels; -1: unknown
};

/// A collective among a number of devices. Example: 10 us and 1 GB/s; an all-reduce of 1 MB among
/// two, of which each sends 1 MB, took 1 ms and one of 4 MB 8 ms. 2 MB take 2.83 ms, half way
/// between their logarithms; 8 MB 16 ms; 0.5 MB 0.505 ms, half way between 1 ms and the latency.
struct CollectiveTimes {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int members = 2;
  LinkSpeed fit;                      // time = latency + bytes that each member sends / bandwidth
  std::vector<StreamPoint> measured;  // by bytes of an Exchange; empty: the fit is all there is
};

struct CalibratedModel {
  std::vector<StreamPoint> stream;  // by bytes, at least one point
  std::array<std::array<std::optional<SmoothRoofline>, kOpClasses>, kPrecisions> rooflines;
  std::vector<KernelModel> kernels;
  std::vector<MeasuredKernel> table;  // see sort_table()
  std::vector<CollectiveTimes> collectives;
};

/// Brings the table into the order that it is searched in.
void sort_table(CalibratedModel& model);

/// Returns the time that `bytes` take by interpolation between logarithms; beyond either end at the
/// bandwidth of that end. REQUIRES: a point at least.
Seconds stream_time(const std::vector<StreamPoint>& stream, Bytes bytes);

/// Returns the formula of SmoothRoofline.
KernelTime smooth_time(const Work& work, const SmoothRoofline& roofline,
                       const std::vector<StreamPoint>& stream);

/// Returns the row that measured exactly this work; nothing if there is none, or several disagree
/// on what the work is (two kernels with equal bytes).
const MeasuredKernel* measured_row(const CalibratedModel& model, const Work& work,
                                   Precision precision);

/// Returns the kernel that `work` would run: that of the nearest measured shape of its class, role
/// and variant, at most a factor of eight away, or the only one that these have; -1 if there is
/// none.
int kernel_of(const CalibratedModel& model, const Work& work, Precision precision);

/// Returns the duration of `work`; nothing if its class was not calibrated in `precision`.
std::optional<KernelTime> calibrated_time(const CalibratedModel& model, const Work& work,
                                          Precision precision);

/// Returns the bytes that each of `members` sends in a collective by a ring or, of an all-to-all,
/// to all others. Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
Bytes sent_by_each(CollectiveKind kind, int members, Bytes bytes);

/// Returns the duration of a collective; nothing if its kind was not calibrated among as many.
std::optional<Seconds> calibrated_time(const CalibratedModel& model, CollectiveKind kind,
                                       int members, Bytes bytes);

}  // namespace interlock
