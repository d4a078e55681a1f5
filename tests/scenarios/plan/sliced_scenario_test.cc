// Token slices from a scenario: what may be written, what it costs, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "scenarios/plan/choices.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::sliced_scenario_test {
namespace {

const std::string kTransformer = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 512, "attention_heads": 8,
            "vocab_size": 512, "sequence_length": 1024},
  "cluster": {"kind": "uniform", "devices": 4, "device": "v100-32g",
              "link": {"bandwidth": "25 GB/s"}},
  "partition": [3, 2, 2, 3],
  "training": {"strategy": "global", "schedule": "terapipe", "global_batch_size": 4,
               "micro_batch_size": 2, "precision": "fp16", "steps": 2}
})";
const std::string kWritten = R"(training.schedule={"kind": "terapipe", "slices": )";

Question sliced(const Overrides& overrides) {
  return load_questions(document(kTransformer, overrides)).front();
}

Metrics run(const Overrides& overrides) {
  return run_scenario(sliced(overrides), false).measurement.metrics;
}

std::vector<int> lengths_of(const Question& scenario) {
  std::vector<int> lengths;
  for (const TokenSlice& slice : lay_out(scenario).draft.slices) lengths.push_back(slice.length);
  return lengths;
}

TEST_CASE("slices are balanced, a number of equal ones, or as listed") {
  CHECK(lengths_of(sliced({kWritten + "4}"})) == std::vector<int>(4, 256));
  CHECK(lengths_of(sliced({kWritten + "3}"})) == std::vector<int>{342, 341, 341});
  const Question listed = sliced({kWritten + "[600, 400, 24]}"});
  CHECK(lengths_of(listed) == std::vector<int>{600, 400, 24});
  CHECK(lay_out(listed).draft.slices[2] == TokenSlice{24, 1000, 1024});
  for (const int tokens : {1024, 1000, 7}) {
    const std::vector<int> lengths =
        lengths_of(sliced({"model.sequence_length=" + std::to_string(tokens)}));
    CHECK(std::accumulate(lengths.begin(), lengths.end(), 0) == tokens);
  }
  CHECK(lay_out(sliced({"training.schedule=gpipe"})).draft.slices.empty());
}

TEST_CASE("one slice of the whole sequence takes the time, flops and memory of gpipe") {
  for (const char* recompute : {"none", "selective", "full"}) {
    const std::string kept = std::string("training.recompute=") + recompute;
    const Metrics one = run({kWritten + "1}", kept}),
                  gpipe = run({"training.schedule=gpipe", kept});
    CHECK(one.step_time == gpipe.step_time);
    CHECK(one.mfu == gpipe.mfu);
    CHECK(one.hfu == gpipe.hfu);
    CHECK(one.samples_per_s == gpipe.samples_per_s);
    CHECK(one.staleness == gpipe.staleness);
    for (std::size_t r = 0; r < gpipe.devices.size(); ++r) {
      CHECK(one.devices[r].peak_memory == gpipe.devices[r].peak_memory);
      CHECK(one.devices[r].busy == gpipe.devices[r].busy);
    }
  }
}

TEST_CASE("however sequences are cut, a step has the same samples, tokens and useful flops") {
  const Metrics whole = run({"training.schedule=gpipe"});
  for (const char* slices : {"2}", "7}", "[1000, 24]}", "\"balanced\"}"}) {
    INFO("slices " << slices);
    const Metrics cut = run({kWritten + slices});
    const double steps = cut.step_time / whole.step_time;  // shares are of the time of a step
    CHECK(*cut.samples_per_s * steps == doctest::Approx(*whole.samples_per_s));
    CHECK(*cut.tokens_per_s * steps == doctest::Approx(*whole.tokens_per_s));
    CHECK(*cut.mfu * steps == doctest::Approx(*whole.mfu));
    CHECK(cut.staleness == whole.staleness);  // micro-batches, not slices
    for (std::size_t l = 0; l < whole.links.size(); ++l) {
      CHECK(cut.links[l].bytes.value() == doctest::Approx(whole.links[l].bytes.value()));
    }
    for (std::size_t r = 0; r < whole.devices.size(); ++r) {
      CHECK(cut.devices[r].peak_stash <= whole.devices[r].peak_stash);  // fewer scores are stored
    }
    const Metrics fused = run({kWritten + slices, "model.attention=fused"});
    const Metrics whole_fused = run({"training.schedule=gpipe", "model.attention=fused"});
    for (std::size_t r = 0; r < whole.devices.size(); ++r) {
      CHECK(fused.devices[r].peak_stash.value() ==
            doctest::Approx(whole_fused.devices[r].peak_stash.value()));
    }
  }
}

TEST_CASE("balanced slices are no slower than any equal ones, and shorter at the end") {
  const Overrides large = {"model=gpt2-xl", "cluster.devices=16", "partition=balanced",
                           "training.global_batch_size=1", "training.micro_batch_size=1"};
  const auto step = [&](const std::string& slices) {
    Overrides overrides = large;
    overrides.push_back(kWritten + slices + "}");
    return run(overrides).step_time.value();
  };
  const double balanced = step("\"balanced\"");
  for (const char* slices : {"1", "2", "4", "8", "16", "32"}) {
    INFO(slices << " equal slices: " << step(slices) << " s, balanced: " << balanced << " s");
    // The last stage is longer, which the rule ignores; times of slices go in steps of tiles.
    CHECK(balanced <= step(slices) * 1.02);
  }
  const std::vector<int> lengths = lengths_of(sliced(large));
  CHECK(lengths.size() > 1);
  CHECK(lengths.front() >= lengths.back());
}

TEST_CASE("late slices of attention cost more, and all slices of retention the same") {
  const auto costs_of_forward = [](const std::string& attention) {
    const Question scenario = sliced({"model.attention=" + attention, kWritten + "8}"});
    const std::vector<OpInfo> ops = lower_plan(make_plan(scenario), 1).ops;
    return std::count_if(ops.begin(), ops.end(),
                         [](const OpInfo& op) { return op.kind == OpKind::F && op.stage == 1; });
  };
  CHECK(costs_of_forward("fused") == 8);
  CHECK(costs_of_forward("retention") == 1);
}

TEST_CASE("a balanced batch is that of the best size, each with its best slices") {
  const Overrides batch = {"training.global_batch_size=12", "model.sequence_length=128"};
  const auto step = [&](const std::string& size) {
    Overrides overrides = batch;
    overrides.push_back("training.micro_batch_size=" + size);
    return run_scenario(sliced(overrides), false);
  };
  const ScenarioResult chosen = step("balanced");
  double least = 1e9;
  for (const char* size : {"1", "2", "3", "4", "6", "12"}) {
    least = std::min(least, step(size).measurement.metrics.step_time.value());
  }
  const Metrics& metrics = chosen.measurement.metrics;
  INFO(chosen.plan.micro_batches << " micro-batches, " << metrics.step_time.value()
                                 << " s; best of all sizes " << least << " s");
  CHECK(metrics.step_time.value() <= least * 1.02);  // transfers and the update are left out
  CHECK(*metrics.samples_per_s * metrics.step_time.value() == doctest::Approx(12));
}

TEST_CASE("equal slices of a profile are as many micro-batches of a share of it") {
  const Overrides whole = {"training.schedule=gpipe", "training.micro_batches=6"};
  const Question cut = loaded({kWritten + "3}", "training.micro_batches=2"});
  Question plain = loaded(whole);
  const double sliced = run_scenario(cut, false).measurement.metrics.step_time.value();
  // 1 ms an op: gpipe takes (M + K - 1) 3 ms; a third of an op is one of 6 micro-batches.
  CHECK(run_scenario(plain, false).measurement.metrics.step_time.value() == doctest::Approx(27e-3));
  CHECK(sliced == doctest::Approx(27e-3 / 3));
}

std::string refused(const Overrides& overrides) {
  return mistakes_of(document(kTransformer, overrides));
}

bool says(const std::string& message, const std::string& part) {
  INFO(message);
  return message.find(part) != std::string::npos;
}

TEST_CASE("slices of equal time get shorter along the sequence, and their longest is shorter") {
  const auto cut = [](const std::string& rest) {
    const Plan plan = lay_out(sliced({"model.sequence_length=16384", kWritten + rest})).draft;
    int tokens = 0;
    for (const TokenSlice& slice : plan.slices) tokens = std::max(tokens, slice.length);
    return std::pair(tokens, planned_span(plan).value());
  };
  const auto lengths =
      lengths_of(sliced({"model.sequence_length=16384", kWritten + R"(8, "equal_in": "time"})"}));
  REQUIRE(lengths.size() == 8);
  CHECK(std::is_sorted(lengths.rbegin(), lengths.rend()));
  CHECK(lengths.front() > lengths.back());
  CHECK(std::accumulate(lengths.begin(), lengths.end(), 0) == 16384);
  CHECK(cut(R"(8, "equal_in": "time"})").second < cut("8}").second);
  CHECK(cut(R"(8, "equal_in": "tokens"})") == cut("8}"));
  CHECK(says(refused({kWritten + R"("balanced", "equal_in": "time"})"}),
             "expected it beside a number of \"slices\""));
}

TEST_CASE("what cannot be cut is refused with what can") {
  CHECK(says(refused({"model=resnet-50"}), "are no sequences of tokens; expected a transformer"));
  CHECK(says(refused({kWritten + "[512, 500]}"}),
             "adds up to 1012 tokens; expected the 1024 of a sequence"));
  CHECK(says(refused({kWritten + "1025}"}), "expected at most 1024, got 1025"));
  CHECK(says(refused({kWritten + "\"equal\"}"}), "known: balanced"));
  CHECK(says(refused({kWritten + "true}"}), "or a list with the tokens of each"));
  CHECK(says(refused({R"(training.schedule={"kind": "gpipe", "slices": 2})"}),
             "\"gpipe\" leaves sequences whole; expected it with \"terapipe\", \"seq1f1b\" or "
             "\"slimpipe\""));
  CHECK(says(refused({kWritten + R"(2, "queue": {"buffered": 1}})"}),
             "expected \"unlimited\" or \"rendezvous\""));
  CHECK(says(refused({"training.schedule=1f1b", "training.micro_batch_size=balanced"}),
             "expected a number of samples, or the schedule \"terapipe\" or \"seq1f1b\""));
  CHECK(says(mistakes({"training.schedule=terapipe"}), "\"slices\": 8}"));
  CHECK(says(mistakes({kWritten + "2}", "training.micro_batch_size=balanced",
                       "training.global_batch_size=4"}),
             "expected that size"));
}

}  // namespace
}  // namespace interlock::sliced_scenario_test
