// Measured profiles: times and bytes come out as they were put in.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock {
namespace {

const std::string kProfile = R"({"kind": "profile", "modules": [
    {"forward": "1 ms", "backward_input": "2 ms", "backward_weight": "3 ms", "update": "4 ms",
     "head": "5 ms", "output": "6 MB", "stash": "7 MB", "parameters": "8 MB"},
    {"repeat": 2, "forward": "9 ms", "stash": "10 MB", "output": "1 MB"}]})";

Seconds duration(const std::vector<Work>& works) {
  REQUIRE(works.size() == 1);
  CHECK(works[0].op_class == OpClass::Measured);
  CHECK(works[0].launches == 0);
  return works[0].measured;
}

TEST_CASE("a profile's module takes the times and bytes that were measured") {
  const ModelGraph graph = built(kProfile);
  REQUIRE(graph.modules.size() == 3);
  const Module& module = graph.modules[0];
  CHECK(duration(module.forward) == Seconds(1e-3));
  CHECK(duration(module.backward_input) == Seconds(2e-3));
  CHECK(duration(module.first_backward_input) == Seconds(2e-3));
  CHECK(duration(module.backward_weight) == Seconds(3e-3));
  CHECK(duration(module.update) == Seconds(4e-3));
  CHECK(duration(module.head.work) == Seconds(5e-3));
  CHECK(module.output == Bytes(6e6));
  CHECK(module.stash == Bytes(7e6));
  CHECK(footprint(module.parameters, Optimizer::Sgd, Precision::Bf16).weights == Bytes(8e6));
}

TEST_CASE("bytes of parameters hold in every precision") {
  const ModelGraph graph = built(kProfile, {.precision = Precision::Fp32});
  CHECK(footprint(graph.modules[0].parameters, Optimizer::Sgd, Precision::Fp32).weights ==
        Bytes(8e6));
}

TEST_CASE("modules are numbered through, and samples are unknown") {
  const ModelGraph graph = built(kProfile, {.micro_batch_size = 7});
  CHECK(graph.modules[0].name == "m0");
  CHECK(graph.modules[2].name == "m2");
  CHECK(graph.modules[2].forward.at(0).measured == Seconds(9e-3));
  CHECK_FALSE(graph.samples_per_micro_batch);
  CHECK_FALSE(graph.tokens_per_sample);
  CHECK(graph.attention_flops == "none");
  CHECK(model_flops(graph) == Flops(0));
}

TEST_CASE("modules may have names, and a profile what it was made of") {
  const ModelGraph graph = built(R"({"kind": "profile", "measured": {"steps": 3}, "modules": [
    {"name": "stage 0", "forward": "1 ms"}, {"forward": "1 ms"}]})");
  CHECK(graph.modules[0].name == "stage 0");
  CHECK(graph.modules[1].name == "m1");
}

TEST_CASE("what is left out takes no time and no bytes") {
  const ModelGraph graph = built(R"({"kind": "profile", "modules": [{"forward": "1 ms"}]})");
  const Module& module = graph.modules[0];
  CHECK(module.backward_input.empty());
  CHECK(module.update.empty());
  CHECK(module.head.work.empty());
  CHECK(module.recompute.empty());
  CHECK(module.stash == Bytes(0));
}

TEST_CASE("full recomputation keeps the input and runs the measured forward again") {
  const ModelGraph graph = built(kProfile, {.recompute = Recompute::Full});
  CHECK(graph.modules[0].stash == Bytes(0));  // nothing comes before the first module
  CHECK(graph.modules[1].stash == Bytes(6e6));
  CHECK(graph.modules[2].stash == Bytes(1e6));
  CHECK(graph.modules[1].workspace == Bytes(4e6));
  CHECK(duration(graph.modules[1].recompute) == Seconds(9e-3));
}

TEST_CASE("full recomputation never keeps more than was kept without it") {
  const std::string model = R"({"kind": "profile", "modules": [
      {"repeat": 2, "forward": "1 ms", "output": "1 GB", "stash": "1 kB"}]})";
  CHECK(built(model, {.recompute = Recompute::Full}).modules[1].stash == Bytes(1e3));
}

TEST_CASE("a profile of a hundred thousand modules builds") {
  const ModelGraph graph = built(
      R"({"kind": "profile", "modules": [{"repeat": 100000, "forward": "1 us", "stash": "1 B"}]})");
  CHECK(graph.modules.size() == 100'000);
  CHECK(graph.modules.back().name == "m99999");
}

TEST_CASE("a strategy may say whose weights a profile's heads use") {
  const ModelGraph graph = built_with_head(kProfile, R"({"weights": {"stale_every": 5}})");
  CHECK(duration(graph.modules[0].head.work) == Seconds(5e-3));
}

}  // namespace
}  // namespace interlock
