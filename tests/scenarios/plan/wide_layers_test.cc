// Layers in bf16 at the ends of a model whose products have 8 or 4 bits.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "scenarios/plan/lower_plan.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::wide_layers_test {
namespace {

/// Builds five equal blocks between an embedding and a readout.
Question question(const std::string& precision, const Overrides& more = {}) {
  return run(small_run(joined({R"(model={"kind": "transformer", "layers": 5, "hidden_size": 1024,
                                  "attention_heads": 8, "sequence_length": 512,
                                  "vocab_size": 1024, "attention": "fused"})",
                               "cluster=dgx-b200", "training.precision=" + precision,
                               R"(training.framework={"fp8_inputs": "fp8"})"},
                              more)))
      .plan.question;
}

const std::vector<Module>& modules_of(const Question& asked) {
  return asked.training().graph.modules;
}

TEST_CASE("layers at the ends are those of a training in bf16, others those of one without ends") {
  for (const std::string precision : {"fp8", "fp4"}) {
    const Question wide = question("bf16"), narrow = question(precision);
    const Question mixed = question(precision, {R"(training.bf16_layers={"first": 1, "last": 2})"});
    for (std::size_t block = 1; block <= 5; ++block) {
      const bool end = block == 1 || block >= 4;
      CAPTURE(block);
      const Module& made = modules_of(mixed)[block];
      const Module& as = modules_of(end ? wide : narrow)[block];
      CHECK(made.stash.value() == as.stash.value());
      REQUIRE(made.forward.size() == as.forward.size());
      const Device& device = mixed.cluster.machines.front().device;
      const Precision of = end ? Precision::Bf16 : mixed.training().precision;
      for (std::size_t i = 0; i < made.forward.size(); ++i) {
        CHECK(time_of(made.forward[i], device, mixed.training().precision).value() ==
              time_of(as.forward[i], device, of).value());
      }
    }
    CHECK(modules_of(wide)[1].stash > modules_of(narrow)[1].stash);
  }
}

TEST_CASE("a step takes as long as its layers, between one all narrow and one all wide") {
  const auto step = [](const Overrides& more) {
    return step_of(
        run(small_run(joined({R"(model={"kind": "transformer", "layers": 4, "hidden_size": 4096,
                                    "attention_heads": 32, "sequence_length": 2048,
                                    "vocab_size": 1024, "attention": "fused"})",
                              "cluster=dgx-b200", "training.precision=fp8"},
                             more))));
  };
  const double none = step({}), all = step({R"(training.bf16_layers={"first": 4})"});
  const double one = step({R"(training.bf16_layers={"last": 1})"});
  CHECK(all > 1.05 * none);
  CHECK(one - none == doctest::Approx((all - none) / 4).epsilon(1e-6));
  INFO("layers that both ends count are in bf16 once");
  CHECK(step({R"(training.bf16_layers={"first": 3, "last": 3})"}) == all);
}

TEST_CASE("weights of layers in bf16 are stored in 16 bits") {
  const auto weights = [](const Overrides& more) {
    const Overrides formats = {"training.weights=mxfp8", "training.weight_copies=2"};
    const Plan plan = make_plan(question("fp8", joined(formats, more)));
    return lower_inputs(plan).stages.front().state.weights.value();
  };
  const double matrices = 12.0 * 1024 * 1024;
  const double mixed = weights({R"(training.bf16_layers={"first": 2})"});
  CHECK(weights({}) - mixed == doctest::Approx(2 * matrices * (2 * (1 + 1.0 / 32) - 2)));
}

}  // namespace
}  // namespace interlock::wide_layers_test
