// Mistakes in a config.json of Hugging Face, and what is assumed of what it does not say.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "models/build_model.h"
#include "tests/models/built.h"

namespace interlock::config_mistakes_test {
namespace {

/// Returns the message of the only mistake in a model.
std::string mistake(const std::string& text) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  CHECK(build_model({&value, "/model"}, {}, diagnostics).modules.empty());
  const std::vector<std::string>& all = diagnostics.messages();
  return all.size() == 1 ? all[0] : std::to_string(all.size()) + " mistakes";
}

TEST_CASE("what cannot be built is refused in words, where it is written") {
  CHECK(mistake(R"({"model_type": "mistral"})") ==
        "s.json:1: /model: a config.json has no length of samples: max_position_embeddings is what "
        "the model may be asked for; expected it said: --sequence-length 4096, or {\"base\": ..., "
        "\"sequence_length\": 4096}");
  CHECK(mistake("{\n\"model_type\": \"llama\",\n\"num_key_value_heads\": 3}") ==
        "s.json:3: /model/num_key_value_heads: kv_heads 3 does not divide attention_heads 32; "
        "expected a divisor of it");
  INFO("under the name that the file has for it");
  const std::string groups = R"({"base": {"model_type": "deepseek_v3", "num_local_experts": 256,
      "n_group": 7}, "sequence_length": 64})";
  CHECK(mistake(groups) ==
        "s.json:2: /model/base/n_group: groups are equal; expected a divisor of the 256 experts, "
        "got 7");
  CHECK(mistake(R"({"base": {"model_type": "deepseek_v3", "num_local_experts": 4.5},
      "sequence_length": 64})")
            .starts_with("s.json:1: /model/base/num_local_experts: expected a whole number"));
  CHECK(mistake(R"({"base": "gpt2", "layer": 3})") ==
        "s.json:1: /model/layer: unknown key; did you mean \"layers\"?");
}

TEST_CASE("a field that shapes a model is refused where its class does not know it") {
  CHECK(mistake("{\"model_type\": \"llama\",\n\"num_local_experts\": 8}") ==
        "s.json:2: /model/num_local_experts: 8 shapes a model, but those of model_type \"llama\" "
        "have no such field; expected it taken out, or a model_type that has it, e.g. "
        "bailing_moe, bailing_moe_v2 or dbrx");
  CHECK(mistake(R"({"model_type": "mistral", "attention_bias": true, "sequence_length": 1})")
            .find("/model/attention_bias: true shapes a model") != std::string::npos);
  CHECK(mistake(R"({"model_type": "bert", "add_cross_attention": true})") ==
        "s.json:1: /model/add_cross_attention: true shapes a model in a way that is not known "
        "here; expected it taken out, if a model without it will do");
  INFO("what says that there is nothing is no mistake");
  const ModelGraph plain = built(R"({"model_type": "llama"})");
  const ModelGraph more = built(R"({"model_type": "llama", "num_local_experts": 0,
      "sliding_window": null, "mlp_only_layers": [], "qkv_bias": false})");
  CHECK(parameters_of(plain) == parameters_of(more));
  CHECK(more.notes == plain.notes);
}

TEST_CASE("a size that is no whole number above 0 is told once, with the range of its key") {
  const std::string range = "expected a whole number from 1 to 99998, got ";
  for (const std::string value : {"-1", "0", "\"32\"", "32.5", "1000000000"}) {
    CHECK(mistake(R"({"model_type": "llama", "num_hidden_layers": )" + value + "}") ==
          "s.json:1: /model/num_hidden_layers: " + range + value);
  }
  for (const std::string field :
       {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
        "intermediate_size", "max_position_embeddings"}) {
    const auto range_of = [&](const char* value) {
      const std::string text =
          mistake(R"({"model_type": "llama", ")" + field + "\": " + value + "}");
      CHECK(text.ends_with(value));
      return text.substr(0, text.rfind(','));
    };
    CHECK(range_of("-1") == range_of("\"32\""));
    CHECK(range_of("-1") == range_of("32.5"));
    CHECK(range_of("-1").find("/model/" + field + ": expected a whole number from 1 to ") !=
          std::string::npos);
  }
}

const std::string kSizes = R"("vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "intermediate_size": 14336, "max_position_embeddings": 4096)";

TEST_CASE("an unknown model_type is told with the nearest one, and with what it takes to read it") {
  const std::string at = "s.json:1: /model/model_type: the model_type ";
  const std::string list = "; docs/models.md lists each model_type that is known";
  CHECK(mistake(R"({"model_type": "new", "hidden_act": "silu", )" + kSizes + "}") ==
        at +
            "\"new\" is unknown; expected \"rms_norm_eps\" or \"layer_norm_eps\", by which the "
            "kind of norm is known" +
            list);
  CHECK(mistake(R"({"model_type": "llamma", )" + kSizes + "}") ==
        at + "\"llamma\" is unknown (did you mean \"llama\"?); expected \"rms_norm_eps\" or "
             "\"layer_norm_eps\", by which the kind of norm is known, and \"hidden_act\", by which "
             "the kind of MLP is known");
  CHECK(mistake(R"({"model_type": "new", "hidden_act": "silu", "rms_norm_eps": 1, "sparkle": 3, )" +
                kSizes + "}") ==
        at +
            "\"new\" is unknown, and nothing is known here of \"sparkle\"; expected it taken out "
            "if neither time nor memory follow from it, or the model in keys of \"kind\": "
            "\"transformer\"" +
            list);
  const ModelGraph read = built(R"({"model_type": "llamma", "hidden_act": "silu",
      "rms_norm_eps": 1, )" + kSizes +
                                "}");
  REQUIRE(read.notes.size() == 1);
  CHECK(read.notes[0].starts_with(
      "model_type \"llamma\" is unknown (did you mean \"llama\"?) and was read by its fields: "));
  CHECK(mistake("{" + kSizes + "}") ==
        "s.json:1: /model: missing key \"kind\"; expected transformer, resnet, vgg, mlp, "
        "residual-mlp, sparse-mlp or profile; or, in a config.json of Hugging Face, "
        "\"model_type\": \"llama\" or another that docs/models.md lists");
}

TEST_CASE("a length of samples that no file says is told, until it is said") {
  const auto told = [](const std::string& text) {
    const std::vector<std::string> notes = built(text).notes;
    const auto note = std::ranges::find_if(notes, [](const std::string& one) {
      return one.starts_with("no max_position_embeddings");
    });
    return note == notes.end() ? "" : *note;
  };
  CHECK(told(R"({"model_type": "llama"})") ==
        "no max_position_embeddings in the configuration: samples of 2048 tokens are assumed, the "
        "default of model_type \"llama\"; for others --sequence-length N or --set "
        "model.sequence_length=N");
  CHECK(told(R"({"model_type": "gpt2"})").find("samples of 1024 tokens") != std::string::npos);
  CHECK(told(R"({"model_type": "gpt2", "n_positions": 1024})").empty());
  CHECK(told(R"({"base": {"model_type": "llama"}, "layers": 3})") != "");
  CHECK(told(R"({"base": {"model_type": "llama"}, "sequence_length": 4096})").empty());
  CHECK(told(R"({"model_type": "llama", "sequence_length": 4096})").empty());
}

TEST_CASE("a path without a file is told with the model of the zoo that is nearest") {
  const auto told = [](const std::string& path) {
    const std::string text = mistake('"' + path + '"');
    const std::string start = "s.json:1: /model: cannot use this model file: " + path +
                              ": cannot be read: no such file or directory; expected the path of a "
                              "model file or of a downloaded config.json, or a name of "
                              "\"interlock list models\"";
    CHECK(text.starts_with(start));
    return text.substr(std::min(start.size(), text.size()));
  };
  CHECK(told("meta-llama/Meta-Llama-3-8B") == ", of which \"llama-3-8b\" is nearest");
  CHECK(told("mistralai/Mistral-7B-v0.1") == ", of which \"mistral-7b\" is nearest");
  CHECK(told("openai-community/gpt2-xl") == ", of which \"gpt2-xl\" is nearest");
  CHECK(told("somewhere/llama-3-8b.json") == ", of which \"llama-3-8b\" is nearest");
  CHECK(told("some-lab/entirely-their-own") == "");
  const auto folder = std::filesystem::temp_directory_path() / "interlock-config-mistakes-test";
  std::filesystem::create_directories(folder);
  write_file((folder / "config.json").string(), R"({"model_type": "llama"})");
  CHECK(mistake('"' + folder.string() + '"')
            .ends_with("is a directory; expected " + (folder / "config.json").string()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace interlock::config_mistakes_test
