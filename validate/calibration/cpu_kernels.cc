// The kernels of a training step on row-major matrices: products, and what moves bytes.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/cpu_kernels.h"

#include <Eigen/Core>
#include <array>
#include <memory>

#include "base/draws.h"
#include "base/error.h"
#include "validate/calibration/cpu_movers.h"

namespace interlock {
namespace {

using Eigen::Index;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Index index_of(double size) { return static_cast<Index>(size); }

/// y = x W + b, and its gradients. See Work::shape for what m, n and k are.
std::function<void()> linear_kernel(const Work& work) {
  const Index m = index_of(work.shape.m), n = index_of(work.shape.n), k = index_of(work.shape.k);
  auto made = std::make_shared<Matrix>(normal_matrix(m, n, 1));
  if (work.role == OpRole::Forward) {
    const auto x = std::make_shared<Matrix>(normal_matrix(m, k, 2));
    const auto weights = std::make_shared<Matrix>(normal_matrix(k, n, 3));
    const auto bias = std::make_shared<Matrix>(normal_matrix(1, n, 4));
    return [=] {
      made->noalias() = *x * *weights;
      made->rowwise() += bias->row(0);
    };
  }
  if (work.role == OpRole::InputGradient) {
    const auto gradient = std::make_shared<Matrix>(normal_matrix(m, k, 2));
    const auto weights = std::make_shared<Matrix>(normal_matrix(n, k, 3));
    return [=] { made->noalias() = *gradient * weights->transpose(); };
  }
  const auto x = std::make_shared<Matrix>(normal_matrix(k, m, 2));
  const auto gradient = std::make_shared<Matrix>(normal_matrix(k, n, 3));
  const auto bias = std::make_shared<Matrix>(normal_matrix(1, n, 4));
  return [=] {
    made->noalias() += x->transpose() * *gradient;
    bias->row(0) += gradient->colwise().sum();
  };
}

/// Images of (side, side) pixels, a row each, and the 3x3 windows around them.
struct Windows {
  Index samples, side, channels;

  template <class Visit>
  void each(const Visit& visit) const {
    for (Index row = 0; row < samples * side * side; ++row) {
      const Index x = row % side, y = row / side % side;
      for (Index part = 0; part < 9; ++part) {
        const Index dx = part % 3 - 1, dy = part / 3 - 1;
        const bool inside = x + dx >= 0 && x + dx < side && y + dy >= 0 && y + dy < side;
        visit(row, part, inside ? row + dy * side + dx : -1);
      }
    }
  }
  void gather(const Matrix& images, Matrix& windows) const {
    each([&](Index row, Index part, Index from) {
      auto window = windows.row(row).segment(part * channels, channels);
      if (from < 0) {
        window.setZero();
      } else {
        window = images.row(from);
      }
    });
  }
  void scatter(const Matrix& windows, Matrix& images) const {
    images.setZero();
    each([&](Index row, Index part, Index to) {
      if (to >= 0) images.row(to) += windows.row(row).segment(part * channels, channels);
    });
  }
};

std::function<void()> convolution_kernel(const Probe& probe) {
  const Windows shape = {probe.samples, probe.side, probe.inputs};
  const Index rows = probe.rows, outputs = probe.width, window = 9 * shape.channels;
  const auto images = std::make_shared<Matrix>(normal_matrix(rows, shape.channels, 1));
  const auto windows = std::make_shared<Matrix>(normal_matrix(rows, window, 2));
  const auto weights = std::make_shared<Matrix>(normal_matrix(window, outputs, 3));
  const auto made = std::make_shared<Matrix>(normal_matrix(rows, outputs, 4));
  switch (probe.work.role) {
    case OpRole::InputGradient:
      return [=] {
        windows->noalias() = *made * weights->transpose();
        shape.scatter(*windows, *images);
      };
    case OpRole::WeightGradient:
      return [=] {
        shape.gather(*images, *windows);
        weights->noalias() += windows->transpose() * *made;
      };
    default:
      return [=] {
        shape.gather(*images, *windows);
        made->noalias() = *windows * *weights;
      };
  }
}

/// One product after the other, each of a head of a sample: Q K^T, or P V.
std::function<void()> attention_kernel(const Work& work, bool scores) {
  const Index m = index_of(work.shape.m), n = index_of(work.shape.n), k = index_of(work.shape.k);
  const Index batch = index_of(work.shape.batch);
  const auto a = std::make_shared<Matrix>(normal_matrix(batch * m, k, 1));
  const auto b = std::make_shared<Matrix>(scores ? normal_matrix(batch * n, k, 2)
                                                 : normal_matrix(batch * k, n, 2));
  const auto made = std::make_shared<Matrix>(normal_matrix(batch * m, n, 3));
  const Index rows = b->rows() / batch;
  if (work.role == OpRole::Forward) {
    return [=] {
      for (Index i = 0; i < batch; ++i) {
        auto out = made->middleRows(i * m, m);
        const auto left = a->middleRows(i * m, m);
        const auto right = b->middleRows(i * rows, rows);
        if (scores) {
          out.noalias() = left * right.transpose();
        } else {
          out.noalias() = left * right;
        }
      }
    };
  }
  const auto left_gradient = std::make_shared<Matrix>(*a);
  const auto right_gradient = std::make_shared<Matrix>(*b);
  return [=] {
    for (Index i = 0; i < batch; ++i) {
      const auto out = made->middleRows(i * m, m);
      const auto left = a->middleRows(i * m, m);
      const auto right = b->middleRows(i * rows, rows);
      auto to_left = left_gradient->middleRows(i * m, m);
      auto to_right = right_gradient->middleRows(i * rows, rows);
      if (scores) {
        to_left.noalias() = out * right;
        to_right.noalias() = out.transpose() * left;
      } else {
        to_left.noalias() = out * right.transpose();
        to_right.noalias() = left.transpose() * out;
      }
    }
  };
}

std::string name_of(const Probe& probe) {
  static const std::array<const char*, kProbeKinds> kinds = {
      "copy", "linear",  "im2col",    "scores",    "values",        "relu",     "gelu",
      "add",  "softmax", "layernorm", "embedding", "cross-entropy", "momentum", "adam"};
  static const std::array<const char*, kOpRoles> roles = {"", " forward", " input-gradient",
                                                          " weight-gradient"};
  return std::string("eigen ") + kinds[static_cast<std::size_t>(probe.kind)] +
         roles[static_cast<std::size_t>(probe.work.role)];
}

}  // namespace

CpuKernel cpu_kernel(const Probe& probe) {
  CHECK(probe.precision == Precision::Fp32, "fp32 on a CPU");
  CpuKernel kernel = {.name = name_of(probe)};
  switch (probe.kind) {
    case ProbeKind::Linear:
      kernel.run = linear_kernel(probe.work);
      break;
    case ProbeKind::Convolution:
      kernel.run = convolution_kernel(probe);
      break;
    case ProbeKind::Scores:
    case ProbeKind::Values:
      kernel.run = attention_kernel(probe.work, probe.kind == ProbeKind::Scores);
      break;
    default:
      kernel.run = mover_kernel(probe);
  }
  return kernel;
}

}  // namespace interlock
