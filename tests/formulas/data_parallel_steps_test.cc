// Steps under data, tensor and context parallelism against event lists and volumes worked out here.
// SPDX-License-Identifier: Apache-2.0
//
// n devices at a switch, 1 MB per ms in and out and no latency: to gather or to reduce-scatter S,
// (n-1)/n S leave each device, and twice that to all-reduce it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/validate/support/layout_trial.h"

namespace interlock::data_parallel_steps_test {
namespace {

constexpr double kMs = 1e-3, kMegabyte = 1e6;

/// Modules that each take 2 ms forward and 4 ms backward and hold 6 MB of weights.
struct Devices {
  int devices = 1, modules = 1, micro_batches = 1, bucket_mb = 1000;
};
constexpr double kForward = 2, kBackward = 4, kModuleMb = 6;

std::string at_switch(int devices, double bandwidth, const std::string& latency = "0 s") {
  return R"({"kind": "machine", "device": "a100-40g", "nodes": 1, "devices_per_node": )" +
         std::to_string(devices) + R"(, "port": {"bandwidth": ")" + std::to_string(bandwidth) +
         R"( B/s", "latency": ")" + latency + R"("}})";
}

LayoutTrial replicas_trial(const Devices& d, const std::string& more) {
  return {.model = R"({"kind": "profile", "modules": [{"repeat": )" + std::to_string(d.modules) +
                   R"(, "forward": "2 ms", "backward_input": "3 ms", "backward_weight": "1 ms",
                        "parameters": "6 MB"}]})",
          .cluster = at_switch(d.devices, 1e9),
          .parallel = R"("pipeline": 1, "data": )" + std::to_string(d.devices) +
                      R"(, "bucket": ")" + std::to_string(d.bucket_mb) + " MB\"" + more,
          .training = R"("strategy": "global", "schedule": "1f1b", "steps": 4,
                         "micro_batches": )" +
                      std::to_string(d.micro_batches)};
}

double ring_share(int members) { return (members - 1.0) / members; }

/// The ring, which carries one exchange after the other.
struct Communicator {
  double free = 0;
  double join(double now, double takes) { return free = std::max(free, now) + takes; }
};

TEST_CASE("gradients leave in buckets during the last backward: the longer of both, and a rest") {
  for (const int n : {2, 3, 4}) {
    for (const int modules : {1, 4}) {
      for (const int bucket : {1000, 9, 4, 1}) {
        for (const int micro_batches : {1, 3}) {
          const double gradients = kModuleMb * modules;
          const int buckets = std::min(64, static_cast<int>(std::ceil(gradients / bucket)));
          const double each = 2 * ring_share(n) * gradients / buckets;
          const double start = micro_batches * (kForward + kBackward) * modules -
                               kBackward * modules;  // of the last backward
          Communicator communicator;
          for (int i = 1; i <= buckets; ++i) {
            communicator.join(start + kBackward * modules * i / buckets, each);
          }
          INFO(n << " devices, " << modules << " modules, " << micro_batches << " micro-batches: "
                 << buckets << " buckets of " << each << " ms, the last backward begins at "
                 << start << " ms; the last bucket is there at " << communicator.free << " ms");
          const Devices devices = {n, modules, micro_batches, bucket};
          for (const char* fold : {"\"auto\"", "\"none\""}) {
            LayoutTrial trial = replicas_trial(devices, "");
            trial.fold = fold;
            const Metrics metrics = run(trial).measurement.metrics;
            CHECK(metrics.step_time.value() / kMs ==
                  doctest::Approx(communicator.free).epsilon(1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("gradients that do not overlap wait for links once, unless a bucket divides them") {
  const Devices devices = {4, 4, 2};
  const auto step_ms = [&](const std::string& latency, const std::string& bucket) {
    LayoutTrial trial = replicas_trial(devices, "");
    trial.cluster = at_switch(4, 1e9, latency);
    trial.parallel = R"("pipeline": 1, "data": 4, "overlap_gradients": false)" + bucket;
    return run(trial).measurement.metrics.step_time.value() / kMs;
  };
  const double quick = 2 * 4 * (kForward + kBackward) + 2 * ring_share(4) * 24;
  const double once = step_ms("1 ms", "") - quick;
  INFO("24 MB at once: " << quick << " ms and " << once
                         << " ms of latency; by 4 MB six times that");
  CHECK(step_ms("0 s", "") == doctest::Approx(quick).epsilon(1e-9));
  CHECK(once > 1);
  CHECK(step_ms("1 ms", R"(, "bucket": "4 MB")") ==
        doctest::Approx(quick + 6 * once).epsilon(1e-9));
  CHECK(step_ms("1 ms", R"(, "bucket": "24 MB")") == doctest::Approx(quick + once).epsilon(1e-9));
}

TEST_CASE("gradients that do not overlap come after all computing") {
  const Devices devices = {4, 4, 2, 4};
  const Metrics metrics =
      run(replicas_trial(devices, R"(, "overlap_gradients": false)")).measurement.metrics;
  const double expected = 2 * 4 * (kForward + kBackward) + 2 * ring_share(4) * 24;
  INFO("2 micro-batches of 4 modules of 6 ms, then 2 x 3/4 x 24 MB: " << expected << " ms");
  CHECK(metrics.step_time.value() / kMs == doctest::Approx(expected).epsilon(1e-9));
  CHECK(metrics.exposed_communication.value() / kMs == doctest::Approx(36).epsilon(1e-9));
}

/// Megabytes that leave each device in a step.
double volume(const Devices& devices, const std::string& more) {
  LayoutTrial trial = replicas_trial(devices, more);
  trial.fold = "\"none\"";
  const Metrics metrics = run(trial).measurement.metrics;
  const double sum =
      std::accumulate(metrics.links.begin(), metrics.links.end(), 0.0,
                      [](double all, const LinkMetrics& link) { return all + link.bytes.value(); });
  return sum / 2 / kMegabyte / devices.devices;  // out of one port, into another
}

TEST_CASE("gradients of a sparse mask take their share of the time of an exchange") {
  const auto exposed = [](const std::string& more) {
    const Devices devices = {4, 3, 1, 1000};
    const LayoutTrial trial = replicas_trial(devices, R"(, "overlap_gradients": false)" + more);
    return run(trial).measurement.metrics.step_time;
  };
  const Seconds none = exposed(R"(, "gradient_density": 0)");
  const Seconds tenth = exposed(R"(, "gradient_density": 0.1)"), all = exposed("");
  CHECK(all > none);
  INFO("all: " << (all - none).value() << " s, a tenth: " << (tenth - none).value() << " s");
  CHECK((tenth - none).value() == doctest::Approx(0.1 * (all - none).value()).epsilon(1e-6));
}

TEST_CASE("ZeRO moves as much as data parallelism in stages 1 and 2, and half as much more in 3") {
  MESSAGE("ZeRO (arXiv 1910.02054), section 7: 2 S, 2 S and 3 S, each times (n-1)/n on a ring");
  for (const int n : {2, 4, 8}) {
    CAPTURE(n);
    const Devices devices = {n, 4, 1, 1000};
    const double s = 24 * ring_share(n);
    CHECK(volume(devices, "") == doctest::Approx(2 * s));
    CHECK(volume(devices, R"(, "zero_stage": 1)") == doctest::Approx(2 * s));
    CHECK(volume(devices, R"(, "zero_stage": 2)") == doctest::Approx(2 * s));
    CHECK(volume(devices, R"(, "zero_stage": 3)") == doctest::Approx(3 * s));
    INFO("two micro-batches: stage 3 gathers for each; all are reduced once, or each");
    const Devices twice = {n, 4, 2, 1000};
    CHECK(volume(twice, R"(, "zero_stage": 1)") == doctest::Approx(2 * s));
    CHECK(volume(twice, R"(, "zero_stage": 2)") == doctest::Approx(2 * s));
    CHECK(volume(twice, R"(, "zero_stage": 3)") == doctest::Approx(5 * s));
    const std::string each = R"(, "gradient_reduction": "micro_batch", "zero_stage": )";
    CHECK(volume(twice, each + "0") == doctest::Approx(4 * s));
    CHECK(volume(twice, each + "1") == doctest::Approx(3 * s));
    CHECK(volume(twice, each + "2") == doctest::Approx(3 * s));
    CHECK(volume(twice, each + "3") == doctest::Approx(6 * s));
  }
}

/// A step that reduces gradients after every micro-batch, from two buffers: a bucket can leave when
/// the one before it in its backward has been reduced. Milliseconds.
double step_that_reduces_each(const Devices& d) {
  const double gradients = kModuleMb * d.modules;
  const int buckets =
      std::clamp(static_cast<int>(std::ceil(gradients / d.bucket_mb)), 2, 64);  // two buffers
  const double each = ring_share(d.devices) * gradients / buckets;
  Communicator communicator;
  double now = 0;
  for (int micro_batch = 0; micro_batch < d.micro_batches; ++micro_batch) {
    now += kForward * d.modules;
    double before = 0;  // when the bucket before is reduced
    for (int i = 0; i < buckets; ++i) {
      now = std::max(now + kBackward * d.modules / buckets, before);
      before = communicator.join(now, each);
    }
  }
  return communicator.free + ring_share(d.devices) * gradients;  // the updated weights
}

TEST_CASE("gradients that are reduced after every micro-batch hold up the next ones") {
  for (const int n : {2, 4}) {
    for (const int modules : {1, 2, 4}) {
      for (const int bucket : {1000, 6, 2}) {
        for (const int micro_batches : {1, 2, 5}) {
          const Devices devices = {n, modules, micro_batches, bucket};
          const bool once = micro_batches == 1;  // there is nothing to add up
          const double gradients = kModuleMb * modules;
          for (const char* fold : {"\"auto\"", "\"none\""}) {
            LayoutTrial trial = replicas_trial(
                devices, R"(, "zero_stage": 2, "gradient_reduction": "micro_batch")");
            trial.fold = fold;
            const Metrics metrics = run(trial).measurement.metrics;
            INFO(n << " devices, " << modules << " modules, " << micro_batches << " micro-batches, "
                   << gradients << " MB in buckets of " << bucket << " MB");
            if (!once) {
              const double expected = step_that_reduces_each(devices);
              CHECK(metrics.step_time.value() / kMs == doctest::Approx(expected).epsilon(1e-9));
              const int buckets = std::max(2, static_cast<int>(std::ceil(gradients / bucket)));
              const auto held = [&](MemoryClass kind) {
                return metrics.devices[0].memory[static_cast<int>(kind)].value() / kMegabyte;
              };
              CHECK(held(MemoryClass::Gradients) == doctest::Approx(gradients / n));
              CHECK(held(MemoryClass::Communication) <= 3 * gradients / buckets * (1 + 1e-9));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("gradients that are reduced once are added up whole, and leave like those of ZeRO 1") {
  const Devices devices = {4, 4, 3, 6};
  const auto metrics = [&](const std::string& more) {
    return run(replicas_trial(devices, more)).measurement.metrics;
  };
  const Metrics one = metrics(R"(, "zero_stage": 1)"), two = metrics(R"(, "zero_stage": 2)");
  CHECK(two.step_time == one.step_time);
  CHECK(two.devices[0].memory == one.devices[0].memory);
  const Metrics each = metrics(R"(, "zero_stage": 2, "gradient_reduction": "micro_batch")");
  CHECK(each.devices[0].peak_memory < two.devices[0].peak_memory);
}

TEST_CASE("hybrid shards gather among themselves and add up the rest among each other") {
  const Devices devices = {8, 4, 1, 1000};
  for (const int shard : {2, 4}) {
    const double inside = 24 * ring_share(shard);
    const double between = 2 * ring_share(8 / shard) * 24 / shard;
    INFO("shards of " << shard << " of 8: three times " << inside << " MB inside, " << between
                      << " MB between");
    const std::string more = R"(, "zero_stage": 3, "shard": )" + std::to_string(shard);
    CHECK(volume(devices, more) == doctest::Approx(3 * inside + between));
  }
}

TEST_CASE("FSDP gathers the modules ahead that it is told to") {
  MESSAGE(
      "At the start of a pass the first modules are asked for, as many as are fetched ahead and\n"
      "one; before each further module one more is. A module runs once its weights are there.\n"
      "After the backward its gradients are reduced and scattered in one bucket.");
  for (const int n : {2, 4}) {
    for (const int modules : {1, 3, 5}) {
      for (const int ahead : {0, 1, 2, 9}) {
        const double gather = ring_share(n) * kModuleMb;
        Communicator communicator;
        double now = 0;
        for (const double kernels : {kForward, kBackward}) {
          std::vector<double> there;
          const auto ask = [&] {
            if (std::ssize(there) < modules) there.push_back(communicator.join(now, gather));
          };
          for (int i = 0; i <= ahead; ++i) ask();
          for (int module = 0; module < modules; ++module) {
            if (module > 0) ask();
            now = std::max(now, there[static_cast<std::size_t>(module)]) + kernels;
          }
        }
        const double end = communicator.join(now, ring_share(n) * kModuleMb * modules);
        INFO(n << " devices, " << modules << " modules, " << ahead << " ahead: computing ends at "
               << now << " ms, the step at " << end << " ms");
        const Metrics metrics =
            run(replicas_trial({n, modules, 1, 1000},
                               R"(, "zero_stage": 3, "prefetch": )" + std::to_string(ahead)))
                .measurement.metrics;
        CHECK(metrics.step_time.value() / kMs == doctest::Approx(end).epsilon(1e-9));
      }
    }
  }
}

constexpr double kSlow = 1e9, kFast = 1e18;  // bytes a second

/// Returns transformers of `blocks` blocks on one node of `devices` devices.
LayoutTrial blocks_trial(int blocks, const std::string& parallel, double bandwidth, int devices) {
  return {.model = small_transformer(blocks),
          .cluster = at_switch(devices, bandwidth),
          .parallel = R"("pipeline": 1, )" + parallel,
          .training = R"("strategy": "global", "micro_batches": 3, "global_batch_size": 6,
                         "optimizer": "sgd", "steps": 2)"};
}

/// Returns the time that exchanges add to a step of `blocks` blocks, in seconds.
double added(int blocks, const std::string& parallel, int devices) {
  const auto step = [&](double bandwidth) {
    return run(blocks_trial(blocks, parallel, bandwidth, devices))
        .measurement.metrics.step_time.value();
  };
  return step(kSlow) - step(kFast);
}

TEST_CASE("a block under tensor parallelism adds four all-reduces of its activations to a pass") {
  for (const int t : {2, 4}) {
    const std::string parallel = R"("tensor": )" + std::to_string(t);
    const double activations = 2 * 64 * 256 * 2.0;  // samples, tokens, width, bytes of bf16
    const double reduce = 2 * ring_share(t) * activations / kSlow;
    const double expected = 3 * 2 * 4 * reduce;
    INFO("3 micro-batches, 2 blocks more, 4 all-reduces of " << activations << " B over " << t
                                                             << " devices, Megatron-LM, figure 4");
    const auto more = [&](const std::string& sequence) {
      return added(6, parallel + sequence, t) - added(4, parallel + sequence, t);
    };
    CHECK(more("") == doctest::Approx(expected).epsilon(1e-6));
    INFO(
        "in halves under sequence parallelism, whose backward gathers the inputs of two GEMMs once "
        "more (arXiv 2205.05198, section 4.2.2), beside kernels");
    const double sequences = more(R"(, "sequence_parallel": true)");
    CHECK(sequences > expected);
    CHECK(sequences < expected * (4 + 2 * 0.5 + 0.1) / 4);
  }
}

}  // namespace
}  // namespace interlock::data_parallel_steps_test
