// Activations, norms, softmax, losses, look-ups and updates, each in one pass where it can be.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/cpu_movers.h"

#include <memory>
#include <vector>

#include "base/draws.h"
#include "base/error.h"

namespace interlock {
namespace {

using Eigen::Index;
using Tensor = std::shared_ptr<RowMatrix>;

constexpr Index kNumbers = 4099;  // before they repeat; a prime, so that rows differ
constexpr Index kTableRows = 4096;

/// The matrices that a kernel works on, all of one size.
struct Operands {
  Tensor x, y, gradient, result;
};

Operands operands_of(const Probe& probe) {
  const auto make = [&](std::uint64_t seed) {
    return std::make_shared<RowMatrix>(normal_matrix(probe.rows, probe.width, seed));
  };
  return {make(1), make(2), make(3), make(4)};
}

// The tanh form; source: Hendrycks and Gimpel, arXiv 1606.08415.
constexpr float kRoot = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kCube = 0.044715F;

std::function<void()> gelu_kernel(const Operands& o, bool forward) {
  if (forward) {
    return [=] {
      const auto x = o.x->array();
      o.result->array() = 0.5F * x * (1 + (kRoot * (x + kCube * x.cube())).tanh());
    };
  }
  return [=] {
    for (Index row = 0; row < o.x->rows(); ++row) {
      const Eigen::ArrayXf x = o.x->row(row).array();
      const Eigen::ArrayXf t = (kRoot * (x + kCube * x.cube())).tanh();
      const Eigen::ArrayXf slope =
          0.5F * (1 + t) + 0.5F * x * (1 - t.square()) * kRoot * (1 + 3 * kCube * x.square());
      o.result->row(row).array() = o.gradient->row(row).array() * slope.transpose();
    }
  };
}

std::function<void()> softmax_kernel(const Operands& o, bool forward) {
  if (forward) {
    return [=] {
      for (Index row = 0; row < o.x->rows(); ++row) {
        auto out = o.result->row(row).array();
        out = (o.x->row(row).array() - o.x->row(row).maxCoeff()).exp();
        out *= 1 / out.sum();
      }
    };
  }
  return [=] {
    for (Index row = 0; row < o.x->rows(); ++row) {
      const float sum = o.gradient->row(row).dot(o.y->row(row));
      o.result->row(row).array() = o.y->row(row).array() * (o.gradient->row(row).array() - sum);
    }
  };
}

std::function<void()> norm_kernel(const Operands& o, OpRole role) {
  if (role == OpRole::Forward) {
    return [=] {
      for (Index row = 0; row < o.x->rows(); ++row) {
        const auto x = o.x->row(row).array();
        const float mean = x.mean();
        const float scale = 1 / std::sqrt((x - mean).square().mean() + 1e-5F);
        o.result->row(row).array() = (x - mean) * scale * o.y->row(0).array() + o.y->row(0).array();
      }
    };
  }
  if (role == OpRole::InputGradient) {
    return [=] {
      for (Index row = 0; row < o.x->rows(); ++row) {
        const auto normal = o.x->row(row).array();
        const Eigen::ArrayXf scaled =
            (o.gradient->row(row).array() * o.y->row(0).array()).transpose();
        const float mean = scaled.mean();
        const float along = (scaled.transpose() * normal).mean();
        o.result->row(row).array() = scaled.transpose() - mean - normal * along;
      }
    };
  }
  return [=] {
    auto gain = o.result->row(0), shift = o.y->row(0);
    for (Index row = 0; row < o.x->rows(); ++row) {
      gain.array() += o.gradient->row(row).array() * o.x->row(row).array();
      shift += o.gradient->row(row);
    }
  };
}

std::function<void()> loss_kernel(const Operands& o, bool forward) {
  if (!forward) {
    return [=] {
      for (Index row = 0; row < o.x->rows(); ++row) {
        o.result->row(row) = o.y->row(row);
        (*o.result)(row, row % o.x->cols()) -= 1;
      }
    };
  }
  return [=] {
    float loss = 0;
    for (Index row = 0; row < o.x->rows(); ++row) {
      const float most = o.x->row(row).maxCoeff();
      auto out = o.result->row(row).array();
      out = (o.x->row(row).array() - most).exp();
      const float sum = out.sum();
      out *= 1 / sum;
      loss += std::log(sum) + most - (*o.x)(row, row % o.x->cols());
    }
    (*o.gradient)(0, 0) = loss;
  };
}

std::function<void()> lookup_kernel(const Operands& o, bool forward) {
  const auto table = std::make_shared<RowMatrix>(normal_matrix(kTableRows, o.x->cols(), 5));
  // Steps of a prime visit rows in no order that a processor could foresee.
  const auto entry = [](Index row) { return row * 2654435761 % kTableRows; };
  if (forward) {
    return [=] {
      for (Index row = 0; row < o.x->rows(); ++row) o.result->row(row) = table->row(entry(row));
    };
  }
  return [=] {
    for (Index row = 0; row < o.x->rows(); ++row) table->row(entry(row)) += o.gradient->row(row);
  };
}

std::function<void()> update_kernel(const Operands& o, bool adam) {
  if (!adam) {
    return [=] {
      o.y->array() = 0.9F * o.y->array() + o.gradient->array();
      o.x->array() -= 1e-6F * o.y->array();
    };
  }
  o.result->array() = o.result->array().square();  // variances
  return [=] {
    for (Index row = 0; row < o.x->rows(); ++row) {
      const auto gradient = o.gradient->row(row).array();
      auto mean = o.y->row(row).array(), variance = o.result->row(row).array();
      mean = 0.9F * mean + 0.1F * gradient;
      variance = 0.999F * variance + 0.001F * gradient.square();
      o.x->row(row).array() -= 1e-6F * mean / (variance.sqrt() + 1e-8F);
    }
  };
}

}  // namespace

RowMatrix normal_matrix(Index rows, Index columns, std::uint64_t seed) {
  Random random(seed, 11);
  std::vector<float> numbers(static_cast<std::size_t>(kNumbers));
  for (float& number : numbers) number = static_cast<float>(draw_normal(random));
  RowMatrix matrix(rows, columns);
  for (Index i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] = numbers[static_cast<std::size_t>(i % kNumbers)];
  }
  return matrix;
}

std::function<void()> mover_kernel(const Probe& probe) {
  const Operands o = operands_of(probe);
  const bool forward = probe.work.role == OpRole::Forward;
  switch (probe.kind) {
    case ProbeKind::Stream:
      return [=] { *o.result = *o.x; };
    case ProbeKind::Relu:
      if (forward) return [=] { *o.result = o.x->cwiseMax(0.0F); };
      return [=] { o.result->array() = (o.x->array() > 0).select(o.gradient->array(), 0.0F); };
    case ProbeKind::Residual:
      return [=] { *o.result = *o.x + *o.y; };
    case ProbeKind::Gelu:
      return gelu_kernel(o, forward);
    case ProbeKind::Softmax:
      return softmax_kernel(o, forward);
    case ProbeKind::LayerNorm:
      return norm_kernel(o, probe.work.role);
    case ProbeKind::CrossEntropy:
      return loss_kernel(o, forward);
    case ProbeKind::Embedding:
      return lookup_kernel(o, forward);
    case ProbeKind::Momentum:
    case ProbeKind::Adam:
      return update_kernel(o, probe.kind == ProbeKind::Adam);
    default:
      break;
  }
  CHECK(false, "a kernel that moves bytes");
}

}  // namespace interlock
