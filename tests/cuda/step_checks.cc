// Whole stages on a GPU in fp32 and bf16 against the same on a CPU in double: needs a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/json/json.h"
#include "tests/cuda/device_numbers.h"
#include "tests/harness/support/training.h"
#include "validate/cpu/cpu_steps.h"
#include "validate/cuda/stage/gpu_steps.h"

using namespace interlock;
using namespace interlock::cuda;

namespace {

/// The tensors that a stage reads and holds, in double.
struct Trial {
  std::vector<Layer> layers;
  int samples = 2, rows_per_sample = 1, columns = 1;
  std::vector<Parameter> parameters;
  std::vector<Numbers> weights;
  Numbers input, slopes;
  Tokens tokens, targets;
};

/// Output, input gradient and weight gradients, one after the other.
using Made = std::vector<Numbers>;

StagePlan plan_of(const Trial& trial, int element) {
  const bool embeds = trial.layers.front().kind == LayerKind::Embedding;
  return plan_stage({.layers = trial.layers,
                     .samples = trial.samples,
                     .rows = std::int64_t{trial.samples} * trial.rows_per_sample,
                     .columns = trial.columns,
                     .element = element,
                     .input_gradient = embeds ? Place::Workspace : Place::InputGradient});
}

Made run_on_cpu(const Trial& trial) {
  const StagePlan plan = plan_of(trial, sizeof(double));
  const std::size_t inputs = trial.input.size();
  std::vector<Numbers> places(kPlaces), weights = trial.weights, gradients;
  const auto output = static_cast<std::size_t>(plan.output.size());
  const auto size_of = [&](Place place) -> Numbers& {
    return places[static_cast<std::size_t>(place)];
  };
  size_of(Place::Input) = trial.input;
  if (!trial.tokens.empty()) {
    size_of(Place::Input).resize(trial.tokens.size());
    auto* tokens = reinterpret_cast<std::int64_t*>(size_of(Place::Input).data());
    std::copy(trial.tokens.begin(), trial.tokens.end(), tokens);
  }
  size_of(Place::Stash).resize(static_cast<std::size_t>(plan.stash) / sizeof(double));
  size_of(Place::Workspace).resize(static_cast<std::size_t>(plan.workspace) / sizeof(double));
  size_of(Place::Output).resize(output);
  size_of(Place::OutputGradient) = trial.slopes;
  size_of(Place::InputGradient).resize(inputs);
  const auto address = [](Numbers& numbers) { return reinterpret_cast<char*>(numbers.data()); };
  std::vector<char*> at_weights, at_gradients;
  for (Numbers& w : weights) gradients.emplace_back(w.size(), 0.0);
  for (Numbers& w : weights) at_weights.push_back(address(w));
  for (Numbers& g : gradients) at_gradients.push_back(address(g));
  StageTensors on;
  for (std::size_t p = 0; p < places.size(); ++p) on.places[p] = address(places[p]);
  on.weights = &at_weights;
  on.gradients = &at_gradients;
  const auto run = [&](const std::vector<Step>& steps) {
    return interlock::run_steps<double>(steps, on, trial.targets.data());
  };
  on.samples = trial.samples;
  on.rows_per_sample = trial.rows_per_sample;
  Made made = {{run(plan.forward)}};
  made.push_back(size_of(Place::Output));
  if (!plan.passing.empty()) run(plan.passing);
  made.push_back(size_of(Place::InputGradient));
  run(plan.backward);
  made.push_back(size_of(Place::InputGradient));
  made.insert(made.end(), gradients.begin(), gradients.end());
  return made;
}

Made run_on_gpu(const Trial& trial, OnDevice& device) {
  const StagePlan plan = plan_of(trial, static_cast<int>(bytes_of(device.stream().element)));
  Products products(0);
  Scratch scratch;
  const KernelContext context = {device.stream(), &products, &scratch, 16};
  StageTensors on;
  const auto room = [&](Place place, std::int64_t bytes) {
    on.places[static_cast<std::size_t>(place)] =
        static_cast<char*>(device.room(static_cast<std::size_t>(bytes)));  // more than enough
  };
  Numbers input = trial.input, slopes = trial.slopes;
  room(Place::Stash, plan.stash);
  room(Place::Workspace, plan.workspace);
  room(Place::Output, plan.output.size());
  room(Place::InputGradient, static_cast<std::int64_t>(input.size()));
  on.places[static_cast<std::size_t>(Place::Input)] = static_cast<char*>(device.put(input));
  on.places[static_cast<std::size_t>(Place::OutputGradient)] =
      static_cast<char*>(device.put(slopes));
  std::vector<char*> weights, gradients;
  for (Numbers w : trial.weights) {
    weights.push_back(static_cast<char*>(device.put(w)));
    Numbers zeros(w.size(), 0);
    gradients.push_back(static_cast<char*>(device.put(zeros)));
  }
  Tokens order(trial.tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return trial.tokens[a] < trial.tokens[b]; });
  on.weights = &weights;
  on.gradients = &gradients;
  Numbers nothing = {0};
  const GpuBatch batch = {device.put_tokens(trial.tokens), device.put_tokens(order), nullptr,
                          device.put_tokens(trial.targets), device.put_fp32(nothing)};
  on.samples = trial.samples;
  on.rows_per_sample = trial.rows_per_sample;
  const auto at = [&](Place place, std::size_t size) {
    return device.get(on.places[static_cast<std::size_t>(place)], size);
  };
  run_steps(context, plan.forward, on, batch);
  Made made = {device.get_fp32(batch.loss, 1)};
  made.push_back(at(Place::Output, static_cast<std::size_t>(plan.output.size())));
  run_steps(context, plan.passing, on, batch);
  made.push_back(at(Place::InputGradient, trial.input.size()));
  run_steps(context, plan.backward, on, batch);
  made.push_back(at(Place::InputGradient, trial.input.size()));
  for (std::size_t p = 0; p < weights.size(); ++p) {
    made.push_back(device.get(gradients[p], trial.weights[p].size()));
  }
  return made;
}

/// Returns `trial` with every number off by up to an ulp of bf16: how far results may be off that
/// are rounded on their way, where a norm or a mask makes much of little.
Trial nudged(Trial trial, std::uint64_t seed) {
  const auto nudge = [&](Numbers& numbers) {
    const Numbers by = random_numbers(numbers.size(), seed++);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= 1 + by[i] / 128;
  };
  for (Numbers& weight : trial.weights) nudge(weight);
  nudge(trial.input);
  nudge(trial.slopes);
  return trial;
}

void compare(Trial trial, std::uint64_t seed, Element element) {
  trial.parameters = parameters_of("m", trial.layers);
  for (std::size_t p = 0; p < trial.parameters.size(); ++p) {
    trial.weights.push_back(
        random_numbers(static_cast<std::size_t>(trial.parameters[p].size()), seed + p));
  }
  const int rows = trial.samples * trial.rows_per_sample;
  if (trial.layers.front().kind == LayerKind::Embedding) {
    trial.tokens =
        random_tokens(static_cast<std::size_t>(rows), trial.layers.front().inputs - 1, seed + 50);
  } else {
    trial.input = random_numbers(
        static_cast<std::size_t>(rows) * static_cast<std::size_t>(trial.columns), seed + 51);
  }
  trial.targets = random_tokens(static_cast<std::size_t>(rows), 2, seed + 52);
  const StagePlan plan = plan_of(trial, sizeof(double));
  trial.slopes = random_numbers(static_cast<std::size_t>(plan.output.size()), seed + 53);
  OnDevice device(element, 16);
  // Both work on the numbers that the device has: rounded to its type.
  for (Numbers& weight : trial.weights) device.put(weight);
  for (Numbers* numbers : {&trial.input, &trial.slopes}) device.put(*numbers);
  const Made expected = run_on_cpu(trial);
  const Made near = run_on_cpu(nudged(trial, seed + 60));
  const Made made = run_on_gpu(trial, device);
  REQUIRE(made.size() == expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const bool empty = std::all_of(expected[i].begin(), expected[i].end(),
                                   [](double number) { return number == 0; });
    if (empty || (i == 2 && plan.passing.empty())) continue;
    const std::string name =
        i < 4 ? std::vector<std::string>{"loss", "output", "passed gradient", "input gradient"}[i]
              : trial.parameters[i - 4].name;
    const double off = distance(made[i], expected[i]);
    const double blur = distance(near[i], expected[i]);
    INFO(name, ": ", off, ", of inputs an ulp away ", blur);
    CHECK(off <= (element == Element::Fp32 ? 1e-4 : std::clamp(3 * blur, 1e-2, 0.5)));
  }
}

/// Modules of a model, one after the other.
std::vector<Layer> layers_of(const std::string& model, int samples, std::size_t first,
                             std::size_t end) {
  const JsonValue document = parse_json(model, "model.json");
  Diagnostics diagnostics;
  const auto network = build_network({&document, ""}, {.micro_batch_size = samples}, diagnostics);
  diagnostics.throw_if_any();
  std::vector<Layer> layers;
  for (std::size_t m = first; m < std::min(end, network.modules.size()); ++m) {
    layers.insert(layers.end(), network.modules[m].layers.begin(), network.modules[m].layers.end());
  }
  return layers;
}

}  // namespace

TEST_CASE("stages of every kind of model: output, both backwards and weight gradients") {
  const std::string words =
      R"({"kind": "transformer", "layers": 2, "hidden_size": 48,
        "attention": "materialised", "attention_heads": 3,
          "vocab_size": 37, "sequence_length": 20, "tied_embeddings": false})";
  const std::string fused =
      R"({"kind": "transformer", "layers": 1, "hidden_size": 48,
        "attention": "fused", "attention_heads": 3,
          "vocab_size": 37, "sequence_length": 20, "tied_embeddings": false})";
  const auto both = [](const Trial& trial, std::uint64_t seed) {
    for (const Element element : {Element::Fp32, Element::Bf16}) compare(trial, seed, element);
  };
  for (const int samples : {2, 5}) {  // fewer, and more, than heads
    both({layers_of(words, samples, 0, 2), samples, 20, 1}, 1);
    both({layers_of(words, samples, 1, 3), samples, 20, 48}, 2);
    both({layers_of(words, samples, 1, 9), samples, 20, 48}, 3);
  }
  both({layers_of(fused, 2, 1, 2), 2, 20, 48}, 8);
  both({layers_of(fused, 2, 0, 9), 2, 20, 1}, 9);
  const std::string images =
      R"({"kind": "resnet", "block": "basic", "blocks": [1, 1], "image_size": 10, "base_width": 8,
          "classes": 5, "head": "mlp"})";
  both({layers_of(images, 3, 0, 9), 3, 100, 3}, 4);
  both({layers_of(images, 3, 1, 3), 3, 100, 8}, 5);
  const std::string mlp =
      R"({"kind": "residual-mlp", "input_size": 6, "layers": 2, "hidden_size": 33, "classes": 4})";
  both({layers_of(mlp, 7, 0, 9), 7, 1, 6}, 6);
  both({layers_of(mlp, 7, 1, 2), 7, 1, 33}, 7);
}
