// Layers with degrees of their own that cannot be: one sentence each. And what says nothing new.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/result/result_json.h"
#include "reports/words/mesh_words.h"
#include "sim/plan/layer_layouts.h"
#include "tests/layers/support/random_layers.h"
#include "tests/scenarios/documents.h"

namespace interlock::layer_mistakes_test {
namespace {

const std::string kBlocks = R"({
  "name": "blocks",
  "model": {"kind": "transformer", "hidden_size": 256, "attention_heads": 8, "vocab_size": 512,
            "sequence_length": 64, "layers": 6, "tied_embeddings": false},
  "cluster": {"kind": "uniform", "device": "a100-40g", "devices": 16,
              "link": {"bandwidth": "16 GB/s"}},
  "parallel": {"pipeline": 2, "tensor": 4, "data": 2},
  "training": {"strategy": "global", "schedule": "1f1b", "micro_batch_size": 2,
               "global_batch_size": 16, "steps": 2}
})";

std::string layers(const std::string& list) { return "parallel.layer_layouts=" + list; }

std::string refused(const Overrides& overrides) {
  return mistakes_of(document(kBlocks, overrides));
}

/// Returns why a scenario cannot be folded as it says; empty if it can.
std::string refused_run(const Overrides& overrides) {
  try {
    make_plan(load_questions(document(kBlocks, overrides)).front());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("layers that cannot have their degrees are refused in one sentence") {
  struct Mistake {
    Overrides overrides;
    const char* message;
  };
  const std::string good = layers(R"([{"modules": [1, 4], "tensor": 8, "data": 1}])");
  REQUIRE(refused({good}) == "");
  const std::vector<Mistake> all = {
      {{layers("[]")},
       "/parallel/layer_layouts: no list of layouts of layers; expected at least 1 entries"},
      {{layers(R"([{"tensor": 8}])")}, "missing key \"modules\"; expected the first module"},
      {{layers(R"([{"modules": [3, 3], "tensor": 8}])")},
       "/0/modules: holds no module: the second number is that of the module behind the last; "
       "expected more than 3"},
      {{layers(R"([{"modules": [1], "tensor": 8}])")},
       "/0/modules: no range of modules; expected the first and the one behind the last"},
      {{layers(R"([{"modules": [1, 4], "tensor": 8, "data": 2}])")},
       "/0: tensor 8 x data 2 are 16 devices; expected as many as \"tensor\" x \"data\" of the "
       "run, 8 (tensor 4 x data 2)"},
      {{layers(R"([{"modules": [1, 9], "tensor": 8}])")},
       "/0/modules: names modules 1 to 8; expected at most the 8 of the model, up to [1, 8]"},
      {{layers(
           R"([{"modules": [1, 4], "tensor": 8}, {"modules": [3, 5], "tensor": 2, "data": 4}])")},
       "/1/modules: module 3 has a layout already"},
      {{layers(R"([{"modules": [1, 4], "tensor": 8}])"), "parallel.shard=1",
        "parallel.zero_stage=1"},
       "/parallel/shard: goes with one layout of all layers of a stage; expected 2, all "
       "replicas,"},
      {{layers(R"([{"modules": [1, 4], "tensor": 1000000, "data": 1000000}])")},
       "/0: tensor 1000000 x data 1000000 are 1000000000000 devices"},
      {{layers(R"([{"modules": [1, 4]}])")}, "/0: gives no degree; expected \"tensor\" or"},
      {{layers(R"([{"modules": [1, 4], "data": 3}])")},
       "/0/data: does not divide the 8 devices of \"tensor\" x \"data\" of the run; expected a "
       "divisor, got 3"},
      {{good, "model.attention_heads=4"},
       "/parallel/layer_layouts/0: tensor 8 x data 1 do not divide these layers: "
       "attention_heads 4 cannot be divided among 8 tensor devices"},
      {{layers(R"([{"modules": [0, 1], "tensor": 8}, {"modules": [3, 4], "tensor": 8}])"),
        "model.attention_heads=4"},
       "/parallel/layer_layouts/1: tensor 8 x data 1 do not divide these layers: "},
      {{layers(R"([{"modules": [0, 1], "tensor": 8}])"), "model.sequence_length=68",
        "parallel.sequence_parallel=true"},
       "/parallel/layer_layouts/0: tensor 8 x data 1 do not divide these layers: sequence_length "
       "68 cannot be divided among"},
      {{good, "parallel.context=2", "cluster.devices=32"},
       "/parallel/layer_layouts: has layers join the samples of neighbours along \"data\", and by "
       "default \"context\" comes before it; expected \"order\""},
      {{layers(R"([{"modules": [1, 4], "tensor": 1, "data": 8}])"), "training.micro_batch_size=1"},
       "/0: the micro-batches of all 2 data devices of the run have 2 samples, which cannot be "
       "divided among 8; expected micro_batch_size x data such as 8"},
      {{good, R"(parallel.order=["data", "tensor", "context", "pipeline"])"},
       "expected \"order\" with \"data\" right behind \"tensor\""},
      {{good, "model.tied_embeddings=true",
        layers(R"([{"modules": [0, 4], "tensor": 8, "data": 1}])")},
       "modules 0 and 7 share weights (tied embeddings); expected the same degrees for both"},
      {{good, "training.strategy=tree", "training.schedule=eager"},
       "/training/strategy: has stages that do not read"},
      {{good, "training.micro_batch_size=balanced",
        R"(training.schedule={"kind": "terapipe", "slices": 2})"},
       "/training/micro_batch_size: has micro-batches"},
      {{good, "training.replica_micro_batches=by_speed"},
       "/training/replica_micro_batches: gives replicas steps of their own"},
      {{good, R"(variation={"documents": {"mean": 32}})"},
       "/variation/documents: gives replicas samples of other lengths"},
      {{good, R"(parallel.outer={"every": 10})"}, "/parallel/outer: goes with one layout"},
      {{good, R"(run={"steps": 10, "on_failure": "drop_replica"})"},
       "/run/on_failure: goes on without a replica"},
      {{layers(R"([{"modules": [1, 4], "tensor": 16, "data": 1}])"), "cluster.devices=32",
        "parallel.data=4"},
       "cannot be divided"},
      {{layers(R"([{"modules": [1, 3], "tensor": 6, "data": 2}])"), "parallel.data=3",
        "cluster.devices=24", "training.global_batch_size=24"},
       "has tensor degrees of 4 and 6; expected degrees of which each divides the next larger"}};
  for (const Mistake& mistake : all) {
    const std::string message = refused(mistake.overrides);
    INFO(message);
    CHECK(message.find(mistake.message) != std::string::npos);
    CHECK(std::ranges::count(message, '\n') == 0);
  }
}

TEST_CASE("experts need divide the layers that have some, and no others") {
  // The last two blocks have experts, on two data devices each: layers on tensor 8 have one.
  const Overrides experts = {"model.experts=6", "model.experts_per_token=2", "model.dense_layers=4",
                             "parallel.expert=2"};
  const auto with = [&](Overrides more) {
    more.insert(more.begin(), experts.begin(), experts.end());
    return refused(more);
  };
  REQUIRE(with({}) == "");
  const std::string tables =
      R"({"modules": [0, 1], "tensor": 8}, {"modules": [7, 8], "tensor": 8})";
  CHECK(with({layers("[" + tables + "]")}) == "");
  CHECK(with({layers(R"([{"modules": [1, 5], "tensor": 8}])")}) == "");
  const std::string message =
      with({layers("[" + tables + R"(, {"modules": [4, 6], "tensor": 8}])")});
  INFO(message);
  CHECK(message.find("/parallel/layer_layouts/2: experts are divided among the 1 devices of equal "
                     "weights of these layers (data x context), which 2 does not divide") !=
        std::string::npos);
  // Experts of a width of 4, of which eight devices have no part each.
  const std::string narrow = "model.expert_ffn_hidden_size=4";
  CHECK(with({narrow, "parallel.expert=1", layers("[" + tables + "]")}) == "");
  CHECK(with({narrow, "parallel.expert=1",
              layers("[" + tables + R"(, {"modules": [5, 6], "tensor": 8}])")})
            .find("/parallel/layer_layouts/2: tensor 8 x data 1 do not divide these layers: "
                  "expert_ffn_hidden_size 4 cannot be divided among 8") != std::string::npos);
  // Tensor devices that hold the same tokens cannot share experts otherwise; tables need not.
  const Overrides apart = {"parallel.tensor=1", "parallel.data=8", "parallel.expert_tensor=1",
                           "training.global_batch_size=16"};
  Overrides with_tables = apart, with_experts = apart;
  with_tables.push_back(layers("[" + tables + "]"));
  with_experts.push_back(layers(R"([{"modules": [5, 6], "tensor": 8}])"));
  CHECK(with(with_tables) == "");
  CHECK(with(with_experts)
            .find("/parallel/layer_layouts/0: the 8 tensor devices of these layers hold the same "
                  "tokens") != std::string::npos);
}

TEST_CASE("ranks have layouts of their own, or layers") {
  const std::string message = mistakes({R"(parallel={"stage_layouts": [{"tensor": 2}, {"data": 2}],
                    "layer_layouts": [{"modules": [1, 4], "tensor": 8, "data": 1}]})"});
  INFO(message);
  CHECK(message.find("/parallel/layer_layouts: has no place beside \"stage_layouts\"") !=
        std::string::npos);
  CHECK(std::ranges::count(message, '\n') == 0);
}

TEST_CASE("a profile, and devices of several machines, have one layout of all layers") {
  const std::string parallel =
      R"(parallel={"tensor": 1, "data": 4, "layer_layouts": [{"modules": [1, 2], "tensor": 2,
                   "data": 2}]})";
  CHECK(mistakes({parallel, "training.global_batch_size=8", "training.micro_batch_size=1"})
            .find("/parallel/layer_layouts/0: tensor 2 x data 2 do not divide these layers: a "
                  "profile cannot be divided among 2 tensor devices") != std::string::npos);
}

std::string result_of(const Overrides& overrides) {
  nlohmann::ordered_json json =
      result_document(run_scenario(load_questions(document(kBlocks, overrides)).front(), false));
  json.erase("scenario");  // what was written
  json.erase("wall_time_s");
  return json.dump();
}

TEST_CASE("words say which neighbours, or blocks of them, one device stands for") {
  const std::string own = layers(R"([{"modules": [2, 6], "tensor": 8, "data": 1}])");
  ScenarioResult result =
      run_scenario(load_questions(document(kBlocks, {own, "simulate.fold=none"})).front(), false);
  const auto folded = [&](bool tensor, bool data) {
    result.plan.unfolded = {!tensor, false, !data, true};
    return device_words(result);
  };
  CHECK(folded(true, false) == "16 devices of uniform (16 simulated: 1 of 4 tensor)");
  CHECK(folded(false, true) == "16 devices of uniform (16 simulated: 1 of 2 data)");
  result.plan.folded_as = cut_after(result.plan.question.layout.mesh, 2);
  CHECK(folded(true, false) == "16 devices of uniform (16 simulated: 1 of 2 neighbours)");
  CHECK(folded(false, true) ==
        "16 devices of uniform (16 simulated: 1 of 4 blocks of 2 neighbours)");
}

TEST_CASE("what lies across the blocks that are to be folded is named") {
  // Two experts on the pairs of eight devices that tensor devices of 4 are cut by.
  const std::string fold = R"(simulate.fold=["data"])";
  const Overrides experts = {"model.experts=6",
                             "model.experts_per_token=2",
                             "parallel.sequence_parallel=true",
                             R"(parallel.order=["context", "tensor", "data", "pipeline"])",
                             fold,
                             layers(R"([{"modules": [0, 1], "tensor": 8}])")};
  const auto with = [&](Overrides more) {
    more.insert(more.begin(), experts.begin(), experts.end());
    return refused_run(more);
  };
  CHECK(with({"parallel.expert=3", "parallel.expert_tensor=2", "parallel.tensor=4",
              "parallel.data=3", "cluster.devices=24", "training.global_batch_size=24",
              layers(R"([{"modules": [0, 1], "tensor": 12}])"), "model.vocab_size=1536",
              "model.sequence_length=72"})
            .find("layers and experts lie across blocks of 4 tensor devices") != std::string::npos);
  CHECK(with({"parallel.expert=2", "parallel.context=2", "cluster.devices=32"})
            .find("experts and contexts may lie across blocks of 4 tensor devices") !=
        std::string::npos);
}

TEST_CASE("degrees need divide the layers that have them, and no others") {
  // 25 heads of 8 elements, which no two devices share: tables of words can be, and one block.
  const Overrides odd = {"model.hidden_size=200", "model.attention_heads=25", "parallel.tensor=1",
                         "parallel.data=8"};
  const auto with = [&](Overrides more) {
    more.insert(more.begin(), odd.begin(), odd.end());
    return more;
  };
  const std::string tables = layers(R"([{"modules": [0, 1], "tensor": 8, "data": 1},
                                        {"modules": [7, 8], "tensor": 8, "data": 1}])");
  CHECK(refused(with({})) == "");
  CHECK(refused(with({tables})) == "");
  const std::string pattern =
      R"(model.layer_pattern=[{"repeat": 5}, {"attention_heads": 8, "head_size": 25}])";
  CHECK(refused(with({pattern, layers(R"([{"modules": [6, 8], "tensor": 4, "data": 2}])")})) == "");
  CHECK(refused(with({pattern, layers(R"([{"modules": [5, 8], "tensor": 4, "data": 2}])")}))
            .find("attention_heads 25 cannot be divided among 4 tensor devices") !=
        std::string::npos);
  // Heads of the blocks between the tables leave as many bytes on links, divided or not.
  const auto bytes_more = [&](const std::string& heads) {
    const auto bytes = [&](const Overrides& overrides) {
      double all = 0;
      const nlohmann::json result = nlohmann::json::parse(result_of(with(overrides)));
      for (const auto& link : result["links"]) all += link["bytes"].get<double>();
      return all;
    };
    const std::string none = "simulate.fold=none";
    const std::string node =
        R"(cluster={"kind": "machine", "device": "a100-40g", "devices_per_node": 16, "nodes": 1,
                    "port": {"latency": "1 us", "bandwidth": "16 GB/s"}})";
    return bytes({heads, none, node, tables}) - bytes({heads, none, node});
  };
  const double even = bytes_more("model.attention_heads=8");
  CHECK(even != 0);
  CHECK(bytes_more("model.attention_heads=25") == doctest::Approx(even).epsilon(1e-9));
}

TEST_CASE("layers that are given the degrees of the run change nothing") {
  const std::string same = layers(R"([{"modules": [0, 8], "tensor": 4, "data": 2}])");
  CHECK(result_of({same}) == result_of({}));
  const std::string once = layers(R"([{"modules": [2, 6], "tensor": 8, "data": 1}])");
  CHECK(result_of({layers(R"([{"modules": [2, 6], "data": 1}])")}) == result_of({once}));
  CHECK(result_of({layers(R"([{"modules": [2, 6], "tensor": 8}])")}) == result_of({once}));
  CHECK(result_of({once, "parallel.split_brain=1", "parallel.tensor_layout=1d",
                   "parallel.expert_overlap=none", "parallel.spatial=1"}) == result_of({once}));
  CHECK(result_of({once, "parallel.zero_stage=1", "parallel.shard=2"}) ==
        result_of({once, "parallel.zero_stage=1"}));
  const std::string apart = layers(R"([{"modules": [4, 6], "tensor": 8, "data": 1},
                 {"modules": [6, 8], "tensor": 4, "data": 2},
                 {"modules": [2, 4], "tensor": 8, "data": 1}])");
  CHECK(result_of({apart}) == result_of({once}));
  CHECK(result_of({once}) != result_of({}));
}

}  // namespace
}  // namespace interlock::layer_mistakes_test
