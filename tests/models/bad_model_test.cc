// Mistakes in a model: each is reported where it is, in words that say what to do.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "models/build_model.h"
#include "tests/models/built.h"

namespace interlock::bad_model_test {
namespace {

/// The messages about `text`; the graph must then be empty.
std::vector<std::string> mistakes(const std::string& text, const BuildOptions& options = {}) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  CHECK(build_model({&value, "/model"}, options, diagnostics).modules.empty());
  return diagnostics.messages();
}

void check_mistake(const std::string& text, const std::string& message) {
  CHECK(mistakes(text) == std::vector<std::string>{message});
}

void check_mistake_in_head(const std::string& model, const std::string& head,
                           const std::string& message) {
  const JsonValue value = parse_json(head, "s.json");
  BuildOptions options;
  options.head = JsonNode{&value, "/head"};
  CHECK(mistakes(model, options) == std::vector<std::string>{message});
}

std::string transformer(const std::string& more) {
  return R"({"kind": "transformer", "layers": 2, "vocab_size": 10, "sequence_length": 6, )" + more +
         "}";
}

const std::string kResNet = R"({"kind": "resnet", "block": "basic", "blocks": [1]})";
const std::string kMlp = R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7], "classes": 3})";
const std::string kProfile = R"({"kind": "profile", "modules": [{"forward": "1 ms"}]})";

TEST_CASE("a name that the zoo does not know is reported with the nearest one") {
  check_mistake(R"("resnet-51")",
                "s.json:1: /model: unknown model \"resnet-51\"; did you mean \"resnet-50\"?");
}

TEST_CASE("a name that begins several of the zoo's is reported with these") {
  check_mistake(R"("llama")",
                "s.json:1: /model: unknown model \"llama\"; expected llama-2-7b, llama-3-70b, "
                "llama-3-8b, llama-3.1-405b, llama-3.3-70b, llama-4-maverick or llama-4-scout, or "
                "the path of a .json file");
}

TEST_CASE("reversible blocks of an odd width are reported where the width is") {
  check_mistake(R"({"kind": "residual-mlp", "input_size": 5, "layers": 1, "hidden_size": 7,
                    "classes": 3, "reversible": true})",
                "s.json:1: /model/hidden_size: 7 has no two halves for the streams of reversible "
                "blocks; expected an even \"hidden_size\"");
}

TEST_CASE("a name like no other is reported with the whole zoo") {
  const std::vector<std::string> found = mistakes(R"("perceptron")");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("unknown model \"perceptron\"; expected bert-base, ") != std::string::npos);
  CHECK(found[0].find("or the path of a .json file") != std::string::npos);
}

TEST_CASE("a model that is neither text nor object is reported") {
  check_mistake("7",
                "s.json:1: /model: wrong kind of value for a model; expected the name of a model "
                "in the zoo, the path of a model file, or an object");
}

TEST_CASE("a model file that is not there is reported where it is named") {
  const std::vector<std::string> found = mistakes(R"("no/such.json")");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("s.json:1: /model: cannot use this model file: ") == 0);
  CHECK(found[0].find("no/such.json") != std::string::npos);
}

TEST_CASE("mistakes in a model file carry its own lines, malformed text included") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "interlock-bad-model-test.json").string();
  write_file(path, "[]");
  CHECK(mistakes('"' + path + '"').at(0) ==
        path + ":1: no model; expected an object with a \"kind\"");
  write_file(path,
             "{\n\"kind\": \"mlp\",\n\"input_size\": 0, \"hidden_sizes\": [1], \"classes\": 1}");
  CHECK(mistakes('"' + path + '"').at(0).find(path + ":3: /input_size: ") == 0);
  write_file(path, "{\n\"kind\" \"mlp\"}");
  CHECK(mistakes('"' + path + '"').at(0).find(path + ":2: ") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("a model without a kind, or of an unknown one, is reported alone") {
  check_mistake(R"({"layers": 3})",
                "s.json:1: /model: missing key \"kind\"; expected transformer, resnet, vgg, mlp, "
                "residual-mlp, sparse-mlp or profile; or, in a config.json of Hugging Face, "
                "\"model_type\": \"llama\" or another that docs/models.md lists");
  const std::vector<std::string> found = mistakes(R"({"kind": "transfomer", "layers": 3})");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("did you mean \"transformer\"?") != std::string::npos);
}

TEST_CASE("missing sizes of a transformer are reported, all together") {
  const std::vector<std::string> found = mistakes(R"({"kind": "transformer"})");
  REQUIRE(found.size() == 5);
  for (const char* key :
       {"layers", "hidden_size", "vocab_size", "sequence_length", "attention_heads"}) {
    const std::string start = std::string("s.json:1: /model: missing key \"") + key + "\"";
    CHECK(std::count_if(found.begin(), found.end(), [&](const std::string& message) {
            return message.starts_with(start);
          }) == 1);
  }
}

TEST_CASE("an unknown key of a model is reported with the nearest known one") {
  check_mistake(transformer(R"("hidden_size": 8, "attention_heads": 4, "kv_head": 4)"),
                "s.json:1: /model/kv_head: unknown key; did you mean \"kv_heads\"?");
}

TEST_CASE("attention heads that do not divide the width are reported with both numbers") {
  check_mistake(transformer(R"("hidden_size": 10, "attention_heads": 4)"),
                "s.json:1: /model/attention_heads: attention_heads 4 does not divide hidden_size "
                "10; expected a divisor of it");
}

TEST_CASE("key heads that do not divide the query heads are reported with both numbers") {
  check_mistake(transformer(R"("hidden_size": 8, "attention_heads": 4, "kv_heads": 3)"),
                "s.json:1: /model/kv_heads: kv_heads 3 does not divide attention_heads 4; expected "
                "a divisor of it");
}

TEST_CASE("a position table shorter than a sequence is reported with both numbers") {
  check_mistake(transformer(R"("hidden_size": 8, "attention_heads": 4, "max_positions": 5)"),
                "s.json:1: /model/max_positions: 5 positions for a sequence_length of 6; expected "
                "at least as many, or --sequence-length 5");
}

TEST_CASE("rotary positions in heads of odd size are reported with the numbers") {
  check_mistake(transformer(R"("hidden_size": 12, "attention_heads": 4, "positions": "rotary")"),
                "s.json:1: /model/positions: rotary positions turn pairs, and hidden_size 12 / "
                "attention_heads 4 is 3; expected an even head size");
}

TEST_CASE("absurd sizes are out of range") {
  const std::string text = R"({"kind": "transformer", "layers": 1000000, "hidden_size": 1e9,
      "attention_heads": 0, "vocab_size": -1, "sequence_length": 1e300, "dropout": 2,
      "ffn_hidden_size": 0.5})";
  CHECK(mistakes(text).size() == 7);
}

TEST_CASE("groups of a ResNet are a list of 1 to 8 counts") {
  for (const char* blocks : {"3", "[]", "[1, 1, 1, 1, 1, 1, 1, 1, 1]"}) {
    check_mistake(std::string(R"({"kind": "resnet", "block": "basic", "blocks": )") + blocks + "}",
                  "s.json:1: /model/blocks: wrong list of groups; expected 1 to 8 numbers of "
                  "blocks, e.g. [3, 4, 6, 3]");
  }
  const std::vector<std::string> found =
      mistakes(R"({"kind": "resnet", "block": "basic", "blocks": [1, 0]})");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("/model/blocks/1: ") != std::string::npos);
}

TEST_CASE("what a ResNet cannot do without is asked for") {
  const std::vector<std::string> found = mistakes(R"({"kind": "resnet"})");
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("missing key \"block\"; expected \"basic\" or \"bottleneck\"") !=
        std::string::npos);
  CHECK(found[1].find("missing key \"blocks\"; expected a list of blocks in each group") !=
        std::string::npos);
}

TEST_CASE("an MLP's hidden layers are given once and listed in full") {
  check_mistake(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7], "layers": 2,
                    "classes": 3})",
                "s.json:1: /model/hidden_sizes: hidden layers are given twice; expected "
                "\"hidden_sizes\", or \"layers\" with \"hidden_size\"");
  check_mistake(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [], "classes": 3})",
                "s.json:1: /model/hidden_sizes: wrong list of hidden layers; expected 1 to 99999 "
                "widths, e.g. [4096, 4096]");
  const std::vector<std::string> found = mistakes(R"({"kind": "mlp"})");
  CHECK(found.size() == 4);
}

TEST_CASE("a profile without modules is reported") {
  check_mistake(R"({"kind": "profile", "modules": []})",
                "s.json:1: /model/modules: wrong list of modules; expected 1 to 100000 objects");
  check_mistake(R"({"kind": "profile"})",
                "s.json:1: /model: missing key \"modules\"; expected a list of measured modules");
}

TEST_CASE("a profile of too many modules is reported with their number") {
  check_mistake(R"({"kind": "profile", "modules": [{"repeat": 100000}, {}]})",
                "s.json:1: /model/modules: 100001 modules; expected at most 100000");
}

TEST_CASE("times and sizes beyond reason are reported") {
  check_mistake(R"({"kind": "profile", "modules": [{"forward": "1000 d"}]})",
                "s.json:1: /model/modules/0/forward: too large; expected at most 11.6 d");
  check_mistake(R"({"kind": "profile", "modules": [{"stash": "1 PB"}]})",
                "s.json:1: /model/modules/0/stash: too large; expected at most 9.09 TiB");
}

TEST_CASE("a profile's quantities need units and a sign that makes sense") {
  CHECK(mistakes(R"({"kind": "profile", "modules": [{"forward": 1, "stash": "-1 B",
                     "head": "1 GB"}]})")
            .size() == 3);
}

TEST_CASE("an unknown head is reported") {
  const std::vector<std::string> found =
      mistakes(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7], "classes": 3,
                   "head": "linaer"})");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("/model/head: ") != std::string::npos);
  CHECK(found[0].find("did you mean \"linear\"?") != std::string::npos);
}

TEST_CASE("a head that cannot read the model's tensors is reported") {
  check_mistake_in_head(kMlp, R"("convolution")",
                        "s.json:1: /head: a convolution head reads images; expected \"linear\", "
                        "\"mlp\" or \"later-layers\" for this model");
  check_mistake_in_head(kResNet, R"({"kind": "lm"})",
                        "s.json:1: /head/kind: an lm head reads sequences; expected "
                        "\"convolution\", \"linear\", \"mlp\" or \"later-layers\" for this model");
  check_mistake_in_head(R"("gpt2")", R"("convolution")",
                        "s.json:1: /head: a convolution head reads images; expected \"linear\", "
                        "\"mlp\", \"lm\" or \"later-layers\" for this model");
}

TEST_CASE("a key of another head's kind means nothing") {
  check_mistake_in_head(kMlp, R"({"kind": "linear", "hidden_size": 8})",
                        "s.json:1: /head/hidden_size: means nothing for a linear head; expected "
                        "only with mlp");
  check_mistake_in_head(kMlp, R"({"layers": 2})",
                        "s.json:1: /head/layers: means nothing without a \"kind\"; expected only "
                        "with later-layers");
}

TEST_CASE("weights of a head are private, shared or stale copies") {
  check_mistake_in_head(kMlp, R"({"weights": {}})",
                        "s.json:1: /head/weights: missing key \"stale_every\"; expected steps "
                        "between two broadcasts");
  const std::string head = R"({"weights": "public"})";
  const JsonValue value = parse_json(head, "s.json");
  BuildOptions options;
  options.head = JsonNode{&value, "/head"};
  CHECK(mistakes(kMlp, options).at(0).find("s.json:1: /head/weights: ") == 0);
}

TEST_CASE("a head of another form is refused for a profile") {
  for (const char* head : {R"("linear")", R"({"kind": "linear"})"}) {
    check_mistake_in_head(kProfile, head,
                          "s.json:1: /head: a profile's heads are measured; expected \"weights\" "
                          "at most, and \"head\" times in the profile's modules");
  }
}

TEST_CASE("mistakes of the model and of the strategy's head come together") {
  const JsonValue value = parse_json(R"("nothing")", "s.json");
  BuildOptions options;
  options.head = JsonNode{&value, "/head"};
  CHECK(mistakes(R"({"kind": "mlp", "input_size": 0, "hidden_sizes": [7], "classes": 3})", options)
            .size() == 2);
}

TEST_CASE("biases of a norm that has none are refused") {
  check_mistake(R"({"kind": "transformer", "layers": 1, "hidden_size": 64, "attention_heads": 1,
      "sequence_length": 8, "vocab_size": 16, "norm": "rmsnorm", "norm_bias": true})",
                "s.json:2: /model/norm_bias: an RMS norm has no biases; expected \"norm\": "
                "\"layernorm\"");
}

}  // namespace
}  // namespace interlock::bad_model_test
