// Window: how a convolution or pooling looks at one dimension, cut evenly among parts.
// SPDX-License-Identifier: Apache-2.0
//
// Input and output are cut evenly each for itself, as in DistDL (Hewett and Grady, arXiv
// 2006.03108), so that strides and padding move one against the other: what a part lacks to make
// its output, its halo, differs from part to part. Models say who lacks what; hardware moves it.
//
// Example: 8 elements in 2 parts under a kernel of 3 with padding 1. Part 0 makes [0, 4) and reads
// [0, 5), so it lacks one element at its right; part 1 reads [3, 8), and lacks one at its left.
// With 9 elements and stride 2, part 0 makes 3 of the 5 outputs, reads [0, 6) and lacks one; part 1
// reads [5, 9), its own.
#pragma once

#include <cstdint>

namespace interlock {

/// [begin, end) of one dimension.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end > begin ? end - begin : 0; }
};
/// Returns part `index` of `length` elements cut into `parts`; the first parts have one more where
/// that does not come out even.
IndexRange part_of(std::int64_t length, int parts, int index);

struct Window {
  int kernel = 1;
  int stride = 1;
  int padding = 0;
  int dilation = 1;
};

/// Returns the elements of the output. REQUIRES: the window fits into the padded length.
std::int64_t output_length(std::int64_t length, const Window& window);
/// Returns the input that part `index` of the output reads, without padding. Requires that too.
IndexRange input_of(std::int64_t length, int parts, int index, const Window& window);

/// Pixels that a part needs beyond its own part of the input to make its own part of the output.
/// Negative: pixels that it has and does not need. The padding at the ends belongs to no part and
/// is not counted.
struct Halo {
  std::int64_t left = 0;
  std::int64_t right = 0;
};
/// REQUIRES: the window fits into the padded length.
Halo halo_of(std::int64_t length, int parts, int index, const Window& window);

}  // namespace interlock
