// Work of single operators, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/images.h"
#include "tests/models/built.h"

namespace interlock::operators_test {
namespace {

TEST_CASE(
    "training of 8 and 4 bits casts the operands of linear layers before it multiplies them") {
  const Operator op = linear({.rows = 10, .inputs = 20, .outputs = 30, .bias = false}, 2);
  const auto module = [&](Precision precision) {
    BuildOptions options;
    options.precision = precision;
    return make_module({}, {op}, options);
  };
  const Module plain = module(Precision::Bf16), eight = module(Precision::Fp8);
  REQUIRE(plain.forward.size() == 1);
  REQUIRE(eight.forward.size() == 2);
  MESSAGE(
      "16 bits read, twice 8 bits written: 4 bytes for each of 10 x 20 and of 10 x 30 elements");
  CHECK(eight.forward[0].bytes == Bytes(4 * 10 * 20));
  CHECK(eight.backward_input[0].bytes == Bytes(4 * 10 * 30));
  CHECK(eight.forward[1].bytes == plain.forward[0].bytes);
  const Module four = module(Precision::Fp4);
  REQUIRE(four.forward.size() == 2);
  MESSAGE("4 bits: 16 read for the largest element, 16 to cast, twice 4 written, with 8 for 16");
  CHECK(four.forward[0].bytes == Bytes((2 + 2 + 2 * (0.5 + 1.0 / 16)) * 10 * 20));
  CHECK(four.backward_input[0].bytes == Bytes((2 + 2 + 2 * (0.5 + 1.0 / 16)) * 10 * 30));
  CHECK(four.forward[1].bytes == plain.forward[0].bytes);
}

TEST_CASE("readouts and routers of experts stay in 16 bits where training has 8") {
  const auto graph = [](Precision precision) {
    BuildOptions options;
    options.precision = precision;
    return built(R"({"kind": "transformer", "layers": 1, "hidden_size": 16, "attention_heads": 4,
        "vocab_size": 24, "sequence_length": 32, "gated_mlp": true, "mlp_bias": false,
        "experts": 8, "experts_per_token": 2, "ffn_hidden_size": 40})",
                 options);
  };
  const ModelGraph eight = graph(Precision::Fp8), sixteen = graph(Precision::Bf16);
  const auto products_in_16_bits = [](const std::vector<Work>& works) {
    Flops total;
    for (const Work& work : works) {
      if (work.op_class == OpClass::Gemm && work.wide) total += work.flops;
    }
    return total.value();
  };
  const double tokens = 32, router = 2 * tokens * 16 * 8, readout = 2 * tokens * 16 * 24;
  const Module &block = eight.modules[1], &last = eight.modules[2];
  REQUIRE(last.name == "readout");
  for (const auto* works : {&block.forward, &block.backward_input, &block.backward_weight}) {
    CHECK(products_in_16_bits(*works) == router);
  }
  for (const auto* works : {&last.forward, &last.backward_input, &last.backward_weight}) {
    CHECK(products_in_16_bits(*works) == readout);
  }
  MESSAGE("no cast of the readout's input, or of the gradient of its logits");
  CHECK(bytes_of(last.forward) == bytes_of(sixteen.modules[2].forward));
  CHECK(bytes_of(last.backward_input) == bytes_of(sixteen.modules[2].backward_input));
  MESSAGE("inputs of queries, keys and values, of the sum behind attention, and of experts");
  const double cast = 4 * tokens * (16 + 16 + 2 * (16 + 40));
  CHECK(bytes_of(block.forward).value() - bytes_of(sixteen.modules[1].forward).value() == cast);
}

TEST_CASE("a convolution multiplies each output with its window") {
  // 2 images, side 5 to 3 at stride 2, 3 to 4 channels, 3x3 windows
  const Convolution shape = {.read = 2 * 25, .made = 2 * 9, .inputs = 3, .outputs = 4};
  const Operator op = convolution(shape, 2);
  CHECK(op.parameters == 3 * 4 * 9);
  CHECK(op.forward.flops.value() == 2.0 * (2 * 3 * 3) * 4 * (3 * 9));
  CHECK(op.forward.bytes.value() == 2 * (2 * 25 * 3 + 3 * 4 * 9 + 2 * 9 * 4));
  CHECK(op.stash.value() == 2 * 2 * 25 * 3);
  CHECK(op.gradients.value() == 2 * (2 * 25 * 3 + 2 * 9 * 4));
  CHECK(op.forward.op_class == OpClass::Convolution);
}

TEST_CASE("two flops for each multiply-add of a product's shape, and roles say which product") {
  const Module layer = make_module({}, {linear({6, 10, 14, true}, 4)}, {});
  const Operator window = convolution({.read = 50, .made = 18, .inputs = 3, .outputs = 4}, 4);
  const Module image = make_module({}, {window}, {});
  CHECK(layer.forward[0].shape == ProductShape{6, 14, 10});
  CHECK(layer.backward_input[0].shape == ProductShape{6, 10, 14});
  CHECK(layer.backward_weight[0].shape == ProductShape{10, 14, 6});
  CHECK(image.forward[0].shape == ProductShape{18, 4, 27});
  for (const Module* module : {&layer, &image}) {
    const std::vector<std::pair<const std::vector<Work>*, OpRole>> parts = {
        {&module->forward, OpRole::Forward},
        {&module->backward_input, OpRole::InputGradient},
        {&module->backward_weight, OpRole::WeightGradient}};
    for (const auto& [works, role] : parts) {
      const Work& work = works->at(0);
      const ProductShape& shape = work.shape;
      CHECK(work.role == role);
      CHECK(2 * shape.m * shape.n * shape.k * shape.batch == work.flops.value());
    }
  }
}

TEST_CASE("padding keeps the side at stride 1 and halves it upwards at stride 2") {
  const auto side_after = [](int side, int stride) {
    Images images = {.rows = {side}, .columns = {2 * side}};
    convolve(images, {.stride = stride});
    CHECK(images.columns.length ==
          output_length(std::int64_t{2} * side, window_of({.stride = stride})));
    return images.rows.length;
  };
  CHECK(side_after(7, 1) == 7);
  CHECK(side_after(7, 2) == 4);
  CHECK(side_after(8, 2) == 4);
  CHECK(side_after(1, 2) == 1);
}

TEST_CASE("kernels that take different times for equal bytes are told apart") {
  CHECK(relu(10, 2).forward.variant == OpVariant::Relu);
  CHECK(relu(10, 2).input_gradient.variant == OpVariant::Relu);
  CHECK(residual(10, 2).forward.variant == OpVariant::Add);
  CHECK(dropout(10, 2).forward.variant == OpVariant::Dropout);
  CHECK(update_work(10, Optimizer::Sgd, Precision::Fp32)[0].variant == OpVariant::Plain);
  CHECK(update_work(10, Optimizer::Adam, Precision::Fp32)[0].variant == OpVariant::Adam);
}

TEST_CASE("data movers touch what they read and write") {
  CHECK(relu(10, 2).forward.bytes.value() == 2 * 20);          // input, output
  CHECK(relu(10, 2).input_gradient.bytes.value() == 2 * 30);   // gradient, output, gradient
  CHECK(residual(10, 2).forward.bytes.value() == 2 * 30);      // two terms, sum
  CHECK(dropout(10, 2).forward.bytes.value() == 2 * 20 + 10);  // a mask of bytes
  CHECK(dropout(10, 2).stash.value() == 10);
  CHECK(relu(10, 2).stash.value() == 0);
}

TEST_CASE("a norm reads its input again for each half of its backward") {
  const Operator norm = normalisation(10, 4, 2);
  CHECK(norm.forward.bytes.value() == 2 * 20);
  CHECK(norm.input_gradient.bytes.value() == 2 * 30);   // input, gradient, gradient
  CHECK(norm.weight_gradient.bytes.value() == 2 * 20);  // input, gradient
  CHECK(norm.forward.op_class == OpClass::Normalisation);
}

TEST_CASE("the loss keeps logits in fp32") {
  const Operator loss = cross_entropy(3, 5, 2);
  CHECK(loss.forward.bytes.value() == 15 * (2 + 4));
  CHECK(loss.stash.value() == 15 * 4);
  CHECK(loss.forward.op_class == OpClass::Loss);
}

TEST_CASE("an ImageNet stem keeps picture, norm input, pooling input and 64-bit indices") {
  const double picture = 3 * 224 * 224, wide = 64 * 112 * 112, pooled = 64 * 56 * 56;
  const Module stem = zoo("resnet-50").modules.front();
  CHECK(stem.stash.value() == 2 * (picture + wide + wide) + 8 * pooled);
  CHECK(stem.output.value() == 2 * pooled);
}

TEST_CASE("an embedding keeps 64-bit token ids and moves rows") {
  const ModelGraph graph = built(R"({"kind": "transformer", "layers": 1, "hidden_size": 8,
      "attention_heads": 4, "vocab_size": 10, "sequence_length": 6, "positions": "none"})");
  const Module& embedding = graph.modules.front();
  CHECK(embedding.stash.value() == 8 * 6);
  REQUIRE(embedding.forward.size() == 1);
  CHECK(embedding.forward[0].op_class == OpClass::Embedding);
  CHECK(embedding.forward[0].bytes.value() == 2 * (2 * 6 * 8));
  CHECK(embedding.backward_weight.at(0).bytes.value() == 2 * (3 * 6 * 8));
}

TEST_CASE("rotary positions turn queries and keys in one more kernel") {
  const std::string model = R"({"kind": "transformer", "layers": 1, "hidden_size": 8,
      "attention_heads": 4, "kv_heads": 2, "vocab_size": 10, "sequence_length": 6, "positions": )";
  const Module still = built(model + "\"none\"}").modules[1];
  const Module turned = built(model + "\"rotary\"}").modules[1];
  CHECK(turned.forward.size() == still.forward.size() + 1);
  CHECK((bytes_of(turned.forward) - bytes_of(still.forward)).value() == 2 * 2 * 6 * (8 + 4));
  CHECK(turned.stash == still.stash);
}

TEST_CASE("every kernel of a block has its class") {
  int of_class[kOpClasses] = {};
  const Module block = built(R"({"base": "gpt2", "attention": "materialised"})").modules[1];
  for (const Work& work : block.forward) {
    of_class[static_cast<int>(work.op_class)] += work.launches;
  }
  CHECK(of_class[static_cast<int>(OpClass::Gemm)] == 4);
  CHECK(of_class[static_cast<int>(OpClass::Attention)] == 2);
  CHECK(of_class[static_cast<int>(OpClass::Normalisation)] == 2);
  // softmax, three dropouts, activation, two sums
  CHECK(of_class[static_cast<int>(OpClass::Elementwise)] == 7);
}

}  // namespace
}  // namespace interlock::operators_test
