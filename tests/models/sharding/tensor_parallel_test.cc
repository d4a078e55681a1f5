// Tensor and sequence parallelism: activation bytes, exchanges and shares against the papers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/exchanges.h"

namespace interlock::tensor_parallel_test {
namespace {

using enum CollectiveKind;

std::string gpt(int layers, int hidden, int heads) {
  return R"({"kind": "transformer", "layers": )" + std::to_string(layers) + R"(, "hidden_size": )" +
         std::to_string(hidden) + R"(, "attention_heads": )" + std::to_string(heads) +
         R"(, "vocab_size": 51200, "sequence_length": 2048, "dropout": 0.1,
              "attention": "materialised"})";
}

const std::string kTiny = R"({"kind": "transformer", "layers": 2, "hidden_size": 16,
    "attention_heads": 8, "vocab_size": 24, "sequence_length": 32, "dropout": 0.1)";

BuildOptions tensor(int devices, bool sequence_parallel, Recompute recompute = Recompute::None) {
  BuildOptions options = {.recompute = recompute};
  options.sharding.tensor = devices;
  options.sharding.sequence_parallel = sequence_parallel;
  return options;
}

TEST_CASE("a vocabulary that devices cannot share is padded as Megatron-LM's is") {
  // 50257 tokens among 8: 51200, 6400 each, the vocabulary of GPT in Narayanan et al. (arXiv
  // 2104.04473).
  const ModelGraph padded = zoo("gpt3-175b", tensor(8, false));
  const double width = 12288, positions = 2048;
  CHECK(static_cast<double>(padded.modules.front().parameters) == 6400 * width + positions * width);
  const ModelGraph whole = zoo("gpt3-175b", tensor(1, false));
  CHECK(static_cast<double>(whole.modules.front().parameters) == 50257 * width + positions * width);
}

TEST_CASE("a block keeps the bytes of Korthikanti et al., equations 1 to 4 and 6, and table 2") {
  const double s = 2048, b = 3, h = 12288, a = 96, scores = 5 * a * s / h;
  for (const int t : {1, 2, 4, 8}) {
    for (const bool sp : {false, true}) {
      // 10 of the 34 are norms' inputs, inputs of the first product of each pair, and masks.
      const double none = sp ? (34 + scores) / t : 10 + (24 + scores) / t;
      const double selective = sp ? 34.0 / t : 10 + 24.0 / t;
      const double full = sp ? 2.0 / t : 2;  // a block's input, which is divided with SP
      INFO("t = " << t << (sp ? ", sequence parallel" : "") << "; sbh times " << none << ", "
                  << selective << ", " << full);
      for (const auto& [recompute, expected] :
           {std::pair{Recompute::None, none}, std::pair{Recompute::Selective, selective},
            std::pair{Recompute::Full, full}}) {
        BuildOptions options = tensor(t, sp, recompute);
        options.micro_batch_size = 3;
        const Module block = built(gpt(1, 12288, 96), options).modules[1];
        CHECK(block.stash.value() == doctest::Approx(s * b * h * expected).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("activations of whole models are those of figure 1 of Korthikanti et al.") {
  struct Case {
    int layers, hidden, heads, batch, pipeline, chunks;  // chunks: of the interleaved schedule
    bool selective;                                      // with sequence parallelism, else neither
    double gib;
  };
  // The first stage holds as much as all layers; interleaving adds (p - 1) / (p m) of it.
  for (const Case& c :
       {Case{48, 6144, 64, 4, 1, 1, false, 59.25}, Case{48, 6144, 64, 4, 1, 1, true, 9.5625},
        Case{96, 12288, 96, 1, 8, 3, true, 12.3515625},
        Case{105, 20480, 128, 1, 35, 3, false, 114.0234375},
        Case{105, 20480, 128, 1, 35, 3, true, 23.076171875},
        Case{128, 25600, 160, 1, 64, 1, false, 131.25}}) {
    const double p = c.pipeline;
    const double extra = c.chunks > 1 ? (p - 1) / (p * c.chunks) : 0;
    BuildOptions options =
        tensor(8, c.selective, c.selective ? Recompute::Selective : Recompute::None);
    options.micro_batch_size = c.batch;
    const Bytes block = built(gpt(1, c.hidden, c.heads), options).modules[1].stash;
    INFO(c.layers << " layers x " << block.value() << " B x " << 1 + extra);
    CHECK(block.value() * c.layers * (1 + extra) / (1 << 30) ==
          doctest::Approx(c.gib).epsilon(1e-9));
  }
}

TEST_CASE("the embedding keeps its mask and the readout 4sbh(1 + v/h)/t, as equation 5 adds") {
  const double s = 2048, h = 12288, v = 51200, t = 8;
  const ModelGraph divided = built(gpt(1, 12288, 96), tensor(8, true));
  CHECK(divided.modules.back().stash.value() == 4 * s * h * (1 + v / h) / t);
  const double ids = 8 * s;
  CHECK(divided.modules.front().stash.value() == s * h / t + ids);
  const ModelGraph whole = built(gpt(1, 12288, 96), tensor(8, false));
  CHECK(whole.modules.back().stash.value() == 4 * s * h + 4 * s * v / t);
}

TEST_CASE("a block adds up its outputs twice forward, and gradients of its inputs twice back") {
  // Shoeybi et al., arXiv 1909.08053, figure 4: two all-reduces of b s h each way.
  const double size = 2.0 * 3 * 32 * 16;
  BuildOptions options = tensor(4, false, Recompute::Full);
  options.micro_batch_size = 3;
  const Module block = built(kTiny + "}", options).modules[1];
  const std::vector<Exchange> twice = {
      {.kind = AllReduce, .axis = MeshAxis::Tensor, .bytes = Bytes(size), .count = 2}};
  INFO("forward: " << text_of(block.forward_exchanges));
  CHECK(block.forward_exchanges == twice);
  CHECK(block.backward_input_exchanges == twice);
  CHECK(block.backward_weight_exchanges.empty());
  CHECK(block.recompute_exchanges == twice);
  CHECK(block.output.value() == size);
}

TEST_CASE("sequence parallelism gathers and scatters, and gathers again beside other work") {
  const double size = 2.0 * 32 * 16;
  const Module block = built(kTiny + "}", tensor(4, true, Recompute::Full)).modules[1];
  const Exchange gather = {
      .kind = AllGather, .axis = MeshAxis::Tensor, .bytes = Bytes(size), .count = 2};
  Exchange scatter = gather, again = gather;
  scatter.kind = ReduceScatter;
  again.overlapped = true;
  INFO("forward: " << text_of(block.forward_exchanges));
  CHECK(block.forward_exchanges == std::vector{gather, scatter});
  CHECK(block.backward_input_exchanges == std::vector{gather, scatter});
  CHECK(block.backward_weight_exchanges == std::vector{again});
  CHECK(block.recompute_exchanges == block.forward_exchanges);
  CHECK(block.output.value() == size / 4);
}

TEST_CASE("gathering and scattering move what adding up on all does, each way") {
  const auto moved = [](const std::vector<Exchange>& list) {
    double bytes = 0;
    for (const Exchange& one : list) bytes += received_by_one(one, 4).bytes;
    return bytes;
  };
  const Module sums = built(kTiny + "}", tensor(4, false)).modules[1];
  const Module parts = built(kTiny + "}", tensor(4, true)).modules[1];
  CHECK(moved(sums.forward_exchanges) == moved(parts.forward_exchanges));
  CHECK(moved(sums.backward_input_exchanges) == moved(parts.backward_input_exchanges));
}

TEST_CASE("selective recomputation of scores needs nothing from other tensor devices") {
  const Module block =
      built(kTiny + R"(, "attention": "materialised"})", tensor(4, true, Recompute::Selective))
          .modules[1];
  CHECK_FALSE(block.recompute.empty());
  CHECK(block.recompute_exchanges.empty());
}

TEST_CASE("embedding and readout are divided by vocabulary") {
  const double size = 2.0 * 32 * 16, tokens = 32;
  const ModelGraph plain = built(kTiny + "}", tensor(4, false));
  const std::vector<Exchange> sum = {{.kind = AllReduce, .bytes = Bytes(size)}};
  CHECK(plain.modules.front().forward_exchanges == sum);
  CHECK(plain.modules.front().backward_weight_exchanges.empty());
  // Largest logit, sum of exponentials and the target's logit of each token, in fp32.
  CHECK(plain.modules.back().forward_exchanges ==
        std::vector<Exchange>{{.kind = AllReduce, .bytes = Bytes(4 * tokens), .count = 3}});
  CHECK(plain.modules.back().backward_input_exchanges == sum);
  CHECK(plain.modules.back().tied_parameters == 24 * 16 / 4);
  const ModelGraph parts = built(kTiny + "}", tensor(4, true));
  CHECK(parts.modules.front().forward_exchanges ==
        std::vector<Exchange>{{.kind = ReduceScatter, .bytes = Bytes(size)}});
  CHECK(parts.modules.front().backward_weight_exchanges ==
        std::vector<Exchange>{{.kind = AllGather, .bytes = Bytes(size)}});
  CHECK(parts.modules.back().backward_input_exchanges ==
        std::vector<Exchange>{{.kind = ReduceScatter, .bytes = Bytes(size)}});
}

TEST_CASE("devices together have the flops of one, module by module and exactly") {
  for (const std::string more :
       {"}", R"(, "attention": "fused", "gated_mlp": true, "kv_heads": 4, "bias": false})",
        R"(, "attention": "retention", "chunk_size": 4})"}) {
    const ModelGraph whole = built(kTiny + more);
    for (const int t : {2, 4}) {
      for (const bool sp : {false, true}) {
        const ModelGraph part = built(kTiny + more, tensor(t, sp));
        for (std::size_t m = 0; m < whole.modules.size(); ++m) {
          INFO(more << ", t = " << t << ", module " << m);
          CHECK(flops_of(part.modules[m].forward) * t == flops_of(whole.modules[m].forward));
          CHECK(flops_of(part.modules[m].backward_input) * t ==
                flops_of(whole.modules[m].backward_input));
          CHECK(flops_of(part.modules[m].backward_weight) * t ==
                flops_of(whole.modules[m].backward_weight));
        }
      }
    }
  }
}

TEST_CASE("devices together have the weights of one, and copies of what is not divided") {
  const std::int64_t whole = parameters_of(built(kTiny + "}"));
  // Copies: two norms of two vectors and two biases after sums in each of two blocks, the last
  // norm, and the positions.
  const std::int64_t copied = 2 * (2 * 2 * 16 + 2 * 16) + 2 * 16 + 32 * 16;
  for (const int t : {2, 4, 8}) {
    const std::int64_t part = parameters_of(built(kTiny + "}", tensor(t, true)));
    INFO(t << " devices of " << part << ": " << whole << " + " << (t - 1) * copied);
    CHECK(t * part == whole + (t - 1) * copied);
    CHECK(part == parameters_of(built(kTiny + "}", tensor(t, false))));
  }
}

TEST_CASE("fewer key heads than devices are copied, with their products") {
  const std::string model = kTiny + R"(, "kv_heads": 2})";
  const Module whole = built(model).modules[1];
  const Module part = built(model, tensor(8, true)).modules[1];
  const Module none = built(model, tensor(2, true)).modules[1];
  CHECK(flops_of(none.forward) * 2 == flops_of(whole.forward));
  // Head size 2: eight key and eight value heads instead of two each.
  const double copied = 2 * (8 - 2) * 2;
  CHECK((flops_of(part.forward) * 8 - flops_of(whole.forward)).value() == 2 * 32 * 16 * copied);
  const std::int64_t norms_and_biases = 2 * 2 * 16 + 2 * 16;
  CHECK(static_cast<double>(8 * part.parameters - whole.parameters - 7 * norms_and_biases) ==
        copied * (16 + 1));
}

TEST_CASE("a head is divided like the readout, and exchanges what it does") {
  const ModelGraph graph = built(kTiny + "}", tensor(4, true));
  const Head head = graph.modules[1].head;
  CHECK(head.parameters == 24 * 16 / 4 + 2 * 16);
  const double size = 2.0 * 32 * 16;
  const Exchange gather = {.kind = AllGather, .bytes = Bytes(size)};
  Exchange scatter = gather, again = gather;
  scatter.kind = ReduceScatter;
  again.overlapped = true;
  const Exchange loss = {.kind = AllReduce, .bytes = Bytes(4.0 * 32), .count = 3};
  INFO(text_of(head.exchanges));
  CHECK(head.exchanges == std::vector{gather, loss, scatter, again});
  const ModelGraph later = built_with_head(kTiny + "}", R"("later-layers")", tensor(4, false));
  int sums = 0;
  for (const Exchange& one : later.modules[1].head.exchanges) sums += one.count;
  CHECK(sums == 4 + 3 + 1);  // a block, the loss, and the readout's gradient
}

TEST_CASE("layers of an MLP are pairs, which a cut or a head may part") {
  const ModelGraph graph = built(R"({"kind": "mlp", "input_size": 6, "hidden_sizes": [8, 10, 4],
      "classes": 5, "head": "linear"})",
                                 tensor(2, false));
  const auto sum = [](double bytes) {
    return std::vector<Exchange>{{.kind = AllReduce, .bytes = Bytes(bytes)}};
  };
  CHECK(graph.modules[0].forward_exchanges.empty());
  CHECK(graph.modules[0].backward_input_exchanges == sum(2 * 6));
  CHECK(graph.modules[0].first_backward_input_exchanges == sum(2 * 6));
  CHECK(graph.modules[0].output.value() == 2 * 8 / 2);
  CHECK(graph.modules[1].forward_exchanges == sum(2 * 10));
  CHECK(graph.modules[1].backward_input_exchanges.empty());
  CHECK(graph.modules[1].output.value() == 2 * 10);
  // After the first of a pair the readout is the second; classes need not be divided.
  CHECK(graph.modules[3].parameters == 4 / 2 * 5 + 5);
  CHECK(graph.modules[3].forward_exchanges == sum(2 * 5));
  CHECK(graph.modules[0].head.parameters == 8 / 2 * 5 + 5);
  CHECK(graph.modules[0].head.exchanges == sum(2 * 5));
  // After the second each device makes all five classes, which two cannot share, or three of six.
  CHECK(graph.modules[1].head.parameters == 10 * 5 + 5);
  CHECK(graph.modules[1].head.exchanges.empty());
  const ModelGraph even = built(R"({"kind": "mlp", "input_size": 6, "hidden_sizes": [8, 10],
      "classes": 6})",
                                tensor(2, false));
  CHECK(even.modules[2].parameters == 10 * 3 + 3);
  CHECK(even.modules[2].backward_input_exchanges == sum(2 * 10));
}

TEST_CASE("full recomputation of the first layers leaves the others as they are") {
  const std::string model = kTiny + "}";
  const ModelGraph none = built(model), full = built(model, {.recompute = Recompute::Full});
  for (const int layers : {0, 1, 2, 3}) {
    const ModelGraph some =
        built(model, {.recompute = Recompute::Full, .recompute_layers = layers});
    for (int block = 0; block < 2; ++block) {
      const Module& like = (block < layers ? full : none).modules[block + 1];
      CHECK(some.modules[block + 1].stash == like.stash);
      CHECK(some.modules[block + 1].recompute.size() == like.recompute.size());
      CHECK(some.modules[block + 1].name == like.name);
    }
  }
  const std::string mlp =
      R"({"kind": "mlp", "input_size": 4, "hidden_sizes": [8, 8], "classes": 2})";
  const ModelGraph half = built(mlp, {.recompute = Recompute::Full, .recompute_layers = 1});
  CHECK_FALSE(half.modules[0].recompute.empty());
  CHECK(half.modules[1].recompute.empty());
}

}  // namespace
}  // namespace interlock::tensor_parallel_test
