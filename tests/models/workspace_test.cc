// Workspace of blocks: the most gradients that are alive at once, walked kernel by kernel.
// SPDX-License-Identifier: Apache-2.0
//
// The oracle writes the backward of a block down as a list of kernels, each with the gradients that
// it makes and those without a later reader, and adds up what is alive. It shares nothing with
// the builders, which take a maximum over operators.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/models/built.h"

namespace interlock::workspace_test {
namespace {

/// One kernel of a backward: gradients that it makes, by name and numbers; those that it is the
/// last to read.
struct Kernel {
  std::string name;
  std::map<std::string, std::int64_t> makes;
  std::vector<std::string> frees;
};

/// The most numbers that are alive at once; `text` gets the sum of every kernel.
std::int64_t most_alive(std::map<std::string, std::int64_t> alive,
                        const std::vector<Kernel>& backward, std::string& text) {
  std::int64_t most = 0;
  for (const Kernel& kernel : backward) {
    for (const auto& [name, numbers] : kernel.makes) alive[name] = numbers;
    std::int64_t sum = 0;
    for (const auto& entry : alive) sum += entry.second;
    text += kernel.name + " " + std::to_string(sum) + "; ";
    most = std::max(most, sum);
    for (const std::string& name : kernel.frees) alive.erase(name);
  }
  return most;
}

struct Widths {
  std::int64_t hidden, ffn, heads, positions, samples;
};

/// y = x + second(gelu(first(norm(x)))): `sum` is the gradient of y.
std::vector<Kernel> mlp_backward(const Widths& w) {
  const std::int64_t rows = w.samples * w.positions, h = rows * w.hidden, f = rows * w.ffn;
  return {{"second", {{"gelu", f}}, {}},
          {"gelu", {{"first", f}}, {"gelu"}},
          {"first", {{"norm", h}}, {"first"}},
          {"norm", {{"x", h}}, {"norm"}},
          {"sum", {{"below", h}}, {"sum", "x"}}};
}

/// A half of y is a half of x + second(gelu(first(norm(the other half)))), the other half is x's.
std::vector<Kernel> coupling_backward(const Widths& w) {
  std::vector<Kernel> backward = mlp_backward(w);
  const std::int64_t half = w.samples * w.hidden / 2;
  backward[2].makes = {{"norm", half}};
  backward[3].makes = {{"x", half}};
  return backward;
}

/// y = x + projection(attention(qkv(norm(x)))). The gradient of what attention made stays until
/// those of queries, keys and values are there.
std::vector<Kernel> attention_backward(const Widths& w) {
  const std::int64_t h = w.samples * w.positions * w.hidden;
  const std::int64_t scores = w.samples * w.heads * w.positions * w.positions;
  return {{"projection", {{"attended", h}}, {}},
          {"values", {{"v", h}, {"softmax", scores}}, {}},
          {"softmax", {{"scores", scores}}, {"softmax"}},
          {"scores", {{"q", h}, {"k", h}}, {"scores", "attended"}},
          {"qkv", {{"norm", h}}, {"q", "k", "v"}},
          {"norm", {{"x", h}}, {"norm"}},
          {"sum", {{"below", h}}, {"sum", "x"}}};
}

std::int64_t most_alive(const std::vector<Kernel>& backward, const Widths& w, std::string& text) {
  return most_alive({{"sum", w.samples * w.positions * w.hidden}}, backward, text);
}

TEST_CASE("the workspace of a transformer block is the most gradients that are alive at once") {
  Random random(7, 0);
  int narrow = 0;  // blocks whose attention needs more than their MLP
  for (int n = 0; n < 60; ++n) {
    const auto pick = [&](int most) { return 1 + static_cast<int>(random.uniform() * most); };
    Widths w = {.heads = pick(4), .positions = pick(24), .samples = pick(3)};
    w.hidden = w.heads * 2 * pick(8);
    w.ffn = std::max<std::int64_t>(1, w.hidden * pick(16) / 4);
    const std::string model =
        R"({"kind": "transformer", "layers": 1, "vocab_size": 11, "tied_embeddings": false,)"
        R"("hidden_size": )" +
        std::to_string(w.hidden) + R"(, "ffn_hidden_size": )" + std::to_string(w.ffn) +
        R"(, "attention": "materialised", "attention_heads": )" + std::to_string(w.heads) +
        R"(, "sequence_length": )" + std::to_string(w.positions) + "}";
    const ModelGraph graph = built(
        model, {.micro_batch_size = static_cast<int>(w.samples), .precision = Precision::Fp32});
    std::string text;
    const std::int64_t mlp = most_alive(mlp_backward(w), w, text);
    const std::int64_t attention = most_alive(attention_backward(w), w, text);
    INFO(model, ", numbers alive: ", text);
    CHECK(graph.modules[1].workspace.value() ==
          4.0 * static_cast<double>(std::max(mlp, attention)));
    if (attention > mlp) ++narrow;
  }
  INFO(narrow, " narrow MLPs");
  CHECK(narrow > 10);
}

TEST_CASE("the workspace of a residual MLP's block is the most gradients that are alive at once") {
  Random random(8, 0);
  for (int n = 0; n < 40; ++n) {
    const auto pick = [&](int most) { return 1 + static_cast<int>(random.uniform() * most); };
    const Widths w = {.hidden = pick(40), .ffn = pick(120), .positions = 1, .samples = pick(5)};
    for (const bool reversible : {false, true}) {
      Widths own = w;
      if (reversible) own.hidden *= 2;
      const std::string model =
          R"({"kind": "residual-mlp", "input_size": 5, "layers": 1, "classes": 3,)" +
          (R"("hidden_size": )" + std::to_string(own.hidden)) + R"(, "ffn_hidden_size": )" +
          std::to_string(own.ffn) + (reversible ? R"(, "reversible": true})" : "}");
      const ModelGraph graph = built(
          model, {.micro_batch_size = static_cast<int>(w.samples), .precision = Precision::Fp32});
      std::string text;
      const std::int64_t most =
          most_alive(reversible ? coupling_backward(own) : mlp_backward(own), own, text);
      INFO(model, ", numbers alive: ", text);
      CHECK(graph.modules[1].workspace.value() == 4.0 * static_cast<double>(most));
    }
  }
}

}  // namespace
}  // namespace interlock::workspace_test
