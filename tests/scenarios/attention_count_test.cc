// The convention of counting attention's flops changes MFU and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "models/model_file.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/support/model_flops.h"

namespace interlock::attention_count_test {
namespace {

const std::string kTransformer = R"({
  "model": {"kind": "transformer", "layers": 6, "hidden_size": 256, "attention_heads": 8,
            "vocab_size": 512, "sequence_length": 1024},
  "cluster": {"machine": "dgx-h100", "nodes": 1},
  "training": {"strategy": "global", "global_batch_size": 4, "steps": 2}
})";

std::string one_of(Random& random, const std::vector<std::string>& choices) {
  return choices[random.integer(0, static_cast<int>(choices.size()) - 1)];
}

/// Attention of some form over sequences of some length, cut and sharded in some way.
Overrides some_scenario(Random& random) {
  const std::string form = one_of(random, {"materialised", "fused", "fused", "retention"});
  Overrides made = {"model.attention=" + form,
                    "model.sequence_length=" + one_of(random, {"96", "512", "1000", "4096"}),
                    "training.recompute=" + one_of(random, {"none", "selective", "full"}),
                    "training.precision=" + one_of(random, {"bf16", "fp8"}),
                    "training.optimizer=" + one_of(random, {"sgd", "adam"})};
  if (form != "retention" && random.integer(0, 1) == 1) {
    made.push_back("model.sliding_window=" + one_of(random, {"1", "100", "300", "10000"}));
  }
  if (form == "retention") made.push_back("model.chunk_size=" + one_of(random, {"32", "96"}));
  if (random.integer(0, 2) == 0) made.push_back("training.framework=nemo");
  switch (random.integer(0, 3)) {
    case 0:
      made.push_back("parallel.pipeline=4");
      made.push_back(R"(training.schedule={"kind": "terapipe", "slices": )" +
                     one_of(random, {"3", "8", "\"balanced\""}) + "}");
      break;
    case 1:
      made.push_back("parallel.pipeline=2");
      if (form == "retention") break;
      made.push_back("parallel.context=4");
      made.push_back("parallel.context_layout=" + one_of(random, {"ring", "all_to_all"}));
      break;
    case 2:
      made.push_back("parallel.pipeline=2");
      made.push_back("parallel.tensor=2");
      made.push_back("parallel.data=2");
      break;
    default:
      made.push_back("parallel.pipeline=4");
      made.push_back("training.strategy=" + one_of(random, {"global", "local", "pairwise"}));
  }
  return made;
}

struct Told {
  Metrics metrics;
  Flops model;
};

Told told(Overrides overrides, const std::string& count) {
  overrides.push_back("model.attention_flops=" + count);
  const Question scenario = load_questions(document(kTransformer, overrides)).front();
  return {run_scenario(scenario, false).measurement.metrics,
          model_flops(scenario.training().graph)};
}

/// Compares the two conventions; returns what the one counts over what the other does.
double compare(const Overrides& overrides) {
  std::string text;
  for (const std::string& override : overrides) text += override + "  ";
  INFO(text);
  const Told full = told(overrides, "full"), causal = told(overrides, "causal");
  const Metrics &a = full.metrics, &b = causal.metrics;
  CHECK(a.step_time == b.step_time);
  CHECK(a.exposed_communication == b.exposed_communication);
  CHECK(a.busy == b.busy);
  CHECK(a.hfu == b.hfu);
  CHECK(a.fits_in_memory == b.fits_in_memory);
  REQUIRE(a.devices.size() == b.devices.size());
  for (std::size_t r = 0; r < a.devices.size(); ++r) {
    CHECK(a.devices[r].peak_memory == b.devices[r].peak_memory);
    CHECK(a.devices[r].peak_stash == b.devices[r].peak_stash);
    CHECK(a.devices[r].time == b.devices[r].time);
  }
  CHECK(a.attention_flops == "full");
  CHECK(b.attention_flops == "causal");
  CHECK(causal.model < full.model);
  const double counted = causal.model / full.model;
  CHECK(b.mfu.value() / a.mfu.value() == doctest::Approx(counted).epsilon(1e-12));
  return counted;
}

TEST_CASE("the count of attention's flops changes MFU, and no time, no memory and no HFU") {
  constexpr std::uint64_t kSeed = 5;
  double least = 1;
  for (int turn = 0; turn < 60; ++turn) {
    Random random(kSeed, static_cast<std::uint64_t>(turn));
    INFO("seed " << kSeed << ", scenario " << turn);
    least = std::min(least, compare(some_scenario(random)));
  }
  MESSAGE("60 scenarios; counted flops change down to " << least << " of \"full\"");
}

TEST_CASE("for every causal model of the zoo the count changes MFU only") {
  int compared = 0;
  for (const std::string& name : zoo_names()) {
    // A name first, as the object would be put into the one of kTransformer.
    const Overrides model = {"model=\"" + name + '"', "model={\"base\": \"" + name + "\"}"};
    const Question plain = load_questions(document(kTransformer, {model[0]})).front();
    if (plain.training().graph.attention_flops == "none") continue;
    if (plain.training().graph.attention_flops == "chosen") continue;
    if (!plain.training().graph.slice) {  // sees both directions
      const Overrides half = {model[0], model[1], "model.attention_flops=causal"};
      CHECK(mistakes_of(document(kTransformer, half)).find("every token sees all") !=
            std::string::npos);
      continue;
    }
    compare({model[0], model[1], "parallel.pipeline=8"});
    ++compared;
  }
  CHECK(compared >= 12);
}

TEST_CASE("both directions take the time of the whole square, a causal mask little over half") {
  const auto loaded = [](const Overrides& mask) {
    Overrides all = {"model.sequence_length=65536", "model.attention=fused"};
    all.insert(all.end(), mask.begin(), mask.end());
    return load_questions(document(kTransformer, all)).front();
  };
  const Question causal = loaded({}),
                 both = loaded({"model.bidirectional=true", "model.readout=masked-lm"});
  const auto attention = [](const Question& scenario) {
    Flops total;
    for (const Work& work : scenario.training().graph.modules[1].forward) {
      if (work.op_class == OpClass::Attention) total += work.flops;
    }
    return total;
  };
  MESSAGE("65536 tokens are 512 rows of blocks: 512 x 513 / 2 of 512 x 512 blocks");
  CHECK(attention(causal) / attention(both) == doctest::Approx(513.0 / 1024).epsilon(1e-14));
  const Seconds half = run_scenario(causal, false).measurement.metrics.step_time;
  const Seconds whole = run_scenario(both, false).measurement.metrics.step_time;
  CHECK(half < 0.6 * whole);
  CHECK(half > 0.4 * whole);
}

}  // namespace
}  // namespace interlock::attention_count_test
