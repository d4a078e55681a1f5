// Steps of stages against finite differences, and their memory against what models say.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "tests/models/built.h"
#include "validate/cpu/cpu_steps.h"

namespace interlock::stage_plan_test {
namespace {

/// Layers of one stage with blocks of exactly the bytes that its plan asks for, in double.
struct PlannedStage {
  std::vector<Layer> layers;
  StagePlan plan;
  std::vector<std::vector<double>> weights, gradients, blocks;
  std::vector<std::int32_t> targets;
  StageTensors tensors;
  std::vector<char*> weight_pointers, gradient_pointers;
};

struct StageShape {
  int samples = 2, rows_per_sample = 1, columns = 1;
  Place input_gradient = Place::InputGradient;
};

double noise(Random& random) { return 2 * random.uniform() - 1; }

std::vector<double>& block(PlannedStage& stage, Place place) {
  return stage.blocks[static_cast<std::size_t>(place)];
}

char* address(std::vector<double>& numbers) { return reinterpret_cast<char*>(numbers.data()); }

double run_steps(const std::vector<Step>& steps, const PlannedStage& stage,
                 StepPart part = StepPart::All) {
  return interlock::run_steps<double>(steps, stage.tensors, stage.targets.data(), part);
}

void make_blocks(PlannedStage& stage, std::int64_t input) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  stage.blocks.assign(kPlaces, {});
  const auto numbers = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes / 8); };
  block(stage, Place::Input).assign(numbers(stage.plan.input), kNan);
  block(stage, Place::Stash).assign(numbers(stage.plan.stash), kNan);
  block(stage, Place::Workspace).assign(numbers(stage.plan.workspace), kNan);
  for (const Place place : {Place::Output, Place::OutputGradient}) {
    block(stage, place).assign(static_cast<std::size_t>(stage.plan.output.size()), kNan);
  }
  block(stage, Place::InputGradient).assign(static_cast<std::size_t>(input), kNan);
  for (std::size_t p = 0; p < stage.blocks.size(); ++p) {
    stage.tensors.places[p] = address(stage.blocks[p]);
  }
}

void make_stage(PlannedStage& stage, const StageShape& shape, std::uint64_t seed) {
  const std::int64_t rows = std::int64_t{shape.samples} * shape.rows_per_sample;
  stage.plan = plan_stage({.layers = stage.layers,
                           .samples = shape.samples,
                           .rows = rows,
                           .columns = shape.columns,
                           .element = 8,
                           .input_gradient = shape.input_gradient});
  Random random(seed, 1);
  for (const Parameter& p : parameters_of("m", stage.layers)) {
    const auto size = static_cast<std::size_t>(p.size());
    stage.weights.emplace_back(size);
    stage.gradients.emplace_back(size, 0.0);
    // Norms' gains, too, are anything but one.
    for (double& w : stage.weights.back()) w = noise(random) * (p.rows > 1 ? 0.6 : 1);
  }
  for (auto& w : stage.weights) stage.weight_pointers.push_back(address(w));
  for (auto& g : stage.gradients) stage.gradient_pointers.push_back(address(g));
  make_blocks(stage, rows * shape.columns);
  stage.tensors.weights = &stage.weight_pointers;
  stage.tensors.gradients = &stage.gradient_pointers;
  stage.tensors.samples = shape.samples;
  stage.tensors.rows_per_sample = shape.rows_per_sample;
  for (std::int64_t r = 0; r < rows; ++r) stage.targets.push_back(static_cast<int>(r % 3));
}

/// Returns the number that is differentiated: the loss, or the output along `direction`.
double value_of(PlannedStage& stage, const std::vector<double>& input,
                const std::vector<double>& direction) {
  block(stage, Place::Input) = input;
  stage.tensors.places[static_cast<std::size_t>(Place::Input)] =
      address(block(stage, Place::Input));
  double value = run_steps(stage.plan.forward, stage);
  const std::vector<double>& y = block(stage, Place::Output);
  for (std::size_t i = 0; i < y.size(); ++i) value += y[i] * direction[i];
  return value;
}

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
  Random random(seed, 2);
  std::vector<double> numbers(count);
  for (double& n : numbers) n = noise(random);
  return numbers;
}

std::vector<double> tokens(std::int64_t count, int vocabulary) {
  std::vector<double> block(static_cast<std::size_t>(count));
  auto* token = reinterpret_cast<std::int64_t*>(block.data());
  for (std::int64_t i = 0; i < count; ++i) token[i] = (i * 7 + 3) % vocabulary;
  return block;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// (value(x + h d) - value(x - h d)) / 2h, with `numbers` moved along `d`.
template <class Value>
double slope(std::vector<double>& numbers, const std::vector<double>& d, const Value& value) {
  constexpr double kStep = 1e-6;
  const std::vector<double> before = numbers;
  double difference = 0;
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t i = 0; i < d.size(); ++i) numbers[i] = before[i] + sign * kStep * d[i];
    difference += sign * value();
  }
  numbers = before;
  return difference / (2 * kStep);
}

void check_slope(double along, double difference) {
  INFO("gradient along a direction ", along, ", by differences ", difference);
  CHECK(std::abs(along - difference) <= 2e-7 * std::max(1.0, std::abs(difference)));
}

/// The backward that only passes, then both halves of the one that makes weight gradients, with
/// nothing left in the workspace between them. Returns the input gradient of the first.
std::vector<double> run_backwards(PlannedStage& stage) {
  std::vector<double> passed;
  if (!stage.plan.passing.empty()) {
    run_steps(stage.plan.passing, stage);
    passed = block(stage, Place::InputGradient);
  }
  run_steps(stage.plan.backward, stage, StepPart::ButLate);
  for (double& number : block(stage, Place::Workspace)) number = std::nan("");
  run_steps(stage.plan.backward, stage, StepPart::Late);
  return passed;
}

/// Every gradient of the stage, along random directions, against differences of its value.
void check_gradients(std::vector<Layer> layers, StageShape shape, std::uint64_t seed) {
  PlannedStage stage;
  stage.layers = std::move(layers);
  const bool embeds = stage.layers.front().kind == LayerKind::Embedding;
  if (embeds) shape.input_gradient = Place::Workspace;
  make_stage(stage, shape, seed);
  const std::int64_t rows = std::int64_t{shape.samples} * shape.rows_per_sample;
  std::vector<double> input = random_numbers(block(stage, Place::Input).size(), seed);
  if (embeds) input = tokens(rows, stage.layers.front().inputs);
  const std::vector<double> direction =
      random_numbers(block(stage, Place::Output).size(), seed + 1);
  const auto value = [&] { return value_of(stage, input, direction); };
  value();
  // Who reads what a Relu made masks its gradient.
  std::vector<double>& dy = block(stage, Place::OutputGradient);
  const bool rectified = ends_rectified(stage.layers);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy[i] = rectified && block(stage, Place::Output)[i] <= 0 ? 0 : direction[i];
  }
  const std::vector<double> passed = run_backwards(stage);
  if (!stage.plan.splits) {  // its halves cannot run apart
    for (auto& g : stage.gradients) std::fill(g.begin(), g.end(), 0.0);
    value();
    run_steps(stage.plan.backward, stage);
  }
  for (std::size_t p = 0; p < stage.weights.size(); ++p) {
    INFO("parameter ", parameters_of("m", stage.layers)[p].name);
    const std::vector<double> d = random_numbers(stage.weights[p].size(), seed + 9 + p);
    check_slope(dot(stage.gradients[p], d), slope(stage.weights[p], d, value));
  }
  if (embeds) return;
  const std::vector<double> dx = block(stage, Place::InputGradient);
  INFO("input");
  if (!passed.empty()) CHECK(passed == dx);
  const std::vector<double> d = random_numbers(input.size(), seed + 5);
  check_slope(dot(dx, d), slope(input, d, value));
}

NeuralNetwork network_from(const std::string& text, int samples) {
  const JsonValue value = parse_json(text, "test.json");
  Diagnostics diagnostics;
  NeuralNetwork network = build_network({&value, ""}, {.micro_batch_size = samples}, diagnostics);
  for (const std::string& message : diagnostics.messages()) FAIL(message);
  return network;
}

/// Layers of modules [first, end), and the shape of what they read.
void check_modules(const NeuralNetwork& network, std::size_t first, std::size_t end) {
  StageShape shape = {.samples = network.samples_per_micro_batch,
                      .rows_per_sample = network.rows_per_sample,
                      .columns = network.features};
  std::vector<Layer> layers;
  for (std::size_t m = 0; m < end; ++m) {
    if (m == first && m > 0) {
      const StagePlan before =
          plan_stage({.layers = layers,
                      .samples = shape.samples,
                      .rows = std::int64_t{shape.samples} * shape.rows_per_sample,
                      .columns = shape.columns,
                      .element = 8});
      shape.rows_per_sample = static_cast<int>(before.output.rows / shape.samples);
      shape.columns = before.output.columns;
      layers.clear();
    }
    const auto& own = network.modules[m].layers;
    layers.insert(layers.end(), own.begin(), own.end());
  }
  INFO("modules ", first, " to ", end, " of ", network.name);
  check_gradients(layers, shape, 100 * first + end);
  const auto& head = network.modules[end - 1].head;
  if (head.empty()) return;
  const StagePlan stage = plan_stage({.layers = layers,
                                      .samples = shape.samples,
                                      .rows = std::int64_t{shape.samples} * shape.rows_per_sample,
                                      .columns = shape.columns,
                                      .element = 8});
  shape.rows_per_sample = static_cast<int>(stage.output.rows / shape.samples);
  shape.columns = stage.output.columns;
  INFO("its head");
  check_gradients(head, shape, 31 * first + end);
}

void check_all_stages(const std::string& text, int samples) {
  const NeuralNetwork network = network_from(text, samples);
  for (std::size_t first = 0; first < network.modules.size(); ++first) {
    for (std::size_t end = first + 1; end <= network.modules.size(); ++end) {
      check_modules(network, first, end);
    }
  }
}

TEST_CASE("gradients of every stage of a residual MLP are its slopes") {
  check_all_stages(R"({"kind": "residual-mlp", "input_size": 5, "layers": 2, "hidden_size": 6,
                       "ffn_hidden_size": 9, "classes": 3, "head": "mlp"})",
                   3);
  check_all_stages(R"({"kind": "residual-mlp", "input_size": 5, "layers": 2, "hidden_size": 6,
                       "ffn_hidden_size": 9, "classes": 3, "reversible": true})",
                   3);
}

TEST_CASE("gradients of every stage of an MLP are its slopes") {
  check_all_stages(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [6, 4], "classes": 3})", 3);
}

TEST_CASE("gradients of every stage of a transformer are its slopes") {
  const std::string model = R"({"kind": "transformer", "layers": 2, "hidden_size": 6,
    "attention": "materialised", "attention_heads": 2,
    "vocab_size": 5, "sequence_length": 4, "tied_embeddings": false)";
  check_all_stages(model + "}", 2);
  check_all_stages(model + R"(, "bias": false, "positions": "none", "head": "linear"})", 1);
  check_all_stages(R"({"kind": "transformer", "layers": 2, "hidden_size": 6, "attention": "fused",
                       "attention_heads": 2, "vocab_size": 5, "sequence_length": 4,
                       "tied_embeddings": false})",
                   2);
}

TEST_CASE("gradients of every stage of a ResNet are its slopes") {
  check_all_stages(R"({"kind": "resnet", "block": "basic", "blocks": [1, 1], "image_size": 5,
                       "base_width": 2, "classes": 3, "head": "mlp"})",
                   2);
}

TEST_CASE("gradients of a convolution head are its slopes") {
  const NeuralNetwork network = network_from(
      R"({"kind": "resnet", "block": "basic", "blocks": [1], "image_size": 3, "base_width": 2,
          "classes": 3})",
      2);
  check_gradients(network.modules[0].head, {.samples = 2, .rows_per_sample = 9, .columns = 2}, 4);
}

TEST_CASE("a scaled row has the gradients that anyone can see") {
  check_gradients({{.kind = LayerKind::Scale, .name = "s", .inputs = 3, .outputs = 3}},
                  {.samples = 2, .columns = 3}, 3);
}

/// The bytes that the plan of each stage of equal length asks for, beside its modules'.
void check_bytes(const std::string& text, int samples) {
  const BuildOptions options = {.micro_batch_size = samples, .precision = Precision::Fp32};
  const ModelGraph graph = built(text, options);
  const NeuralNetwork network = network_from(text, samples);
  Tensor input = {.rows = std::int64_t{samples} * network.rows_per_sample,
                  .columns = network.features};
  for (std::size_t m = 0; m < network.modules.size(); ++m) {
    INFO(text, ", ", graph.modules[m].name);
    const auto& layers = network.modules[m].layers;
    const StagePlan plan =
        plan_stage({.layers = layers,
                    .samples = samples,
                    .rows = input.rows,
                    .columns = input.columns,
                    .input_gradient = m > 0 ? Place::InputGradient : Place::Workspace});
    CHECK(static_cast<double>(plan.input + plan.stash) == graph.modules[m].stash.value());
    CHECK(static_cast<double>(plan.workspace) <= graph.modules[m].workspace.value());
    CHECK(plan.parameters == graph.modules[m].parameters);
    CHECK(plan.splits);
    if (m + 1 == network.modules.size()) break;
    CHECK(static_cast<double>(plan.output.size() * 4) == graph.modules[m].output.value());
    const auto& head = network.modules[m].head;
    input = plan.output;
    const StagePlan own = plan_stage(
        {.layers = head, .samples = samples, .rows = input.rows, .columns = input.columns});
    CHECK(static_cast<double>(own.input + own.stash + own.workspace) <=
          graph.modules[m].head.memory.value());
  }
}

TEST_CASE("plans keep what models say, to the byte, and find room in their workspace") {
  for (const int samples : {1, 4}) {
    check_bytes(R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7, 3], "classes": 3})",
                samples);
    check_bytes(R"({"kind": "residual-mlp", "input_size": 5, "layers": 2, "hidden_size": 6,
                    "classes": 3})",
                samples);
    check_bytes(R"({"kind": "residual-mlp", "input_size": 5, "layers": 2, "hidden_size": 6,
                    "classes": 3, "reversible": true})",
                samples);
    check_bytes(R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
        "attention": "materialised", "attention_heads": 2,
                    "vocab_size": 13, "sequence_length": 6, "tied_embeddings": false})",
                samples);
    check_bytes(R"({"kind": "transformer", "layers": 2, "hidden_size": 8, "attention": "fused",
                    "attention_heads": 2, "vocab_size": 13, "sequence_length": 6,
                    "tied_embeddings": false})",
                samples);
    check_bytes(R"({"kind": "resnet", "block": "basic", "blocks": [2, 2], "image_size": 8,
                    "base_width": 4})",
                samples);
  }
}

}  // namespace
}  // namespace interlock::stage_plan_test
