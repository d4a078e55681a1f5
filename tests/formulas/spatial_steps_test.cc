// Steps of images in bands: an event list worked out here, foldings, engines, published networks.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>

#include "tests/validate/support/layout_trial.h"

namespace interlock::spatial_steps_test {
namespace {

constexpr double kPort = 10e9, kPeak = 10e12, kElement = 4;

/// Devices whose kernels take time by their flops alone, and messages by their bytes.
std::string counters(int devices) {
  return R"({"kind": "machine", "devices_per_node": )" + std::to_string(devices) +
         R"(, "device": {"name": "counter", "memory": "800 GB", "efficiency": {},
              "memory_bandwidth": "1000000 TB/s", "peak": {"fp32": "10 TFLOP/s"},
              "launch_overhead": "0 us"},
              "port": {"latency": "0 us", "bandwidth": "10 GB/s"}})";
}

/// A convolution of VGG-11 on 64 pixels, and whether a pooling by 2 follows.
struct Layer {
  int side, inputs, outputs;
  bool pools;
};
const std::vector<Layer> kLayers = {
    {64, 3, 64, true},    {32, 64, 128, true}, {16, 128, 256, false}, {16, 256, 256, true},
    {8, 256, 512, false}, {8, 512, 512, true}, {4, 512, 512, false},  {4, 512, 512, true}};
constexpr double kBatch = 4, kHidden = 64, kClasses = 10, kFeatures = 512 * 2 * 2;

LayoutTrial two_bands(const std::string& strategy) {
  return {.model = R"({"kind": "vgg", "layers": 11, "image_size": 64, "classes": 10,
                       "hidden_size": 64})",
          .cluster = counters(2),
          .parallel = R"("pipeline": 1, "spatial": 2, "overlap_gradients": false)",
          .training = "\"strategy\": \"" + strategy +
                      R"(", "schedule": "1f1b", "global_batch_size": 4, "micro_batches": 1,
                         "precision": "fp32", "optimizer": "sgd", "steps": 3)"};
}

TEST_CASE("two devices with a band each pass their events: halos, kernels, halos back, gradients") {
  double clock = 0, parameters = 0, stash = 0;
  std::ostringstream events;
  const auto pass = [&](const char* what, double seconds) {
    clock += seconds;
    events << what << " until " << clock * 1e3 << " ms; ";
  };
  // A row each way at once: the ends of the line have one neighbour.
  const auto halo = [&](const Layer& l) { return kBatch * l.side * l.inputs * kElement / kPort; };
  const auto kernel = [&](const Layer& l) {
    return 2 * kBatch * l.side * l.side / 2 * l.inputs * l.outputs * 9 / kPeak;
  };
  // All samples of half the image become all of half the samples.
  const double turn = kBatch * kFeatures / 2 / 2 * kElement / kPort;
  const double dense =
      2 * kBatch / 2 * (kFeatures * kHidden + kHidden * kHidden + kHidden * kClasses) / kPeak;
  for (const Layer& layer : kLayers) {
    pass("halo", halo(layer));
    pass("convolution", kernel(layer));
    parameters += 9.0 * layer.inputs * layer.outputs + layer.outputs;
    // Its input with one more row; a pooling's, and 8 bytes for each of its outputs.
    const double made = kBatch * layer.side * (layer.side / 2.0) * layer.outputs;
    stash += kBatch * (layer.side / 2.0 + 1) * layer.side * layer.inputs * kElement;
    if (layer.pools) stash += made * kElement + made / 4 * 8;
  }
  pass("turn", turn);
  pass("dense layers", dense);
  pass("their backward", 2 * dense);
  pass("turn back", turn);
  for (auto layer = kLayers.rbegin(); layer != kLayers.rend(); ++layer) {
    pass("both gradients", 2 * kernel(*layer));
    pass("halo back", halo(*layer));
  }
  parameters += (kFeatures + 1) * kHidden + (kHidden + 1) * kHidden + (kHidden + 1) * kClasses;
  pass("all-reduce", parameters * kElement / kPort);  // a ring of two: S
  // Inputs of the three layers, masks of two dropouts, logits.
  stash += kBatch / 2 * ((kFeatures + 2 * kHidden) * kElement + 2 * kHidden + 4 * kClasses);
  INFO(events.str());
  for (const char* fold : {"\"auto\"", "\"none\""}) {
    LayoutTrial trial = two_bands("global");
    trial.fold = fold;
    const Metrics metrics = run(trial).measurement.metrics;
    CHECK(metrics.step_time.value() == doctest::Approx(clock).epsilon(1e-9));
    CHECK(metrics.devices[0].peak_stash.value() == stash);
  }
}

LayoutTrial laid(const std::string& parallel, const std::string& strategy) {
  return {.model = R"({"kind": "resnet", "block": "basic", "blocks": [1, 1, 1], "image_size": 36})",
          .cluster = R"({"machine": "dgx-a100-40g"})",
          .parallel = parallel,
          .training = "\"strategy\": " + strategy +
                      R"(, "global_batch_size": 32, "micro_batches": 2, "steps": 3)"};
}

TEST_CASE("folded or not, on either engine, steps of bands and grids take the same") {
  const std::string mesh = R"({"kind": "uniform", "device": "a100-40g", "devices": 8,
                              "link": {"latency": "2 us", "bandwidth": "16 GB/s"}})";
  int folded = 0;
  for (const std::string strategy :
       {R"("global")", R"("local")", R"({"kind": "interlocking", "n_wise": 2})"}) {
    for (const std::string parallel :
         {R"("pipeline": 4, "spatial": 2)", R"("pipeline": 2, "spatial": 4)",
          R"("pipeline": 2, "spatial": [2, 2])", R"("pipeline": 2, "data": 2, "spatial": [1, 2])",
          R"("pipeline": 1, "data": 2, "spatial": 3, "zero_stage": 2)"}) {
      LayoutTrial trial = laid(parallel, strategy);
      if (parallel.find('3') != std::string::npos) {
        trial.cluster = R"({"machine": "dgx-a100-40g", "devices": 6})";
      }
      for (const bool crowded : {true, false}) {
        if (!crowded && parallel.find('3') != std::string::npos) continue;
        if (!crowded) trial.cluster = mesh;
        INFO(document(trial));
        trial.fold = "\"none\"";
        const ScenarioResult whole = run(trial);
        trial.fold = "\"auto\"";
        const ScenarioResult result = run(trial);
        folded += folded_ranks(result.plan.question.layout.mesh, result.plan.unfolded).size() > 1;
        CHECK(result.measurement.metrics.step_time.value() ==
              doctest::Approx(whole.measurement.metrics.step_time.value()).epsilon(1e-9));
        if (crowded) continue;
        trial.engine = "simgrid";
        CHECK(run(trial).measurement.metrics.step_time.value() ==
              doctest::Approx(whole.measurement.metrics.step_time.value()).epsilon(1e-9));
        trial.engine = "auto";
      }
    }
  }
  MESSAGE(folded << " of 27 fold");
  CHECK(folded > 0);
}

TEST_CASE("ResNet-50 and VGG-16 in bands on a DGX A100: steps and memory") {
  for (const std::string model : {"\"resnet-50\"", "\"vgg-16\""}) {
    double before = 0;
    for (const auto& [name, devices] :
         {std::pair("1", 1), {"2", 2}, {"[2, 2]", 4}, {"4", 4}, {"7", 7}}) {
      LayoutTrial trial = laid(std::string(R"("pipeline": 1, "spatial": )") + name, R"("global")");
      trial.model = model;
      trial.cluster = R"({"machine": "dgx-a100-80g", "devices": )" + std::to_string(devices) + "}";
      const Metrics metrics = run(trial).measurement.metrics;
      const double memory = metrics.devices[0].peak_memory.value() / 1e6;
      MESSAGE(model << " in " << std::string(name) << ": " << metrics.step_time.value() * 1e3
                    << " ms, " << memory << " MB on a device");
      if (devices == 1) before = memory;
      CHECK(memory <= before);
    }
  }
}

}  // namespace
}  // namespace interlock::spatial_steps_test
