// Sums of every run: shares of time, causes of idling, and a longer run watched by the clock.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/json/json.h"
#include "base/random.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "sim/measure/self_check.h"

namespace interlock::sums_test {
namespace {

const char* one_of(const std::vector<const char*>& values, Random& random) {
  return values[static_cast<std::size_t>(random.integer(0, static_cast<int>(values.size()) - 1))];
}

std::string ms(int count) { return "\"" + std::to_string(count) + " ms\""; }

/// Two to four modules; one of them may be much slower than the others.
std::string random_modules(int count, Random& random) {
  const int slow = random.integer(-1, count - 1);
  std::string text;
  for (int i = 0; i < count; ++i) {
    const int factor = i == slow ? 4 : 1;
    // One draw a statement, as compilers evaluate operands in orders of their own.
    text += (text.empty() ? "{" : ", {") + ("\"forward\": " + ms(factor * random.integer(1, 4)));
    text += ", \"backward_input\": " + ms(random.integer(1, 4));
    text += ", \"backward_weight\": " + ms(random.integer(1, 4));
    text += ", \"head\": " + ms(random.integer(0, 2));
    text += ", \"update\": " + ms(random.integer(0, 2));
    text += ", \"output\": \"" + std::to_string(random.integer(0, 3)) + " MB\"";
    text += ", \"stash\": \"2 MB\", \"parameters\": \"1 MB\"}";
  }
  return text;
}

std::string random_schedule(Random& random) {
  const std::string kind = one_of(
      {"eager", "eager", "eager", "1f1b", "gpipe", "zb-h1", "ppll", "pipedream", "2bw", "naive"},
      random);
  if (kind != "eager") return "\"" + kind + "\"";
  const std::string queue = one_of({R"({"buffered": 1})", R"({"buffered": 2})",
                                    R"({"buffered": 6})", "\"rendezvous\"", "\"unlimited\""},
                                   random);
  const std::string in_flight = one_of({"1", "1", "2", "3"}, random);
  return "{\"kind\": \"eager\", \"queue\": " + queue + ", \"in_flight\": " + in_flight + "}";
}

std::string random_variation(Random& random) {
  switch (random.integer(0, 3)) {
    case 0:
      return R"(, "variation": {"seeds": 2, "jitter": {"spread": 0.3}})";
    case 1:
      return R"(, "variation": {"seeds": 2, "jitter": {"spread": 0.2},
        "link_jitter": {"spread": 0.4},
        "stragglers": [{"rank": 0, "slowdown": 1.5}]})";
    default:
      return "";
  }
}

std::string random_scenario(Random& random) {
  const int devices = random.integer(2, 4);
  const std::string strategy =
      one_of({"\"global\"", "\"local\"", "\"local\"", "\"pairwise\"", "\"tree\"",
              "\"forward-forward\"", "\"greedy\"", "\"overlapping\"",
              R"({"kind": "backlink", "modules": 2})", R"({"kind": "interlocking", "n_wise": 3})"},
             random);
  const std::string modules = random_modules(devices, random);
  const std::string bandwidth = one_of({"1", "4", "100"}, random);
  const std::string schedule = random_schedule(random);
  const int steps = random.integer(1, 4), micro_batches = random.integer(1, 4);
  return R"({"name": "random", "model": {"kind": "profile", "modules": [)" + modules + R"(]},
  "cluster": {"kind": "uniform", "devices": )" +
         std::to_string(devices) + R"(, "memory": "1 GiB", "link": {"bandwidth": ")" + bandwidth +
         R"( GB/s", "latency": "100 us"}},
  "training": {"strategy": )" +
         strategy + ", \"schedule\": " + schedule + ", \"steps\": " + std::to_string(steps) +
         ", \"micro_batches\": " + std::to_string(micro_batches) + "}" + random_variation(random) +
         "}";
}

Question scenario_of(const std::string& text) {
  return load_questions(parse_json(text, "sums.json")).front();
}

double& at(Bubbles& bubbles, BubbleCause cause) { return bubbles[static_cast<std::size_t>(cause)]; }

/// The length of the steps that devices' shares are of: where steps differ, those of one seed.
double step_of(const Metrics& metrics) {
  return (metrics.window_end - metrics.window_begin).value() / metrics.measured_steps;
}

/// Each share in [0, 1], all of them 1; each cause of idling, and their sum what is not busy.
void check_sums(const Metrics& metrics) {
  CHECK(sum_fault(metrics) == "");
  for (const DeviceMetrics& device : metrics.devices) {
    INFO("device " << device.rank);
    CHECK(*std::min_element(device.time.begin(), device.time.end()) >= 0);
    CHECK(*std::max_element(device.time.begin(), device.time.end()) <= 1 + 1e-9);
    CHECK(device.busy <= 1 + 1e-9);
    CHECK(std::accumulate(device.time.begin(), device.time.end(), 0.0) ==
          doctest::Approx(1).epsilon(1e-9));
    if (!metrics.explanation) continue;
    Bubbles bubbles = metrics.explanation->devices[static_cast<std::size_t>(device.rank)];
    const double step = step_of(metrics);
    const double idle = std::accumulate(bubbles.begin(), bubbles.end(), 0.0) / step;
    CHECK(idle == doctest::Approx(1 - device.busy).epsilon(1e-9).scale(1));
    CHECK((at(bubbles, BubbleCause::Message) + at(bubbles, BubbleCause::Exchange)) / step ==
          doctest::Approx(device.time[static_cast<std::size_t>(TimeUse::Exposed)])
              .epsilon(1e-9)
              .scale(1));
    CHECK(at(bubbles, BubbleCause::Unknown) / step == doctest::Approx(0).scale(1).epsilon(1e-9));
  }
}

/// Checks the steps in the middle of a longer run, watched by the clock: no device lacks work.
void check_by_clock(const Question& scenario, const Metrics& metrics) {
  const int further = 40;
  const int steps = metrics.fill_steps + metrics.measured_steps + further;
  const Program program = lower_plan(make_plan(scenario), steps);
  TraceLog log;
  run_program(program, EngineKind::Native, log_sink(log));
  const TimeWindow window = {metrics.window_begin, metrics.window_end};
  std::vector<double> busy(program.ranks.size(), 0);
  for (const Span& span : log.spans) {
    const Seconds inside = std::min(span.end, window.end) - std::max(span.start, window.begin);
    busy[static_cast<std::size_t>(span.rank)] += std::max(0.0, inside.value());
  }
  const auto explained = explain(program, log, window, metrics.measured_steps);
  for (const DeviceMetrics& device : metrics.devices) {
    const auto rank = static_cast<std::size_t>(device.rank);
    INFO("device " << device.rank << ", by the clock");
    CHECK(device.busy == doctest::Approx(busy[rank] / window.length()).epsilon(1e-9).scale(1));
    if (!explained || !metrics.explanation) continue;
    for (int cause = 0; cause < kBubbleCauses; ++cause) {
      INFO(std::string(name_of(static_cast<BubbleCause>(cause))));
      CHECK(metrics.explanation->devices[rank][cause] / step_of(metrics) ==
            doctest::Approx(explained->devices[rank][cause] / step_of(metrics))
                .epsilon(1e-6)
                .scale(1));
    }
  }
}

}  // namespace

TEST_CASE("parts add up to what they are parts of in random scenarios of every kind") {
  int runs = 0, steady = 0, varied = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(401, seed);
    const std::string text = random_scenario(random);
    INFO("seed " << seed << ": " << text);
    try {
      const Question scenario = scenario_of(text);
      const ScenarioResult result = run_scenario(scenario, false);
      const Metrics& metrics = result.measurement.metrics;
      check_sums(metrics);
      ++runs;
      varied += result.varied ? 1 : 0;
      if (result.varied || !metrics.steady || metrics.by_clock) continue;
      check_by_clock(scenario, metrics);
      ++steady;
    } catch (const Error&) {  // a schedule that does not fit the strategy, or a deadlock
    }
  }
  MESSAGE(runs << " runs, " << varied << " of them varied, " << steady << " steady");
  CHECK(runs > 300);
  CHECK(varied > 100);
  CHECK(steady > 100);
}

TEST_CASE("a device that has run ahead idles for the part of a step that it does not need") {
  const Metrics metrics = run_scenario(scenario_of(R"({"model": {"kind": "profile", "modules": [
      {"forward": "1 ms", "backward_weight": "1 ms"},
      {"forward": "4 ms", "backward_weight": "1 ms"}]},
    "cluster": {"kind": "uniform", "devices": 2, "memory": "1 GiB",
      "link": {"bandwidth": "1 GB/s"}},
    "training": {"strategy": "local", "steps": 2, "micro_batches": 1}})"),
                                       false)
                              .measurement.metrics;
  check_sums(metrics);
  REQUIRE(metrics.explanation);
  Bubbles bubbles = metrics.explanation->devices[0];
  INFO("2 ms of each 5 ms are work; then the queue is full");
  CHECK(at(bubbles, BubbleCause::Room) == doctest::Approx(0.003));
  CHECK(at(bubbles, BubbleCause::Drain) == 0);
}

TEST_CASE("no share of a device that is always busy is below nothing in a run of many ops") {
  // Ops of lengths that no sum holds exactly; without the floor two devices waited -2e-16 of a
  // step.
  std::string module = R"({"forward": "1.4866991087842674 ms", "output": "1 MB", "stash": "2 MB",
    "backward_input": "1.0335307413608343 ms", "backward_weight": "0.9058880212294048 ms",
    "head": "0.37 ms", "parameters": "1 MB"})";
  const Metrics metrics =
      run_scenario(scenario_of(R"({"model": {"kind": "profile", "modules": [)" + module + "," +
                               module + "," + module + "," + module + R"(]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "1 GiB",
      "link": {"bandwidth": "200 GB/s", "latency": "5 us"}},
    "training": {"strategy": {"kind": "interlocking", "n_wise": [1, 2, 1, 4]}, "steps": 20,
      "schedule": {"kind": "eager", "in_flight": 4}, "micro_batches": 1024}})"),
                   false)
          .measurement.metrics;
  check_sums(metrics);
}

TEST_CASE("every step of a window idles for the same causes, though filling delays the first") {
  INFO(
      "device 0 runs the forwards of two steps, then their backwards: 30 ms, in which device 1 "
      "has");
  INFO("run both steps; from then on a step begins every 15 ms, before the last has left device 1");
  const Metrics metrics = run_scenario(scenario_of(R"({"model": {"kind": "profile", "modules": [
      {"forward": "12 ms", "backward_input": "2 ms", "backward_weight": "1 ms"},
      {"forward": "3 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]},
    "cluster": {"kind": "uniform", "devices": 2, "memory": "1 GiB",
      "link": {"bandwidth": "100 GB/s", "latency": "100 us"}},
    "training": {"strategy": "local", "steps": 2, "micro_batches": 1,
      "schedule": {"kind": "eager", "queue": {"buffered": 2}, "in_flight": 2}}})"),
                                       false)
                              .measurement.metrics;
  check_sums(metrics);
  REQUIRE(metrics.explanation);
  Bubbles bubbles = metrics.explanation->devices[1];
  INFO("15 ms, less 5 ms of work and the message's 0.1 ms");
  CHECK(at(bubbles, BubbleCause::Activation) == doctest::Approx(0.0099));
  CHECK(at(bubbles, BubbleCause::Fill) == 0);
}

TEST_CASE("what tensor devices exchange inside ops is a named part of what they idle") {
  for (const char* layout :
       {R"({"pipeline": 1, "tensor": 4})", R"({"pipeline": 2, "tensor": 2})"}) {
    const ScenarioResult result = run_scenario(
        scenario_of(R"({"model": {"kind": "transformer", "layers": 4, "hidden_size": 512,
          "attention_heads": 8, "vocab_size": 4096, "sequence_length": 512},
        "cluster": {"machine": "dgx-a100-80g", "nodes": 1, "devices": 4}, "parallel": )" +
                    std::string(layout) + R"(, "training": {"strategy": "global",
          "schedule": "1f1b", "global_batch_size": 4, "micro_batch_size": 1, "steps": 3}})"),
        false);
    const Metrics& metrics = result.measurement.metrics;
    INFO(std::string(layout));
    check_sums(metrics);
    REQUIRE(metrics.explanation);
    Bubbles bubbles = metrics.explanation->devices[0];
    // If several ranks share links, exchanges are collectives between parts of ops.
    const double waits = at(bubbles, BubbleCause::Exchange) + at(bubbles, BubbleCause::Message);
    CHECK(waits > 0.01 * metrics.step_time.value());
  }
}

TEST_CASE("under jitter no device is busy for longer than the window lasts") {
  std::vector<Question> scenarios =
      load_questions(read_json_file(EXAMPLES_FOLDER "/stragglers.json"));
  std::size_t checked = 0;
  for (Question& scenario : scenarios) {
    if (!scenario.variation || !scenario.variation->varies()) continue;
    scenario.variation->seeds = 2;
    INFO(scenario.name);
    check_sums(run_scenario(scenario, false).measurement.metrics);
    ++checked;
  }
  CHECK(checked == 6);
}

}  // namespace interlock::sums_test
