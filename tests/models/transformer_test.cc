// Transformers against published parameter counts and the formulas of the papers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"
#include "tests/support/model_flops.h"

namespace interlock::transformer_test {
namespace {

const std::string kSizes = R"({"kind": "transformer", "layers": 96, "hidden_size": 12288,
    "attention_heads": 96, "ffn_hidden_size": 49152, "vocab_size": 51200, "sequence_length": 2048,
    "gated_mlp": false, "norm": "layernorm", "tied_embeddings": true)";
const std::string kGpt3 = kSizes + R"(, "attention": "materialised")";
const std::string kTiny = R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
    "attention_heads": 4, "vocab_size": 10, "sequence_length": 6)";

TEST_CASE("parameters are those of the published weights") {
  CHECK(parameters_of(zoo("gpt2")) == 124'439'808);
  CHECK(parameters_of(zoo("gpt2-medium")) == 354'823'168);
  CHECK(parameters_of(zoo("gpt2-large")) == 774'030'080);
  CHECK(parameters_of(zoo("gpt2-xl")) == 1'557'611'200);
  CHECK(parameters_of(zoo("llama-3-8b")) == 8'030'261'248);
  CHECK(parameters_of(zoo("llama-3-70b")) == 70'553'706'496);
  CHECK(static_cast<double>(parameters_of(zoo("gpt3-175b"))) ==
        doctest::Approx(174.6e9).epsilon(0.001));
}

TEST_CASE("forward flops follow Narayanan et al., SC 2021") {
  // Per layer 24 B s h^2 + 4 B s^2 h, and 2 B s h V for the vocabulary:
  // 24 B s l h^2 (1 + s / 6h + V / 12 l h).
  const double batch = 4, s = 2048, h = 12288, l = 96, v = 51200;
  const double expected = 24 * batch * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  const ModelGraph graph = built(kGpt3 + "}", {.micro_batch_size = 4});
  CHECK(2 * products_of(graph) == doctest::Approx(expected).epsilon(1e-14));
  CHECK(model_flops(graph).value() == doctest::Approx(3 * expected).epsilon(1e-14));
  CHECK(graph.attention_flops == "full");
}

TEST_CASE("causal attention counts half of the score matrix") {
  const double attention = 96.0 * 4 * 2048 * 2048 * 12288;
  const ModelGraph full = built(kGpt3 + "}");
  const ModelGraph causal = built(kGpt3 + R"(, "attention_flops": "causal"})");
  CHECK(2 * (products_of(full) - products_of(causal)) == doctest::Approx(attention / 2));
  CHECK(causal.attention_flops == "causal");
}

TEST_CASE("forward flops are 2 a weight and token, and the attention") {
  // Every weight but norms and the looked-up embedding is in one product with each token.
  const double h = 4096, s = 8192, layers = 32, vocabulary = 128256;
  const ModelGraph graph = zoo("llama-3-8b");
  const double weights =
      static_cast<double>(parameters_of(graph)) - vocabulary * h - (2 * layers + 1) * h;
  CHECK(2 * products_of(graph) ==
        doctest::Approx(2 * weights * s + layers * 4 * s * s * h).epsilon(1e-14));
}

TEST_CASE("the backward of every module but the embedding counts twice the flops of its forward") {
  for (const char* name : {"gpt2", "llama-3-8b"}) {
    for (const Module& module : zoo(name).modules) {
      const Flops backward = counted_of(module.backward_input) + counted_of(module.backward_weight);
      CHECK(backward == 2 * counted_of(module.forward));
    }
  }
}

TEST_CASE("a block keeps the bytes of Korthikanti et al., equation 1") {
  const double b = 3, s = 2048, h = 12288, a = 96;
  const double expected = s * b * h * (34 + 5 * a * s / h);
  const ModelGraph graph = built(kGpt3 + R"(, "dropout": 0.1})", {.micro_batch_size = 3});
  CHECK(graph.modules[1].stash.value() == expected);
}

TEST_CASE("without dropout a block keeps neither masks nor the dropped softmax") {
  const double s = 2048, h = 12288, a = 96;
  CHECK(built(kGpt3 + "}").modules[1].stash.value() == s * h * (32 + 2 * a * s / h));
}

TEST_CASE("selective recomputation drops the scores and runs the attention core again") {
  const double s = 2048, h = 12288, a = 96;
  const std::string model = kGpt3 + R"(, "dropout": 0.1})";
  const Module none = built(model).modules[1];
  const Module selective = built(model, {.recompute = Recompute::Selective}).modules[1];
  CHECK(selective.stash.value() == 34 * s * h);
  CHECK(flops_of(selective.recompute).value() == 4 * s * s * h);
  CHECK((selective.workspace - none.workspace).value() == 5 * a * s * s);
}

TEST_CASE("between none and full recomputation every layer counts alike") {
  const double b = 3, s = 2048, h = 12288, a = 96, layers = 96;
  const double whole = s * b * h * (34 + 5 * a * s / h), input = 2 * s * b * h;
  const double layer_flops = 24 * b * s * h * h + 4 * b * s * s * h;
  for (const int full : {0, 1, 17, 95, 96}) {
    const ModelGraph graph =
        built(kGpt3 + R"(, "dropout": 0.1})",
              {.micro_batch_size = 3, .recompute = Recompute::Full, .recompute_layers = full});
    Bytes stash;
    Flops again;
    for (std::size_t block = 1; block <= 96; ++block) {
      stash += graph.modules[block].stash;
      again += flops_of(graph.modules[block].recompute);
    }
    INFO("Korthikanti et al., equation 1 and section 5: "
         << full << " layers keep 2 s b h, " << layers - full << " keep s b h (34 + 5 a s / h)");
    CHECK(stash.value() == doctest::Approx(full * input + (layers - full) * whole).epsilon(1e-14));
    CHECK(again.value() == doctest::Approx(full * layer_flops).epsilon(1e-14));
  }
}

TEST_CASE("full recomputation keeps two bytes an element of a block's input") {
  const double s = 2048, h = 12288;
  const ModelGraph graph = built(kGpt3 + "}", {.recompute = Recompute::Full});
  CHECK(graph.modules[1].stash.value() == 2 * s * h);
  CHECK(flops_of(graph.modules[1].recompute) == flops_of(graph.modules[1].forward));
  CHECK(graph.modules.front().recompute.empty());
  CHECK(graph.modules.back().recompute.empty());
}

TEST_CASE("recomputation that ends with what is read last leaves out an MLP's second product") {
  const double s = 2048, h = 1024, f = 4096;
  const std::string model = R"({"kind": "transformer", "layers": 1, "hidden_size": 1024,
      "attention_heads": 16, "vocab_size": 1024, "sequence_length": 2048, "bias": false)";
  BuildOptions options{.recompute = Recompute::Full};
  options.sharding.tensor = 2;
  options.framework.recomputes_output = false;
  const auto made_again = [&](const std::string& more) {
    return built(model + more + "}", options).modules[1];
  };
  const auto collectives = [](const std::vector<Exchange>& exchanges) {
    int count = 0;
    for (const Exchange& exchange : exchanges) count += exchange.count;
    return count;
  };
  const Module block = made_again("");
  CHECK(flops_of(block.forward).value() - flops_of(block.recompute).value() ==
        doctest::Approx(2 * s * h * f / 2));
  CHECK(collectives(block.forward_exchanges) - collectives(block.recompute_exchanges) == 1);
  INFO("a dropout's mask is read, and so all is made that leads to it");
  const Module drops = made_again(R"(, "dropout": 0.1)");
  CHECK(flops_of(drops.recompute).value() == flops_of(drops.forward).value());
  CHECK(drops.recompute.size() + 1 == drops.forward.size());
  INFO("a norm reads what it normalises");
  const Module normed = made_again(R"(, "norm_position": "branch")");
  CHECK(flops_of(normed.recompute).value() == flops_of(normed.forward).value());
  INFO("parts of a layer end with what is read of them, whatever stands behind");
  options.recompute = Recompute::Parts;
  options.recompute_parts = LayerPart::Mlp;
  const double first_product = 2 * s * h * f / 2;
  CHECK(flops_of(made_again(R"(, "dropout": 0.1)").recompute).value() ==
        doctest::Approx(first_product));
  options.recompute = Recompute::Alternate;
  INFO("keys and attention's projection, not the second product, the sixth");
  CHECK(flops_of(made_again(R"(, "attention": "fused")").recompute).value() ==
        doctest::Approx(2 * s * h * (h + h) / 2));
  options.recompute = Recompute::Full;
  options.framework.recomputes_output = true;
  const Module whole = made_again("");
  CHECK(flops_of(whole.recompute).value() == flops_of(whole.forward).value());
  CHECK(whole.recompute.size() == whole.forward.size());
}

TEST_CASE("what tensor devices gather and scatter may take a copy, forward, backward and again") {
  const double s = 2048, h = 1024;
  BuildOptions options{.recompute = Recompute::Full};
  options.sharding.tensor = 2;
  options.sharding.sequence_parallel = true;
  const std::string model = R"({"kind": "transformer", "layers": 1, "hidden_size": 1024,
      "attention_heads": 16, "vocab_size": 1024, "sequence_length": 2048, "bias": false})";
  const auto bytes_of = [](const std::vector<Work>& works) {
    double bytes = 0;
    for (const Work& work : works) bytes += work.bytes.value();
    return bytes;
  };
  const Module without = built(model, options).modules[1];
  options.framework.copies_gathered = true;
  const Module with = built(model, options).modules[1];
  INFO("two gathers and two scattered sums of s h elements in bf16, each read and written");
  for (auto works : {&Module::forward, &Module::recompute, &Module::backward_input}) {
    CHECK(bytes_of(with.*works) - bytes_of(without.*works) == doctest::Approx(4 * 2 * 2 * s * h));
    CHECK((with.*works).size() == (without.*works).size() + 4);
  }
}

TEST_CASE("torchtitan's selective checkpointing keeps every second product of a Llama block") {
  const double s = 8192, h = 4096, kv = 1024, f = 14336, a = 32;
  const std::string llama = R"({"kind": "transformer", "layers": 2, "hidden_size": 4096,
      "attention_heads": 32, "kv_heads": 8, "ffn_hidden_size": 14336, "vocab_size": 128256,
      "sequence_length": 8192, "gated_mlp": true, "norm": "rmsnorm", "bias": false,
      "positions": "rotary", "tied_embeddings": false, "attention": "fused"})";
  const Module block = built(llama, {.recompute = Recompute::Alternate}).modules[1];
  INFO(
      "kept in bf16: input, queries, values, attention's output, gate, down; a sum in fp32 for "
      "each row of the scores");
  CHECK(block.stash.value() == 2 * s * (h + h + kv + h + f + h) + 4 * s * a);
  INFO("run again: keys, attention's projection, up");
  CHECK(flops_of(block.recompute).value() == doctest::Approx(2 * s * h * (kv + h + f)));
  const Module whole = built(llama).modules[1];
  CHECK((block.workspace - whole.workspace).value() == (whole.stash - block.stash).value());
}

TEST_CASE("kernels that run again have the places that they had") {
  const std::string mixture = R"({"kind": "transformer", "layers": 1, "hidden_size": 64,
      "attention_heads": 4, "ffn_hidden_size": 128, "vocab_size": 100, "sequence_length": 32,
      "gated_mlp": true, "experts": 4, "experts_per_token": 2})";
  const Sharding sharding = {.expert = 4, .expert_overlap = ExpertOverlap::MicroBatches};
  const auto of_experts = [](const std::vector<Work>& works) {
    return std::count_if(works.begin(), works.end(), [](const Work& work) {
      return work.op_class == OpClass::Gemm && work.place == KernelPlace::Experts;
    });
  };
  const Module block =
      built(mixture, {.recompute = Recompute::Alternate, .sharding = sharding}).modules[1];
  REQUIRE(of_experts(block.forward) > 0);
  CHECK(of_experts(block.recompute) > 0);
}

TEST_CASE("tensor devices keep what they have added up of every second product's neighbours") {
  const double s = 2048, h = 12288, t = 4, a = 96;
  const std::string model = kSizes + R"(, "attention": "fused"})";
  const Module block = built(model, {.recompute = Recompute::Alternate,
                                     .sharding = {.tensor = 4, .sequence_parallel = true}})
                           .modules[1];
  INFO("input, the two sums of a block, queries, values, attention's output, first product (4 h)");
  CHECK(block.stash.value() == 2 * s * h * (1 + 2 + 1 + 1 + 1 + 4) / t + 4 * s * a / t);
  for (const Exchange& exchange : block.recompute_exchanges) {
    CHECK(exchange.kind != CollectiveKind::ReduceScatter);
  }
}

TEST_CASE("fused attention stores no scores, so selective recomputation has nothing to drop") {
  const std::string fused = kSizes + R"(, "attention": "fused"})";
  const double s = 2048, h = 12288, a = 96;
  const Module none = built(fused).modules[1];
  const Module selective = built(fused, {.recompute = Recompute::Selective}).modules[1];
  CHECK(none.stash.value() == 32 * s * h + 4 * s * a);
  CHECK(selective.stash == none.stash);
  CHECK(selective.recompute.empty());
  CHECK(counted_of(none.forward) == flops_of(built(kGpt3 + "}").modules[1].forward));
  CHECK(bytes_of(none.forward) < bytes_of(built(kGpt3 + "}").modules[1].forward));
}

TEST_CASE("the readout keeps 4sbh(1 + V/h) bytes: norm and product inputs, logits in fp32") {
  const double s = 2048, h = 12288, v = 51200;
  CHECK(built(kGpt3 + "}").modules.back().stash.value() == 4 * s * h * (1 + v / h));
}

TEST_CASE("grouped queries share keys and values") {
  const ModelGraph all = built(kTiny + "}");
  const ModelGraph grouped = built(kTiny + R"(, "kv_heads": 1})");
  // Three of four key and value heads of size 2 are gone, with their biases.
  CHECK(parameters_of(all) - parameters_of(grouped) == 2 * 2 * (3 * 2) * (8 + 1));
  // Their inputs to the attention are gone from what two blocks keep, in 2-byte elements.
  CHECK((all.modules[1].stash - grouped.modules[1].stash).value() == 2 * 2 * (3 * 2) * 6);
}

TEST_CASE("a gated MLP has three products and keeps both inputs of its activation") {
  const ModelGraph plain = built(kTiny + "}");
  const ModelGraph gated = built(kTiny + R"(, "gated_mlp": true})");
  CHECK(parameters_of(gated) - parameters_of(plain) == 2 * 32 * (8 + 1));
  CHECK((gated.modules[1].stash - plain.modules[1].stash).value() == 2 * 6 * 32);
}

TEST_CASE("norms, biases and positions have the parameters they should") {
  const std::int64_t full = parameters_of(built(kTiny + "}"));
  CHECK(full - parameters_of(built(kTiny + R"(, "norm": "rmsnorm"})")) == 5 * 8);
  const int biases = 3 * 8 + 8 + 32 + 8;
  CHECK(full - parameters_of(built(kTiny + R"(, "bias": false})")) == 2 * biases);
  CHECK(full - parameters_of(built(kTiny + R"(, "positions": "none"})")) == 6 * 8);
  CHECK(full - parameters_of(built(kTiny + R"(, "positions": "rotary"})")) == 6 * 8);
  CHECK(parameters_of(built(kTiny + R"(, "max_positions": 7})")) - full == 8);
}

TEST_CASE("tied embeddings are counted once and named as a copy on the readout") {
  const ModelGraph tied = built(kTiny + "}");
  const ModelGraph untied = built(kTiny + R"(, "tied_embeddings": false})");
  CHECK(parameters_of(untied) - parameters_of(tied) == 10 * 8);
  CHECK(tied.modules.back().tied_parameters == 10 * 8);
  CHECK(untied.modules.back().tied_parameters == 0);
  CHECK(flops_of(untied.modules.back().forward) == flops_of(tied.modules.back().forward));
}

TEST_CASE("modules are the embedding, each block, and the readout") {
  const ModelGraph graph = built(kTiny + "}", {.micro_batch_size = 2});
  CHECK(graph.modules.size() == 4);
  CHECK(graph.modules[0].name == "embedding");
  CHECK(graph.modules[2].name == "block1");
  CHECK(graph.modules[3].name == "readout");
  CHECK(graph.modules[0].backward_input.empty());
  CHECK(graph.modules[1].output.value() == 2 * 2 * 6 * 8);
  CHECK(graph.modules[3].output.value() == 0);
  CHECK(graph.samples_per_micro_batch == 2);
  CHECK(graph.tokens_per_sample == 6);
}

TEST_CASE("only a block's first norm and the residual's sum serve the module before alone") {
  const std::vector<Work> first = built(kTiny + "}").modules[1].first_backward_input;
  CHECK(first.size() == 2);
  CHECK(flops_of(first).value() == 0);
  CHECK(bytes_of(first).value() == 2 * (3 + 3) * 6 * 8);
}

TEST_CASE("fp32 doubles the bytes of activations in 16 bits") {
  const ModelGraph narrow = built(kTiny + R"(, "attention": "materialised"})");
  const ModelGraph wide =
      built(kTiny + R"(, "attention": "materialised"})", {.precision = Precision::Fp32});
  CHECK(wide.modules[1].stash == narrow.modules[1].stash * 2);
  CHECK(wide.modules[1].output == narrow.modules[1].output * 2);
}

TEST_CASE("a transformer of many layers builds") {
  std::string model = kTiny;
  model.replace(model.find("\"layers\": 2"), 11, "\"layers\": 10000");
  CHECK(built(model + "}").modules.size() == 10002);
}

}  // namespace
}  // namespace interlock::transformer_test
