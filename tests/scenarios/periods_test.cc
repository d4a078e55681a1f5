// Whole periods left out of long steps: the same figures as of the whole run.
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/plan/schedules/catalogue.h"
#include "tests/scenarios/documents.h"

namespace interlock::periods_test {
namespace {

void check_close(double skipped, double whole) {
  CHECK(skipped == doctest::Approx(whole).epsilon(1e-9));
}

void check_same(const Metrics& skipped, const Metrics& whole) {
  CHECK(skipped.tasks == whole.tasks);
  check_close(skipped.step_time.value(), whole.step_time.value());
  check_close(skipped.makespan.value(), whole.makespan.value());
  check_close(skipped.exposed_communication.value(), whole.exposed_communication.value());
  check_close(skipped.busy, whole.busy);
  check_close(skipped.useful, whole.useful);
  CHECK(skipped.fill_latency == whole.fill_latency);
  CHECK(skipped.limiting_device == whole.limiting_device);
  CHECK(skipped.staleness == whole.staleness);
  for (std::size_t d = 0; d < whole.devices.size(); ++d) {
    check_close(skipped.devices[d].busy, whole.devices[d].busy);
    CHECK(skipped.devices[d].peak_memory == whole.devices[d].peak_memory);
    CHECK(skipped.devices[d].memory == whole.devices[d].memory);
  }
  for (std::size_t l = 0; l < whole.links.size(); ++l) {
    check_close(skipped.links[l].bytes.value(), whole.links[l].bytes.value());
    check_close(skipped.links[l].utilisation, whole.links[l].utilisation);
  }
}

/// A long run of `schedule` on four devices, with costs drawn from a few whole microseconds, so
/// that rhythms are short.
Overrides long_run(const ScheduleEntry& schedule, Random& random) {
  auto microseconds = [&](const char* key, int least, int most) {
    return "model.modules.0." + std::string(key) + "=\"" +
           std::to_string(random.integer(least, most)) + " us\"";
  };
  return {microseconds("forward", 1, 4),
          microseconds("backward_input", 1, 4),
          microseconds("backward_weight", 1, 4),
          "model.modules.0.repeat=8",
          "model.modules.0.output=1 kB",
          "model.modules.0.stash=1 MB",
          "cluster.link.latency=" + std::to_string(random.integer(0, 2)) + " us",
          "training.schedule=" + schedule.name,
          "training.micro_batches=" + std::to_string(24'000 + 4 * random.integer(0, 2)),
          "training.steps=" + std::to_string(random.integer(1, 2))};
}

TEST_CASE("a long step measured by two short ones has the figures of the whole") {
  Random random(7, 0);
  int families = 0, rhythmic = 0, cases = 0;
  for (const ScheduleEntry& schedule : schedule_catalogue()) {
    if (schedule.period == nullptr) continue;
    ++families;
    for (int turn = 0; turn < 3; ++turn, ++cases) {
      Overrides overrides = long_run(schedule, random);
      const Metrics skipped = run_scenario(loaded(overrides), false).measurement.metrics;
      overrides.push_back("simulate.skip_periods=false");
      const Metrics whole = run_scenario(loaded(overrides), false).measurement.metrics;
      INFO(schedule.name << ", " << overrides[0] << ", " << overrides[6]);
      CHECK(whole.skipped_tasks == 0);
      if (skipped.skipped_tasks > 0) {
        CHECK(skipped.skipped_tasks > whole.tasks / 2);
        ++rhythmic;
      }
      check_same(skipped, whole);
    }
  }
  CHECK(families >= 5);
  CHECK(rhythmic >= cases / 2);
  MESSAGE(rhythmic << " of " << cases << " runs of " << families << " families have a rhythm");
}

TEST_CASE("a long step is looked at by two short ones, too") {
  const Question scenario =
      loaded({"training.schedule=1f1b", "training.micro_batches=70000", "training.steps=2"});
  const Metrics run = run_scenario(scenario, false).measurement.metrics;
  const Metrics look = estimate_step(lay_out(scenario).ordered(), Grade::Look).metrics;
  CHECK(look.skipped_tasks > 0);
  check_close(look.step_time.value(), run.step_time.value());
}

TEST_CASE("orders without a steady loop are simulated whole") {
  for (const char* name : {"gpipe", "naive"}) {
    const Metrics metrics =
        run_scenario(loaded({"training.schedule=" + std::string(name),
                             "training.micro_batches=70000", "training.steps=1"}),
                     false)
            .measurement.metrics;
    CHECK(metrics.skipped_tasks == 0);
  }
}

TEST_CASE("ranks that never meet are not run for a rhythm that they have not") {
  const ScenarioResult result = run_scenario(
      loaded({R"(model={"kind": "profile", "modules": [
                {"forward": "1 ms", "backward_input": "2 ms", "backward_weight": "3 ms"},
                {"forward": "1.1 ms", "backward_input": "2.3 ms", "backward_weight": "3.7 ms"}]})",
              R"(cluster={"kind": "uniform", "devices": 2, "link": {"bandwidth": "1 GB/s"}})",
              "parallel.pipeline=2", "training.strategy=independent", "training.micro_batches=64",
              "training.steps=2"}),
      false);
  const Metrics& metrics = result.measurement.metrics;
  CHECK(metrics.step_time.value() == doctest::Approx(64 * 7.1e-3).epsilon(1e-9));
  CHECK(metrics.fill_steps + metrics.measured_steps <= 66);
}

}  // namespace
}  // namespace interlock::periods_test
