// Activations, norms, softmax, losses, look-ups and updates, as validate/network computes them.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/cpu_movers.h"

#include <vector>

#include "base/draws.h"
#include "base/error.h"
#include "validate/cpu/layers/attention_kernels.h"
#include "validate/cpu/layers/dense_kernels.h"
#include "validate/cpu/layers/norm_kernels.h"
#include "validate/cpu/layers/update_kernels.h"

namespace interlock {
namespace {

using Eigen::Index;

constexpr Index kNumbers = 4099;  // before they repeat; a prime, so that rows differ
constexpr Index kTableRows = 4096, kPositions = 64;

/// The matrices that a kernel works on, all of one size.
struct Operands {
  Operand x, y, dy, dx;
};

Operands operands_of(const Probe& probe) {
  const auto make = [&](std::uint64_t seed) {
    return normal_operand(probe.rows, probe.width, seed);
  };
  return {make(1), make(2), make(3), make(4)};
}

std::function<void()> relu_kernel(const Operands& o, bool forward) {
  if (forward) return [=] { relu_forward<float>(write(o.x)); };
  return [=] { relu_mask<float>(read(o.y), write(o.dx)); };
}

std::function<void()> gelu_kernel(const Operands& o, bool forward) {
  if (forward) return [=] { gelu_forward<float>(read(o.x), write(o.y)); };
  return [=] { gelu_backward_input<float>(read(o.x), read(o.dy), write(o.dx)); };
}

/// Over as many squares as there are numbers for.
std::function<void()> softmax_kernel(const Operands& o, bool forward) {
  constexpr Index kLarge = 64, kSmall = 16;
  const Index side = o.x->size() % (kLarge * kLarge) == 0 ? kLarge : kSmall;
  const auto each = [=](const auto& visit) {
    for (Index i = 0; i < o.x->size() / (side * side); ++i) visit(i * side * side);
  };
  if (forward) {
    return [=] {
      // The softmax of a softmax is one too: no number grows.
      each([&](Index at) { causal_softmax<float>(1, {o.x->data() + at, side, side}); });
    };
  }
  // In place: other probabilities would make the gradient grow, or so small that it takes longer.
  o.y->setZero();
  return [=] {
    each([&](Index at) {
      causal_softmax_backward<float>({o.y->data() + at, side, side}, 1,
                                     {o.dx->data() + at, side, side});
    });
  };
}

std::function<void()> norm_kernel(const Operands& o, OpRole role) {
  switch (role) {
    case OpRole::Forward:
      return [=] {
        layer_norm_forward<float>(all_columns<float>(read(o.x)), o.dy->data(), o.dy->data(),
                                  write(o.y));
      };
    case OpRole::InputGradient:
      return [=] {
        layer_norm_backward_input<float>(all_columns<float>(read(o.x)), o.y->data(), read(o.dy),
                                         all_columns<float>(write(o.dx)), false);
      };
    default:
      return [=] {
        layer_norm_backward_weight<float>(all_columns<float>(read(o.x)), read(o.dy), o.dx->data(),
                                          o.y->data());
      };
  }
}

std::function<void()> loss_kernel(const Operands& o, bool forward) {
  const auto targets = std::make_shared<std::vector<std::int32_t>>();
  for (Index row = 0; row < o.x->rows(); ++row) {
    targets->push_back(static_cast<std::int32_t>(row % o.x->cols()));
  }
  if (forward) {
    return [=] {
      (*o.y)(0, 0) = static_cast<float>(cross_entropy_forward<float>(read(o.x), targets->data()));
    };
  }
  return [=] { cross_entropy_backward<float>(read(o.x), targets->data(), write(o.dx)); };
}

/// With places that are learned, and tokens in no order that a processor could foresee.
std::function<void()> lookup_kernel(const Operands& o, bool forward) {
  const Operand table = normal_operand(kTableRows, o.x->cols(), 5);
  const Operand places = normal_operand(kPositions, o.x->cols(), 6);
  const auto tokens = std::make_shared<std::vector<std::int64_t>>();
  for (Index row = 0; row < o.x->rows(); ++row) tokens->push_back(row * 2654435761 % kTableRows);
  if (forward) {
    return [=] {
      embedding_forward<float>(tokens->data(), read(table), places->data(), kPositions, write(o.y));
    };
  }
  return [=] {
    embedding_backward_weight<float>(tokens->data(), read(o.dy), write(table), places->data(),
                                     kPositions);
  };
}

std::function<void()> update_kernel(const Operands& o, Optimizer optimizer) {
  o.dx->array() = o.dx->array().square();  // variances
  // Gradients are clear after the first time: what is kept must not fade into denormal numbers.
  const Descent descent = {
      .optimizer = optimizer, .rate = 1e-6, .momentum = 1, .beta1 = 1, .beta2 = 1};
  const UpdatedNumbers<float> numbers = {.weight = o.x->data(),
                                         .gradient = o.dy->data(),
                                         .first = o.y->data(),
                                         .second = o.dx->data(),
                                         .count = o.x->size()};
  return [=] {
    static_cast<void>(o);  // which owns the numbers
    descend(descent, {}, numbers);
  };
}

}  // namespace

Operand normal_operand(Index rows, Index columns, std::uint64_t seed) {
  Random random(seed, 11);
  std::vector<float> numbers(static_cast<std::size_t>(kNumbers));
  for (float& number : numbers) number = static_cast<float>(draw_normal(random));
  auto operand = std::make_shared<Matrix<float>>(rows, columns);
  for (Index i = 0; i < operand->size(); ++i) {
    operand->data()[i] = numbers[static_cast<std::size_t>(i % kNumbers)];
  }
  return operand;
}

std::function<void()> mover_kernel(const Probe& probe) {
  const Operands o = operands_of(probe);
  const bool forward = probe.work.role == OpRole::Forward;
  switch (probe.kind) {
    case ProbeKind::Stream:
      return [=] { *o.y = *o.x; };
    case ProbeKind::Relu:
      return relu_kernel(o, forward);
    case ProbeKind::Residual:
      return [=] { add_to(o.x->data(), o.x->size(), o.y->data()); };
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
      return update_kernel(o, Optimizer::SgdMomentum);
    case ProbeKind::Adam:
      return update_kernel(o, Optimizer::Adam);
    default:
      break;
  }
  CHECK(false, "a kernel that moves bytes");
}

}  // namespace interlock
