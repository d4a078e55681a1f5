// The fastest algorithm of a product is taken, on an emulated machine whose times are known.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/cuda/device_numbers.h"
#include "tests/cuda/emulator/emulated_products.h"
#include "tests/harness/support/training.h"
#include "validate/cuda/device/products.h"
#include "validate/cuda/stage/gpu_run.h"

namespace interlock::choice_test {
namespace {

using emulated::OfferedAlgorithm;

/// Offers other algorithms as long as it lives.
class Offers {
 public:
  explicit Offers(std::vector<OfferedAlgorithm> offered)
      : before_(std::exchange(emulated::offered_algorithms(), std::move(offered))) {}
  ~Offers() { emulated::offered_algorithms() = before_; }
  Offers(const Offers&) = delete;
  Offers& operator=(const Offers&) = delete;

  int ran(int i) const {
    return emulated::offered_algorithms().at(static_cast<std::size_t>(i)).ran;
  }
  int ran_all() const {
    int all = 0;
    for (const OfferedAlgorithm& one : emulated::offered_algorithms()) all += one.ran;
    return all;
  }

 private:
  std::vector<OfferedAlgorithm> before_;
};

/// Returns a shape that nothing in this process has run yet.
cuda::ProductShape fresh_shape() {
  static int unlike_others = 0;
  const std::int64_t n = 8 * (151 + ++unlike_others);
  return {.m = 8, .n = n, .k = 16, .lead_a = 16, .lead_b = n, .lead_c = n, .sms = 8};
}

/// Runs a product of numbers 1 that is added to numbers 3; returns the algorithm that was recorded.
int chosen_for(cuda::Products& products, cuda::ProductShape shape, int times) {
  int chosen = -1;
  shape.accumulate = true;
  cuda::OnDevice on(cuda::Element::Fp32, 8);
  const auto size = static_cast<std::size_t>(shape.m * shape.lead_c);
  cuda::Numbers a(static_cast<std::size_t>(shape.m * shape.k), 1);
  cuda::Numbers b(static_cast<std::size_t>(shape.k * shape.n), 1);
  cuda::Numbers c(size, 3);
  cuda::ProductOperands at = {on.put(a), on.put(b), on.put(c)};
  for (int i = 0; i < times; ++i) products.run(on.stream(), shape, at);
  // However often it was tried, it was added as often as it was asked for.
  for (const double x : on.get(at.c, size)) REQUIRE(x == 3 + times * 16);
  for (const ExecutedProduct& one : products.record()) {
    if (one.calls == times) chosen = one.algorithm;
  }
  return chosen;
}

}  // namespace

TEST_CASE("the fastest of the offered algorithms is taken, and what is refused passed over") {
  const double ms = 1e-3;
  struct Trial {
    std::vector<OfferedAlgorithm> offered;
    int expected;
  };
  const std::vector<Trial> trials = {
      {{{4 * ms}, {2 * ms}, {3 * ms}}, 11},
      {{{2 * ms}, {4 * ms}}, 10},
      {{{3 * ms}, {1 * ms, true}, {2 * ms}}, 12},
      {{{0, true}, {5 * ms}, {0, true}, {3 * ms}, {4 * ms}}, 13},
      {{{2 * ms}}, 10},
      // The ninth is not asked for.
      {{{9 * ms}, {8 * ms}, {7 * ms}, {6 * ms}, {5 * ms}, {4 * ms}, {3 * ms}, {2 * ms}, {0}}, 17}};
  for (const Trial& trial : trials) {
    CAPTURE(trial.expected);
    const Offers offers(trial.offered);
    cuda::Products products(0);
    CHECK(chosen_for(products, fresh_shape(), 3) == trial.expected);
  }
}

TEST_CASE("an algorithm is chosen once for equal products of a process") {
  const cuda::ProductShape shape = fresh_shape();
  {
    const Offers offers({{2e-3}, {1e-3}});
    cuda::Products products(0);
    REQUIRE(chosen_for(products, shape, 1) == 11);
  }
  // Had it been timed again, the first would be taken.
  const Offers offers({{1e-3}, {2e-3}});
  cuda::Products products(0);
  CHECK(chosen_for(products, shape, 2) == 11);
  CHECK(offers.ran(0) == 0);
  CHECK(offers.ran(1) == 2);
}

TEST_CASE("nothing is tried in a run that is measured") {
  const Offers offers({{2e-3}, {1e-3}});
  const SmallTraining training = make_training(
      {.model = kResidualMlp, .devices = 2, .samples = 7, .steps = 3, .optimizer = "adam"});
  CudaOptions options;
  options.partitions = 2;
  options.planned_sms = 24;
  CudaRun run;
  cuda::run_job(job_of(training), options, {}, run);
  CHECK(offers.ran(0) > 0);  // it was tried
  std::int64_t calls = 0;
  for (const ExecutedProduct& one : run.record.products) {
    CHECK(one.algorithm == 11);
    calls += one.calls;
  }
  // A second run warms up by its first step of three, and tries nothing.
  const int tried = offers.ran(0), all = offers.ran_all();
  cuda::run_job(job_of(training), options, {}, run);
  CHECK(offers.ran(0) == tried);
  CHECK(offers.ran_all() - all == calls + calls / 3);
}

}  // namespace interlock::choice_test
