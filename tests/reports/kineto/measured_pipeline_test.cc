// Measured pipelines: our own traces read back have the idle times of their simulation.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/measured_pipeline.h"

#include <doctest/doctest.h>

#include <cmath>

#include "reports/traces/trace_events.h"
#include "scenarios/contract/set_key.h"

namespace interlock::measured_pipeline_test {
namespace {

ScenarioResult run(const std::vector<std::string>& settings) {
  JsonValue document = parse_json(R"({"model": {"kind": "profile", "modules": [
      {"forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MiB"},
      {"forward": "3 ms", "backward_input": "2 ms", "backward_weight": "2 ms", "output": "1 MiB"},
      {"forward": "2 ms", "backward_input": "3 ms", "backward_weight": "3 ms", "output": "1 MiB"}]},
    "cluster": {"kind": "uniform", "devices": 3, "memory": "80 GiB",
      "link": {"bandwidth": "10 GB/s", "latency": "20 us"}},
    "training": {"strategy": "global", "micro_batches": 6, "steps": 2, "schedule": "gpipe"}})",
                                  "test.json");
  apply_overrides(document, settings);
  return run_scenario(load_questions(document).front(), true);
}

/// Returns `result` as import kineto reads it; times of rank 1 are `ahead` nanoseconds late.
MeasuredPipeline traced(const ScenarioResult& result, std::int64_t ahead = 0) {
  MeasuredPipeline pipeline;
  for (const DeviceMetrics& device : result.measurement.metrics.devices) {
    std::string text;
    kineto_trace(result, device.rank)([&](std::string_view piece) { text += piece; });
    bool given = false;
    const TextPieces pieces = [&text, given]() mutable {
      return std::exchange(given, true) ? std::string_view() : std::string_view(text);
    };
    const KinetoEvents events = read_kineto(pieces, "rank-" + std::to_string(device.rank));
    add_rank(pipeline, events, attribute_ops(events));
  }
  for (MeasuredOp& op : pipeline.ranks[1].ops) {
    op.start += ahead;
    op.end += ahead;
  }
  for (auto& [begin, end] : pipeline.ranks[1].communication) {
    begin += ahead;
    end += ahead;
  }
  return pipeline;
}

PipelineAnswer answer_of(const MeasuredPipeline& pipeline) {
  std::string why;
  const auto answer = analyse(pipeline, why);
  INFO(why);
  REQUIRE(answer);
  return *answer;
}

double share(const PipelineAnswer& answer, std::size_t rank, RankTime part) {
  return answer.ranks[rank].time[static_cast<std::size_t>(part)] / answer.window;
}

double step_of(const std::vector<std::string>& settings) {
  return run(settings).measurement.metrics.step_time.value();
}

void check_shares(const ScenarioResult& result, const PipelineAnswer& answer) {
  const Metrics& metrics = result.measurement.metrics;
  for (std::size_t rank = 0; rank < metrics.devices.size(); ++rank) {
    CAPTURE(rank);
    const auto near = [&](RankTime part, double expected) {
      CAPTURE(name_of(part));
      CHECK(share(answer, rank, part) == doctest::Approx(expected).epsilon(1e-4));
    };
    near(RankTime::Busy, metrics.devices[rank].busy);
    CHECK(share(answer, rank, RankTime::InsideOps) < 1e-6);
    double all = 0;
    for (int part = 0; part < kRankTimes; ++part) {
      all += share(answer, rank, static_cast<RankTime>(part));
    }
    CHECK(all == doctest::Approx(1));
    // A message that is under way after its sender ended is exposed.
    near(RankTime::Message, metrics.devices[rank].time[static_cast<std::size_t>(TimeUse::Exposed)]);
  }
}

}  // namespace

TEST_CASE("ranks of a flushed pipeline idle for what their simulation says") {
  const ScenarioResult result = run({});
  const PipelineAnswer answer = answer_of(traced(result));
  CHECK(answer.steps == 2);
  check_shares(result, answer);
  CHECK(answer.ranks[1].stages == std::vector<int>{1});
  // Before its first op rank 1 waits for F of stage 0, rank 2 for both and a message; the last
  // backward of rank 2 is followed by those of ranks 1 and 0.
  const double step = answer.window.value() / 2;
  CHECK(share(answer, 1, RankTime::Fill) * step == doctest::Approx(1e-3).epsilon(1e-3));
  CHECK(share(answer, 0, RankTime::Fill) == doctest::Approx(0));
  CHECK(share(answer, 2, RankTime::Drain) * step > 6e-3);
  CHECK(share(answer, 0, RankTime::Drain) < 1e-6);
}

TEST_CASE("put together again, ops take the step that was measured") {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    CAPTURE(schedule);
    const ScenarioResult result = run({std::string("training.schedule=") + schedule});
    const StragglerCost cost = answer_of(traced(result)).cost;
    CHECK(cost.replayed / cost.measured == doctest::Approx(1).epsilon(1e-3));
    CHECK(cost.even / cost.replayed == doctest::Approx(1).epsilon(1e-3));
  }
}

TEST_CASE("what is computed again when its gradient comes waits for that gradient, else for none") {
  const std::vector<std::string> full = {"training.schedule=1f1b", "training.recompute=full"};
  const ScenarioResult late = run(full);
  const PipelineAnswer answer = answer_of(traced(late));
  check_shares(late, answer);
  CHECK(answer.cost.replayed / answer.cost.measured == doctest::Approx(1).epsilon(1e-3));
  // Rank 0 has sent all forwards that 1F1B allows, and waits for stage 2 to come back.
  CHECK(share(answer, 0, RankTime::Gradient) > 0.1);
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK(share(answer, rank, RankTime::Host) < 1e-6);

  const std::string early = R"(training.schedule={"kind": "1f1b", "early_recompute": true})";
  const ScenarioResult before = run({full[1], early});
  const PipelineAnswer other = answer_of(traced(before));
  check_shares(before, other);
  CHECK(other.cost.replayed / other.cost.measured == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("without stragglers the step would be that of equal stages") {
  const StragglerCost cost = answer_of(traced(run({}))).cost;
  // The mean of the stages: F 2 ms, both halves of B 2 ms.
  const double equal = step_of({R"(model.modules=[{"repeat": 3, "forward": "2 ms",
      "backward_input": "2 ms", "backward_weight": "2 ms", "output": "1 MiB"}])"});
  CHECK(cost.equal.value() == doctest::Approx(equal).epsilon(1e-3));
  // Stage 2 with the mean of the others: F 2, B 3 of 2 and 4 halved.
  const double third = step_of({R"(model.modules=[
      {"forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MiB"},
      {"forward": "3 ms", "backward_input": "2 ms", "backward_weight": "2 ms", "output": "1 MiB"},
      {"forward": "2 ms", "backward_input": "1.5 ms", "backward_weight": "1.5 ms"}])"});
  CHECK(cost.stage_gain[2].value() == doctest::Approx(cost.even.value() - third).epsilon(1e-3));
  CHECK(cost.stage_gain[0].value() == doctest::Approx(0));
}

TEST_CASE("ops that vary cost what their replay without variation saves") {
  // Two ranks, three micro-batches, forwards alone: 2, 2, 8 ms on rank 0; 2 ms each on rank 1.
  MeasuredPipeline pipeline;
  pipeline.ranks.resize(2);
  const auto add = [&](std::size_t rank, std::int64_t start, std::int64_t end) {
    constexpr std::int64_t kMs = 1'000'000;
    pipeline.ranks[rank].ops.push_back({.phase = Phase::Forward,
                                        .stage = static_cast<int>(rank),
                                        .start = start * kMs,
                                        .end = end * kMs,
                                        .busy = (end - start) * kMs});
  };
  for (const auto& [start, end] : {std::pair{0, 2}, {2, 4}, {4, 12}}) add(0, start, end);
  for (const auto& [start, end] : {std::pair{2, 4}, {4, 6}, {12, 14}}) add(1, start, end);
  const PipelineAnswer answer = answer_of(pipeline);
  CHECK(answer.cost.measured.value() == doctest::Approx(14e-3));
  CHECK(answer.cost.replayed.value() == doctest::Approx(14e-3));
  CHECK(answer.cost.even.value() == doctest::Approx(8e-3));  // 2 + 2 + 2, and 2 behind them
  CHECK(answer.ranks[1].time[static_cast<std::size_t>(RankTime::Activation)].value() ==
        doctest::Approx(6e-3));
  CHECK(answer.ranks[1].time[static_cast<std::size_t>(RankTime::Fill)].value() ==
        doctest::Approx(2e-3));
}

TEST_CASE("clocks that differ are shifted, and the answer stays") {
  const ScenarioResult result = run({});
  const PipelineAnswer apart = answer_of(traced(result, 50'000'000));
  CHECK(apart.ranks[1].clock_shift.value() == doctest::Approx(50e-3).epsilon(1e-2));
  check_shares(result, apart);
}

TEST_CASE("what is no pipeline is said to be none") {
  std::string why;
  MeasuredPipeline one = traced(run({}));
  one.ranks.resize(1);
  CHECK(!analyse(one, why));
  CHECK(why == "there is one rank");
  MeasuredPipeline twice = traced(run({}));
  twice.ranks.push_back(twice.ranks[0]);
  CHECK(!analyse(twice, why));
  CHECK(why == "stage 0 was recorded on several ranks");
  MeasuredPipeline fewer = traced(run({}));
  fewer.ranks[1].ops.erase(fewer.ranks[1].ops.begin());
  CHECK(!analyse(fewer, why));
  CHECK(why == "stages 1 and 0 have recorded other numbers of ops");
}

}  // namespace interlock::measured_pipeline_test
