// Kernels of attention, loss and convolution against their references: needs a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/cuda/device_numbers.h"

using namespace interlock::cuda;

TEST_CASE("causal softmax and its gradient, in place") {
  for (const int tokens : {1, 5, 64, 300, 520}) {
    check_kernel([&](OnDevice& on) {
      const Matrix shape = {std::int64_t{3} * tokens, tokens};
      const auto size = static_cast<std::size_t>(shape.size());
      Numbers scores = random_numbers(size, 1), slopes = random_numbers(size, 2);
      void *at = on.put(scores), *at_slopes = on.put(slopes);
      causal_softmax(on.stream(), at, 0.5F, shape);
      // The gradient is held to the weights as they were rounded.
      const Numbers weights = on.get(at, size);
      causal_softmax_gradient(on.stream(), at_slopes, at, 0.5F, shape);
      std::vector<Compared> all = {
          {"softmax", weights, reference::causal_softmax(scores, 0.5, tokens)}};
      if (tokens == 1) return all;  // its gradient is 0
      all.push_back({"softmax gradient", on.get(at_slopes, size),
                     reference::causal_softmax_gradient(weights, slopes, 0.5, tokens)});
      return all;
    });
  }
}

TEST_CASE("fused attention and its gradient, beside queries, keys and values and in their place") {
  // Heads of one tile and of several, of every width of a tile, with and without whole packs.
  for (const Heads& shape : {Heads{2, 1, 1, 4},
                             {1, 70, 2, 8},
                             {2, 40, 3, 5},
                             {1, 150, 1, 64},
                             {1, 67, 1, 80},
                             {1, 35, 1, 160}}) {
    check_kernel([&](OnDevice& on) {
      const auto size = static_cast<std::size_t>(shape.samples * shape.tokens * shape.width());
      const auto rows = static_cast<std::size_t>(shape.blocks() * shape.tokens);
      Numbers qkv = random_numbers(3 * size, 1), dy = random_numbers(size, 2);
      for (double& number : qkv) number *= 2;
      void *at = on.put(qkv), *y = on.room(size), *beside = on.room(3 * size);
      float *statistics = on.room_fp32(rows), *along = on.room_fp32(rows);
      fused_attention(on.stream(), y, statistics, at, shape, 0.5F);
      const Numbers made = on.get(y, size), expected = reference::attention(qkv, shape, 0.5);
      FusedAttentionGradient gradient = {at,     y,       on.put(dy), statistics,
                                         beside, nullptr, along,      0.5F};
      fused_attention_gradient(on.stream(), gradient, shape);
      const Numbers first = on.get(beside, 3 * size);
      gradient.dqkv = at;
      gradient.queries = on.room(size);
      fused_attention_gradient(on.stream(), gradient, shape);
      const Numbers slopes = reference::attention_gradient(qkv, dy, shape, 0.5);
      // The weights are rounded before the output; for gradients the output, weights and slopes.
      return std::vector<Compared>{{"attention", made, expected, 2},
                                   {"gradient beside", first, slopes, 4},
                                   {"gradient in place", on.get(at, 3 * size), slopes, 4}};
    });
  }
}

TEST_CASE("cross-entropy alone, and with its gradient beside the logits or in their place") {
  for (const Matrix shape : {Matrix{3, 10}, {65, 256}, {7, 50257}}) {
    check_kernel([&](OnDevice& on) {
      const auto size = static_cast<std::size_t>(shape.size());
      const auto rows = static_cast<std::size_t>(shape.rows);
      Numbers logits = random_numbers(size, 1);
      for (double& logit : logits) logit *= 8;
      const Tokens targets = random_tokens(rows, shape.columns - 1, 2);
      void *at = on.put(logits), *beside = on.room(size);
      const std::int32_t* at_targets = on.put_tokens(targets);
      float *losses = on.room_fp32(rows), *means = on.room_fp32(3);
      int runs = 0;
      for (void* slopes : {static_cast<void*>(nullptr), beside, at}) {
        cross_entropy(on.stream(), losses, slopes, at, at_targets, shape);
        mean_loss(on.stream(), means + runs++, losses, shape.rows);
      }
      double loss = 0;
      const Numbers probabilities = reference::cross_entropy(logits, targets, shape.columns, loss);
      const Numbers gradient =
          reference::cross_entropy_gradient(probabilities, targets, shape.columns);
      return std::vector<Compared>{{"losses", on.get_fp32(means, 3), {loss, loss, loss}},
                                   {"gradient beside", on.get(beside, size), gradient},
                                   {"gradient in place", on.get(at, size), gradient}};
    });
  }
}

TEST_CASE("patches of images and their transpose, at every kernel and stride") {
  for (const auto& [kernel, stride] : {std::pair{1, 1}, {3, 1}, {3, 2}, {1, 2}, {5, 3}}) {
    check_kernel([&, k = kernel, s = stride](OnDevice& on) {
      const Patches shape = {
          .samples = 3, .rows = 9, .columns = 8, .channels = 5, .kernel = k, .stride = s};
      const auto size = static_cast<std::size_t>(shape.made().size());
      Numbers images = random_numbers(1080, 1), dpatches = random_numbers(size, 2);
      void *patches = on.room(size), *dimages = on.room(images.size());
      gather_patches(on.stream(), patches, on.put(images), shape);
      gather_patches_gradient(on.stream(), dimages, on.put(dpatches), shape);
      return std::vector<Compared>{
          {"patches", on.get(patches, size), reference::gather_patches(images, shape)},
          {"their gradient", on.get(dimages, images.size()),
           reference::gather_patches_gradient(dpatches, shape)}};
    });
  }
}

TEST_CASE("the average over pixels, and its gradient, which spreads") {
  check_kernel([&](OnDevice& on) {
    constexpr std::size_t kPixels = 49;
    const Matrix shape = {6, 10};
    Numbers x = random_numbers(60 * kPixels, 1), dy = random_numbers(60, 2);
    void *y = on.room(60), *dx = on.room(x.size());
    average_pool(on.stream(), y, on.put(x), shape, int{kPixels});
    average_pool_gradient(on.stream(), dx, on.put(dy), shape, int{kPixels});
    Numbers spread;
    for (std::size_t i = 0; i < x.size(); ++i) {
      spread.push_back(dy[i / 10 / kPixels * 10 + i % 10] / kPixels);
    }
    return std::vector<Compared>{
        {"average", on.get(y, 60), reference::average_pool(x, shape, int{kPixels})},
        {"spread", on.get(dx, x.size()), spread}};
  });
}
