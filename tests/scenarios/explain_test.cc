// Explain: what limits a step in cases made to be limited by it, and gains by closed forms.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include "scenarios/contract/set_key.h"
#include "scenarios/explain/answers.h"
#include "tests/scenarios/documents.h"

namespace interlock::explain_test {
namespace {

using Part = StepPiece::Kind;

Answers answers_of(const Overrides& overrides, const std::string& text = kFourModules) {
  JsonValue value = parse_json(text, "test.json");
  apply_overrides(value, overrides);
  return answer(value, 2);
}

StepLimits limits_of(const Overrides& overrides, const std::string& text = kFourModules) {
  JsonValue value = parse_json(text, "test.json");
  apply_overrides(value, overrides);
  return step_limits(run_scenario(load_questions(value).front(), true));
}

const TriedChange& change_with(const Answers& answers, std::string_view setting) {
  const auto found = std::find_if(
      answers.changes.begin(), answers.changes.end(),
      [&](const TriedChange& tried) { return tried.change.settings.front() == setting; });
  REQUIRE_MESSAGE(found != answers.changes.end(), std::string(setting));
  return *found;
}

double share(const StepLimits& limits, Part kind) {
  double all = 0, own = 0;
  for (const StepPiece& part : limits.parts) {
    all += part.seconds;
    if (part.kind == kind) own += part.seconds;
  }
  return own / all;
}

TEST_CASE("naive training with latency gains what its period says") {
  // K = 4 stages of f = 1 ms and B = 2 ms, latency c: K (f + B) + 2 (K - 1) c = 12 + 6 c.
  const Answers answers = answers_of({"cluster.link.latency=1 ms"});
  const Seconds step = answers.baseline.result.measurement.metrics.step_time;
  CHECK(step.value() == doctest::Approx(18e-3).epsilon(1e-12));
  MESSAGE("half of c: (K - 1) c = 3 ms; all devices twice as fast: K (f + B) / 2 = 6 ms");
  const TriedChange& latency = change_with(answers, "cluster.link.latency=0.5 ms");
  CHECK(latency.gain.value() == doctest::Approx(3e-3).epsilon(1e-12));
  const TriedChange& faster = change_with(answers, "variation.speeds=[2, 2, 2, 2]");
  CHECK(faster.gain.value() == doctest::Approx(6e-3).epsilon(1e-12));
  CHECK(change_with(answers, "cluster.link.bandwidth=200 GB/s").gain == Seconds(0));
}

TEST_CASE("lines of pairs gain the stall that one line a rank has behind early receives") {
  // p = 4 ranks, v = 2 chunks, F = B = 1 ms: p (p - 2) (v - 1) ops.
  const Answers answers = answers_of(
      {"model.modules=[{\"repeat\": 8, \"forward\": \"1 ms\", \"backward_input\": \"0.5 ms\", "
       "\"backward_weight\": \"0.5 ms\", \"output\": \"0 B\"}]",
       "training.micro_batches=8",
       R"(training.schedule={"kind": "interleaved", "message_order": "rank"})"});
  CHECK(change_with(answers, "training.schedule.message_order=pair").gain.value() ==
        doctest::Approx(8e-3).epsilon(1e-9));
  // Other schedules keep their messages in line.
  change_with(answers, R"(training.schedule={"kind": "1f1b", "message_order": "rank"})");
  for (const TriedChange& tried : answers.changes) {
    const std::string& setting = tried.change.settings.front();
    if (!setting.starts_with("training.schedule=")) continue;
    CHECK(setting.find(R"("message_order": "rank")") != setting.npos);
  }
}

TEST_CASE("a second stage on each rank halves how long SlimPipe fills and drains") {
  // (m n v + p - 1)(F + B) / n of p = 4 ranks, m = 4, n = 16, F + B = 4 ms or 2 ms: 3/16 x 2 ms.
  const Answers answers = answers_of(
      {"model.modules=[{\"repeat\": 8, \"forward\": \"1 ms\", \"backward_input\": \"0.5 ms\", "
       "\"backward_weight\": \"0.5 ms\", \"output\": \"0 B\"}]",
       "training.micro_batches=4", "training.schedule=slimpipe"});
  CHECK(change_with(answers, "training.schedule.chunks=2").gain.value() ==
        doctest::Approx(0.375e-3).epsilon(1e-9));
  CHECK(change_with(answers, "training.schedule.context_exchange=false").gain == Seconds(0));
}

constexpr const char* kPairs = R"({"model": "resnet-50", "cluster": {"machine": "dgx-a100-80g",
    "devices": 4}, "training": {"strategy": "pairwise", "global_batch_size": 64}})";

TEST_CASE("changes of the machine keep the cut, which faster memory would move") {
  const Answers answers = answers_of({}, kPairs);
  const TriedChange& memory = change_with(answers, "cluster.device.memory_bandwidth=4078 GB/s");
  const std::string own = set_cut(answers.baseline.result.plan.partition);
  REQUIRE(memory.change.settings.size() == 2);
  CHECK(memory.change.settings.back() == own);
  const Answers held = answers_of(memory.change.settings, kPairs);
  CHECK(memory.step_time == held.baseline.result.measurement.metrics.step_time);
  const Answers anew = answers_of({memory.change.settings.front()}, kPairs);
  CHECK(set_cut(anew.baseline.result.plan.partition) != own);
}

TEST_CASE("other stages of local losses are another training; a searched cut is not") {
  const Answers answers = answers_of({}, kPairs);
  CHECK(change_with(answers, "parallel.pipeline=2").change.kind == Change::Kind::Training);
  CHECK(change_with(answers, "partition=auto").change.kind == Change::Kind::Plan);
  const Answers global = answers_of({"training.strategy=global"}, kPairs);
  CHECK(change_with(global, "parallel.pipeline=2").change.kind == Change::Kind::Plan);
}

TEST_CASE("an explanation that is stopped keeps what was tried, and counts the others") {
  const Answers whole = answers_of({});
  const JsonValue value = parse_json(kFourModules, "test.json");
  std::size_t tried = 0;
  const Answers part = answer(
      value, 1, [&](std::size_t done, std::size_t) { tried = done; }, [&] { return tried >= 3; });
  CHECK(tried == 3);
  CHECK(part.changes.size() + static_cast<std::size_t>(part.refused) == tried);
  const std::size_t all = whole.changes.size() + static_cast<std::size_t>(whole.refused);
  CHECK(static_cast<std::size_t>(part.untried) == all - tried);
  CHECK(whole.untried == 0);
  for (const TriedChange& one : part.changes) {
    CHECK(one.gain == change_with(whole, one.change.settings.front()).gain);
  }
}

TEST_CASE("more micro-batches of a profile are more work, and gain by the work that they do") {
  // GPipe and 1F1B: (M + K - 1)(f + B) for M; M = 4: 21 ms; M = 8: 33 ms for twice the work.
  const Answers answers = answers_of({"training.micro_batches=4"});
  const TriedChange& twice = change_with(answers, "training.micro_batches=8");
  CHECK(twice.step_time.value() == doctest::Approx(33e-3).epsilon(1e-12));
  CHECK(twice.work == 2);
  CHECK(twice.gain.value() == doctest::Approx(21e-3 - 33e-3 / 2).epsilon(1e-12));
  CHECK(twice.change.kind == Change::Kind::Training);
}

TEST_CASE("one more stage that losses reach costs what the closed form says") {
  // Without heads and transfers a stage of N-wise training turns in f + N bi + bw: 1 + N + 1 ms.
  const Answers answers =
      answers_of({"training.strategy={\"kind\": \"interlocking\", \"n_wise\": 3}"});
  const TriedChange& less = change_with(answers, "training.strategy.kind=interlocking");
  CHECK(less.change.settings.size() == 2);
  CHECK(less.change.kind == Change::Kind::Training);
  CHECK(less.gain > Seconds(0));
  CHECK(less.change.settings[1] == "training.strategy.n_wise=2");
}

TEST_CASE("the parts of a step add up to it") {
  for (const Overrides& overrides :
       {Overrides{},
        {"training.micro_batches=8"},
        {"cluster.link.latency=1 ms"},
        {"training.strategy=pairwise"},
        {"training.strategy=local", "training.steps=3"},
        {"training.micro_batches=8", "training.schedule=zb-h1", "cluster.link.latency=2 ms"}}) {
    const StepLimits limits = limits_of(overrides);
    double sum = 0;
    for (const StepPiece& part : limits.parts) sum += part.seconds;
    JsonValue value = parse_json(kFourModules, "test.json");
    apply_overrides(value, overrides);
    const auto result = run_scenario(load_questions(value).front(), false);
    CHECK(sum == doctest::Approx(result.measurement.metrics.step_time.value()).epsilon(1e-9));
  }
}

TEST_CASE("the bubble limits naive training: of K stages K - 1 wait") {
  const StepLimits limits = limits_of({});
  CHECK(limits.parts.front().kind == Part::Bubble);
  CHECK(share(limits, Part::Bubble) == doctest::Approx(0.75).epsilon(1e-9));
  CHECK(share(limits, Part::Compute) == doctest::Approx(0.25).epsilon(1e-9));
}

constexpr const char* kSlowStage = R"({
  "model": {"kind": "profile", "modules": [
    {"forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MiB"},
    {"forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MiB"},
    {"forward": "4 ms", "backward_input": "4 ms", "backward_weight": "4 ms", "output": "1 MiB"},
    {"forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
              "link": {"bandwidth": "100 GB/s"}},
  "training": {"strategy": "global", "micro_batches": 32}
})";

TEST_CASE("one slow stage limits a pipeline, and a faster device for it is what helps") {
  const Answers answers = answers_of({}, kSlowStage);
  const StepLimits& limits = answers.baseline.limits;
  CHECK(limits.parts.front().kind == Part::Compute);
  CHECK(limits.parts.front().rank == 2);
  CHECK(limits.as_busy == std::vector<int>{2});
  CHECK(share(limits, Part::Compute) > 0.9);
  const TriedChange& faster = change_with(answers, "variation.speeds=[1, 1, 2, 1]");
  CHECK(faster.gain > 0.4 * answers.baseline.result.measurement.metrics.step_time);
}

TEST_CASE("a slow link limits a pipeline by its name, and its bandwidth is what helps") {
  const Answers answers =
      answers_of({"cluster.link.bandwidth=1 GB/s", "model.modules.2.forward=1 ms",
                  "model.modules.2.backward_input=1 ms", "model.modules.2.backward_weight=1 ms",
                  "variation.slow_links=[{\"from\": 1, \"to\": 2, \"slowdown\": 10}]"},
                 kSlowStage);
  const StepPiece& most = answers.baseline.limits.parts.front();
  CHECK(most.kind == Part::Transfer);
  CHECK(most.where == "1->2");
  // 1 MiB at 0.1 GB/s is 10.5 ms, 32 of them; twice as fast leaves half, besides fill and drain.
  const double step = answers.baseline.result.measurement.metrics.step_time.value();
  CHECK(step > 32 * 10.4e-3);
  const TriedChange& faster = change_with(answers, "cluster.link.bandwidth=2 GB/s");
  CHECK(faster.gain.value() > 0.4 * step);
  CHECK(answers.changes.front().gain >= faster.gain);
  CHECK(change_with(answers, "variation.slow_links=null").gain.value() > 0.5 * step);
}

constexpr const char* kPriced = R"({
  "model": {"base": "gpt2", "attention": "materialised"},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4},
  "training": {"strategy": "global", "global_batch_size": 16, "micro_batch_size": 4, "steps": 2}
})";

TEST_CASE("kernels are limited by arithmetic, memory, launches or exchanges as their rates say") {
  const auto first = [](const Overrides& overrides) {
    return limits_of(overrides, kPriced).parts.front().kind;
  };
  const Overrides one = {"parallel.pipeline=1", "cluster.devices=1"};
  const auto with = [&](const std::string& setting) {
    Overrides all = one;
    all.push_back(setting);
    return all;
  };
  CHECK(first(with("cluster.device.peak.bf16=1 TFLOP/s")) == Part::Compute);
  CHECK(first(with("cluster.device.memory_bandwidth=20 GB/s")) == Part::Memory);
  CHECK(first(with("cluster.device.launch_overhead=10 ms")) == Part::Launches);
  CHECK(first(with("training.framework={\"kernel_issue\": \"10 ms\"}")) == Part::Launches);
  CHECK(first({"parallel.pipeline=1", "parallel.tensor=4", "cluster.port.bandwidth=100 MB/s"}) ==
        Part::Inside);
  CHECK(first({"parallel.pipeline=1", "parallel.data=4", "cluster.port.bandwidth=10 MB/s"}) ==
        Part::Transfer);
}

TEST_CASE("what does not fit says what makes room, and some of it does") {
  const Answers answers = answers_of({"cluster.device.memory=3 GiB"}, kPriced);
  CHECK(!answers.baseline.result.measurement.metrics.fits_in_memory);
  CHECK(change_with(answers, "cluster.device.memory=6 GiB").fits);
  const TriedChange& full = change_with(answers, "training.recompute=full");
  CHECK(full.gain < Seconds(0));
  CHECK(full.peak_memory < Bytes(0.8 * 3 * (1 << 30)));
}

TEST_CASE("a host that holds kernels up is asked to wait less, and to issue fewer") {
  const std::string blocking = "training.blocking_launches=false";
  const std::string fused = R"(training.fused_routing=["router", "permutation"])";
  const auto is_tried = [](const Answers& answers, const std::string& setting) {
    return std::ranges::any_of(answers.changes, [&](const TriedChange& tried) {
      return tried.change.settings.front() == setting;
    });
  };
  const std::string framework =
      R"(training.framework={"kernel_issue": "50 us", "routing": "steps"})";
  const Answers slow =
      answers_of({framework, "model.experts=4", "training.blocking_launches=true"}, kPriced);
  CHECK(change_with(slow, blocking).gain > Seconds(0));
  CHECK(change_with(slow, fused).gain > Seconds(0));
  const Answers dense = answers_of({framework}, kPriced);
  CHECK_FALSE(is_tried(dense, blocking));
  CHECK_FALSE(is_tried(dense, fused));
  const Answers done = answers_of({framework, "model.experts=4", fused}, kPriced);
  CHECK_FALSE(is_tried(done, fused));
}

TEST_CASE("half the contexts of a hybrid turn heads alone where one group of them is left") {
  const auto settings = [](const std::string& contexts, const std::string& turning) {
    const Answers answers = answers_of({}, R"({"model": {"kind": "transformer", "layers": 2,
        "hidden_size": 256, "attention_heads": 8, "vocab_size": 512, "sequence_length": 128},
      "cluster": "dgx-h100",
      "parallel": {"pipeline": 1, "data": 1, "context": )" +
                                               contexts + R"(, "context_layout": "hybrid",
        "context_all_to_all": )" + turning + R"(},
      "training": {"strategy": "global", "global_batch_size": 4, "optimizer": "adam"}})");
    std::vector<std::string> all;
    for (const TriedChange& tried : answers.changes) {
      if (tried.change.words.starts_with("twice the data degree for half the context")) {
        all = tried.change.settings;
      }
    }
    return all;
  };
  const auto has = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const std::vector<std::string> one = settings("8", "4"), two = settings("8", "2");
  CHECK(has(one, "parallel.context_layout=all_to_all"));
  CHECK(has(one, "parallel.context_all_to_all=null"));
  CHECK(has(two, "parallel.context=4"));
  CHECK_FALSE(has(two, "parallel.context_layout=all_to_all"));
}

TEST_CASE("gains are sorted, and refused changes are not among them") {
  const Answers answers = answers_of({}, kPriced);
  CHECK(answers.changes.size() > 20);
  CHECK(answers.refused > 0);
  for (std::size_t i = 1; i < answers.changes.size(); ++i) {
    CHECK(answers.changes[i - 1].gain >= answers.changes[i].gain);
  }
}

TEST_CASE("training in 4 bits stores in 4 bits what was stored in 8") {
  const std::string text = R"({"model": {"kind": "transformer", "layers": 2, "hidden_size": 256,
      "attention_heads": 4, "vocab_size": 512, "sequence_length": 128},
    "cluster": {"machine": "dgx-b200", "nodes": 1, "devices": 1}, "training": {"strategy": "global",
      "global_batch_size": 2, "micro_batch_size": 1, "precision": "fp8", "optimizer": "adam"}})";
  const auto settings = [&](const Overrides& stored) {
    return change_with(answers_of(stored, text), "training.precision=fp4").change.settings;
  };
  CHECK(settings({}).size() == 1);
  for (const char* format : {"fp8", "mxfp8"}) {
    const std::vector<std::string> told =
        settings({std::string("training.weights=") + format, "training.weight_copies=1"});
    REQUIRE(told.size() == 2);
    CHECK(told[1] == "training.weights=nvfp4");
  }
}

/// Returns the change whose last setting is `setting`; null if none is tried.
const TriedChange* tried_last(const Answers& answers, std::string_view setting) {
  const auto found = std::ranges::find_if(answers.changes, [&](const TriedChange& tried) {
    return tried.change.settings.back() == setting;
  });
  return found == answers.changes.end() ? nullptr : &*found;
}

TEST_CASE("messages in fewer bits are offered where steps wait for them, and gain by their bytes") {
  // Naive, K = 4 stages: 12 ms, and 2 (K - 1) messages of 1 MB at 1 GB/s. Casts of devices without
  // rates take no time; fp8 has 33/64 of the bytes of bf16, int4 17/64.
  const std::string modules = R"(model.modules=[{"repeat": 4, "forward": "1 ms", "output": "1 MB",
      "backward_input": "1 ms", "backward_weight": "1 ms"}])";
  const std::string up = "training.strategy.activation_format=",
                    down = "training.strategy.gradient_format=";
  const Answers slow = answers_of({modules, "cluster.link.bandwidth=1 GB/s"});
  const auto gain = [](const Answers& answers, const std::string& setting) {
    const TriedChange* tried = tried_last(answers, setting);
    REQUIRE_MESSAGE(tried, setting);
    CHECK(tried->change.kind == Change::Kind::Training);
    CHECK(tried->change.words.ends_with("which changes the numbers"));
    return tried->gain.value();
  };
  CHECK(gain(slow, up + "fp8") == doctest::Approx(3e-3 * 31 / 64));
  CHECK(gain(slow, up + "int4") == doctest::Approx(3e-3 * 47 / 64));
  CHECK(gain(slow, down + "int4") == doctest::Approx(3e-3 * 47 / 64));
  double both = 0;
  for (const TriedChange& tried : slow.changes) {
    if (tried.change.settings.size() == 3) both = std::max(both, tried.gain.value());
  }
  CHECK(both == doctest::Approx(6e-3 * 31 / 64));
  INFO("casts at 1 GB/s cost more than their messages are shorter by");
  const std::string devices = R"(cluster={"kind": "uniform", "devices": 4,
      "link": {"bandwidth": "1 GB/s"}, "device": {"memory": "80 GB", "efficiency": "peak",
      "memory_bandwidth": "1 GB/s", "peak": {"bf16": "1 EFLOP/s"}}})";
  const double loss = 3e-3 * (2 * (1 + 33. / 64) - 31. / 64);
  CHECK(gain(answers_of({modules, devices}), up + "fp8") == doctest::Approx(-loss));
  const std::string cast = R"(training.strategy={"kind": "global", "activation_format": "fp8"})";
  CHECK(gain(answers_of({modules, devices, cast}), up + "training") == doctest::Approx(loss));
  INFO("where no step waits for messages nothing is offered, but to undo a cast");
  CHECK_FALSE(tried_last(answers_of({}), up + "fp8"));
  CHECK(gain(answers_of({cast}), up + "training") == doctest::Approx(0));
}

TEST_CASE("a sweep is refused, and the words say how to leave one") {
  std::string said;
  try {
    answers_of({"sweep={\"training.steps\": [1, 2]}"});
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said.find("its sweep makes 2; leave one: --set sweep=null") != std::string::npos);
}

TEST_CASE("quantities are scaled as they are written") {
  const auto scaled = [](const std::string& json, double factor) {
    const JsonValue value = parse_json(json, "");
    return scaled_text(&value, factor);
  };
  CHECK(scaled("\"231 GB/s\"", 2) == "462 GB/s");
  CHECK(scaled("\"9.6 us\"", 0.5) == "4.8 us");
  CHECK(scaled("\"3.4us\"", 0.5) == "1.7us");
  CHECK(scaled("[[null, \"10 ms\"], [\"0.3 s\", null]]", 0.5) ==
        "[[null, \"5 ms\"], [\"0.15 s\", null]]");
  CHECK(scaled("\"0 s\"", 0.5) == "");
  CHECK(scaled("{}", 2) == "");
  CHECK(scaled_text(nullptr, 2) == "");
}

}  // namespace
}  // namespace interlock::explain_test
