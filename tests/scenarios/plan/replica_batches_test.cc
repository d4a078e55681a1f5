// Micro-batches of replicas that have numbers of their own, against closed forms.
// SPDX-License-Identifier: Apache-2.0
//
// Layers of an MLP take 2 x samples x inputs x outputs flops forward and twice that backward, on
// devices whose memory and links are so fast that nothing else takes time. A pipeline of p equal
// stages that take f + b for a micro-batch takes (m + p - 1) (f + b) for m of them (GPipe, 1F1B);
// the step is as long as that of the last replica.
#include <algorithm>
#include <functional>

#include "base/random.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/support/cases.h"

namespace interlock::replica_batches_test {
namespace {

constexpr double kSamples = 1000, kWidth = 1024;
constexpr double kLayer = 2 * kSamples * kWidth * kWidth;  // flops of a forward

/// A model has two layers at least.
int layers_of_rank(int pipeline) { return pipeline == 1 ? 2 : 1; }

/// Machines of one device a node, `nodes` of each speed in TFLOP/s, joined by `link`.
std::string cluster(const std::vector<double>& speeds, int nodes, const std::string& link) {
  std::string machines;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const std::string name = "card" + std::to_string(i);
    machines += (i > 0 ? ", " : "") + (R"({"kind": "machine", "name": ")" + name) +
                R"(", "nodes": )" + std::to_string(nodes) + R"(, "port": {"bandwidth": ")" + link +
                R"("}, "cards": {"bandwidth": ")" + link + R"("}, "device": {"name": ")" + name +
                R"(", "memory": "8 GiB", "memory_bandwidth": "1000000 TB/s", "efficiency": "peak",
                "peak": {"bf16": ")" +
                std::to_string(speeds[i]) + R"( TFLOP/s"}}})";
  }
  return R"({"machines": [)" + machines + "]}";
}

/// Replicas on a machine each, each a pipeline of `pipeline` equal stages.
JsonValue scenario(const std::vector<double>& speeds, int pipeline, int all,
                   const std::string& shares, const Overrides& overrides = {},
                   const std::string& link = "1000000 TB/s") {
  std::string hidden = "1024";
  for (int layer = 2; layer < pipeline; ++layer) hidden += ", 1024";
  const std::string text =
      R"({"model": {"kind": "mlp", "input_size": 1024, "hidden_sizes": [)" + hidden +
      R"(], "classes": 1024}, "cluster": )" + cluster(speeds, pipeline, link) +
      R"(, "parallel": {"pipeline": )" + std::to_string(pipeline) + R"(, "data": )" +
      std::to_string(speeds.size()) +
      R"(, "order": ["pipeline", "tensor", "context", "data"]},
      "partition": "uniform", "training": {"strategy": "global", "schedule": "1f1b",
      "micro_batch_size": 1000, "global_batch_size": )" +
      std::to_string(all * 1000) + R"(, "replica_micro_batches": )" + shares + "}}";
  return document(text, overrides);
}

Question question_of(const JsonValue& value) { return load_questions(value).front(); }
ScenarioResult result_of(const JsonValue& value) { return run_scenario(question_of(value), false); }
double step_of(const JsonValue& value) {
  return result_of(value).measurement.metrics.step_time.value();
}

/// Returns the time of the last replica by the closed form.
double by_hand(const std::vector<double>& speeds, int pipeline, const std::vector<int>& counts) {
  double last = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const double each = 3 * layers_of_rank(pipeline) * kLayer / (speeds[i] * 1e12);
    last = std::max(last, (counts[i] + pipeline - 1) * each);
  }
  return last;
}

std::string in_list(const std::vector<int>& counts) {
  std::string text = "[";
  for (const int count : counts) text += (text == "[" ? "" : ", ") + std::to_string(count);
  return text + "]";
}

/// Returns the least time of all ways to share `all` micro-batches out.
double least_of_all_ways(const std::vector<double>& speeds, int pipeline, int all) {
  double least = 1e300;
  std::vector<int> counts(speeds.size(), 1);
  const std::function<void(std::size_t, int)> take = [&](std::size_t replica, int left) {
    if (replica + 1 == speeds.size()) {
      counts[replica] = left;
      least = std::min(least, by_hand(speeds, pipeline, counts));
      return;
    }
    const int others = static_cast<int>(speeds.size() - replica) - 1;
    for (int count = 1; count <= left - others; ++count) {
      counts[replica] = count;
      take(replica + 1, left - count);
    }
  };
  take(0, all);
  return least;
}

TEST_CASE("a step of shared micro-batches is as long as the closed form of its last replica") {
  const std::vector<double> speeds = {1, 4};
  for (const int pipeline : {1, 2, 3}) {
    for (const std::vector<int>& counts : {std::vector{2, 8}, {5, 5}, {8, 2}, {1, 9}}) {
      for (const std::string schedule : {"1f1b", "gpipe"}) {
        const ScenarioResult result = result_of(
            scenario(speeds, pipeline, 10, in_list(counts), {"training.schedule=" + schedule}));
        const Metrics& metrics = result.measurement.metrics;
        const double expected = by_hand(speeds, pipeline, counts);
        MESSAGE(schedule << ", " << pipeline << " ranks, " << in_list(counts) << ": by hand "
                         << expected << " s, simulated " << metrics.step_time.value() << " s");
        CHECK(metrics.step_time.value() == doctest::Approx(expected).epsilon(1e-5));
        CHECK(*metrics.samples_per_s == doctest::Approx(10000 / expected).epsilon(1e-5));
        INFO("every micro-batch is worked on once: 10 x 3 x flops of all layers over all peaks");
        const double flops = 30 * layers_of_rank(pipeline) * kLayer;
        CHECK(*metrics.mfu == doctest::Approx(flops / (expected * 5e12)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("replicas that are done wait for the last one") {
  const std::vector<double> speeds = {1, 4};
  const std::vector<int> counts = {1, 9};
  const ScenarioResult result = result_of(scenario(speeds, 2, 10, in_list(counts)));
  const Metrics& metrics = result.measurement.metrics;
  REQUIRE(metrics.devices.size() == 4);
  for (std::size_t i = 0; i < metrics.devices.size(); ++i) {
    const std::size_t replica = i / 2;
    const double busy = counts[replica] * 3 * kLayer / (speeds[replica] * 1e12);
    CHECK(metrics.devices[i].busy ==
          doctest::Approx(busy / metrics.step_time.value()).epsilon(1e-4));
  }
}

TEST_CASE("by speed, the last replica is done as soon as in the best of all ways") {
  Random random(20, 0);
  for (int trial = 0; trial < cases(30); ++trial) {
    std::vector<double> speeds;
    const int replicas = random.integer(2, 3), pipeline = random.integer(1, 3);
    for (int i = 0; i < replicas; ++i) speeds.push_back(random.integer(1, 6) + 0.25 * i);
    const int all = random.integer(replicas, 18);
    const JsonValue value = scenario(speeds, pipeline, all, "\"by_speed\"");
    const double least = least_of_all_ways(speeds, pipeline, all);
    CAPTURE(trial);
    CAPTURE(all);
    CAPTURE(pipeline);
    CHECK(step_of(value) == doctest::Approx(least).epsilon(1e-5));
    const Plan plan = make_plan(question_of(value));
    CHECK(all_micro_batches(plan) == all);
    INFO("neither a bound nor a look is longer");
    CHECK(estimate_step(plan, Grade::PlanBound).time.value() <= least * (1 + 1e-5));
    CHECK(estimate_step(plan, Grade::Look).time.value() <= least * (1 + 1e-5));
  }
}

TEST_CASE("equal shares are the plan without shares, and equal machines get equal ones") {
  const double plain = step_of(scenario({2, 3}, 2, 12, "\"equal\""));
  CHECK(step_of(scenario({2, 3}, 2, 12, "[6, 6]")) == doctest::Approx(plain).epsilon(1e-12));
  const Plan plan = make_plan(question_of(scenario({2, 2}, 2, 12, "\"by_speed\"")));
  CHECK(plan.replica_micro_batches.empty());
  CHECK(plan.micro_batches == 6);
}

TEST_CASE("gradients are exchanged once, when the last replica is done") {
  INFO(
      "2 layers of 1024 x 1024 weights and 1024 biases of 2 bytes; each of two devices sends half "
      "of them twice, at 1 GB/s; an update takes no time");
  const double exchange = 2 * 2 * (1024.0 * 1024 + 1024) / 1e9;
  for (const std::vector<int>& counts : {std::vector{2, 8}, {7, 3}}) {
    const double expected = by_hand({1, 4}, 1, counts) + exchange;
    const double step = step_of(
        scenario({1, 4}, 1, 10, in_list(counts), {"parallel.overlap_gradients=false"}, "1 GB/s"));
    MESSAGE(in_list(counts) << ": by hand " << expected << " s, simulated " << step << " s");
    CHECK(step == doctest::Approx(expected).epsilon(1e-3));
  }
}

TEST_CASE("GPipe keeps as many micro-batches as a replica has") {
  const auto stashes = [](const std::vector<int>& counts) {
    const ScenarioResult result =
        result_of(scenario({1, 4}, 2, 10, in_list(counts), {"training.schedule=gpipe"}));
    std::vector<double> peaks;
    for (const DeviceMetrics& device : result.measurement.metrics.devices) {
      peaks.push_back(device.peak_stash.value());
    }
    return peaks;
  };
  const std::vector<double> few = stashes({2, 8}), more = stashes({4, 6});
  REQUIRE(few.size() == 4);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(few[0 + rank] / 2 == doctest::Approx(few[2 + rank] / 8));
    CHECK(more[0 + rank] / 4 == doctest::Approx(few[0 + rank] / 2));
    CHECK(more[2 + rank] / 6 == doctest::Approx(few[0 + rank] / 2));
  }
}

TEST_CASE("schedules that update once share out, alike on both engines") {
  for (const std::string schedule :
       {"1f1b", "gpipe", "eager-1f1b", "zb-h1", "interleaved", "zb-v"}) {
    Overrides overrides = {"training.schedule=" + schedule};
    if (schedule == "interleaved" || schedule == "zb-v") {
      overrides.emplace_back("model.hidden_sizes=[1024, 1024, 1024]");
    }
    double steps[2];
    for (int i = 0; i < 2; ++i) {
      Overrides with = overrides;
      with.push_back(std::string("simulate.engine=") + (i == 0 ? "native" : "simgrid"));
      steps[i] = step_of(scenario({1, 4}, 2, 12, "\"by_speed\"", with, "10 GB/s"));
    }
    const double equal = step_of(scenario({1, 4}, 2, 12, "\"equal\"", overrides, "10 GB/s"));
    MESSAGE(schedule << ": " << equal << " s in equal shares, " << steps[0] << " s by speed");
    CHECK(steps[0] == doctest::Approx(steps[1]).epsilon(1e-9));
    CHECK(steps[0] < 0.7 * equal);
  }
}

TEST_CASE("what replicas of different numbers cannot do is refused where it is asked for") {
  const auto check = [](const std::string& shares, const Overrides& overrides,
                        const std::string& words) {
    const std::string all = mistakes_of(scenario({1, 4}, 2, 10, shares, overrides));
    CHECK_MESSAGE(all.find(words) != std::string::npos, all);
    CHECK(all.find(": /training") != std::string::npos);
  };
  check("[3, 6]", {}, "adds up to 9; expected the 10 micro-batches");
  check("[10]", {}, "has 1 number; expected one for each of the replicas (parallel.data), 2");
  check("[]", {}, "expected \"equal\", \"by_speed\" or a list");
  check("\"speed\"", {}, "unknown name \"speed\"");
  check("\"by_speed\"", {"training.global_batch_size=1000"}, "1 micro-batches for 2 replicas");
  check("\"by_speed\"", {"training.micro_batch_size=3000"}, "expected a divisor of 10000");
  check("\"by_speed\"", {"training.micro_batch_size=null", "training.micro_batches=5"},
        "and a number as \"micro_batch_size\" beside it");
  check("[3, 7]", {"parallel.zero_stage=3"}, "expected ZeRO 0 to 2");
  check("[3, 7]", {"parallel.zero_stage=2", "parallel.gradient_reduction=micro_batch"},
        "expected ZeRO 0 to 2");
  check("[3, 7]", {"training.strategy=local"}, "expected the strategy \"global\"");
  check("[3, 7]", {"training.schedule=pipedream"}, "a schedule of whole sequences that updates");
  check("[3, 7]", {"training.schedule=dualpipe"}, "a schedule of whole sequences that updates");
  check("[3, 7]", {"training.schedule=interleaved", "model.hidden_sizes=[1024, 1024, 1024]"},
        "expected a multiple of 2 such as 2 or 4, got 3");
  check("\"by_speed\"",
        {"training.schedule=interleaved", "model.hidden_sizes=[1024, 1024, 1024]",
         "training.global_batch_size=9000"},
        "interleaved shares 4, 6, 8 and so on micro-batches out among 2 replicas");
  INFO("a mistake that has nothing to do with numbers is told as the schedule tells it");
  check("\"by_speed\"",
        {"training.schedule={\"kind\": \"interleaved\", \"round\": 1}",
         "model.hidden_sizes=[1024, 1024, 1024]"},
        "round");
}

TEST_CASE("replicas take any numbers that their schedule runs") {
  const Overrides stages = {"training.schedule=dualpipe-v",
                            "model.hidden_sizes=[1024, 1024, 1024]"};
  INFO("DualPipe-V over two ranks runs 4 micro-batches and more");
  CHECK(make_plan(question_of(scenario({1, 4}, 2, 10, "[4, 6]", stages))).micro_batches == 6);
  const Plan plan = make_plan(question_of(scenario({1, 4}, 2, 11, "\"by_speed\"", stages)));
  CHECK(plan.replica_micro_batches == std::vector{4, 7});
  INFO("one micro-batch each needs no schedule to be written");
  CHECK(make_plan(question_of(scenario({1, 4}, 1, 2, "[1, 1]"))).micro_batches == 1);
}

}  // namespace
}  // namespace interlock::replica_batches_test
