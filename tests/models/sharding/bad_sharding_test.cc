// Models that cannot be divided as asked: one sentence for each reason, with the numbers.
// SPDX-License-Identifier: Apache-2.0
#include "models/build_model.h"
#include "tests/models/built.h"

namespace interlock::bad_sharding_test {
namespace {

const std::string kModel = R"({"kind": "transformer", "layers": 2, "hidden_size": 48,
    "attention_heads": 12, "vocab_size": 96, "sequence_length": 24)";
const std::string kWide = R"({"kind": "transformer", "layers": 2, "hidden_size": 480,
    "attention_heads": 12, "vocab_size": 96, "sequence_length": 24)";
const std::string kMlp =
    R"({"kind": "mlp", "input_size": 8, "hidden_sizes": [16, 12], "classes": 10})";

std::vector<std::string> mistakes(const std::string& text, const Sharding& sharding,
                                  int batch = 1) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  BuildOptions options = {.micro_batch_size = batch};
  options.sharding = sharding;
  CHECK(build_model({&value, "/model"}, options, diagnostics).modules.empty());
  return diagnostics.messages();
}

/// `message` is the only one about `text`.
void check_mistake(const std::string& text, const Sharding& sharding, const std::string& message) {
  CHECK(mistakes(text, sharding) == std::vector<std::string>{message});
}

Sharding grid(TensorLayout layout, int tensor, int depth = 1) {
  return {.tensor = tensor, .tensor_layout = layout, .tensor_depth = depth};
}

TEST_CASE("heads and widths that tensor devices cannot share are reported together") {
  const std::vector<std::string> found = mistakes(kModel + "}", {.tensor = 5});
  REQUIRE(found.size() == 2);
  CHECK(found[0] ==
        "s.json:2: /model/attention_heads: attention_heads 12 cannot be divided among 5 tensor "
        "devices; expected a multiple of 5, e.g. 15");
  CHECK(found[1] ==
        "s.json:1: /model: ffn_hidden_size 192 cannot be divided among 5 tensor devices; expected "
        "a multiple of 5, e.g. 195");
}

TEST_CASE("key heads are divided or copied equally") {
  check_mistake(kModel + R"(, "kv_heads": 3})", {.tensor = 4},
                "s.json:2: /model/kv_heads: kv_heads 3 can be neither divided nor copied equally "
                "among 4 tensor devices; expected a multiple or a divisor of 4");
}

TEST_CASE("a sequence that context and tensor devices cannot share is reported with all numbers") {
  check_mistake(kModel + "}", {.context = 5},
                "s.json:2: /model/sequence_length: sequence_length 24 cannot be divided among 5 "
                "context devices; expected a multiple of 5, e.g. 25");
  check_mistake(kModel + "}", {.tensor = 4, .sequence_parallel = true, .context = 4},
                "s.json:2: /model/sequence_length: sequence_length 24 cannot be divided among 4 "
                "context devices x 4 tensor devices; expected a multiple of 16, e.g. 32");
}

TEST_CASE("an all-to-all of context devices needs heads for all of them") {
  Sharding sharding = {.tensor = 2, .context = 4};
  sharding.context_layout = ContextLayout::AllToAll;
  check_mistake(kModel + "}", sharding,
                "s.json:2: /model/attention_heads: attention_heads 12 cannot be divided among 4 "
                "context devices x 2 tensor devices; expected a multiple of 8, e.g. 16");
  sharding = {.context = 4, .context_layout = ContextLayout::AllToAll};
  check_mistake(kModel + R"(, "kv_heads": 6})", sharding,
                "s.json:2: /model/kv_heads: kv_heads 6 cannot be divided among 4 context devices; "
                "expected a multiple of 4, e.g. 8");
}

TEST_CASE("retention cannot be divided by sequence") {
  check_mistake(kModel + R"(, "attention": "retention"})", {.context = 2},
                "s.json:1: /model: retention, which hands a state along the sequence, cannot be "
                "divided among 2 context devices; expected context 1, or a transformer with "
                "attention");
}

TEST_CASE("experts are divided equally, by the 1D layout, and only if there are any") {
  check_mistake(kModel + "}", {.expert = 2},
                "s.json:1: /model: a transformer without \"experts\" cannot be divided among 2 "
                "expert devices; expected expert 1, or a transformer with \"experts\"");
  const std::string model = kModel + R"(, "experts": 6})";
  check_mistake(model, {.expert = 4},
                "s.json:2: /model/experts: experts 6 cannot be divided among 4 expert devices; "
                "expected a multiple of 4, e.g. 8");
  const std::vector<std::string> found = mistakes(model, grid(TensorLayout::TwoD, 4), 2);
  REQUIRE(found.size() == 1);
  CHECK(found[0] ==
        "s.json:2: /model/experts: experts are divided by the 1D tensor layout only; expected "
        "that layout or no \"experts\"");
  check_mistake(kModel + R"(, "experts": 4, "expert_ffn_hidden_size": 10})", {.tensor = 4},
                "s.json:2: /model/expert_ffn_hidden_size: expert_ffn_hidden_size 10 cannot be "
                "divided among 4 tensor devices; expected a multiple of 4, e.g. 12");
}

TEST_CASE("keys of experts need experts, and fit them") {
  check_mistake(kModel + R"(, "shared_experts": 1})", {},
                "s.json:2: /model/shared_experts: no experts; expected it with \"experts\"");
  check_mistake(kModel + R"(, "experts": 4, "experts_per_token": 5})", {},
                "s.json:2: /model/experts_per_token: 5 experts for a token, of 4; expected at most "
                "all of them");
  check_mistake(kModel + R"(, "experts": 4, "dense_layers": 2})", {},
                "s.json:2: /model/dense_layers: 2 layers without experts, of 2; expected fewer, or "
                "no \"experts\"");
}

TEST_CASE("more experts than any machine could hold are reported with their weights") {
  const std::vector<std::string> found =
      mistakes(kWide + R"(, "experts": 100000, "expert_ffn_hidden_size": 10000000,
                           "shared_experts": 1000})",
               {});
  REQUIRE(found.size() == 1);
  INFO(found[0]);  // 3 x 2 layers x 480 x 10^7 x 101000
  CHECK(found[0].find("/model/experts: experts of 2909 T weights in all; expected at most ") !=
        std::string::npos);
}

TEST_CASE("devices that make no square or cube are reported") {
  check_mistake(kModel + "}", grid(TensorLayout::TwoD, 6),
                "s.json:1: /model: a 2D tensor layout is a square; expected 1, 4, 9, 16, ... "
                "devices, got 6");
  check_mistake(kModel + "}", grid(TensorLayout::ThreeD, 9),
                "s.json:1: /model: a 3D tensor layout is a cube; expected 1, 8, 27, 64, ... "
                "devices, got 9");
  check_mistake(kModel + "}", grid(TensorLayout::TwoAndAHalfD, 8, 4),
                "s.json:1: /model: a 2.5D tensor layout is 4 squares; expected that many times 1, "
                "4, 9, 16, ... devices, got 8");
}

TEST_CASE("sequence parallelism belongs to the 1D layout") {
  Sharding sharding = grid(TensorLayout::TwoD, 4);
  sharding.sequence_parallel = true;
  check_mistake(kModel + "}", sharding,
                "s.json:1: /model: sequence parallelism goes with the 1D tensor layout, the others "
                "divide everything already; expected one of the two");
}

TEST_CASE("rows of a grid divide the samples of a micro-batch") {
  const std::vector<std::string> found =
      mistakes(kModel + "}", grid(TensorLayout::TwoAndAHalfD, 8, 2), 6);
  REQUIRE(found.size() == 1);
  CHECK(found[0] ==
        "s.json:1: /model: micro-batches of 6 cannot be divided among 4 rows of 8 tensor devices; "
        "expected a multiple of 4");
}

TEST_CASE("widths of an MLP are divided where its layout divides them") {
  check_mistake(R"({"kind": "mlp", "input_size": 8, "hidden_sizes": [16], "classes": 10})",
                {.tensor = 3},
                "s.json:1: /model/hidden_sizes: hidden_sizes 16 cannot be divided among 3 tensor "
                "devices; expected a multiple of 3, e.g. 18");
  check_mistake(R"({"kind": "mlp", "input_size": 8, "hidden_sizes": [16], "classes": 10,
                    "head": {"kind": "mlp", "hidden_size": 6}})",
                {.tensor = 4},
                "s.json:1: /model: heads of hidden_size 6 cannot be divided among 4 tensor "
                "devices; expected a multiple of 4");
  check_mistake(kMlp, {.tensor = 2, .sequence_parallel = true},
                "s.json:1: /model: an MLP has no sequences; expected no sequence parallelism, or a "
                "transformer");
  CHECK(mistakes(kMlp, grid(TensorLayout::TwoD, 9), 2).size() == 4);
}

TEST_CASE("what a kind of model cannot have is one sentence each") {
  const Sharding all = {.tensor = 2, .context = 4, .expert = 8};
  for (const auto& [text, model] :
       {std::pair{std::string(R"("resnet-50")"), "a ResNet"},
        std::pair{std::string(R"({"kind": "profile", "modules": [{"forward": "1 ms"}]})"),
                  "a profile"}}) {
    const std::vector<std::string> found = mistakes(text, all);
    REQUIRE(found.size() == 3);
    const std::string start = std::string(model) + " cannot be divided among ";
    CHECK(found[0].find(start + "2 tensor devices; expected tensor 1, or a transformer or an "
                                "MLP") != std::string::npos);
    CHECK(found[1].find(start + "4 context devices; expected context 1, or ") != std::string::npos);
    CHECK(found[2].find(start + "8 expert devices; expected expert 1, or ") != std::string::npos);
  }
  CHECK(mistakes(kMlp, {.context = 2, .expert = 2}).size() == 2);
}

TEST_CASE("images are cut into bands of a row at least, whose halos the next band has") {
  const std::string net =
      R"({"kind": "resnet", "block": "basic", "blocks": [1, 1], "image_size": )";
  check_mistake(net + "32}", {.image_rows = 17},
                "s.json:1: /model: images of 16 rows, which the deepest layers make, cannot be cut "
                "into 17 bands; expected at most 16 (parallel.spatial), or larger images");
  check_mistake("{\"kind\": \"vgg\", \"layers\": 11}", {.image_columns = 8},
                "s.json:1: /model: images of 7 columns, which the deepest layers make, cannot be "
                "cut into 8 bands; expected at most 7 (parallel.spatial), or larger images");
  // Bands of 3 or 2 rows become bands of 2 or 1: the fourth makes rows 6 and 7 of rows 11 to 15.
  // It has 9 to 11, the next 12 to 14.
  check_mistake(net + "40}", {.image_rows = 16},
                "s.json:1: /model: where images have 40 rows, windows of 3 read further than the "
                "next of 16 bands; expected fewer bands (parallel.spatial), or as many as divide "
                "image_size and its halves");
}

TEST_CASE("what is no image is not cut") {
  const std::string devices =
      " has no images that 4 devices could divide; expected spatial 1, or a "
      "ResNet or a VGG";
  const Sharding cut = {.image_rows = 2, .image_columns = 2};
  check_mistake(kModel + "}", cut, "s.json:1: /model: a transformer" + devices);
  check_mistake(kMlp, cut, "s.json:1: /model: an MLP" + devices);
  check_mistake(R"({"kind": "profile", "modules": [{"forward": "1 ms"}]})", cut,
                "s.json:1: /model: a profile" + devices);
}

}  // namespace
}  // namespace interlock::bad_sharding_test
