// Kernels of rows and columns against their references: needs a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/cuda/device_numbers.h"

using namespace interlock::cuda;

namespace {

Numbers map(const Numbers& a, const Numbers& b, double (*f)(double, double)) {
  Numbers y;
  for (std::size_t i = 0; i < a.size(); ++i) y.push_back(f(a[i], b[i % b.size()]));
  return y;
}

}  // namespace

TEST_CASE("elementwise kernels make what their references make, whole packs and tails") {
  for (const std::size_t size : {1, 7, 64, 1003, 300'000}) {
    check_kernel([&](OnDevice& on) {
      Numbers x = random_numbers(size, 1), dy = random_numbers(size, 2);
      for (double& number : x) number *= 3;
      const void *at_x = on.put(x), *at_dy = on.put(dy);
      const auto run = [&](auto kernel) {
        void* y = on.room(size);
        kernel(y);
        return on.get(y, size);
      };
      const auto n = static_cast<std::int64_t>(size);
      std::vector<Compared> all;
      all.push_back({"gelu", run([&](void* y) { gelu(on.stream(), y, at_x, n); }),
                     map(x, dy, [](double a, double) { return reference::gelu(a); })});
      all.push_back({"gelu_gradient",
                     run([&](void* y) { gelu_gradient(on.stream(), y, at_x, at_dy, n); }),
                     map(x, dy, [](double a, double b) { return b * reference::gelu_slope(a); })});
      all.push_back({"relu", run([&](void* y) { relu(on.stream(), y, at_x, n); }),
                     map(x, dy, [](double a, double) { return std::max(a, 0.0); })});
      all.push_back({"relu_gradient",
                     run([&](void* y) { relu_gradient(on.stream(), y, at_x, at_dy, n); }),
                     map(x, dy, [](double a, double b) { return a > 0 ? b : 0; })});
      all.push_back({"add", run([&](void* y) { add(on.stream(), y, at_x, at_dy, n); }),
                     map(x, dy, [](double a, double b) { return a + b; })});
      all.push_back({"scale", run([&](void* y) { scale(on.stream(), y, at_x, 0.25F, n); }),
                     map(x, dy, [](double a, double) { return a / 4; })});
      for (Compared& one : all) {
        // All of a tensor of one element may be 0.
        if (size == 1) one.expected.push_back(1), one.made.push_back(1);
      }
      return all;
    });
  }
}

TEST_CASE("rows that are added or multiplied, and their gradients, which add to what is there") {
  for (const Matrix shape : {Matrix{5, 3}, {37, 64}, {4099, 200}, {70, 1032}}) {
    check_kernel([&](OnDevice& on) {
      const auto size = static_cast<std::size_t>(shape.size());
      const auto columns = static_cast<std::size_t>(shape.columns);
      Numbers x = random_numbers(size, 1), row = random_numbers(columns, 2);
      Numbers dy = random_numbers(size, 3), before = random_numbers(columns, 4);
      const void *at_x = on.put(x), *at_row = on.put(row), *at_dy = on.put(dy);
      void *sum = on.room(size), *product = on.room(size);
      void *dbias = on.put(before), *dweight = on.put(before);
      float* scratch = on.room_fp32(static_cast<std::size_t>(column_scratch(shape, 1)));
      add_rows(on.stream(), sum, at_x, at_row, shape);
      scale_rows(on.stream(), product, at_x, at_row, shape);
      bias_gradient(on.stream(), dbias, at_dy, shape, scratch);
      scale_gradient(on.stream(), dweight, at_x, at_dy, shape, scratch);
      const auto plus = [](double a, double b) { return a + b; };
      const auto times = [](double a, double b) { return a * b; };
      return std::vector<Compared>{
          {"add_rows", on.get(sum, size), map(x, row, plus)},
          {"scale_rows", on.get(product, size), map(x, row, times)},
          {"bias_gradient", on.get(dbias, columns),
           map(reference::column_sums(dy, shape.columns), before, plus)},
          {"scale_gradient", on.get(dweight, columns),
           map(reference::column_sums(map(x, dy, times), shape.columns), before, plus)}};
    });
  }
}

TEST_CASE("where tensors lie changes no bit of rows and their sums") {
  for (const Element element : {Element::Fp32, Element::Bf16}) {
    OnDevice on(element, 16);
    const Matrix shape = {9, 1032};
    const auto size = static_cast<std::size_t>(shape.size());
    const auto columns = static_cast<std::size_t>(shape.columns);
    const auto made = [&](std::size_t off) {
      const auto put = [&](std::size_t count, std::uint64_t stream) {
        Numbers numbers = random_numbers(count, stream);
        numbers.insert(numbers.begin(), off, 0.0);
        return static_cast<char*>(on.put(numbers)) +
               static_cast<std::int64_t>(off) * bytes_of(element);
      };
      float* scratch = on.room_fp32(static_cast<std::size_t>(norm_scratch(shape)));
      char *x = put(size, 1), *dy = put(size, 2), *gain = put(columns, 3), *shift = put(columns, 4);
      char *y = put(size, 5), *dx = put(size, 6), *dbias = put(columns, 7);
      layer_norm(on.stream(), y, x, gain, shift, shape);
      layer_norm_gradient(on.stream(), {dx, gain, shift}, x, gain, dy, shape, scratch);
      bias_gradient(on.stream(), dbias, dy, shape, scratch);
      std::vector<Numbers> all = {on.get(y, size), on.get(dx, size)};
      for (const char* sums : {gain, shift, dbias}) all.push_back(on.get(sums, columns));
      return all;
    };
    CHECK(made(1) == made(0));
    CHECK(made(3) == made(0));
  }
}

TEST_CASE("norms over rows and columns, forward and all three gradients") {
  for (const Matrix shape : {Matrix{6, 5}, {130, 64}, {5, 4104}, {40, 1001}, {2000, 16}}) {
    for (const bool rows : {true, false}) {
      check_kernel([&](OnDevice& on) {
        const auto size = static_cast<std::size_t>(shape.size());
        const auto columns = static_cast<std::size_t>(shape.columns);
        reference::Norm norm = {random_numbers(size, 1), random_numbers(columns, 2),
                                random_numbers(columns, 3), shape};
        Numbers dy = random_numbers(size, 4), zeros(columns, 0);
        const void *x = on.put(norm.x), *gain = on.put(norm.gain), *shift = on.put(norm.shift);
        const void* at_dy = on.put(dy);
        void *y = on.room(size), *dx = on.room(size);
        void *dgain = on.put(zeros), *dshift = on.put(zeros);
        float* scratch = on.room_fp32(static_cast<std::size_t>(norm_scratch(shape)));
        if (rows) {
          layer_norm(on.stream(), y, x, gain, shift, shape);
          layer_norm_gradient(on.stream(), {dx, dgain, dshift}, x, gain, at_dy, shape, scratch);
        } else {
          batch_norm(on.stream(), y, x, gain, shift, shape, scratch);
          batch_norm_gradient(on.stream(), {dx, dgain, dshift}, x, gain, at_dy, shape, scratch);
        }
        const Numbers expected = rows ? reference::layer_norm(norm) : reference::batch_norm(norm);
        const reference::NormGradient slopes = rows ? reference::layer_norm_gradient(norm, dy)
                                                    : reference::batch_norm_gradient(norm, dy);
        return std::vector<Compared>{{"norm", on.get(y, size), expected},
                                     {"norm dx", on.get(dx, size), slopes.dx},
                                     {"norm dgain", on.get(dgain, columns), slopes.dgain},
                                     {"norm dshift", on.get(dshift, columns), slopes.dshift}};
      });
    }
  }
}

namespace {

struct Reading {
  int rows, columns, positions;
  Tokens tokens;
};

std::vector<Compared> check_embedding(OnDevice& on, const Reading& r) {
  constexpr int kTokens = 30;
  const auto width = static_cast<std::size_t>(r.columns), rows = static_cast<std::size_t>(r.rows);
  Tokens order(rows);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return r.tokens[a] < r.tokens[b]; });
  Numbers table = random_numbers(kTokens * width, 2), places = random_numbers(8 * width, 3);
  Numbers dy = random_numbers(rows * width, 4);
  Numbers dtable = random_numbers(table.size(), 5), dplaces = random_numbers(places.size(), 6);
  const Lookup lookup = {on.put_tokens(r.tokens), on.put_tokens(order), r.positions};
  const Matrix shape = {r.rows, r.columns};
  void *y = on.room(dy.size()), *to = on.put(dtable), *to_places = on.put(dplaces);
  float* scratch = on.room_fp32(static_cast<std::size_t>(embed_scratch(shape)));
  embed(on.stream(), y, on.put(table), on.put(places), lookup, shape);
  embed_gradient(on.stream(), {to, to_places}, on.put(dy), lookup, shape, scratch);
  reference::embed_gradient(dtable, dplaces, dy, r.tokens, r.positions);
  std::vector<Compared> all = {{"embed", on.get(y, dy.size()),
                                reference::embed(table, places, r.tokens, r.positions, r.columns)},
                               {"table", on.get(to, dtable.size()), dtable}};
  if (r.positions > 0) all.push_back({"places", on.get(to_places, dplaces.size()), dplaces});
  return all;
}

}  // namespace

TEST_CASE("embeddings, and gradients of tokens that come often, once and never") {
  const auto same = [](std::size_t rows, std::int32_t token) { return Tokens(rows, token); };
  Tokens skewed = random_tokens(400, 29, 1);  // half of them are one token, as a text has them
  for (std::size_t i = 0; i < skewed.size(); i += 2) skewed[i] = 7;
  Tokens halves = same(64, 3);  // a run that ends where a chunk does, and one that begins there
  for (std::size_t i = 32; i < 64; ++i) halves[i] = 4;
  for (const Reading& reading :
       {Reading{64, 48, 0, random_tokens(64, 29, 1)}, Reading{64, 48, 8, random_tokens(64, 29, 1)},
        Reading{400, 600, 8, skewed}, Reading{400, 13, 0, skewed}, Reading{64, 8, 8, halves},
        Reading{200, 72, 0, same(200, 29)}, Reading{33, 16, 0, same(33, 0)},
        Reading{1, 4, 0, same(1, 5)}}) {
    check_kernel([&](OnDevice& on) { return check_embedding(on, reading); });
  }
}

TEST_CASE("three steps of every kind of descent") {
  for (const int kind : {0, 1, 2}) {
    check_kernel([&](OnDevice& on) {
      constexpr std::size_t kSize = 1000;
      reference::Descent state = {
          random_numbers(kSize, 1), {}, Numbers(kSize, 0), Numbers(kSize, 0)};
      DescentState at = {.weights = on.put(state.weights)};
      if (on.stream().element == Element::Bf16) at.masters = on.put_fp32(state.weights);
      at.first = on.put_fp32(state.first);
      at.second = on.put_fp32(state.second);
      DescentStep step = {.kind = kind, .share = 0.5F, .rate = 0.1F, .momentum = 0.9F};
      step.decay = 0.01F;
      step.beta1 = 0.9F;
      step.beta2 = 0.99F;
      step.epsilon = 1e-4F;
      for (int t = 1; t <= 3; ++t) {
        step.unbias1 = 1 / (1 - std::pow(step.beta1, static_cast<float>(t)));
        step.unbias2 = 1 / (1 - std::pow(step.beta2, static_cast<float>(t)));
        state.gradients = random_numbers(kSize, 10 + static_cast<std::uint64_t>(t));
        at.gradients = on.put(state.gradients);
        descend(on.stream(), at, step, kSize);
        reference::descend(state, step);
      }
      return std::vector<Compared>{{"weights", on.get(at.weights, kSize), state.weights}};
    });
  }
}
