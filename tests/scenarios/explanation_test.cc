// Explanations of shipped scenarios: layouts with collectives, and engines that share links.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "base/json/json.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock::explanation_test {
namespace {

/// How many ops, messages and collectives do not begin when their causes say.
template <class Entries>
int count_faults(const Entries& entries, const std::vector<Cause>& causes, double allowed) {
  int faults = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (std::abs((entries[i].start - causes[i].at).value()) > allowed) ++faults;
  }
  return faults;
}

TEST_CASE("everything begins when its cause says, with collectives and shared links") {
  for (const char* name : {"llama-3-8b-fsdp", "llama-3-8b", "zero-bubble", "networks", "offload",
                           "overlapping", "in-flight", "stragglers"}) {
    const std::string file = std::string(EXAMPLES_FOLDER "/") + name + ".json";
    const Question scenario = load_questions(read_json_file(file)).front();
    const Program program = lower_plan(make_plan(scenario), 3);
    TraceLog log;
    const RunSummary run = run_program(program, scenario.simulation.engine, log_sink(log));
    const auto causes = find_causes(program, log);
    INFO(name << " by " << run.engine << ": " << log.spans.size() << " ops, "
              << log.transfers.size() << " messages, " << log.collectives.size() << " collectives");
    REQUIRE(causes);
    const double allowed = 1e-8 * run.makespan.value();
    CHECK(count_faults(log.spans, causes->spans, allowed) == 0);
    CHECK(count_faults(log.transfers, causes->transfers, allowed) == 0);
    CHECK(count_faults(log.collectives, causes->collectives, allowed) == 0);
  }
}

TEST_CASE("the critical path of a steady step is as long as the step, bubbles as the idle share") {
  for (const char* name : {"llama-3-8b-fsdp", "four-equal-stages", "zero-bubble", "slow-links"}) {
    const std::string file = std::string(EXAMPLES_FOLDER "/") + name + ".json";
    const Question scenario = load_questions(read_json_file(file)).front();
    const Metrics metrics = run_scenario(scenario, false).measurement.metrics;
    INFO(std::string(name));
    REQUIRE(metrics.explanation);
    const PathUse& path = metrics.explanation->path;
    const double ops = std::accumulate(path.ops.begin(), path.ops.end(), 0.0);
    const double step = metrics.step_time.value();
    CHECK(ops + path.messages + path.collectives == doctest::Approx(step).epsilon(1e-6));
    CHECK(path.unknown == doctest::Approx(0).epsilon(1e-6 * step));
    for (std::size_t r = 0; r < metrics.devices.size(); ++r) {
      const Bubbles& bubbles = metrics.explanation->devices[r];
      const double idle = std::accumulate(bubbles.begin(), bubbles.end(), 0.0) / step;
      const auto& time = metrics.devices[r].time;
      const double waits = time[static_cast<std::size_t>(TimeUse::Exposed)] +
                           time[static_cast<std::size_t>(TimeUse::Bubble)];
      CHECK(idle == doctest::Approx(waits).epsilon(1e-9).scale(1));
    }
  }
}

}  // namespace
}  // namespace interlock::explanation_test
