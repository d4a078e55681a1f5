// Auxiliary heads: every form, whose weights they use, and what the strategy overrides.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/models/built.h"

namespace interlock::head_test {
namespace {

const std::string kTransformer = R"({"kind": "transformer", "layers": 3, "hidden_size": 8,
    "attention_heads": 4, "vocab_size": 10, "sequence_length": 6)";
const std::string kMlp = R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7, 7], "classes": 3)";

TEST_CASE("a transformer's own head is norm, vocabulary projection and loss") {
  const ModelGraph graph = built(kTransformer + "}");
  for (std::size_t i = 0; i + 1 < graph.modules.size(); ++i) {
    CHECK(graph.modules[i].head.parameters == 2 * 8 + 8 * 10);
    CHECK(flops_of(graph.modules[i].head.work).value() == 3 * 2.0 * 6 * 8 * 10);
  }
  CHECK(graph.modules.back().head.work.empty());
  CHECK(graph.modules.back().head.parameters == 0);
}

TEST_CASE("an lm head keeps what the readout keeps") {
  const ModelGraph graph = built(kTransformer + "}");
  const Module& readout = graph.modules.back();
  CHECK(graph.modules[1].head.memory == readout.stash + readout.workspace);
}

TEST_CASE("the model's head replaces the default, the strategy's replaces both") {
  const std::string model = kMlp + R"(, "head": {"kind": "mlp", "hidden_size": 4}})";
  CHECK(built(model).modules[0].head.parameters == 7 * 4 + 4 + 4 * 3 + 3);
  CHECK(built_with_head(model, R"("linear")").modules[0].head.parameters == 7 * 3 + 3);
  CHECK(built_with_head(model, R"({"kind": "mlp"})").modules[0].head.parameters ==
        7 * 7 + 7 + 7 * 3 + 3);
}

TEST_CASE("linear and mlp heads average an image first") {
  const std::string model = R"({"kind": "resnet", "block": "basic", "blocks": [1]})";
  CHECK(built_with_head(model, R"("linear")").modules[0].head.parameters == 64 * 10 + 10);
  const Head mlp = built_with_head(model, R"({"kind": "mlp", "hidden_size": 4})").modules[0].head;
  CHECK(mlp.parameters == 64 * 4 + 4 + 4 * 10 + 10);
  CHECK(flops_of(mlp.work).value() == 3 * 2.0 * (64 * 4 + 4 * 10));
}

TEST_CASE("a linear head on a transformer projects every token") {
  const Head head = built_with_head(kTransformer + "}", R"("linear")").modules[1].head;
  CHECK(head.parameters == 8 * 10 + 10);
  CHECK(flops_of(head.work).value() == 3 * 2.0 * 6 * 8 * 10);
}

TEST_CASE("frozen heads make no weight gradients and are never updated") {
  const Head own = built(kTransformer + "}").modules[1].head;
  for (const char* weights : {R"("shared-frozen")", R"({"stale_every": 10})"}) {
    const std::string spec = std::string(R"({"weights": )") + weights + "}";
    const Head frozen = built_with_head(kTransformer + "}", spec).modules[1].head;
    CHECK_FALSE(frozen.trainable);
    CHECK(frozen.parameters == own.parameters);
    CHECK(frozen.update.empty());
    CHECK(3 * flops_of(frozen.work) == 2 * flops_of(own.work));
  }
  CHECK(own.trainable);
  CHECK(own.update.size() == 1);
  const Head spelled =
      built_with_head(kTransformer + "}", R"({"weights": "private"})").modules[1].head;
  CHECK(spelled.trainable);
}

TEST_CASE("copies of later layers are the next modules and the readout") {
  const ModelGraph graph =
      built_with_head(kTransformer + "}", R"({"kind": "later-layers", "layers": 2})");
  const Module& block = graph.modules[1];
  const Module& readout = graph.modules.back();
  const auto work_of = [](const Module& module) {
    return flops_of(module.forward) + flops_of(module.backward_input) +
           flops_of(module.backward_weight);
  };
  const std::int64_t last = readout.parameters + readout.tied_parameters;
  const std::int64_t copies[] = {2, 2, 1, 0};  // blocks copied by the heads of modules 0 to 3
  for (std::size_t i = 0; i < 4; ++i) {
    const Head& head = graph.modules[i].head;
    CHECK(head.parameters == copies[i] * block.parameters + last);
    CHECK(flops_of(head.work) ==
          static_cast<double>(copies[i]) * work_of(block) + work_of(readout));
    CHECK(head.update.at(0).bytes > Bytes(0));
  }
  CHECK(graph.modules[0].head.memory ==
        2 * block.stash + readout.stash + std::max(block.workspace, readout.workspace));
  CHECK(graph.modules[4].head.work.empty());
}

TEST_CASE("copies of equal layers are merged into kernels of more launches") {
  for (const std::string more : {"}", R"(, "experts": 4, "experts_per_token": 2})"}) {
    const auto head_of = [&](const std::string& layers) {
      return built_with_head(kTransformer + more,
                             R"({"kind": "later-layers", "layers": )" + layers + "}");
    };
    const ModelGraph two = head_of("2"), one = head_of("1");
    CHECK(two.modules[0].head.work.size() == one.modules[0].head.work.size());
    for (int Work::*const count : {&Work::launches, &Work::more_issues}) {
      const auto sum = [&](const std::vector<Work>& works) {
        int all = 0;
        for (const Work& work : works) all += work.*count;
        return all;
      };
      const Module& copied = two.modules[2];
      CHECK(sum(two.modules[0].head.work) - sum(one.modules[0].head.work) ==
            sum(copied.forward) + sum(copied.backward_input) + sum(copied.backward_weight));
    }
    const auto counted = [](const std::vector<Work>& works) {
      double all = 0;
      for (const Work& work : works) all += counted_flops(work).value();
      return all;
    };
    const Module& copied = two.modules[2];
    CHECK(counted(two.modules[0].head.work) - counted(one.modules[0].head.work) ==
          counted(copied.forward) + counted(copied.backward_input) +
              counted(copied.backward_weight));
  }
}

TEST_CASE("copies of later layers work for every kind of model") {
  const std::string spec = R"({"kind": "later-layers"})";
  const ModelGraph mlp = built_with_head(kMlp + "}", spec);
  CHECK(mlp.modules[0].head.parameters == 7 * 7 + 7 + 7 * 3 + 3);
  const ModelGraph resnet =
      built_with_head(R"({"kind": "resnet", "block": "basic", "blocks": [2]})", spec);
  CHECK(resnet.modules[0].head.parameters ==
        resnet.modules[1].parameters + resnet.modules[3].parameters);
}

TEST_CASE("frozen copies of later layers make no weight gradients") {
  const std::string spec = R"({"kind": "later-layers", "weights": "shared-frozen"})";
  const ModelGraph graph = built_with_head(kMlp + "}", spec);
  CHECK_FALSE(graph.modules[0].head.trainable);
  CHECK(graph.modules[0].head.update.empty());
  CHECK(flops_of(graph.modules[0].head.work).value() == 2 * 2.0 * (7 * 7 + 7 * 3));
}

}  // namespace
}  // namespace interlock::head_test
