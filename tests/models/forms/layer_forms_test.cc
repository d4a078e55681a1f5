// Layer forms: patterns of layers, what a block may have beside attention and an MLP, later tokens.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/models/built.h"
#include "tests/models/exchanges.h"

namespace interlock::layer_forms_test {
namespace {

/// Width 16, 4 heads, an MLP of 32, 8 tokens, words untied from the readout.
std::string model(int layers, const std::string& more) {
  return R"({"kind": "transformer", "hidden_size": 16, "attention_heads": 4, "attention": "fused",
             "ffn_hidden_size": 32, "vocab_size": 10, "sequence_length": 8, "bias": false,
             "norm": "rmsnorm", "positions": "none", "tied_embeddings": false, "layers": )" +
         std::to_string(layers) + (more.empty() ? "" : ", " + more) + "}";
}

std::vector<std::int64_t> block_parameters(const ModelGraph& graph) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 1; i + 1 < graph.modules.size(); ++i) {
    all.push_back(graph.modules[i].parameters);
  }
  return all;
}

std::vector<std::string> mistakes(const std::string& text, const Sharding& sharding = {}) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  BuildOptions options;
  options.sharding = sharding;
  CHECK(build_model({&value, "/model"}, options, diagnostics).modules.empty());
  return diagnostics.messages();
}

void check_mistake(const std::string& text, const std::string& end, const Sharding& sharding = {}) {
  const std::vector<std::string> found = mistakes(text, sharding);
  REQUIRE(found.size() == 1);
  CAPTURE(found[0]);
  CHECK(found[0].ends_with(end));
}

constexpr std::int64_t kAttention = 16 + 4 * 16 * 16, kMlp = 16 + 2 * 16 * 32;

TEST_CASE("a pattern starts again until all layers have a form") {
  const ModelGraph graph = built(model(7, R"("layer_pattern": [{"repeat": 2, "ffn": "none"},
      {"attention": "none"}])"));
  const std::int64_t a = kAttention, m = kMlp;
  CHECK(block_parameters(graph) == std::vector<std::int64_t>{a, a, m, a, a, m, a});
}

TEST_CASE("an item has the model's keys but for those that it writes, and null takes one away") {
  const ModelGraph graph = built(model(3, R"("kv_heads": 2, "sliding_window": 2,
      "layer_pattern": [{}, {"sliding_window": null, "kv_heads": 1}, {"kv_heads": null}])"));
  const std::int64_t rest = 16 + 2 * 16 * 16 + kMlp;
  CHECK(block_parameters(graph) ==
        std::vector<std::int64_t>{rest + 2 * 16 * 8, rest + 2 * 16 * 4, rest + 2 * 16 * 16});
  // Pairs of tokens: 8 + ... a window of 2 leaves 1 + 3 x 7 of 64; without it all 64 are there.
  const double windowed = counted_of(graph.modules[1].forward).value();
  const double whole = counted_of(graph.modules[2].forward).value();
  const double linear = 2.0 * 8 * 2 * 16 * 4;  // of the key heads that the second has less
  CHECK(whole - windowed + linear == 2 * 2 * (64 - (4 + 6 * 3)) * 16.0);
}

TEST_CASE("experts of every second layer are a pattern, or an interval") {
  const std::string experts = R"("experts": 4, "experts_per_token": 2, )";
  const auto by_interval = built(model(5, experts + R"("expert_interval": 2, "dense_layers": 1)"));
  const auto by_pattern = built(model(5, experts + R"("layer_pattern": [{"repeat": 2,
      "ffn": "dense"}, {"ffn": "experts"}, {"ffn": "dense"}, {"ffn": "experts"}])"));
  CHECK(block_parameters(by_interval) == block_parameters(by_pattern));
  CHECK(by_interval.modules[3].expert_parameters == 4 * 2 * 16 * 32);
}

TEST_CASE("shared experts may have a width of their own") {
  const ModelGraph graph = built(model(1, R"("experts": 4, "shared_experts": 2,
      "expert_ffn_hidden_size": 8, "shared_expert_ffn_hidden_size": 24)"));
  CHECK(graph.modules[1].parameters == kAttention + 16 + 4 * 16 + 4 * 2 * 16 * 8 + 2 * 2 * 16 * 24);
}

TEST_CASE("a gate makes queries twice as wide, and keeps itself and what it multiplies") {
  const Module plain = built(model(1, "")).modules[1];
  const Module gated = built(model(1, R"("attention_gate": true)")).modules[1];
  CHECK(gated.parameters - plain.parameters == 16 * 16);
  CHECK((gated.stash - plain.stash).value() == 8 * 2 * 16 * 2);
  CHECK((flops_of(gated.forward) - flops_of(plain.forward)).value() == 2.0 * 8 * 16 * 16);
}

TEST_CASE("sinks are a number for each head, and tensor devices share them") {
  const std::int64_t plain = built(model(1, "")).modules[1].parameters;
  const std::string sinks = model(1, R"("attention_sinks": true)");
  CHECK(built(sinks).modules[1].parameters == plain + 4);
  BuildOptions options;
  options.sharding.tensor = 4;
  CHECK(built(sinks, options).modules[1].parameters ==
        built(model(1, ""), options).modules[1].parameters + 1);
}

TEST_CASE("norms over all heads have a weight for each element, and add up over tensor devices") {
  const std::string whole = model(1, R"("qk_norm": "whole", "kv_heads": 2)");
  const std::string heads = model(1, R"("qk_norm": "heads", "kv_heads": 2)");
  const std::string none = model(1, R"("kv_heads": 2)");
  const std::int64_t plain = built(none).modules[1].parameters;
  CHECK(built(whole).modules[1].parameters == plain + 16 + 8);
  CHECK(built(heads).modules[1].parameters == plain + 2 * 4);
  BuildOptions options;
  options.sharding.tensor = 2;
  const Module half = built(whole, options).modules[1];
  CHECK(half.parameters == built(none, options).modules[1].parameters + (16 + 8) / 2);
  const auto sums = std::ranges::count_if(half.forward_exchanges, [](const Exchange& one) {
    return one.kind == CollectiveKind::AllReduce && one.bytes == Bytes(2 * 8 * 4);
  });
  CHECK(sums == 1);
}

TEST_CASE("norms behind branches keep what the branches put out") {
  const auto of = [](const std::string& position) {
    return built(model(1, "\"norm_position\": \"" + position + "\""));
  };
  const Module pre = of("pre").modules[1], both = of("both").modules[1];
  const Module branch = of("branch").modules[1];
  const double residual = 8 * 16 * 2;
  CHECK(both.parameters - pre.parameters == 2 * 16);
  CHECK((both.stash - pre.stash).value() == 2 * residual);
  CHECK(branch.parameters == pre.parameters);
  CHECK(branch.stash == pre.stash);  // instead of the branches' inputs, which projections keep too
  for (const char* position : {"pre", "both", "branch"}) {
    CHECK(of(position).modules[2].parameters == 16 + 10 * 16);
  }
  CHECK(of("post").modules[2].parameters == 10 * 16);
}

TEST_CASE("parts of a sequence that see themselves alone have the scores of shorter sequences") {
  const auto scores = [](int tokens, const std::string& more) {
    std::string text = model(1, more);
    text.replace(text.find("\"sequence_length\": 8"), 20,
                 "\"sequence_length\": " + std::to_string(tokens));
    const ModelGraph graph = built(text);
    const double linear = 2.0 * tokens * (4 * 16 * 16 + 2 * 16 * 32);
    return std::pair(counted_of(graph.modules[1].forward).value() - linear,
                     flops_of(graph.modules[1].forward).value() - linear);
  };
  const auto short_one = scores(256, ""), parts = scores(512, R"("attention_chunk": 256)");
  CHECK(parts.first == 2 * short_one.first);
  CHECK(parts.second == 2 * short_one.second);
  const auto longer = scores(640, R"("attention_chunk": 256)");
  CHECK(longer.first == 2 * short_one.first + scores(128, "").first);
  CHECK(longer.second == 2 * short_one.second + scores(128, "").second);
}

TEST_CASE("a block for one token more has a projection, a block and a loss, in the last module") {
  const Module plain = built(model(2, "")).modules.back();
  const ModelGraph graph = built(model(2, R"("multi_token_prediction": {"layers": 2})"));
  const ModelGraph blocks = built(model(2, ""));
  CHECK(graph.modules.size() == blocks.modules.size());
  const Module last = graph.modules.back();
  CHECK(last.parameters - plain.parameters == 2 * (3 * 16 + 2 * 16 * 16 + kAttention + kMlp));
  CHECK(last.tied_parameters == 10 * 16);  // the embedding's
  const double once = 2.0 * 8 * 2 * 16 * 16 + flops_of(blocks.modules[1].forward).value() +
                      flops_of(plain.forward).value();
  CHECK(flops_of(last.forward).value() - flops_of(plain.forward).value() == 2 * once);
  const auto backward = [](const Module& module) {
    return flops_of(module.backward_input).value() + flops_of(module.backward_weight).value();
  };
  CHECK(backward(last) - backward(plain) ==
        2 * (2 * 2.0 * 8 * 2 * 16 * 16 + backward(blocks.modules[1]) + backward(plain)));
}

TEST_CASE("full recomputation runs the blocks for later tokens again, and no readout") {
  BuildOptions options;
  options.recompute = Recompute::Full;
  const ModelGraph graph = built(model(2, R"("multi_token_prediction": {})"), options);
  CHECK(flops_of(graph.modules.back().recompute) == flops_of(graph.modules[1].forward));
}

TEST_CASE("a key that no layer uses is reported where it is written") {
  check_mistake(model(2, R"("layer_pattern": [{"attention": "none", "kv_heads": 2}, {}])"),
                "/model/layer_pattern/0/kv_heads: no attention in these layers; expected "
                "it with attention");
  check_mistake(model(2, R"("ffn": "none", "layer_pattern": [{}])"),
                "/model/ffn_hidden_size: no MLP in these layers; expected it with an \"ffn\" that "
                "is not \"none\"");
}

TEST_CASE("keys of the pattern that do not fit are reported in one sentence") {
  check_mistake(model(2, R"("layer_pattern": [{"ffn": "experts"}])"),
                "/layer_pattern/0/ffn: no experts; expected \"experts\" with their number");
  check_mistake(model(2, R"("layer_pattern": [{"ffn": "none", "attention": "none"}])"),
                "a layer of nothing; expected another \"attention\" or \"ffn\"");
  check_mistake(model(2, R"("layer_pattern": [{"positions": "learned"}])"),
                "for all layers; expected \"rotary\" or \"none\"");
  check_mistake(model(2, R"("layer_pattern": [])"),
                "e.g. [{\"repeat\": 5, \"sliding_window\": 1024}, {}]");
  check_mistake(model(2, R"("layer_pattern": [{"sliding_windo": 4}])"),
                "/layer_pattern/0/sliding_windo: unknown key; did you mean \"sliding_window\"?");
  check_mistake(model(2, R"("sliding_window": 4, "attention_chunk": 4)"),
                "tokens see a window or a part of the sequence; expected no \"sliding_window\"");
  check_mistake(model(2, R"("layer_pattern": [{"attention": "mamba2"}])"),
                "missing key \"mamba2\"; expected an object with its sizes");
  check_mistake(model(2, R"("mamba2": {"heads": 2})"),
                "sizes of another mixer; expected it with \"attention\": \"mamba2\"");
  check_mistake(model(2, R"("layer_pattern": [{"ffn": "dense"}], "experts": 2)"),
                "no layer has them; expected an \"ffn\" of \"experts\"");
}

TEST_CASE("heads of states that tensor devices cannot share, and sequences, are reported") {
  const std::string mamba2 = model(2, R"("layer_pattern": [{}, {"attention": "mamba2",
      "mamba2": {"heads": 8, "groups": 2}}])");
  check_mistake(mamba2,
                "groups 2 cannot be divided among 4 tensor devices; expected a multiple of 4, e.g. "
                "4",
                {.tensor = 4});
  check_mistake(mamba2,
                "a mixer of states, which hands a state along the sequence, cannot be divided "
                "among 2 context devices; expected context 1, or a transformer with attention",
                {.context = 2});
  check_mistake(
      R"({"kind": "transformer", "layers": 1, "hidden_size": 32, "attention_heads": 4,
          "vocab_size": 24, "sequence_length": 64, "positions": "rotary", "attention": "fused",
          "latent_attention": {"kv_rank": 8, "head_size": 6, "rotary_head_size": 2,
          "value_head_size": 5, "selection": {"tokens": 16, "index_heads": 3,
          "index_head_size": 7}}})",
      "attention to tokens that are chosen among all cannot be divided among 2 context devices; "
      "expected context 1, or no \"selection\"",
      {.context = 2});
  check_mistake(model(2, R"("layer_pattern": [{}, {"attention": "gated-delta",
                             "gated_delta": {"key_heads": 2, "value_heads": 8}}])"),
                "key_heads 2 cannot be divided among 4 tensor devices; expected a multiple of 4, "
                "e.g. 4",
                {.tensor = 4});
}

}  // namespace
}  // namespace interlock::layer_forms_test
