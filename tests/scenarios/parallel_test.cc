// "parallel" and "simulate.fold": what each key means, and what is refused in which words.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::parallel_test {
namespace {

/// A transformer with experts on 64 devices, which takes every layout.
const std::string kTransformer = R"({
  "model": {"kind": "transformer", "layers": 4, "hidden_size": 128, "attention_heads": 16,
            "vocab_size": 256, "sequence_length": 64, "experts": 8},
  "cluster": {"machine": "dgx-a100-80g", "nodes": 8},
  "training": {"strategy": "global", "global_batch_size": 64}
})";

Question with(const Overrides& overrides) {
  const std::vector<Question> all = load_questions(document(kTransformer, overrides));
  REQUIRE(all.size() == 1);
  return all.front();
}

std::string refused(const Overrides& overrides) {
  return mistakes_of(document(kTransformer, overrides));
}

TEST_CASE("a file that says nothing of layouts has a pipeline of all devices") {
  const Question scenario = with({"cluster.nodes=1", "model.layers=8"});
  CHECK(scenario.layout.mesh.degrees == Coordinates{1, 1, 1, 8});
  CHECK(scenario.layout.mesh.expert == 1);
  CHECK(scenario.layout.mesh.shard == 1);
  CHECK(scenario.layout.data_parallel.zero_stage == 0);
  CHECK(scenario.layout.data_parallel.overlap_gradients);
  CHECK(!scenario.layout.data_parallel.overlap_weights);
  CHECK(scenario.layout.data_parallel.gradient_bucket() == Bytes(25.0 * 1024 * 1024));
  CHECK(scenario.layout.data_parallel.prefetch == 1);
  CHECK(scenario.layout.sharding.tensor_layout == TensorLayout::OneD);
  CHECK(!scenario.layout.sharding.sequence_parallel);
  CHECK(!scenario.simulation.unfolded);
}

TEST_CASE("every key of a layout arrives where it is used") {
  const Question scenario =
      with({R"(parallel={"tensor": 2, "context": 2, "data": 4, "expert": 4, "zero_stage": 3,
                 "shard": 2, "sequence_parallel": true, "context_layout": "all_to_all",
                 "expert_imbalance": 1.5, "expert_dispatch": "deepep",
                 "overlap_gradients": false, "overlap_weights": true,
                 "bucket": "40 MB", "prefetch": 2,
                 "order": ["data", "tensor", "pipeline", "context"]})"});
  // 64 devices / (2 x 2 x 4) leave a pipeline of four.
  CHECK(scenario.layout.mesh.degrees == Coordinates{2, 2, 4, 4});
  CHECK(scenario.layout.ranks() == 4);
  CHECK(scenario.layout.mesh.order ==
        std::array{Dimension::Data, Dimension::Tensor, Dimension::Pipeline, Dimension::Context});
  CHECK(scenario.layout.mesh.expert == 4);
  CHECK(scenario.layout.mesh.shard == 2);
  CHECK(scenario.layout.sharding.tensor == 2);
  CHECK(scenario.layout.sharding.context == 2);
  CHECK(scenario.layout.sharding.expert == 4);
  CHECK(scenario.layout.sharding.sequence_parallel);
  CHECK(scenario.layout.sharding.context_layout == ContextLayout::AllToAll);
  CHECK(scenario.layout.sharding.expert_imbalance == 1.5);
  CHECK(scenario.layout.sharding.expert_dispatch == ExpertDispatch::DeepEp);
  CHECK(scenario.layout.data_parallel.zero_stage == 3);
  CHECK(!scenario.layout.data_parallel.overlap_gradients);
  CHECK(scenario.layout.data_parallel.overlap_weights);
  CHECK(scenario.layout.data_parallel.bucket == Bytes(40e6));
  CHECK(scenario.layout.data_parallel.prefetch == 2);
}

TEST_CASE("a hybrid of contexts has groups of neighbours that make rings") {
  const auto laid = [&](const std::string& keys) {
    return with({"model.experts=null",
                 "parallel={\"context\": 8, \"pipeline\": 1, \"data\": 8, " + keys + "}"})
        .layout;
  };
  const Layout layout = laid(R"("context_layout": "hybrid", "context_all_to_all": 2)");
  CHECK(layout.sharding.turning_devices() == 2);
  CHECK(layout.sharding.ring_devices() == 4);
  CHECK(group_of(layout.mesh, MeshAxis::ContextColumns, {0, 5, 0, 0}) == std::vector{4, 5});
  CHECK(group_of(layout.mesh, MeshAxis::ContextRows, {0, 5, 0, 0}) == std::vector{1, 3, 5, 7});
}

TEST_CASE("tensor ranks form a line, a square, several squares or a cube") {
  const Overrides dense = {"model.experts=null", "parallel.pipeline=1"};
  const auto laid = [&](int tensor, const std::string& keys) {
    Overrides all = dense;
    all.push_back("parallel={\"data\": " + std::to_string(64 / tensor) +
                  ", \"pipeline\": 1, \"tensor\": " + std::to_string(tensor) + keys + "}");
    return with(all).layout.mesh;
  };
  CHECK(laid(8, "").tensor_depth == 1);
  const Mesh square = laid(4, R"(, "tensor_layout": "2d")");
  CHECK(group_size(square, MeshAxis::TensorRow) == 2);
  CHECK(group_size(square, MeshAxis::TensorColumn) == 2);
  const Mesh squares = laid(8, R"(, "tensor_layout": "2.5d", "tensor_depth": 2)");
  CHECK(group_size(squares, MeshAxis::TensorRow) == 2);
  CHECK(group_size(squares, MeshAxis::TensorDepth) == 2);
  const Mesh cube = laid(8, R"(, "tensor_layout": "3d")");
  CHECK(group_size(cube, MeshAxis::TensorRow) == 2);
  CHECK(group_size(cube, MeshAxis::TensorColumn) == 2);
  CHECK(group_size(cube, MeshAxis::TensorDepth) == 2);
}

TEST_CASE("states are divided among all devices of equal weights unless a shard is smaller") {
  const auto shard = [](const std::string& keys) {
    return with({R"(parallel={"pipeline": 4, "context": 2, "data": 8)" + keys + "}"})
        .layout.mesh.shard;
  };
  CHECK(shard("") == 1);
  CHECK(shard(R"(, "zero_stage": 1)") == 16);
  CHECK(shard(R"(, "zero_stage": 2, "shard": 8)") == 8);
}

TEST_CASE("replicas share the global batch, and results count all of them") {
  const Question scenario =
      loaded({"parallel={\"pipeline\": 1, \"data\": 4}", "training.global_batch_size=32",
              "training.micro_batches=2", "training.schedule=1f1b", "training.steps=1"});
  // 32 samples / 4 replicas / 2 micro-batches
  CHECK(*scenario.training().graph.samples_per_micro_batch == 4);
  CHECK(scenario.training().micro_batches == 2);
  const Metrics metrics = run_scenario(scenario, false).measurement.metrics;
  // 4 modules x 3 ms x 2 micro-batches, nothing to exchange: a profile without parameters
  CHECK(metrics.step_time.value() == doctest::Approx(0.024));
  CHECK(*metrics.samples_per_s == doctest::Approx(32 / 0.024));
}

TEST_CASE("ZeRO goes with every strategy") {
  for (const std::string strategy : {"global", "local", "pairwise", "greedy"}) {
    for (const std::string stage : {"1", "2", "3"}) {
      CAPTURE(strategy);
      CAPTURE(stage);
      const Question scenario =
          with({"training.strategy=" + strategy, "model.experts=null", "training.micro_batches=2",
                R"(parallel={"pipeline": 2, "data": 32, "zero_stage": )" + stage + "}"});
      const Metrics metrics = run_scenario(scenario, false).measurement.metrics;
      CHECK(metrics.devices.size() == 2);  // 1 of 32 replicas
      CHECK(metrics.busy > 0);
      CHECK(metrics.busy <= 1 + 1e-12);
    }
  }
}

TEST_CASE("degrees must multiply to the devices") {
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 4, "tensor": 8})"}) ==
        "set: /parallel: data 4 x context 1 x tensor 8 x pipeline 4 are 128 devices; expected as "
        "many as the cluster's 64, e.g. with data 2");
  CHECK(refused({R"(parallel={"pipeline": 2, "data": 4, "tensor": 4})"}) ==
        "set: /parallel: data 4 x context 1 x tensor 4 x pipeline 2 are 32 devices; expected as "
        "many as the cluster's 64, e.g. with data 8");
  CHECK(refused({R"(parallel={"data": 3, "context": 2})", "training.global_batch_size=63"}) ==
        "set: /parallel: data 3 x context 2 x tensor 1 are 6 devices; expected a divisor of the "
        "cluster's 64");
  CHECK(refused({R"(parallel={"tensor": 0, "data": -1, "context": 1.5, "zero_stage": 4})"}) ==
        "set: /parallel/tensor: expected a whole number from 1 to 1000000, got 0\n"
        "set: /parallel/data: expected a whole number from 1 to 1000000, got -1\n"
        "set: /parallel/context: expected a whole number from 1 to 1000000, got 1.5\n"
        "set: /parallel/zero_stage: expected a whole number from 0 to 3, got 4");
  CHECK(refused({R"(parallel={"tensor": 1000000, "data": 1000000, "context": 1000000})"}) ==
        "set: /parallel: data 1000000 x context 1000000 x tensor 1000000 are 1000000000000000000 "
        "devices; expected at most 1000000");
}

TEST_CASE("replicas must share the global batch equally") {
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 16})", "training.global_batch_size=40"}) ==
        "set: /training/global_batch_size: cannot be divided among 16 replicas (parallel.data); "
        "expected a multiple of 16, got 40");
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 16})", "training.micro_batch_size=3"}) ==
        "set: /training/micro_batch_size: a replica's 4 of the 64 samples are no whole multiple of "
        "it; expected a divisor of 4, got 3");
}

TEST_CASE("experts and shards must divide the devices of equal weights") {
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 8, "context": 2, "expert": 3,
                             "zero_stage": 1, "shard": 5})"}) ==
        "set: /parallel/expert: experts are divided among the 16 devices of equal weights (data x "
        "context); expected a divisor of 16, got 3\n"
        "set: /parallel/shard: states are divided among the 16 devices of equal weights (data x "
        "context); expected a divisor of 16, got 5");
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 16, "shard": 4})"}) ==
        "set: /parallel/shard: nothing is divided without ZeRO; expected \"zero_stage\" of 1 to 3 "
        "beside it");
}

TEST_CASE("experts may lie on tensor devices, too, if those have tokens of their own") {
  const Question scenario =
      with({R"(parallel={"tensor": 4, "data": 4, "expert": 8, "expert_tensor": 1,
                 "sequence_parallel": true})"});
  CHECK(scenario.layout.mesh.expert == 8);
  CHECK(scenario.layout.mesh.expert_tensor == 1);
  CHECK(scenario.layout.sharding.tensor_of_experts() == 1);
  const Question usual = with({R"(parallel={"tensor": 4, "data": 4, "expert": 4,
                                           "expert_tensor": 4})"});
  CHECK(!usual.layout.mesh.expert_tensor);
  const auto said = [](const std::string& keys) {
    return refused({"parallel={\"pipeline\": 4, \"tensor\": 4, \"data\": 4, " + keys + "}"});
  };
  CHECK(said(R"("expert": 8)") ==
        "set: /parallel/expert: experts are divided among the 4 devices of equal weights (data x "
        "context); expected a divisor of 4, or \"expert_tensor\": 1 beside it, got 8");
  CHECK(said(R"("expert": 8, "expert_tensor": 1)") ==
        "set: /parallel/expert_tensor: the 4 tensor devices hold the same tokens, and cannot send "
        "parts of them to other holders of experts; expected \"sequence_parallel\": true beside "
        "it, or 4");
  CHECK(said(R"("expert": 16, "expert_tensor": 2, "sequence_parallel": true)") ==
        "set: /parallel/expert: experts are divided among the 8 devices (data x context x tensor / "
        "expert_tensor) of a pipeline rank; expected a divisor of 8, or \"expert_tensor\": 1 "
        "beside it, got 16");
  CHECK(said(R"("expert_tensor": 3, "sequence_parallel": true)") ==
        "set: /parallel/expert_tensor: each expert is divided among the 16 devices of a pipeline "
        "rank (data x context x tensor); expected a divisor of 16, got 3");
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 16, "expert_tensor": 2,
                              "tensor_layout": "2d"})"})
            .find("expert_tensor goes with the 1D tensor layout") != std::string::npos);
  CHECK(refused({"model.experts=null", R"(parallel={"pipeline": 32, "data": 2,
                                                     "expert_tensor": 2})"})
            .find("a transformer without \"experts\" cannot be divided") != std::string::npos);
}

TEST_CASE("grids of tensor ranks have their shapes") {
  const auto said = [](const std::string& keys) {
    return refused({"model.experts=null", "parallel={\"pipeline\": 1, " + keys + "}"});
  };
  CHECK(said(R"("tensor": 8, "data": 8, "tensor_layout": "2d")") ==
        "set: /parallel: the 2d layout needs a square of tensor ranks; expected e.g. 1, 4, 9 or "
        "16, got tensor 8");
  CHECK(said(R"("tensor": 8, "data": 8, "tensor_layout": "2.5d", "tensor_depth": 3)") ==
        "set: /parallel: the 2.5d layout needs tensor_depth squares of tensor ranks; expected "
        "e.g. tensor = 3 x 1, 4, 9 or 16, got tensor 8");
  CHECK(said(R"("tensor": 4, "data": 16, "tensor_layout": "3d")") ==
        "set: /parallel: the 3d layout needs a cube of tensor ranks; expected e.g. 1, 8, 27 or 64, "
        "got tensor 4");
  CHECK(said(R"("tensor": 4, "data": 16, "tensor_depth": 2)") ==
        "set: /parallel/tensor_depth: only the 2.5d layout has a depth; expected "
        "\"tensor_layout\": \"2.5d\" beside it");
  CHECK(said(R"("tensor": 4, "data": 16, "tensor_layout": "4d")") ==
        "set: /parallel/tensor_layout: unknown name \"4d\"; known: 1d, 2d, 2.5d, 3d");
}

TEST_CASE("what the model cannot divide is said with its numbers") {
  CHECK(refused({R"(parallel={"pipeline": 1, "tensor": 64})"}) ==
        "test.json:2: /model/attention_heads: attention_heads 16 cannot be divided among 64 tensor "
        "devices; expected a multiple of 64, e.g. 64");
  CHECK(mistakes({"parallel.tensor=2", "parallel.pipeline=2"}) ==
        "test.json:2: /model: a profile cannot be divided among 2 tensor devices; expected tensor "
        "1, or a transformer or an MLP");
  // A sequence that is divided among one device is whole; sweeps over "tensor" come past 1.
  CHECK(refused({R"(parallel={"pipeline": 4, "data": 16, "sequence_parallel": true})"}) == "");
}

TEST_CASE("an order names each dimension once") {
  const std::string expected =
      "set: /parallel/order: is no order of dimensions; expected each of tensor, context, data or "
      "pipeline once, the innermost first";
  const auto said = [](const std::string& order) {
    return refused({R"(parallel={"pipeline": 4, "data": 16, "order": )" + order + "}"});
  };
  CHECK(said(R"(["data", "tensor", "context", "pipeline"])") == "");
  CHECK(said(R"(["data", "tensor", "context"])") == expected);
  CHECK(said(R"(["data", "data", "tensor", "context"])") == expected);
  CHECK(said(R"("data")") == expected);
  CHECK(said("3") == expected);
}

TEST_CASE("what is folded can be named") {
  const Overrides mesh = {R"(parallel={"pipeline": 4, "data": 8, "tensor": 2})"};
  const auto fold = [&](const std::string& value) {
    Overrides all = mesh;
    all.push_back("simulate.fold=" + value);
    return all;
  };
  CHECK(!with(fold("auto")).simulation.unfolded);
  CHECK(*with(fold("none")).simulation.unfolded == Unfolded{true, true, true, true});
  CHECK(*with(fold("[]")).simulation.unfolded == Unfolded{true, true, true, true});
  CHECK(*with(fold(R"(["data", "context"])")).simulation.unfolded ==
        Unfolded{true, false, false, true});
  CHECK(refused(fold("all")) ==
        "set: /simulate/fold: unknown name \"all\"; known: auto, none, nearly");
  CHECK(refused(fold("true")) ==
        "set: /simulate/fold: expected \"auto\", \"none\", \"nearly\" or a list such as [\"data\", "
        "\"tensor\"]");
  CHECK(refused(fold(R"(["data", "pipeline"])")) ==
        "set: /simulate/fold/1: unknown name \"pipeline\"; known: tensor, context, data");
}

TEST_CASE("buckets hold something, and modules ahead are a number") {
  CHECK(refused({"parallel={\"pipeline\": 4, \"data\": 16, \"bucket\": \"0 B\"}"}) ==
        "set: /parallel/bucket: a bucket of nothing; expected some bytes, e.g. \"25 MiB\"");
  CHECK(refused({"parallel={\"pipeline\": 4, \"data\": 16, \"bucket\": 25, \"prefetch\": -1, "
                 "\"expert_imbalance\": 0.5}"})
            .find("/parallel/bucket: a plain number has no unit") != std::string::npos);
}

}  // namespace
}  // namespace interlock::parallel_test
