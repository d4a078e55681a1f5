// Token slices: where to cut a sequence so that a pipeline of slices is as fast as it can be.
// SPDX-License-Identifier: Apache-2.0
//
// Slices that take t_1, ..., t_n on each of K equal stages, M sequences one after the other, take
// M sum t_i + (K - 1) max t_i. Long slices leave the other stages waiting, short ones run
// inefficiently; late ones are shorter than early ones, because attention has more to read.
// A step may also mix micro-batches of several sizes, each cut in its own way; it then takes the
// sum of all its slices and (K - 1) times the longest of them.
// Source: TeraPipe, Li et al., arXiv 2102.07988, sections 3.3 and 3.4.
//
// Example: 8 units through 4 stages, where a slice of l units behind c others takes 1 + l (l / 2 +
// c) / 4. Whole, the sequence takes 36; in equal halves 31; in four quarters 25.5; balanced_slices
// finds {4, 1, 1, 1, 1}, whose longest takes 3, and which takes 22.
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"

namespace interlock {

/// How long the slowest stage takes for a slice of `length` units that follows `context` others.
using SliceTime = std::function<Seconds(int length, int context)>;

struct SliceInputs {
  int units = 1;  // of a sequence; a slice is a whole number of them
  int stages = 1;
  int sequences = 1;  // of a step, in turn
  SliceTime time;
};

/// Lengths of the slices, in order, and M sum t_i + (K - 1) max t_i.
struct Slicing {
  std::vector<int> lengths;
  Seconds span;
};

/// Returns the slicing of least span, of all that there are.
/// Time: units^2 prices, and at most as many passes of units^2 steps.
Slicing balanced_slices(const SliceInputs& inputs);

/// A size that a micro-batch may have, and how long slices of such a one take.
struct BatchSize {
  int samples = 1;
  SliceTime time;
};

struct StepInputs {
  int units = 1;  // of a sequence
  int stages = 1;
  int samples = 1;  // of a step, divided into micro-batches of the `sizes`
  std::vector<BatchSize> sizes;
};

struct SlicedBatch {
  int samples = 1;
  std::vector<int> lengths;
};

/// The micro-batches of a step, larger ones first, and sum t_i + (K - 1) max t_i over all their
/// slices.
struct Division {
  std::vector<SlicedBatch> batches;
  Seconds span;
};

/// Returns the division of least span, of all divisions into micro-batches and all slicings of
/// each. Those of one size are cut alike. REQUIRES: some division adds up. Time: balanced_slices
/// for each size, and for each bound samples * sizes steps.
Division balanced_batches(const StepInputs& inputs);

/// Returns `slices` lengths as equal as whole units allow, longer ones first.
std::vector<int> equal_slices(int units, int slices);

/// Returns `slices` lengths, the longest of which takes as little time as can be: as nearly equal
/// times as whole units allow. REQUIRES: a longer slice takes no less.
/// Time: kBisections * slices * log2(units) prices.
std::vector<int> equal_time_slices(int units, int slices, const SliceTime& time);

/// Returns the span of `lengths`.
Seconds span_of(const SliceInputs& inputs, const std::vector<int>& lengths);

}  // namespace interlock
