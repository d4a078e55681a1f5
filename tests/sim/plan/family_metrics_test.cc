// Metrics of every schedule family: shares, steps that repeat, programs that stay small.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <optional>

#include "tests/sim/support/test_chain.h"

namespace interlock::family_metrics_test {
namespace {

constexpr double kOne = 1 + 1e-9;

/// Metrics of `steps` steps; nothing if the run deadlocks.
std::optional<Metrics> measured(const TestChain& chain, int steps) {
  try {
    return measure(programs_of(chain), {.steps = steps}, false).metrics;
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST_CASE("no device and no link of a steady run is busy for more than all of the time") {
  int steady = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(241, seed);
    const TestChain chain = random_chain(random);
    const auto metrics = measured(chain, 3);
    if (!metrics || !metrics->steady) continue;
    INFO("seed " << seed << ": " << describe(chain));
    ++steady;
    for (const DeviceMetrics& device : metrics->devices) CHECK(device.busy <= kOne);
    for (const LinkMetrics& link : metrics->links) CHECK(link.utilisation <= kOne);
    CHECK(metrics->busy <= kOne);
  }
  CHECK(steady > 250);
}

TEST_CASE("a steady step takes as long however many are measured") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(242, seed);
    const TestChain chain = random_chain(random);
    const auto few = measured(chain, 2), many = measured(chain, 12);
    if (!few || !many || !few->steady || !many->steady) continue;
    INFO("seed " << seed << ": " << describe(chain));
    CHECK(many->step_time.value() == doctest::Approx(few->step_time.value()).epsilon(1e-9));
    CHECK(many->busy == doctest::Approx(few->busy).epsilon(1e-9));
    ++compared;
  }
  CHECK(compared > 200);
}

/// A chain of `kind` on 4 ranks, or on as many stages.
TestChain small_chain(std::string_view kind, int micro_batches, int steps) {
  TestChain chain = make_laid_chain(4, kind);
  chain.micro_batches = micro_batches;
  chain.policy.update_every = micro_batches;
  chain.steps = steps;
  return chain;
}

TEST_CASE("the program of every family is as small for many steps as for few") {
  for (const std::string_view kind : families()) {
    INFO(schedule_named(kind).name);
    const auto size = [&](int steps) {
      return program_of(small_chain(kind, 8, steps)).instructions.size();
    };
    CHECK(size(100'000) == size(3));
  }
}

TEST_CASE("a family whose steps have a loop makes a program of one size for all its turns") {
  int looped = 0;
  for (const std::string_view kind : families()) {
    const ScheduleEntry& entry = schedule_named(kind);
    if (entry.period == nullptr) continue;
    INFO(entry.name);
    const auto size = [&](int micro_batches) {
      return program_of(small_chain(kind, micro_batches, 1)).instructions.size();
    };
    CHECK(size(100'000) == size(400));
    ++looped;
  }
  CHECK(looped > 8);
}

}  // namespace
}  // namespace interlock::family_metrics_test
