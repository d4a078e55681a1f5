// States on hosts, gathered weights and buffers of gradients: bytes and times against closed forms.
// SPDX-License-Identifier: Apache-2.0
//
// Four modules of 3 million parameters in bf16: 6 MB of weights, 6 of gradients and, under Adam, 36
// of fp32 weights and moments each (2 + 2 + 12 bytes a parameter: ZeRO, arXiv 1910.02054, section
// 3.1).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/validate/support/layout_trial.h"

namespace interlock::state_memory_test {
namespace {

constexpr double kModules = 4, kModuleMb = 6, kWeights = kModules * kModuleMb;
constexpr double kStates = 6 * kWeights, kMs = 1e-3, kMegabyte = 1e6;

struct States {
  int devices = 1, zero_stage = 0, micro_batches = 2;
  double offloaded = 0;       // share of the optimiser
  double host_gigabytes = 6;  // a second
  double link_gigabytes = 1000;
  std::string parallel = {};  // further members
};

LayoutTrial trial_of(const States& states) {
  return {.model = R"({"kind": "profile", "modules": [{"repeat": 4, "forward": "2 ms",
             "backward_input": "3 ms", "backward_weight": "1 ms", "update": "1 ms",
             "parameters": "6 MB"}]})",
          .cluster = R"({"kind": "uniform", "memory": "80 GiB", "host": {"bandwidth": ")" +
                     std::to_string(states.host_gigabytes) + R"( GB/s"}, "link": {"bandwidth": ")" +
                     std::to_string(states.link_gigabytes) + R"( GB/s"}, "devices": )" +
                     std::to_string(states.devices) + "}",
          .parallel = R"("pipeline": 1, "zero_stage": )" + std::to_string(states.zero_stage) +
                      ", \"data\": " + std::to_string(states.devices) + states.parallel,
          .training = R"("strategy": "global", "schedule": "1f1b", "optimizer": "adam",
                         "steps": 2, "micro_batches": )" +
                      std::to_string(states.micro_batches) + R"(, "offload": {"optimizer": )" +
                      std::to_string(states.offloaded) + "}"};
}

double megabytes_on(const Metrics& metrics, const std::string& link) {
  const auto found = std::find_if(metrics.links.begin(), metrics.links.end(),
                                  [&](const LinkMetrics& l) { return l.name == link; });
  return found == metrics.links.end() ? 0 : found->bytes.value() / kMegabyte;
}

double megabytes_of(const DeviceMetrics& device, MemoryClass memory_class) {
  return device.memory[static_cast<std::size_t>(memory_class)].value() / kMegabyte;
}

TEST_CASE("an offloaded optimiser sends gradients down and weights up, once a step") {
  for (const int devices : {1, 2, 4}) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      for (const double share : {0.0, 0.5, 1.0}) {
        if (devices == 1 && zero_stage > 0) continue;
        const double parts = zero_stage > 0 ? devices : 1;
        const double moved = share * kWeights / parts;
        INFO("ZeRO " << zero_stage << " on " << devices << " devices, share " << share << ": "
                     << moved << " MB each way, states of " << kStates << " MB in " << parts
                     << " parts");
        const Metrics metrics =
            run(trial_of({.devices = devices, .zero_stage = zero_stage, .offloaded = share}))
                .measurement.metrics;
        CHECK(megabytes_on(metrics, "gpu0 to host") == doctest::Approx(moved));
        CHECK(megabytes_on(metrics, "gpu0 from host") == doctest::Approx(moved));
        const DeviceMetrics& device = metrics.devices[0];
        CHECK(megabytes_of(device, MemoryClass::Optimizer) ==
              doctest::Approx((1 - share) * kStates / parts));
        CHECK(device.host.optimizer.value() / kMegabyte ==
              doctest::Approx(share * kStates / parts));
        CHECK(device.host.gradients.value() / kMegabyte == doctest::Approx(moved));
        CHECK(metrics.host_memory.value() / kMegabyte ==
              doctest::Approx(devices * share * (kStates + kWeights) / parts));
      }
    }
  }
}

TEST_CASE("an offloaded update takes as long as its copies, or as what is left on the device") {
  for (const double share : {0.25, 0.5, 0.75, 1.0}) {
    for (const double host : {1.5, 6.0, 60.0, 600.0}) {
      const double computing = 2 * kModules * (2 + 4);
      const double copy = share * kModuleMb / host;
      const double here = kModules * 1 * (1 - share);
      const double expected = computing + std::max(here, (kModules + 1) * copy);
      INFO("computing " << computing << " ms, an update of " << here << " ms, or 4 copies down of "
                        << copy << " ms with the weights a module behind: " << expected << " ms");
      const Metrics metrics =
          run(trial_of({.offloaded = share, .host_gigabytes = host})).measurement.metrics;
      CHECK(metrics.step_time.value() / kMs == doctest::Approx(expected).epsilon(1e-9));
    }
  }
}

TEST_CASE("a checkpoint holds the states that the host keeps, too") {
  for (const double share : {0.0, 0.5, 1.0}) {
    LayoutTrial trial = trial_of({.offloaded = share});
    trial.training += R"(}, "run": {"steps": 9, "checkpoint": {"interval": 3,
                             "bandwidth": "1 GB/s"})";
    const ScenarioResult result = run(trial);
    REQUIRE(result.run);
    INFO("24 MB of weights and 144 MB of states at 1 GB/s, share " << share);
    CHECK(result.run->plan.checkpoint.write.value() / kMs ==
          doctest::Approx(kWeights + kStates).epsilon(1e-9));
  }
}

/// Beside weights, gradients and states, which is all else that a profile without stash holds.
double most_buffers(const States& states) {
  const Metrics metrics = run(trial_of(states)).measurement.metrics;
  const DeviceMetrics& device = metrics.devices[0];
  const double resident = megabytes_of(device, MemoryClass::Weights) +
                          megabytes_of(device, MemoryClass::Gradients) +
                          megabytes_of(device, MemoryClass::Optimizer);
  const double buffers = megabytes_of(device, MemoryClass::Communication);
  CHECK(device.peak_memory.value() / kMegabyte == doctest::Approx(resident + buffers));
  return buffers;
}

TEST_CASE("ZeRO 3 holds the module at work and those gathered ahead, ZeRO 2 and 3 two buckets") {
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const int prefetch : {0, 1, 2, 7}) {
      for (const int buckets : {1, 2, 4, 8}) {
        const double gathered = zero_stage < 3 ? 0 : kModuleMb * std::min(prefetch + 1, 4);
        // One is filled while the one before is on its way, which takes next to no time here.
        const double sent = zero_stage < 2 ? 0 : kWeights * std::min(2, buckets) / buckets;
        INFO("ZeRO " << zero_stage << ", prefetch " << prefetch << ", " << buckets
                     << " buckets: " << gathered << " + " << sent << " MB");
        const States states = {.devices = 2,
                               .zero_stage = zero_stage,
                               .parallel = R"(, "gradient_reduction": "micro_batch")"
                                           ", \"prefetch\": " +
                                           std::to_string(prefetch) + ", \"bucket\": \"" +
                                           std::to_string(24 / buckets) + " MB\""};
        CHECK(most_buffers(states) == doctest::Approx(gathered + sent));
      }
    }
  }
}

TEST_CASE("gradients that do not leave early are all held until the update under ZeRO 2 and 3") {
  for (const int zero_stage : {1, 2, 3}) {
    const double gathered = zero_stage < 3 ? 0 : 2 * kModuleMb;
    const double held = zero_stage < 2 ? 0 : kWeights;
    INFO("ZeRO " << zero_stage << ": " << gathered << " gathered, " << held << " MB held");
    CHECK(most_buffers({.devices = 2,
                        .zero_stage = zero_stage,
                        .micro_batches = 1,
                        .parallel = R"(, "overlap_gradients": false, "bucket": "6 MB")"}) ==
          doctest::Approx(gathered + held));
  }
}

TEST_CASE("ZeRO divides weights, gradients and states by its stage") {
  for (const int devices : {2, 4}) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      const auto part = [&](int from) { return zero_stage >= from ? devices : 1; };
      INFO("ZeRO " << zero_stage << " on " << devices << " devices (arXiv 1910.02054, figure 1)");
      const Metrics metrics =
          run(trial_of({.devices = devices,
                        .zero_stage = zero_stage,
                        .parallel = R"(, "gradient_reduction": "micro_batch")"}))
              .measurement.metrics;
      const DeviceMetrics& device = metrics.devices[0];
      CHECK(megabytes_of(device, MemoryClass::Optimizer) == doctest::Approx(kStates / part(1)));
      CHECK(megabytes_of(device, MemoryClass::Gradients) == doctest::Approx(kWeights / part(2)));
      CHECK(megabytes_of(device, MemoryClass::Weights) == doctest::Approx(kWeights / part(3)));
    }
  }
}

}  // namespace
}  // namespace interlock::state_memory_test
