// The closed forms against tables worked out by hand, and against sums done the long way.
// SPDX-License-Identifier: Apache-2.0
#include "tests/formulas/closed_form.h"

#include <doctest/doctest.h>

#include "tests/formulas/local_methods.h"

namespace interlock::closed_form_test {
namespace {

EqualChain unit_chain(int stages, double head) {
  return {stages, {Seconds(1), Seconds(1), Seconds(1), Seconds(head), Seconds(0)}, Seconds(0)};
}

struct UnitRow {
  int stages;
  double head, naive, split, local, shipped;
  std::vector<double> eager;  // N = 2, 3, 4
  double list3;               // 0: no such form
  std::vector<double> gpipe;  // M = 4, 8, 32, per micro-batch
};

// f = bi = bw = 1, o = c = 0, worked out by hand.
const std::vector<UnitRow> kUnitTable = {
    {2, 0, 6, 5, 3, 6, {5}, 0, {3.75, 3.375, 3.09375}},
    {4, 0, 12, 9, 3, 6, {5, 7, 9}, 17, {5.25, 4.125, 3.28125}},
    {8, 0, 24, 17, 3, 6, {5, 7, 9}, 37, {8.25, 5.625, 3.65625}},
    {16, 0, 48, 33, 3, 6, {5, 7, 9}, 77, {14.25, 8.625, 4.40625}},
    {4, 0.5, 12, 9, 3.5, 6, {5.5, 7.5, 9}, 17, {5.25, 4.125, 3.28125}},
    {8, 0.5, 24, 17, 3.5, 6, {5.5, 7.5, 9.5}, 37, {8.25, 5.625, 3.65625}},
};

TEST_CASE("the closed forms give the table of unit costs") {
  for (const UnitRow& row : kUnitTable) {
    CAPTURE(row.stages);
    CAPTURE(row.head);
    const EqualChain chain = unit_chain(row.stages, row.head);
    CHECK(naive_period(chain).value() == row.naive);
    CHECK(naive_split_period(chain).value() == row.split);
    CHECK(local_period(chain, false).value() == row.local);
    CHECK(shipped_pairwise_period(chain).value() == row.shipped);
    for (int n = 2; n - 2 < static_cast<int>(row.eager.size()); ++n) {
      CHECK(eager_period(chain, n).value() == row.eager[n - 2]);
    }
    if (row.list3 > 0) CHECK(list_period(chain, 3).value() == row.list3);
    int i = 0;
    for (int m : {4, 8, 32}) CHECK(flushed_step(chain, m).value() / m == row.gpipe[i++]);
  }
}

TEST_CASE("the list form of pairs is slower than no pipelining at all") {
  CHECK(list_period(unit_chain(4, 0), 2).value() == 15);
  CHECK(list_period(unit_chain(8, 0), 2).value() == 31);
}

TEST_CASE("N-wise training needs K - N heads and (K - N)(N - 1) extra gradients") {
  for (int stages = 1; stages <= 9; ++stages) {
    for (int n = 1; n <= stages; ++n) {
      int heads = 0, extra = 0;
      for (int i = 1; i <= stages; ++i) {
        heads += needs_head(stages, n, i) ? 1 : 0;
        extra += extra_traversals(stages, n, i);
      }
      CAPTURE(stages);
      CAPTURE(n);
      CHECK(heads == stages - n);
      CHECK(extra == (stages - n) * (n - 1));
    }
  }
}

TEST_CASE("a stage sends down as many tensors as the stage below pushes and does not own") {
  for (int stages = 2; stages <= 9; ++stages) {
    for (int n = 1; n <= stages; ++n) {
      for (int i = 2; i <= stages; ++i) {
        const int own = needs_head(stages, n, i - 1) ? 1 : 0;
        CAPTURE(stages);
        CAPTURE(n);
        CAPTURE(i);
        // All of the stage below: its extra ones and the one that trains it.
        CHECK(gradient_tensors(stages, n, i) == extra_traversals(stages, n, i - 1) + 1 - own);
        CHECK(gradient_tensors(stages, n, i) <= shipped_gradient_tensors(stages, n, i));
      }
    }
  }
}

TEST_CASE("equal stages have one loop, and it is the eager period") {
  const EqualChain chain{
      7, {Seconds(3), Seconds(5), Seconds(2), Seconds(4), Seconds(1)}, Seconds(6)};
  const std::vector<StageTimes> stages(7, chain.stage);
  const std::vector<Seconds> transfers(6, chain.transfer);
  for (int n = 1; n <= 7; ++n) {
    CHECK(loop_bound(stages, transfers, n) == eager_period(chain, n));
  }
}

TEST_CASE("utilisation of an inner stage is (N + 2 + a) / (2N + 1 + a)") {
  for (int n : {2, 3, 4}) {
    for (double a : {0.0, 0.5, 3.0}) {
      CHECK(eager_busy(unit_chain(8, a), n) == doctest::Approx((n + 2 + a) / (2 * n + 1 + a)));
      CHECK(eager_useful(unit_chain(8, a), n) == doctest::Approx(3 / (2 * n + 1 + a)));
    }
  }
}

TEST_CASE("chunks speed backpropagation up by J / (1 + hJ / 3Lf)") {
  const int layers = 12;
  const Seconds f(1), h(2);
  for (int chunks : {1, 2, 3, 4, 6, 12}) {
    const LocalCost whole = local_cost(LocalMethod::Backprop, layers, 1, f, h);
    const LocalCost cut = local_cost(LocalMethod::Chunked, layers, chunks, f, h);
    CHECK(whole.sequential_time / cut.sequential_time ==
          doctest::Approx(chunks / (1 + (h / f) * chunks / (3 * layers))));
  }
  const LocalCost greedy = local_cost(LocalMethod::Greedy, layers, 1, f, h);
  const LocalCost cut = local_cost(LocalMethod::Chunked, layers, layers, f, h);
  CHECK(greedy.work == cut.work);
  CHECK(greedy.tensors_sent == cut.tensors_sent);
}

}  // namespace
}  // namespace interlock::closed_form_test
