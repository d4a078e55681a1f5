// Measured profiles: times and bytes come out as they were put in.
// SPDX-License-Identifier: Apache-2.0
#include "models/build_model.h"
#include "tests/models/built.h"
#include "tests/support/model_flops.h"

namespace interlock::profile_test {
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

// A U: what goes down is read again on the way up. Two tensors skip modules, over one another.
const std::string kU = R"({"kind": "profile", "modules": [
    {"output": "100 B", "stash": "500 B", "skips": [{"to": 5, "bytes": "70 B"}]},
    {"output": "50 B", "stash": "500 B",
     "skips": [{"to": 4, "bytes": "30 B"}, {"to": 5, "bytes": "1 B"}]},
    {"repeat": 2, "output": "20 B", "stash": "500 B"}, {"output": "50 B", "stash": "500 B"},
    {"output": "100 B", "stash": "500 B"}]})";

TEST_CASE("tensors that skip modules are handed on until they are read") {
  struct Edge {
    int from, to;
    double bytes;
  };
  const Edge edges[] = {{0, 1, 100}, {1, 2, 50}, {2, 3, 20}, {3, 4, 20},
                        {4, 5, 50},  {0, 5, 70}, {1, 4, 30}, {1, 5, 1}};
  const ModelGraph graph = built(kU);
  REQUIRE(graph.modules.size() == 6);
  for (int cut = 0; cut < 5; ++cut) {
    double crossing = 0;
    for (const Edge& edge : edges) {
      if (edge.from <= cut && edge.to > cut) crossing += edge.bytes;
    }
    INFO("behind module " << cut);
    CHECK(graph.modules[static_cast<std::size_t>(cut)].output.value() == crossing);
  }
  CHECK(graph.modules[5].output.value() == 100);
  // A module that computes again keeps what it reads, not what it hands on.
  const ModelGraph again = built(kU, {.recompute = Recompute::Full});
  const double reads[] = {0, 100, 50, 20, 20 + 30, 50 + 70 + 1};
  for (std::size_t i = 0; i < 6; ++i) CHECK(again.modules[i].stash.value() == reads[i]);
  const ModelGraph half = graph.slice({1, 1, 2});
  CHECK(half.modules[2].output.value() == graph.modules[2].output.value() / 2);
}

TEST_CASE("tensors that skip nothing, or begin nowhere, are refused") {
  const auto said = [](const std::string& modules) {
    const JsonValue value =
        parse_json(R"({"kind": "profile", "modules": [)" + modules + "]}", "s.json");
    Diagnostics diagnostics;
    build_model({&value, ""}, {}, diagnostics);
    return diagnostics.messages().empty() ? "" : diagnostics.messages().front();
  };
  const std::string start = R"({"skips": [{"to": )";
  CHECK(said(start + R"(1, "bytes": "1 B"}]}, {"repeat": 3})") ==
        "s.json:1: /modules/0/skips/0: module 1 is not behind the next one of module 0; expected 2 "
        "to 3 (what the next one reads is \"output\")");
  CHECK(said(start + R"(4, "bytes": "1 B"}]}, {"repeat": 3})").find("expected 2 to 3") !=
        std::string::npos);
  CHECK(said(R"({"repeat": 2, "skips": [{"to": 3, "bytes": "1 B"}]}, {"repeat": 3})")
            .find("/modules/0/skips: of several modules") != std::string::npos);
  CHECK(said(R"({"skips": [{"to": 2}]}, {"repeat": 3})").find("missing key \"bytes\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::profile_test
