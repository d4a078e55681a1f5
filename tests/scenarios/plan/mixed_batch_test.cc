// Steps that mix micro-batches of several sizes: when they are chosen, and what they add up to.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::mixed_batch_test {
namespace {

const std::string kTransformer = R"({
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 512, "attention_heads": 8,
            "attention": "materialised", "vocab_size": 512, "sequence_length": 256},
  "cluster": {"kind": "uniform", "devices": 4, "device": "v100-32g",
              "link": {"bandwidth": "25 GB/s"}},
  "partition": [3, 2, 2, 3],
  "training": {"strategy": "global", "schedule": "terapipe", "global_batch_size": 11,
               "micro_batch_size": "balanced", "precision": "fp16", "steps": 2}
})";

Plan planned(const Overrides& overrides) {
  return make_plan(load_questions(document(kTransformer, overrides)).front());
}

Metrics run(const Plan& plan) { return simulate_plan(plan, Keep::Nothing).measurement.metrics; }
Metrics run(const Overrides& overrides) { return run(planned(overrides)); }

/// Counts the tokens of slices that others follow, of all samples: a recompute spares their keys
/// and values.
double followed_tokens(const Plan& plan) {
  double tokens = 0;
  for (const SizedBatch& part : plan.sized_batches) {
    for (const TokenSlice& slice : part.slices) {
      const bool last = slice.context + slice.length == slice.of;
      tokens += last ? 0 : static_cast<double>(part.samples) * slice.length;
    }
  }
  return tokens;
}

/// Counts the scores of a head that slices do not store, of all samples: of l tokens with the c
/// before them, the square of the whole has c l twice.
double scores_left_out(const Plan& plan) {
  double pairs = 0;
  for (const SizedBatch& part : plan.sized_batches) {
    for (const TokenSlice& slice : part.slices) {
      pairs += static_cast<double>(part.samples) * slice.length * slice.context;
    }
  }
  return pairs;
}

TEST_CASE("a batch that no good size divides is mixed, and faster than in any one size") {
  struct Batch {
    std::string samples, tokens;
  };
  for (const Batch& batch : {Batch{"11", "256"}, {"13", "256"}, {"17", "128"}}) {
    const Overrides sizes = {"training.global_batch_size=" + batch.samples,
                             "model.sequence_length=" + batch.tokens};
    const Plan mixed = planned(sizes);
    REQUIRE(mixed.sized_batches.size() > 1);
    CHECK(mixed.sized_batches.front().samples > mixed.sized_batches.back().samples);
    CHECK(mixed.micro_batches == static_cast<int>(mixed.sized_batches.size()));
    double least = 1e9;
    for (const std::string& size : {std::string("1"), batch.samples}) {  // primes
      for (const char* slices : {"\"balanced\"", "1", "2", "3", "4", "6", "8"}) {
        Overrides uniform = sizes;
        uniform.push_back("training.micro_batch_size=" + size);
        uniform.push_back(std::string(R"(training.schedule={"kind": "terapipe", "slices": )") +
                          slices + "}");
        least = std::min(least, run(uniform).step_time.value());
      }
    }
    const double step = run(mixed).step_time.value();
    INFO(batch.samples << " samples: mixed " << step << " s, one size " << least << " s at best");
    CHECK(step < least);
  }
}

TEST_CASE("a batch that one size suits best stays whole multiples of it") {
  for (const int batch : {2, 3, 4, 5, 7, 12}) {
    const std::string samples = "training.global_batch_size=" + std::to_string(batch);
    const Plan chosen = planned({samples});
    if (!chosen.sized_batches.empty()) continue;
    INFO(batch << " samples in " << chosen.micro_batches << " micro-batches");
    CHECK(batch % chosen.micro_batches == 0);
    const std::string size = std::to_string(batch / chosen.micro_batches);
    const Plan written = planned({samples, "training.micro_batch_size=" + size});
    CHECK(chosen.slices == written.slices);
    CHECK(run(chosen).step_time == run(written).step_time);
  }
  // Nor are one sample, or slices that are written.
  CHECK(planned({"training.global_batch_size=1"}).sized_batches.empty());
  CHECK(planned({R"(training.schedule={"kind": "terapipe", "slices": 1})"}).sized_batches.empty());
}

TEST_CASE("a mixed step has the samples, flops, messages and stash of the batch") {
  for (const char* recompute : {"none", "full"}) {
    const std::string kept = std::string("training.recompute=") + recompute;
    const Plan plan = planned({kept});
    REQUIRE(!plan.sized_batches.empty());
    const Metrics mixed = run(plan);
    const Overrides plain = {kept, "training.schedule=gpipe", "training.micro_batch_size=1"};
    const Metrics whole = run(plain);
    const double steps = mixed.step_time / whole.step_time;  // shares are of the time of a step
    CHECK(*mixed.samples_per_s * mixed.step_time.value() == doctest::Approx(11));
    CHECK(*mixed.tokens_per_s * mixed.step_time.value() == doctest::Approx(11 * 256));
    CHECK(*mixed.mfu * steps == doctest::Approx(*whole.mfu));
    // Two products of 2 flops for 64 elements of 8 heads in 8 blocks; twice that backward.
    const bool full = plan.question.training().recompute == Recompute::Full;
    const double left_out = scores_left_out(plan), passes = full ? 4 : 3;
    const double possible = whole.step_time.value() * 125e12 * 4;  // flops of four V100
    CHECK((*whole.hfu - *mixed.hfu * steps) * possible ==
          doctest::Approx(left_out * 2 * 2 * 64 * 8 * 8 * passes));
    const auto parts = static_cast<std::int64_t>(plan.sized_batches.size());
    CHECK(mixed.staleness == std::map<int, std::int64_t>{{0, 2 * parts}});
    for (std::size_t l = 0; l < whole.links.size(); ++l) {
      CHECK(mixed.links[l].bytes.value() == doctest::Approx(whole.links[l].bytes.value()));
    }
    const double kept_tokens = full ? followed_tokens(plan) : 0;
    const double scores = full ? 0 : left_out * 8 * 2 * 2;  // of 8 heads, fp16, of two blocks
    const double spared = kept_tokens * 2 * 512 * 2 * 2;    // keys and values, fp16, of two blocks
    INFO(kept_tokens << " tokens whose keys and values later slices read: " << spared << " bytes");
    for (std::size_t r = 0; r < whole.devices.size(); ++r) {
      CHECK(mixed.devices[r].peak_stash.value() ==
            doctest::Approx(whole.devices[r].peak_stash.value() + spared - scores));
    }
  }
}

TEST_CASE("sizes of a step differ in slices too, where that is best") {
  const std::vector<SizedBatch> parts = planned({"training.recompute=full"}).sized_batches;
  REQUIRE(parts.size() > 1);
  CHECK(parts.front().slices.size() > parts.back().slices.size());
}

TEST_CASE("every part of a mixed step covers its sequences") {
  const Plan plan = planned({});
  int samples = 0;
  for (const SizedBatch& part : plan.sized_batches) {
    samples += part.samples;
    CHECK(*part.graph->samples_per_micro_batch == part.samples);
    int tokens = 0;
    for (const TokenSlice& slice : part.slices) {
      CHECK(slice.context == tokens);
      tokens += slice.length;
    }
    CHECK(tokens == 256);
  }
  CHECK(samples == 11);
  // Parts are micro-batches of the program, and their slices its units of work.
  const Program program = lower_plan(plan, 2);
  CHECK(whole_micro_batches(program) == plan.micro_batches);
  CHECK(program.update_every == program.micro_batches);
}

}  // namespace
}  // namespace interlock::mixed_batch_test
