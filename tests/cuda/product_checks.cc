// Products of cuBLASLt in every role against three loops: needs a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/cuda/device_numbers.h"
#include "validate/cuda/device/products.h"

using namespace interlock::cuda;

namespace {

/// c of one matrix of the batch by its definition.
void multiply(const interlock::cuda::ProductShape& s, const double* a, const double* b, double* c) {
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = s.accumulate ? c[i * s.lead_c + j] : 0;
      for (std::int64_t p = 0; p < s.k; ++p) {
        sum += a[s.transpose_a ? p * s.lead_a + i : i * s.lead_a + p] *
               b[s.transpose_b ? j * s.lead_b + p : p * s.lead_b + j];
      }
      c[i * s.lead_c + j] = sum;
    }
  }
}

}  // namespace

TEST_CASE("products in every role, transposed, added, batched and with a bias") {
  std::vector<interlock::cuda::ProductShape> shapes = {
      {.m = 33, .n = 17, .k = 9, .lead_a = 9, .lead_b = 17, .lead_c = 17},
      {.m = 64, .n = 128, .k = 96, .lead_a = 96, .lead_b = 128, .lead_c = 128, .bias = true},
      {.role = ProductRole::InputGradient,
       .m = 64,
       .n = 96,
       .k = 128,
       .transpose_b = true,
       .lead_a = 128,
       .lead_b = 128,
       .lead_c = 96},
      {.role = ProductRole::WeightGradient,
       .m = 96,
       .n = 128,
       .k = 64,
       .transpose_a = true,
       .lead_a = 96,
       .lead_b = 128,
       .lead_c = 128,
       .accumulate = true},
      // Two heads of 16 inside rows of 96: queries times keys.
      {.role = ProductRole::Attention,
       .m = 40,
       .n = 40,
       .k = 16,
       .transpose_b = true,
       .lead_a = 96,
       .lead_b = 96,
       .lead_c = 40,
       .batch = 2,
       .step_a = 16,
       .step_b = 16,
       .step_c = 1600}};
  for (interlock::cuda::ProductShape shape : shapes) {
    check_kernel([&](OnDevice& on) {
      shape.element = on.stream().element;
      shape.sms = 16;  // the same plan whatever the stream
      Products products(0);
      const std::size_t size = 19'200;
      Numbers a = random_numbers(size, 1), b = random_numbers(size, 2), c = random_numbers(size, 3);
      Numbers bias = random_numbers(static_cast<std::size_t>(shape.n), 4);
      ProductOperands at = {on.put(a), on.put(b), on.put(c), on.put(bias)};
      products.run(on.stream(), shape, at);
      for (int i = 0; i < shape.batch; ++i) {
        multiply(shape, &a[i * shape.step_a], &b[i * shape.step_b], &c[i * shape.step_c]);
      }
      for (std::int64_t i = 0; shape.bias && i < shape.m * shape.n; ++i) c[i] += bias[i % shape.n];
      CHECK(products.record().size() >= 1);
      return std::vector<Compared>{{describe(shape), on.get(at.c, size), c}};
    });
  }
}
