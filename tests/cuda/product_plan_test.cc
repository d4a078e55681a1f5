// Plans of products are kept apart by all that an algorithm depends on. No GPU needed.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "validate/cuda/device/products.h"

using namespace interlock::cuda;

TEST_CASE("products that differ in anything have plans of their own, equal ones share one") {
  const ProductShape base = {.m = 64, .n = 32, .k = 16, .lead_a = 16, .lead_b = 32, .lead_c = 32};
  std::set<ProductShape> plans = {base, base};
  CHECK(plans.size() == 1);
  const auto with = [&](auto change) {
    ProductShape shape = base;
    change(shape);
    return plans.insert(shape).second;
  };
  CHECK(with([](ProductShape& s) { s.role = ProductRole::WeightGradient; }));
  CHECK(with([](ProductShape& s) { s.m = 65; }));
  CHECK(with([](ProductShape& s) { s.n = 33; }));
  CHECK(with([](ProductShape& s) { s.k = 17; }));
  CHECK(with([](ProductShape& s) { s.transpose_a = true; }));
  CHECK(with([](ProductShape& s) { s.transpose_b = true; }));
  CHECK(with([](ProductShape& s) { s.lead_a = 48; }));
  CHECK(with([](ProductShape& s) { s.batch = 4; }));
  CHECK(with([](ProductShape& s) { s.step_c = 9; }));
  CHECK(with([](ProductShape& s) { s.accumulate = true; }));
  CHECK(with([](ProductShape& s) { s.bias = true; }));
  CHECK(with([](ProductShape& s) { s.element = Element::Bf16; }));
  CHECK(with([](ProductShape& s) { s.sms = 32; }));
  CHECK_FALSE(with([](ProductShape&) {}));
}

TEST_CASE("alignment is what every row and every matrix of a batch keeps to, 16 bytes at most") {
  ProductShape shape = {.lead_a = 64, .lead_b = 64, .lead_c = 64, .element = Element::Bf16};
  CHECK(alignment_of(shape, {}) == 16);
  shape.lead_b = 4;  // rows of 8 bytes
  CHECK(alignment_of(shape, {}) == 8);
  shape.lead_c = 3;  // rows of 6 bytes
  CHECK(alignment_of(shape, {}) == 2);
  shape.element = Element::Fp32;  // of 12
  CHECK(alignment_of(shape, {}) == 4);
  shape = {.lead_a = 64, .lead_b = 64, .lead_c = 64, .element = Element::Bf16};
  CHECK(alignment_of(shape, {.b = reinterpret_cast<const void*>(0x1008)}) == 8);
}

TEST_CASE("a product is recorded in words that a person can look up") {
  CHECK(describe({.role = ProductRole::WeightGradient,
                  .m = 4096,
                  .n = 1024,
                  .k = 512,
                  .batch = 2,
                  .accumulate = true,
                  .element = Element::Bf16,
                  .sms = 32}) ==
        "4096 x 1024 x 512, 2 of them bf16, weight gradient, added, on 32 multiprocessors");
}
