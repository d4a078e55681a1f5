// Layers with degrees of their own: bytes of links, times and memory, counted by hand.
// SPDX-License-Identifier: Apache-2.0
//
// Eight blocks of width 256 in bf16 (2 bytes) under Adam (12 more bytes a parameter) on one node of
// eight devices, without latency. A block on t tensor devices has, of queries, keys and values
// (256 x 768 + 768) / t parameters, of the projection 256 x 256 / t + 256, of the MLP (256 x 1024 +
// 1024) / t + 1024 x 256 / t + 256, and of two norms 2 x 512. Embedding and readout are whole.
#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "tests/layers/support/random_layers.h"

namespace interlock::layer_sums_test {
namespace {

constexpr int kDevices = 8, kSequence = 64, kSamples = 16;  // of a micro-batch of all devices
constexpr double kWidth = 256, kElement = 2, kPort = 50e9;

double parameters(int tensor) {
  return (256.0 * 768 + 768 + 256 * 256 + 256 * 1024 + 1024 + 1024 * 256) / tensor + 256 + 256 +
         2 * 512;
}

/// Bytes of the output of a layer, of all samples of the micro-batch.
constexpr double kOutput = kSamples * kSequence * kWidth * kElement;

struct Case {
  std::vector<LayersOf> layers;  // of blocks; all else is tensor 1 x data 8
  bool sequence = false;         // parallel
  int zero = 0;
  int blocks = 8;
};

LayoutTrial trial_of(const Case& one) {
  LayersTrial trial;
  trial.layers = one.layers;
  trial.trial = {
      .model = R"({"kind": "transformer", "hidden_size": 256, "attention_heads": 8,
                   "vocab_size": 512, "sequence_length": 64, "attention": "fused",
                   "tied_embeddings": false, "layers": )" +
               std::to_string(one.blocks) + "}",
      .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 8, "nodes": 1,
                     "port": {"latency": "0 us", "bandwidth": "50 GB/s"}})",
      .parallel = R"("pipeline": 1, "tensor": 1, "data": 8, "overlap_gradients": false,
                     "order": ["tensor", "data", "context", "pipeline"], "zero_stage": )" +
                  std::to_string(one.zero) +
                  ", \"sequence_parallel\": " + (one.sequence ? "true" : "false"),
      .training = R"("strategy": "global", "schedule": "1f1b", "precision": "bf16",
                     "optimizer": "adam", "micro_batches": 2, "steps": 2,
                     "global_batch_size": )" +
                  std::to_string(2 * kSamples)};
  return one.layers.empty() ? trial.trial : trial.with_layers();
}

/// Returns the tensor degree of each block of `one`.
std::vector<int> degrees(const Case& one) {
  std::vector<int> tensor(static_cast<std::size_t>(one.blocks), 1);
  for (const LayersOf& layers : one.layers) {
    for (int module = layers.first; module < layers.end; ++module) {
      tensor[static_cast<std::size_t>(module - 1)] = layers.tensor;
    }
  }
  return tensor;
}

/// Bytes that each device sends in a step for what blocks and their layouts exchange; parameters of
/// embedding and readout come beside, and are the same for all cases.
struct Sent {
  double tensor = 0, resharding = 0, gradients = 0, weights = 0;
  double all() const { return tensor + resharding + gradients + weights; }
};

Sent sent(const Case& one) {
  Sent bytes;
  std::vector<int> all = degrees(one);
  for (const int tensor : all) {
    const double own = 1.0 * tensor / kDevices * kOutput;  // of the samples of a data device
    // Two all-reduces forward and two backward, each 2 (t - 1) / t of the tensor; or a reduce-
    // scatter and an all-gather, (t - 1) / t each. With a sequence in parts Megatron-LM gathers the
    // input of both column products once more for their weights.
    const double one_way = (tensor - 1.0) / tensor * own;
    bytes.tensor += 2 * (one.sequence ? 10 : 8) * one_way;
    const int data = kDevices / tensor;
    const double ring = (data - 1.0) / data * parameters(tensor) * kElement;
    bytes.gradients += one.zero == 0 ? 2 * ring : ring;
    // Gathered after an update; or before the forward and the backward of both micro-batches.
    if (one.zero > 0) bytes.weights += one.zero < 3 ? ring : 2 * 2 * ring;
  }
  int before = 1;    // the embedding
  all.push_back(1);  // the readout
  for (const int tensor : all) {
    if (tensor != before) {
      const double ratio = 1.0 * std::max(tensor, before) / std::min(tensor, before);
      const double gathered = 1.0 * std::max(tensor, before) / kDevices * kOutput;
      // Forward or backward a gather of the samples that a device of the wider degree has; with a
      // sequence in parts all to all, both ways, of an eighth of the tensor.
      const double own = one.sequence ? 2 * kOutput / kDevices : gathered;
      bytes.resharding += 2 * (ratio - 1) / ratio * own;
    }
    before = tensor;
  }
  return bytes;
}

std::vector<double> bytes_up(const Case& one) {
  LayoutTrial trial = trial_of(one);
  trial.fold = "\"none\"";
  std::vector<double> bytes;
  for (const LinkMetrics& link : run(trial).measurement.metrics.links)
    bytes.push_back(link.bytes.value());
  return bytes;
}

const std::vector<Case>& some_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> made;
    for (const bool sequence : {false, true}) {
      for (const int zero : {0, 1, 2, 3}) {
        made.push_back({{{3, 6, 2, 4}}, sequence, zero});
        made.push_back({{{1, 3, 8, 1}, {3, 5, 2, 4}, {7, 9, 4, 2}}, sequence, zero});
        made.push_back({{{1, 9, 4, 2}}, sequence, zero});
      }
    }
    return made;
  }();
  return all;
}

TEST_CASE("all layers of other degrees are a run of these degrees, in memory too") {
  const auto answer = [](const std::string& parallel) {
    LayoutTrial trial = trial_of({});
    trial.parallel = R"("pipeline": 1, "sequence_parallel": true, "zero_stage": 1, )" + parallel;
    return run(trial).measurement.metrics;
  };
  for (const int tensor : {2, 4, 8}) {
    const std::string degrees =
        "\"tensor\": " + std::to_string(tensor) + ", \"data\": " + std::to_string(8 / tensor);
    const Metrics layers =
        answer("\"data\": 8, \"layer_layouts\": [{\"modules\": [0, 10], " + degrees + "}]");
    const Metrics whole = answer(degrees);
    INFO(degrees);
    CHECK(layers.step_time.value() == doctest::Approx(whole.step_time.value()).epsilon(1e-9));
    for (std::size_t kind = 0; kind < whole.devices[0].memory.size(); ++kind) {
      CHECK(layers.devices[0].memory[kind].value() ==
            doctest::Approx(whole.devices[0].memory[kind].value()));
    }
    CHECK(layers.devices[0].peak_memory.value() ==
          doctest::Approx(whole.devices[0].peak_memory.value()));
    // Communicators, too: those of the run's own degrees, which no layer has, are none.
    REQUIRE(whole.devices[0].used_memory.has_value());
    CHECK(layers.devices[0].used_memory->value() ==
          doctest::Approx(whole.devices[0].used_memory->value()));
  }
}

TEST_CASE("each device sends what the tensor, resharding and data groups of its layers take") {
  for (const Case& one : some_cases()) {
    const Case plain = {{}, one.sequence, one.zero};
    const std::vector<double> links = bytes_up(one), without = bytes_up(plain);
    const Sent own = sent(one), base = sent(plain);
    INFO(layers_text(one.layers) << ", ZeRO " << one.zero << ", sequence " << one.sequence);
    INFO("tensor " << own.tensor << ", resharding " << own.resharding << ", gradients "
                   << own.gradients << ", weights " << own.weights << "; all alike " << base.all());
    REQUIRE(links.size() == 2 * kDevices);
    REQUIRE(without.size() == 2 * kDevices);
    for (std::size_t i = 0; i < links.size(); ++i) {
      CHECK(links[i] - without[i] == doctest::Approx(own.all() - base.all()).epsilon(1e-9));
    }
  }
}

double memory_of(const Case& one, MemoryClass kind) {
  return run(trial_of(one))
      .measurement.metrics.devices[0]
      .memory[static_cast<std::size_t>(kind)]
      .value();
}

TEST_CASE("weights, gradients and states are those of each layer's own degrees") {
  for (const Case& one : some_cases()) {
    const Case plain = {{}, one.sequence, one.zero};
    double weights = 0, gradients = 0, states = 0;  // more than if all are alike
    for (const int tensor : degrees(one)) {
      const double own = parameters(tensor), base = parameters(1);
      const double part = own / (kDevices / tensor), base_part = base / kDevices;
      weights += 2 * (one.zero < 3 ? own - base : part - base_part);
      // Two micro-batches are added up before gradients leave; whole, under any stage here.
      gradients += 2 * (own - base);
      states += 12 * (one.zero > 0 ? part - base_part : own - base);
    }
    INFO(layers_text(one.layers) << ", ZeRO " << one.zero << ", sequence " << one.sequence);
    const auto more = [&](MemoryClass kind) {
      return memory_of(one, kind) - memory_of(plain, kind);
    };
    CHECK(more(MemoryClass::Weights) == doctest::Approx(weights).epsilon(1e-9));
    CHECK(more(MemoryClass::Gradients) == doctest::Approx(gradients).epsilon(1e-9));
    CHECK(more(MemoryClass::Optimizer) == doctest::Approx(states).epsilon(1e-9));
  }
}

/// A block in a run whose blocks are all laid alike: what one more of them adds.
struct Block {
  double step = 0, stash = 0;
};

double step_of(const Case& one) { return run(trial_of(one)).measurement.metrics.step_time.value(); }

Block block_of(int tensor, bool sequence, int zero) {
  const auto blocks = [&](int count) -> Case {
    if (tensor == 1) return {{}, sequence, zero, count};
    return {{{1, count + 1, tensor, kDevices / tensor}}, sequence, zero, count};
  };
  const Case few = blocks(2), more = blocks(3);
  return {step_of(more) - step_of(few),
          memory_of(more, MemoryClass::Stash) - memory_of(few, MemoryClass::Stash)};
}

TEST_CASE(
    "a step is the sum of its blocks, each at its own degrees, and of what lays tensors anew") {
  for (const Case& one : some_cases()) {
    if (one.zero == 3) continue;  // weights come beside kernels
    double step = step_of({{}, one.sequence, one.zero, 2});
    double stash = memory_of({{}, one.sequence, one.zero, 2}, MemoryClass::Stash);
    const Block plain = block_of(1, one.sequence, one.zero);
    step -= 2 * plain.step;
    stash -= 2 * plain.stash;
    for (const int tensor : degrees(one)) {
      const Block block = tensor == 1 ? plain : block_of(tensor, one.sequence, one.zero);
      step += block.step;
      stash += block.stash;
    }
    const double resharding = sent(one).resharding / kPort;
    INFO(layers_text(one.layers) << ", ZeRO " << one.zero << ", sequence " << one.sequence
                                 << ": laid anew in " << resharding << " s of "
                                 << step + resharding);
    CHECK(step_of(one) == doctest::Approx(step + resharding).epsilon(1e-9));
    CHECK(memory_of(one, MemoryClass::Stash) == doctest::Approx(stash).epsilon(1e-9));
  }
}

/// Parameters of embedding and readout on one tensor device, and the final norm's.
constexpr double kTables = 2.0 * 512 * 256 + kSequence * 256 + 512;

/// Returns how long the weights of one module come, of the layout of block `block` (-1: embedding;
/// as many as there are: readout): those of all its modules are as large as they are on average.
double gather_time(const Case& one, int block, double port) {
  std::vector<int> tensor = degrees(one);
  const bool inside = block >= 0 && block < one.blocks;
  const int own = inside ? tensor[static_cast<std::size_t>(block)] : 1;
  const auto blocks = static_cast<double>(std::ranges::count(tensor, own));
  const double all = blocks * parameters(own) + (own == 1 ? kTables : 0);
  const double data = 1.0 * kDevices / own;
  return (data - 1) / data * all / (blocks + (own == 1 ? 2 : 0)) * kElement / port;
}

TEST_CASE("under ZeRO 3 the weights of all layouts come while the modules before them compute") {
  constexpr double kFast = 5e12;
  for (Case one : some_cases()) {
    if (one.zero != 3) continue;
    const auto step = [&](int zero, int prefetch) {
      one.zero = zero;
      LayoutTrial trial = trial_of(one);
      trial.cluster.replace(trial.cluster.find("50 GB/s"), 7, "5 TB/s");
      if (zero == 3) trial.parallel += ", \"prefetch\": " + std::to_string(prefetch);
      // A look: else a gather shares its links with what the module at work exchanges.
      return estimate_step(make_plan(load(trial)), Grade::Look).time.value();
    };
    const std::vector<int> tensor = degrees(one);
    // The first module of each forward, and of each backward, waits.
    const double ends = gather_time(one, -1, kFast) + gather_time(one, one.blocks, kFast);
    std::map<int, double> of_layout = {{1, ends}};
    double all = ends;
    for (int block = 0; block < one.blocks; ++block) {
      const double time = gather_time(one, block, kFast);
      of_layout[tensor[static_cast<std::size_t>(block)]] += time;
      all += time;
    }
    double after = 0;  // an update of ZeRO 2: layouts side by side
    for (const auto& [layout, time] : of_layout) after = std::max(after, time);
    INFO(layers_text(one.layers) << ", sequence " << one.sequence << ": all weights in " << all
                                 << " s, those of the ends in " << ends);
    const double without = step(2, 0) - after;
    CHECK(step(3, 0) == doctest::Approx(without + 2 * 2 * all).epsilon(1e-9));
    for (const int prefetch : {1, 2, 4}) {
      CHECK(step(3, prefetch) == doctest::Approx(without + 2 * ends).epsilon(1e-9));
    }
  }
}

TEST_CASE("weights that begin to come behind those of another layout have no room before") {
  const auto buffers = [](const std::vector<LayersOf>& layers, int prefetch) {
    LayoutTrial trial = trial_of({layers, false, 3});
    trial.parallel += ", \"prefetch\": " + std::to_string(prefetch);
    return run(trial)
        .measurement.metrics.devices[0]
        .memory[static_cast<std::size_t>(MemoryClass::Communication)]
        .value();
  };
  // Every second block is on two tensor devices; only the last one and the readout are alike.
  const std::vector<LayersOf> in_turns = {{1, 2, 2, 4}, {3, 4, 2, 4}, {5, 6, 2, 4}, {7, 8, 2, 4}};
  CHECK(buffers(in_turns, 1) > buffers(in_turns, 0));
  CHECK(buffers(in_turns, 8) == doctest::Approx(buffers(in_turns, 2)).epsilon(1e-12));
  CHECK(buffers({}, 8) > 2 * buffers({}, 2));
}

}  // namespace
}  // namespace interlock::layer_sums_test
