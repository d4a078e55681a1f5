// The arithmetic of quantities: what exists gives the right number, what means nothing is absent.
// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <doctest/doctest.h>

#include <concepts>

namespace interlock::units_test {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

static_assert(Addable<Seconds, Seconds> && !Addable<Seconds, Bytes> && !Addable<Seconds, double>);
static_assert(Comparable<Bytes, Bytes> && !Comparable<Bytes, Flops>);
static_assert(!Multipliable<Seconds, Seconds> && Multipliable<Seconds, double>);
static_assert(Divisible<Flops, FlopsPerSecond> && Divisible<Bytes, BytesPerSecond>);
static_assert(Divisible<Flops, Seconds> && Divisible<Bytes, Seconds>);
static_assert(!Divisible<Flops, BytesPerSecond> && !Divisible<Seconds, Bytes>);
static_assert(!std::convertible_to<double, Seconds> && !std::convertible_to<Seconds, double>);

TEST_CASE("work over rate is time, work over time is rate") {
  CHECK(Flops(6e12) / FlopsPerSecond(3e12) == Seconds(2));
  CHECK(Bytes(900e9) / BytesPerSecond(450e9) == Seconds(2));
  CHECK(Flops(6e12) / Seconds(2) == FlopsPerSecond(3e12));
  CHECK(Bytes(8) / Seconds(2) == BytesPerSecond(4));
}

TEST_CASE("quantities of one unit add, subtract, scale and compare") {
  Seconds time(3);
  time += Seconds(2);
  time -= Seconds(1);
  time *= 2;
  CHECK(time == Seconds(8));
  CHECK(2 * time / 4 == Seconds(4));
  CHECK(time / Seconds(2) == 4.0);
  CHECK(-time < Seconds());
  CHECK(Bytes(1) < Bytes(2));
}

}  // namespace
}  // namespace interlock::units_test
