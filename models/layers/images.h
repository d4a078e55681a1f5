// Images: what lies between two operators of a convolutional network, and one device's part of it.
// SPDX-License-Identifier: Apache-2.0
//
// Spatial parallelism cuts every image of a micro-batch into bands of rows, or into a grid, a part
// for each device of a group, as DistDL does (Hewett and Grady, arXiv 2006.03108). Before each
// window that is wider than its stride, neighbours exchange halos, first rows, then columns with
// what rows have brought, so that corners take two hops; the backward pass sends the gradients of
// halos back, the columns first, where they are added. No device computes anything twice.
// Where a cut is uneven one device stands for all that has the largest part everywhere, and the
// widest halos. Batch norms take the statistics of the device's own part, as frameworks do unless
// told otherwise. Behind the images devices divide the samples.
//
// Example: two images of 224 x 224 pixels and three channels in bf16, cut into four bands of rows.
// A device has 2 x 56 x 224 x 3 elements, which are 150,528 bytes.
#pragma once

#include <algorithm>

#include "base/window.h"
#include "models/layers/operators.h"

namespace interlock {

/// One dimension of whole images, in pixels, and the devices that have a part of it each.
struct Extent {
  int length = 1;
  int parts = 1;
  double longest_part() const { return static_cast<double>(part_of(length, parts, 0).size()); }
};

struct Images {
  double count = 1;  // all of a micro-batch
  Extent rows, columns;
  std::int64_t channels = 3;
  double element = 2;  // bytes

  int parts() const { return rows.parts * columns.parts; }
  /// Returns the elements that one device holds.
  double elements() const {
    return count * rows.longest_part() * columns.longest_part() * static_cast<double>(channels);
  }
  Bytes size() const { return Bytes(elements() * element); }
  /// Returns the samples of the device that has most of them behind the images.
  double samples_behind() const;
};
/// Returns the input of a network for square images.
Images input_images(int side, const BuildOptions& options);

/// Square and odd, padded so that stride 1 keeps the size.
struct Kernel {
  int size = 3;
  int stride = 1;
  std::int64_t channels = 1;  // of the output
  bool bias = false;
};
Window window_of(const Kernel& kernel);

/// Returns the part of a convolution that one device computes; `images` become their output.
Operator convolve(Images& images, const Kernel& kernel);
/// Returns a pooling by maxima, which keeps the place of each, see max_pool; `images` become their
/// output.
Operator pool(Images& images, const Window& window);
/// Returns the mean of each channel, of the samples that are the device's own behind it: parts are
/// added up by a reduce-scatter, whose adjoint is an all-gather.
Operator average(const Images& images);
/// Parts of all images to all of some images, an all-to-all, and back; nothing where they are
/// whole. Its bytes are those of the device that has, or gets, most.
std::vector<Exchange> turn_to_samples(const Images& images);

}  // namespace interlock
