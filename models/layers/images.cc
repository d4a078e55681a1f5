// Images: windows over parts of them, and the halos that parts exchange.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/images.h"

#include <cmath>
#include <utility>

namespace interlock {
namespace {

/// Pixels that neighbours along one dimension exchange, and the most that one of them holds then.
struct Border {
  std::int64_t onwards = 0;  // to the next part
  std::int64_t back = 0;     // to the one before
  double read = 0;
};

Border border_of(const Extent& extent, const Window& window) {
  Border border;
  for (int i = 0; i < extent.parts; ++i) {
    const Halo halo = halo_of(extent.length, extent.parts, i, window);
    const std::int64_t left = std::max<std::int64_t>(halo.left, 0);
    const std::int64_t right = std::max<std::int64_t>(halo.right, 0);
    const std::int64_t own = part_of(extent.length, extent.parts, i).size();
    border.onwards = std::max(border.onwards, left);
    border.back = std::max(border.back, right);
    border.read = std::max(border.read, static_cast<double>(own + left + right));
  }
  return border;
}

Extent after(const Extent& extent, const Window& window) {
  return {static_cast<int>(output_length(extent.length, window)), extent.parts};
}

/// A part with its halos.
struct View {
  double positions = 1;  // of all images, one channel
  std::vector<Exchange> halos;
};

View view_of(const Images& images, const Window& window) {
  const Border rows = border_of(images.rows, window), columns = border_of(images.columns, window);
  View view = {.positions = images.count * rows.read * columns.read};
  const auto add = [&](MeshAxis axis, const Border& border, double across) {
    const Bytes line(images.count * across * static_cast<double>(images.channels) * images.element);
    const Exchange halo = {.kind = CollectiveKind::Halo,
                           .axis = axis,
                           .bytes = static_cast<double>(border.onwards) * line,
                           .back = static_cast<double>(border.back) * line};
    if (!is_empty(halo)) view.halos.push_back(halo);
  };
  add(MeshAxis::ContextRows, rows, images.columns.longest_part());
  add(MeshAxis::ContextColumns, columns, rows.read);
  return view;
}

/// The halos come before the operator, their gradients go back behind its backward.
void add_halos(Operator& op, const View& view) {
  op.forward_exchanges = view.halos;
  op.input_exchanges = {view.halos.rbegin(), view.halos.rend()};
  for (Exchange& halo : op.input_exchanges) std::swap(halo.bytes, halo.back);
}

}  // namespace

double Images::samples_behind() const { return std::ceil(count / parts()); }

Images input_images(int side, const BuildOptions& options) {
  return {.count = static_cast<double>(options.micro_batch_size),
          .rows = {side, options.sharding.image_rows},
          .columns = {side, options.sharding.image_columns},
          .element = element_bytes(options.precision)};
}

Window window_of(const Kernel& kernel) {
  return {.kernel = kernel.size, .stride = kernel.stride, .padding = (kernel.size - 1) / 2};
}

Operator convolve(Images& images, const Kernel& kernel) {
  const Window window = window_of(kernel);
  const View view = view_of(images, window);
  Convolution shape = {.read = view.positions,
                       .inputs = images.channels,
                       .outputs = kernel.channels,
                       .kernel = kernel.size,
                       .bias = kernel.bias};
  images.rows = after(images.rows, window);
  images.columns = after(images.columns, window);
  images.channels = kernel.channels;
  shape.made = images.elements() / static_cast<double>(kernel.channels);
  Operator op = convolution(shape, images.element);
  add_halos(op, view);
  return op;
}

Operator pool(Images& images, const Window& window) {
  const View view = view_of(images, window);
  images.rows = after(images.rows, window);
  images.columns = after(images.columns, window);
  Operator op = max_pool(view.positions * static_cast<double>(images.channels), images.elements(),
                         images.element);
  add_halos(op, view);
  return op;
}

Operator average(const Images& images) {
  const double channels = static_cast<double>(images.channels);
  Operator op = global_average_pool(images.elements(), images.count * channels, images.element);
  if (images.parts() == 1) return op;
  const Bytes sums(images.samples_behind() * images.parts() * channels * images.element);
  op.forward_exchanges = {{CollectiveKind::ReduceScatter, MeshAxis::Context, sums}};
  op.input_exchanges = {{CollectiveKind::AllGather, MeshAxis::Context, sums}};
  return op;
}

std::vector<Exchange> turn_to_samples(const Images& images) {
  if (images.parts() == 1) return {};
  const double pixels = static_cast<double>(images.rows.length) * images.columns.length;
  const double got = images.samples_behind() * pixels * static_cast<double>(images.channels);
  return {{CollectiveKind::AllToAll, MeshAxis::Context,
           std::max(images.size(), Bytes(got * images.element))}};
}

}  // namespace interlock
