// References of kernels: held to finite differences, transposes and closed forms. No GPU needed.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "base/random.h"
#include "tests/cuda/reference.h"

using namespace interlock;
using namespace interlock::cuda;
using reference::Numbers;
using reference::Tokens;

namespace {

Numbers random_numbers(std::size_t size, std::uint64_t stream) {
  Random random(5, stream);
  Numbers numbers(size);
  for (double& number : numbers) number = 2 * random.uniform() - 1;
  return numbers;
}

double dot(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Checks `slopes` of scalar `f` at `x` by central differences.
void check_slopes(const std::function<double(const Numbers&)>& f, const Numbers& x,
                  const Numbers& slopes) {
  constexpr double kStep = 1e-5;
  REQUIRE(x.size() == slopes.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    Numbers up = x, down = x;
    up[i] += kStep;
    down[i] -= kStep;
    INFO("element ", i);
    CHECK(slopes[i] == doctest::Approx((f(up) - f(down)) / (2 * kStep)).epsilon(1e-6));
  }
}

}  // namespace

TEST_CASE("GELU's tanh form is x times a logistic curve, and its slope is its slope") {
  for (double x = -5; x <= 5; x += 0.25) {
    const double inner = 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    CHECK(reference::gelu(x) == doctest::Approx(x / (1 + std::exp(-inner))));
    const double slope = (reference::gelu(x + 1e-5) - reference::gelu(x - 1e-5)) / 2e-5;
    CHECK(reference::gelu_slope(x) == doctest::Approx(slope).epsilon(1e-6));
  }
}

TEST_CASE("gradients of the norms are finite differences, in input, gain and shift") {
  const Matrix shape = {4, 6};
  const Numbers dy = random_numbers(24, 1);
  using Forward = Numbers (*)(const reference::Norm&);
  using Backward = reference::NormGradient (*)(const reference::Norm&, const Numbers&);
  for (const auto& [forward, backward] :
       {std::pair<Forward, Backward>{reference::layer_norm, reference::layer_norm_gradient},
        {reference::batch_norm, reference::batch_norm_gradient}}) {
    const reference::Norm norm = {random_numbers(24, 2), random_numbers(6, 3), random_numbers(6, 4),
                                  shape};
    const reference::NormGradient slopes = backward(norm, dy);
    const auto loss = [&, f = forward](const reference::Norm& changed) {
      return dot(f(changed), dy);
    };
    check_slopes(
        [&](const Numbers& x) {
          return loss({x, norm.gain, norm.shift, shape});
        },
        norm.x, slopes.dx);
    check_slopes(
        [&](const Numbers& g) {
          return loss({norm.x, g, norm.shift, shape});
        },
        norm.gain, slopes.dgain);
    check_slopes(
        [&](const Numbers& s) {
          return loss({norm.x, norm.gain, s, shape});
        },
        norm.shift, slopes.dshift);
  }
}

TEST_CASE("a batch norm of rows is the layer norm of columns") {
  const Numbers x = random_numbers(12, 1);
  Numbers turned(12);
  for (int i = 0; i < 12; ++i) turned[i % 4 * 3 + i / 4] = x[i];  // (3, 4) -> (4, 3)
  const Numbers layer = reference::layer_norm({x, Numbers(4, 1), Numbers(4, 0), {3, 4}});
  const Numbers batch = reference::batch_norm({turned, Numbers(3, 1), Numbers(3, 0), {4, 3}});
  for (int i = 0; i < 12; ++i) CHECK(layer[i] == doctest::Approx(batch[i % 4 * 3 + i / 4]));
}

TEST_CASE("attention sees no later token, and its gradient is its slope") {
  const Heads shape = {.samples = 2, .tokens = 4, .heads = 2, .size = 3};
  const Numbers qkv = random_numbers(2 * 4 * 3 * 6, 1), dy = random_numbers(2 * 4 * 6, 2);
  const Numbers y = reference::attention(qkv, shape, 0.6);
  // The first token sees itself alone: its output is its value.
  for (std::size_t i = 0; i < 6; ++i) CHECK(y[i] == doctest::Approx(qkv[12 + i]));
  Numbers changed = qkv;
  for (std::size_t i = 3 * 18; i < 4 * 18; ++i) changed[i] += 1;  // the last token of a sample
  const Numbers after = reference::attention(changed, shape, 0.6);
  for (std::size_t i = 0; i < 18; ++i) CHECK(after[i] == y[i]);
  check_slopes([&](const Numbers& x) { return dot(reference::attention(x, shape, 0.6), dy); }, qkv,
               reference::attention_gradient(qkv, dy, shape, 0.6));
}

TEST_CASE("a causal softmax sees no later token, adds up to one, and its gradient is its slope") {
  constexpr int kTokens = 5;
  const Numbers scores = random_numbers(50, 1);
  const Numbers weights = reference::causal_softmax(scores, 0.7, kTokens);
  for (int row = 0; row < 2 * kTokens; ++row) {
    double sum = 0;
    for (int c = 0; c < kTokens; ++c) {
      sum += weights[row * kTokens + c];
      if (c > row % kTokens) CHECK(weights[row * kTokens + c] == 0);
    }
    CHECK(sum == doctest::Approx(1));
  }
  const Numbers dw = random_numbers(scores.size(), 2);
  check_slopes(
      [&](const Numbers& s) { return dot(reference::causal_softmax(s, 0.7, kTokens), dw); }, scores,
      reference::causal_softmax_gradient(weights, dw, 0.7, kTokens));
}

TEST_CASE("equal logits lose the logarithm of the classes; the gradient is that of the mean loss") {
  double loss = 0;
  reference::cross_entropy(Numbers(12, 3.0), {0, 1, 3}, 4, loss);
  CHECK(loss == doctest::Approx(std::log(4)));
  const Tokens targets = {2, 0, 1};
  const Numbers logits = random_numbers(12, 1);
  const Numbers p = reference::cross_entropy(logits, targets, 4, loss);
  const auto loss_of = [&](const Numbers& at) {
    double value = 0;
    reference::cross_entropy(at, targets, 4, value);
    return value;
  };
  check_slopes(loss_of, logits, reference::cross_entropy_gradient(p, targets, 4));
}

TEST_CASE("gradients of what only moves numbers are transposes: <A x, y> = <x, A' y>") {
  const Tokens tokens = {3, 0, 3, 1, 3, 0};
  const Numbers table = random_numbers(8, 1), places = random_numbers(6, 2);
  const Numbers dy = random_numbers(12, 3);
  Numbers dtable(8, 0), dplaces(6, 0);
  reference::embed_gradient(dtable, dplaces, dy, tokens, 3);
  CHECK(dot(reference::embed(table, places, tokens, 3, 2), dy) ==
        doctest::Approx(dot(table, dtable) + dot(places, dplaces)));
  for (const auto& sizes : {std::pair{1, 1}, {3, 1}, {3, 2}, {1, 2}, {5, 3}}) {
    const int kernel = sizes.first, stride = sizes.second;
    const Patches shape = {
        .samples = 2, .rows = 5, .columns = 4, .channels = 3, .kernel = kernel, .stride = stride};
    const Numbers images = random_numbers(120, 4);
    const Numbers patches = reference::gather_patches(images, shape);
    INFO("kernel ", kernel, ", stride ", stride);
    REQUIRE(static_cast<std::int64_t>(patches.size()) == shape.made().size());
    const Numbers dpatches = random_numbers(patches.size(), 5);
    CHECK(dot(patches, dpatches) ==
          doctest::Approx(dot(images, reference::gather_patches_gradient(dpatches, shape))));
    if (kernel == 1 && stride == 1) CHECK(patches == images);
  }
  const Numbers pooled = reference::average_pool({1, 10, 3, 20, 5, 30}, {1, 2}, 3);
  CHECK(pooled[0] == doctest::Approx(3));
  CHECK(pooled[1] == doctest::Approx(20));
  CHECK(reference::column_sums({1, 10, 2, 20}, 2) == Numbers{3, 30});
}

TEST_CASE("momentum adds up a geometric series; the first step of AdamW is its rate") {
  // Weight 1, gradient 4 halved to 2, rate 0.1, momentum 0.5: velocities 2, 3, 3.5.
  reference::Descent state = {{1}, {4}, {0}, {0}};
  const DescentStep momentum = {.kind = 1, .share = 0.5F, .rate = 0.1F, .momentum = 0.5F};
  for (const double weight : {1 - 0.2, 1 - 0.5, 1 - 0.85}) {
    reference::descend(state, momentum);
    CHECK(state.weights[0] == doctest::Approx(weight));
    CHECK(state.gradients[0] == 0);
    state.gradients[0] = 4;
  }
  // Decay of AdamW is apart: 1 - 0.1 * (sign + 0.01 * 1); of the plain step it is in the gradient.
  const float beta1 = 0.9F, beta2 = 0.999F;
  const DescentStep adam = {.kind = 2,
                            .rate = 0.1F,
                            .decay = 0.01F,
                            .beta1 = beta1,
                            .beta2 = beta2,
                            .epsilon = 1e-12F,
                            .unbias1 = 1 / (1 - beta1),
                            .unbias2 = 1 / (1 - beta2)};
  state = {{1}, {-3}, {0}, {0}};
  reference::descend(state, adam);
  CHECK(state.weights[0] == doctest::Approx(1 + 0.1 - 0.001).epsilon(1e-5));
  state = {{1}, {-3}, {0}, {0}};
  reference::descend(state, {.rate = 0.1F, .decay = 0.5F});
  CHECK(state.weights[0] == doctest::Approx(1 - 0.1 * (-3 + 0.5)));
}
