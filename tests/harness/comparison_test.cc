// Errors told apart: figures by hand, and runs whose errors are known because they were made.
// SPDX-License-Identifier: Apache-2.0
#include "validate/crosscheck/comparison.h"

#include <doctest/doctest.h>

#include <cmath>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/harness/support/training.h"
#include "validate/crosscheck/validation.h"

namespace interlock::comparison_test {

TEST_CASE("figures of five errors, by hand") {
  const ErrorSummary summary = error_summary({0.1, -0.3, 0.2, 0.0, -0.5});
  CHECK(summary.count == 5);
  CHECK(summary.mape == doctest::Approx(1.1 / 5));
  CHECK(summary.median == 0.2);
  CHECK(summary.p95 == 0.5);  // rank 4.75, rounded up
  CHECK(summary.most == 0.5);
  CHECK(summary.bias == doctest::Approx(-0.1));
  CHECK(summary.low < summary.mape);
  CHECK(summary.mape < summary.high);
  CHECK(summary.low >= 0);
  CHECK(summary.high <= 0.5);
  CHECK(error_summary({}).count == 0);
}

TEST_CASE("the bootstrap's interval is that of a mean: of many equal draws, sigma / sqrt(n)") {
  std::vector<double> errors(400, 0.1);
  for (std::size_t i = 1; i < errors.size(); i += 2) errors[i] = 0.3;
  const ErrorSummary summary = error_summary(errors);
  const double half_width = 1.96 * 0.1 / std::sqrt(400.0);
  INFO("0.2 +- " << half_width << ": " << summary.low << " to " << summary.high);
  CHECK(summary.low == doctest::Approx(0.2 - half_width).epsilon(0.02));
  CHECK(summary.high == doctest::Approx(0.2 + half_width).epsilon(0.02));
}

TEST_CASE("Kendall's tau-b and clear pairs, by hand") {
  // Pairs of (1, 2, 3, 4) against (1, 3, 2, 4): five agree, one does not.
  CHECK(rank_agreement({1, 2, 3, 4}, {1, 3, 2, 4}).tau == doctest::Approx(4.0 / 6));
  // A tie in what is predicted: 5 pairs of 6 there, 4 agree and 1 does not: 3 / sqrt(5 * 6).
  CHECK(rank_agreement({1, 2, 2, 4}, {2, 1, 3, 4}).tau == doctest::Approx(3 / std::sqrt(30.0)));
  // 100 and 104 are too near each other for anybody to care.
  const RankAgreement clear = rank_agreement({100, 104, 120}, {7, 6, 8});
  CHECK(clear.clear_pairs == 2);
  CHECK(clear.clear_pairs_right == 2);
  CHECK(rank_agreement({}, {}).tau == 0);
}

namespace {

/// A run that went as predicted, but for ops that took `factor` times as long.
struct Made {
  Measurement predicted;
  MeasuredRun run;
};

Made made(const std::string& strategy, double factor) {
  const JsonValue document = parse_json(
      R"({"model": {"kind": "profile", "modules": [{"repeat": 3, "forward": "2 ms",
            "backward_input": "3 ms", "backward_weight": "1 ms", "head": "1 ms",
            "stash": "1 MB", "output": "1 kB"}]},
          "cluster": {"kind": "uniform", "devices": 3, "memory": "1 GB",
            "link": {"bandwidth": "1 GB/s", "latency": "5 us"}},
          "training": {"strategy": )" +
          strategy + R"(, "micro_batches": 4, "steps": 6}})",
      "made.json");
  const Question scenario = load_questions(document).front();
  Program slower = lower_plan(make_plan(scenario), 8);
  TraceLog log;
  run_native(slower, log_sink(log));
  Made result{.predicted = measure_trace(slower, log, 2, {.steps = 6})};
  for (OpInfo& op : slower.ops) op.duration = op.duration * factor;
  run_native(slower, log_sink(result.run.log));
  for (const Span& span : result.run.log.spans) {
    const Seconds took = slower.ops[span.op].duration;
    result.run.samples.push_back({span.op, span.micro_batch, took, took});
    result.run.alone.push_back({span.op, span.micro_batch, took / 2, took / 2});
  }
  return result;
}

}  // namespace

TEST_CASE("ops that take longer than predicted are an error of the op model, not of the replay") {
  for (const char* strategy : {"\"global\"", "\"local\"", "\"pairwise\""}) {
    for (const double factor : {1.0, 2.0, 3.5}) {
      const Made trial = made(strategy, factor);
      const Comparison comparison = compare_runs(
          trial.predicted, trial.run, {.name = strategy, .fill = 2, .measure = {.steps = 6}});
      INFO(strategy << ", ops " << factor << " times as long");
      CHECK(comparison.replay_error() == doctest::Approx(0).epsilon(1e-9));
      // Alone they were made to take half as long as in the run.
      CHECK(comparison.op_model.bias == doctest::Approx(2 / factor - 1));
      CHECK(comparison.interference.mape == doctest::Approx(1));
      // Messages take microseconds beside ops of milliseconds.
      REQUIRE(comparison.from_alone_error());
      CHECK(*comparison.from_alone_error() == doctest::Approx(-0.5).epsilon(0.02));
      if (factor == 1) CHECK(comparison.end_to_end_error() == doctest::Approx(0).epsilon(1e-9));
      if (factor > 1) CHECK(comparison.end_to_end_error() < 1.1 / factor - 1);
      for (const DeviceComparison& device : comparison.devices) {
        CHECK(device.measured_peak == device.predicted_peak);
        CHECK(device.measured_busy >= device.predicted_busy - 1e-9);
      }
    }
  }
}

TEST_CASE("a run that stood still between its steps is an error of the replay") {
  Made trial = made("\"local\"", 1);
  for (Span& span : trial.run.log.spans) {
    const int step = span.micro_batch / 4;
    const double late = 0.010 * step;
    span.start = span.start + Seconds(late);
    span.end = span.end + Seconds(late);
  }
  trial.run.log.memory.clear();
  const Comparison comparison = compare_runs(trial.predicted, trial.run,
                                             {.name = "late", .fill = 2, .measure = {.steps = 6}});
  CHECK((comparison.measured - comparison.replayed).value() == doctest::Approx(0.010));
  CHECK(comparison.op_model.mape == doctest::Approx(1));  // alone half as long, see made()
}

TEST_CASE("collectives that take longer than predicted are told by themselves") {
  const Seconds late(0.010);
  for (const int zero_stage : {0, 1}) {
    const SmallTraining training = make_training(
        {.model = kResidualMlp, .devices = 4, .replicas = 2, .zero_stage = zero_stage, .steps = 6});
    const ScenarioResult predicted = predict(training.plan, 2, 4);
    Program slower = lower_plan(training.plan, 6);
    for (Collective& one : slower.collectives) one.latency += late;
    MeasuredRun run;
    run_native(slower, log_sink(run.log));
    for (const Span& span : run.log.spans) {
      const Seconds took = slower.ops[span.op].duration;
      run.samples.push_back({span.op, span.micro_batch, took, took});
    }
    const Comparison comparison = compare_runs(
        predicted.measurement, run, {.name = "late sums", .fill = 2, .measure = {.steps = 4}});
    INFO("of each of two stages a sum, or under ZeRO 1 two halves of one");
    REQUIRE(comparison.collectives.size() == (zero_stage == 0 ? 2 : 4));
    double errors = 0;
    for (const CollectiveComparison& one : comparison.collectives) {
      CHECK(one.members == 2);
      CHECK((one.measured - one.predicted).value() == doctest::Approx(late.value()));
      errors += late / one.measured / static_cast<double>(comparison.collectives.size());
    }
    CHECK(comparison.collective_model.mape == doctest::Approx(errors));
    CHECK(comparison.op_model.mape == doctest::Approx(0));
    const std::string kind = zero_stage == 0 ? "all-reduce" : "reduce-scatter";
    const std::string json = validation_json({comparison}, "");
    CHECK(json.find("\"collective\": \"" + kind + "\"") != std::string::npos);
  }
}

TEST_CASE("the measured timeline has the step that is compared, by either clock") {
  const SmallTraining training = make_training({.model = kResidualMlp, .devices = 2, .steps = 6});
  const ScenarioResult predicted = predict(training.plan, 2, 4);
  for (const OpClock clock : {OpClock::Wall, OpClock::Processor}) {
    ValidationOptions options = {.fill = 2, .clock = clock};
    options.execution = {.steps = 6, .descent = training.descent};
    options.execution.batches = [&](int b) { return made_up_batch(training.network, 1, b); };
    const Validation validation = validate(predicted, training.network, options);
    const Metrics& shown = validation.measured.measurement.metrics;
    INFO(name_of(clock), ": compared ", validation.comparison.measured.value(), " s, shown ",
         shown.step_time.value(), " s, on the wall ", validation.comparison.wall.value(), " s");
    CHECK(shown.step_time.value() ==
          doctest::Approx(validation.comparison.measured.value()).epsilon(1e-9));
    const std::string page =
        validation_html({validation.comparison}, {predicted, validation.measured});
    const std::string measured_words = std::string("Measured, ") + name_of(clock) + " clock";
    CHECK(page.find(">Predicted</h3>") != std::string::npos);
    CHECK(page.find(measured_words) != std::string::npos);
    const bool replayed =
        page.find("simulated with the times of ops in the run") != std::string::npos;
    CHECK(replayed == (clock == OpClock::Wall));
    std::size_t timelines = 0;
    for (std::size_t at = 0; (at = page.find("scenario+json\">", at)) != page.npos; ++at)
      ++timelines;
    CHECK(timelines == 2);
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK(shown.devices[r].peak_memory == validation.comparison.devices[r].predicted_peak);
    }
  }
}

}  // namespace interlock::comparison_test
