// Slices of sequences: together they are the whole, apart from what each has to read again.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::token_slice_test {
namespace {

// b = 3, s = 12, h = 8, heads of 2, 2 of 4 of them with keys; whole numbers throughout.
const std::string kSmall = R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
  "attention_heads": 4, "kv_heads": 2, "ffn_hidden_size": 32, "vocab_size": 10,
  "sequence_length": 12)";
constexpr double kBatch = 3, kTokens = 12;

const std::vector<std::string> kForms = {
    R"(, "attention": "materialised"})", R"(, "attention": "fused"})",
    R"(, "attention": "materialised", "attention_flops": "causal", "dropout": 0.1})",
    R"(, "attention": "materialised", "positions": "rotary", "gated_mlp": true, "norm": "rmsnorm",
       "bias": false})"};
const std::vector<std::vector<int>> kSlicings = {{12}, {6, 6}, {5, 4, 2, 1}, {1, 11}};

BuildOptions options(Recompute recompute = Recompute::None) {
  return {.micro_batch_size = static_cast<int>(kBatch), .recompute = recompute};
}

std::vector<ModelGraph> slices_of(const ModelGraph& whole, const std::vector<int>& lengths) {
  std::vector<ModelGraph> slices;
  int context = 0;
  for (const int length : lengths) {
    slices.push_back(whole.slice({length, context, static_cast<int>(kTokens)}));
    context += length;
  }
  return slices;
}

/// Visits every form of model, whole and in every slicing.
template <class Visit>
void for_slicings(Recompute recompute, const Visit& visit) {
  for (const std::string& form : kForms) {
    const ModelGraph whole = built(kSmall + form, options(recompute));
    for (const std::vector<int>& lengths : kSlicings) {
      INFO(form << ", slices from " << lengths.front() << " to " << lengths.back() << " tokens");
      visit(whole, slices_of(whole, lengths), lengths);
    }
  }
}

/// Scores that slices leave out of the square of the whole: a slice of l tokens behind c others has
/// l rows of c + l columns, for each head and sample.
double scores_left_out(const std::vector<int>& lengths) {
  double pairs = kTokens * kTokens, context = 0;
  for (const int length : lengths) {
    pairs -= length * (context + length);
    context += length;
  }
  return kBatch * 4 * pairs;
}

using Works = std::vector<Work> Module::*;
const std::vector<Works> kParts = {&Module::forward, &Module::backward_input,
                                   &Module::first_backward_input, &Module::backward_weight,
                                   &Module::recompute};

TEST_CASE("the slices of a sequence count its flops, module by module and exactly") {
  for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
    for_slicings(recompute, [](const ModelGraph& whole, const auto& slices, const auto&) {
      for (std::size_t m = 0; m < whole.modules.size(); ++m) {
        for (const Works part : kParts) {
          Flops sum;
          for (const ModelGraph& slice : slices) sum += counted_of(slice.modules[m].*part);
          CHECK(sum == counted_of(whole.modules[m].*part));
        }
      }
    });
  }
}

TEST_CASE("slices that store their scores execute l rows of c + l columns of them") {
  const ModelGraph whole =
      built(kSmall + R"(, "attention": "materialised", "attention_flops": "causal"})", options());
  for (const std::vector<int>& lengths : kSlicings) {
    Flops forward, backward;
    for (const ModelGraph& slice : slices_of(whole, lengths)) {
      forward += flops_of(slice.modules[1].forward);
      backward += flops_of(slice.modules[1].backward_input);
    }
    const double left_out = scores_left_out(lengths);
    INFO(lengths.size() << " slices leave out " << left_out << " scores, of heads of 2 elements");
    // Two products of 2 flops for each element of a head; twice as many backward.
    CHECK((flops_of(whole.modules[1].forward) - forward).value() == 2 * 2 * 2 * left_out);
    CHECK((flops_of(whole.modules[1].backward_input) - backward).value() == 2 * 2 * 4 * left_out);
  }
}

TEST_CASE("the slices of a sequence keep and hand on its bytes, but for scores that they lack") {
  for (const Recompute recompute : {Recompute::None, Recompute::Selective}) {
    for (const std::string& form : kForms) {
      // The softmax in 2 bytes; with dropout a mask and what it leaves.
      double kept = form.find("dropout") == std::string::npos ? 2 : 5;
      if (form.find("fused") != std::string::npos || recompute == Recompute::Selective) kept = 0;
      const ModelGraph whole = built(kSmall + form, options(recompute));
      for (const std::vector<int>& lengths : kSlicings) {
        const Bytes lacking(kept * scores_left_out(lengths));
        INFO(form << ", slices from " << lengths.front() << " to " << lengths.back() << " tokens");
        for (std::size_t m = 0; m < whole.modules.size(); ++m) {
          Bytes stash, output;
          for (const ModelGraph& slice : slices_of(whole, lengths)) {
            stash += slice.modules[m].stash;
            output += slice.modules[m].output;
          }
          const bool block = m == 1 || m == 2;
          CHECK(stash + (block ? lacking : Bytes(0)) == whole.modules[m].stash);
          CHECK(output == whole.modules[m].output);
        }
      }
    }
  }
}

TEST_CASE("each slice reads the weights of a block, and keys and values before it, again") {
  const double element = 2, key_width = 4, h = 8;
  for (const char* attention : {"materialised", "fused"}) {
    const ModelGraph whole = built(kSmall + R"(, "attention": ")" + attention + "\"}", options());
    for (const std::vector<int>& lengths : kSlicings) {
      double before = 0, context = 0;  // tokens, of all slices together
      for (const int length : lengths) {
        before += context;
        context += length;
      }
      const double again = static_cast<double>(lengths.size()) - 1;
      // Query-key-value, projection, and the two products of the MLP; widths of their biases.
      const double weights = h * (h + 2 * key_width) + h * h + 2 * h * 32;
      const double biases = h + 2 * key_width + h + 32 + h;
      const double keys = 2 * key_width * kBatch * before;  // and values
      // Scores are written, read and written by the softmax, and read: 4; backward 2, 3 and 2.
      const bool stored = std::string(attention) == "materialised";
      const double left_out = stored ? scores_left_out(lengths) : 0;
      Bytes forward, input, weight;
      for (const ModelGraph& slice : slices_of(whole, lengths)) {
        forward += bytes_of(slice.modules[1].forward);
        input += bytes_of(slice.modules[1].backward_input);
        weight += bytes_of(slice.modules[1].backward_weight);
      }
      INFO(attention << ", " << lengths.size() << " slices, " << before << " tokens read again");
      const Module& block = whole.modules[1];
      CHECK((forward - bytes_of(block.forward)).value() ==
            element * (again * weights + keys - 4 * left_out));
      CHECK((input - bytes_of(block.backward_input)).value() ==
            element * (again * weights + 2 * keys - 7 * left_out));
      CHECK((weight - bytes_of(block.backward_weight)).value() ==
            element * again * (weights + biases));
    }
  }
}

TEST_CASE("attention of a slice is that of l tokens that see c + l / 2 others on average") {
  const ModelGraph whole = built(kSmall + R"(, "attention_flops": "causal"})", options());
  const ModelGraph late = whole.slice({3, 6, 12}), early = whole.slice({3, 0, 12});
  const double difference =
      (counted_of(late.modules[1].forward) - counted_of(early.modules[1].forward)).value();
  // Two products of 2 flops: 4 b h l c for the c = 6 tokens that only the later one sees.
  CHECK(difference == 4 * kBatch * 8 * 3 * 6);
}

TEST_CASE("one slice of all tokens is the whole") {
  std::vector<BuildOptions> all = {options(), options(Recompute::Selective),
                                   options(Recompute::Full), options(), options()};
  all[3].narrow_activations = true;
  all[4].precision = Precision::Fp8;
  all[4].wide_layers.first = 1;
  for (const BuildOptions& options : all) {
    for (const std::string& form : kForms) {
      const ModelGraph whole = built(kSmall + form, options);
      const ModelGraph one = whole.slice({12, 0, 12});
      for (std::size_t m = 0; m < whole.modules.size(); ++m) {
        CHECK(one.modules[m].stash == whole.modules[m].stash);
        CHECK(one.modules[m].workspace == whole.modules[m].workspace);
        for (const Works part : kParts) {
          REQUIRE((one.modules[m].*part).size() == (whole.modules[m].*part).size());
          CHECK(bytes_of(one.modules[m].*part) == bytes_of(whole.modules[m].*part));
        }
      }
    }
  }
}

TEST_CASE("weights and their update are whole in every slice") {
  const ModelGraph whole = built(kSmall + "}", options()), slice = whole.slice({2, 4, 12});
  CHECK(parameters_of(slice) == parameters_of(whole));
  CHECK(slice.modules.back().tied_parameters == whole.modules.back().tied_parameters);
  for (std::size_t m = 0; m < whole.modules.size(); ++m) {
    CHECK(bytes_of(slice.modules[m].update) == bytes_of(whole.modules[m].update));
  }
}

TEST_CASE("full recomputation keeps a block's input, and keys and values that later slices read") {
  const ModelGraph whole = built(kSmall + "}", options(Recompute::Full));
  const double input = 2 * kBatch * 8, keys = 2 * kBatch * 2 * 4;  // bytes a token
  CHECK(whole.slice({5, 0, 12}).modules[1].stash.value() == 5 * (input + keys));
  CHECK(whole.slice({4, 8, 12}).modules[1].stash.value() == 4 * input);
}

TEST_CASE("a slice of a profile takes its share of times and bytes, and the whole update") {
  const ModelGraph whole = built(R"({"kind": "profile", "modules": [{"forward": "8 ms",
    "backward_input": "4 ms", "backward_weight": "2 ms", "update": "3 ms", "output": "16 B",
    "stash": "64 B", "parameters": "10 B"}]})");
  for (const int position : {0, 3}) {
    const Module part = whole.slice({1, position, 4}).modules[0];
    CHECK(part.forward[0].measured == Seconds(8e-3 / 4));
    CHECK(part.backward_input[0].measured == Seconds(4e-3 / 4));
    CHECK(part.backward_weight[0].measured == Seconds(2e-3 / 4));
    CHECK(part.update[0].measured == Seconds(3e-3));
    CHECK(part.output == Bytes(4));
    CHECK(part.stash == Bytes(16));
    CHECK(part.parameters == 5);
  }
}

TEST_CASE("images and vectors have no tokens to slice") {
  CHECK(!zoo("resnet-50").slice);
  CHECK(!built(R"({"kind": "mlp", "input_size": 4, "layers": 2, "hidden_size": 8, "classes": 2})")
             .slice);
}

}  // namespace
}  // namespace interlock::token_slice_test
