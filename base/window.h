// Window: how a convolution or pooling looks at one dimension, cut evenly among parts.
// SPDX-License-Identifier: Apache-2.0
//
// Input and output are cut evenly each for itself, as in DistDL (Hewett and Grady, arXiv
// 2006.03108), so that strides and padding move one against the other: what a part lacks to make
// its output, its halo, differs from part to part. Models say who lacks what; hardware moves it.
#pragma once

#include <cstdint>

namespace interlock {

/// [begin, end) of one dimension.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end > begin ? end - begin : 0; }
};
/// Part `index` of `length` elements cut into `parts`; the first parts have one more where that
/// does not come out even.
IndexRange part_of(std::int64_t length, int parts, int index);

struct Window {
  int kernel = 1;
  int stride = 1;
  int padding = 0;
  int dilation = 1;
};

/// Elements of the output. REQUIRES: the window fits into the padded length.
std::int64_t output_length(std::int64_t length, const Window& window);
/// The input that part `index` of the output reads, without padding. Requires that too.
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
