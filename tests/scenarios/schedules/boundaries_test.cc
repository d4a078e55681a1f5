// Boundaries between stages: casts, and gradients of every k-th micro-batch, by hand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tests/scenarios/plan/small_run.h"

namespace interlock::boundaries_test {
namespace {

constexpr double kOutput = 1 << 20, kBandwidth = 1e9, kWire = 5e8, kMillisecond = 1e-3;

/// Returns stages of 1 ms a pass, a head of 0.5 ms each, on devices of 1 GB/s; and `more`.
Overrides in_a_row(int stages, const Overrides& more) {
  const std::string count = std::to_string(stages);
  return joined({R"(model={"kind": "profile", "modules": [{"repeat": )" + count +
                     R"(, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
                         "head": "0.5 ms", "output": "1 MiB", "stash": "2 MiB"}]})",
                 R"(cluster={"kind": "uniform", "devices": )" + count +
                     R"(, "link": {"bandwidth": "500 MB/s"},
                     "device": {"memory": "80 GB", "memory_bandwidth": "1 GB/s",
                                "peak": {"bf16": "1 EFLOP/s", "fp32": "1 EFLOP/s"},
                                "efficiency": "peak"}})",
                 "parallel.pipeline=" + count, "training.strategy=global",
                 "training.micro_batches=1", "training.steps=1", "training.schedule=naive"},
                more);
}

ScenarioResult cast(const std::string& activations, const std::string& gradients,
                    const std::string& precision = "bf16") {
  return run(in_a_row(2, {R"(training.strategy={"kind": "global", "activation_format": ")" +
                              activations + R"(", "gradient_format": ")" + gradients + R"("})",
                          "training.precision=" + precision}));
}

double peak(const ScenarioResult& result, std::size_t device) {
  return result.measurement.metrics.devices.at(device).peak_memory.value();
}

double sent(const ScenarioResult& result, int from, int to) {
  const std::string name = std::to_string(from) + "->" + std::to_string(to);
  for (const LinkMetrics& link : result.measurement.metrics.links) {
    if (link.name == name) return link.bytes.value();
  }
  return 0;
}

TEST_CASE("a cast is paid on both ends, and its message is as much shorter") {
  const double plain = step_of(cast("training", "training"));
  CHECK(plain == doctest::Approx(6 * kMillisecond + 2 * kOutput / kWire));
  struct Format {
    const char* name;
    double of_element;
  };
  const std::vector<Format> formats = {
      {"training", 2}, {"fp8", 1 + 4.0 / 128}, {"int8", 1 + 4.0 / 4096}, {"int4", 0.5 + 4.0 / 128}};
  for (const Format& up : formats) {
    for (const Format& down : formats) {
      INFO(up.name << " up, " << down.name << " down");
      const auto passage = [](const Format& format) {
        const double bytes = kOutput / 2 * format.of_element;
        const double casts = format.of_element == 2 ? 0 : 2 * (kOutput + bytes) / kBandwidth;
        return casts + bytes / kWire;
      };
      const ScenarioResult result = cast(up.name, down.name);
      CHECK(step_of(result) ==
            doctest::Approx(6 * kMillisecond + passage(up) + passage(down)).epsilon(1e-9));
      CHECK(sent(result, 0, 1) == doctest::Approx(kOutput / 2 * up.of_element));
      CHECK(sent(result, 1, 0) == doctest::Approx(kOutput / 2 * down.of_element));
    }
  }
}

TEST_CASE("casts are work beside what a stage is for") {
  const auto useful = [](const ScenarioResult& result) {
    const Metrics& metrics = result.measurement.metrics;
    return metrics.useful * metrics.step_time.value();
  };
  const ScenarioResult result = cast("fp8", "int4");
  CHECK(useful(result) == doctest::Approx(3 * kMillisecond));  // of each device
  CHECK(useful(result) == doctest::Approx(useful(cast("training", "training"))));
}

TEST_CASE("a cast takes as long as the host needs to issue it, on either end") {
  const auto step = [](const std::string& strategy, const std::string& framework) {
    return step_of(run(in_a_row(2, {R"(training.strategy={"kind": "global")" + strategy + "}",
                                    "training.framework=" + framework})));
  };
  const std::string up = R"(, "activation_format": "fp8")",
                    both = up + R"(, "gradient_format": "fp8")";
  const double bytes = kOutput / 2 * (1 + 4.0 / 128), cast = (kOutput + bytes) / kBandwidth;
  const double plain = 6 * kMillisecond + 2 * bytes / kWire;
  CHECK(cast < 2 * kMillisecond);
  CHECK(step(both, R"({"kernel_issue": "1 ms"})") == doctest::Approx(plain + 4 * cast));
  CHECK(step(both, R"({"kernel_issue": "2 ms"})") == doctest::Approx(plain + 8 * kMillisecond));
  INFO("the schedule casts, and no autograd");
  CHECK(step(both, R"({"kernel_issue": "2 ms", "backward_issue": "9 ms"})") ==
        doctest::Approx(plain + 8 * kMillisecond));
  CHECK(step(up, R"({"kernel_issue": "2 ms"})") ==
        doctest::Approx(6 * kMillisecond + (bytes + kOutput) / kWire + 4 * kMillisecond));
  INFO("what casts nothing issues nothing");
  CHECK(step("", R"({"kernel_issue": "2 ms"})") == doctest::Approx(step("", "{}")));
}

TEST_CASE("a slow device is slow in its own casts, and in no others") {
  const double bytes = kOutput / 2 * (1 + 4.0 / 128), cast = (kOutput + bytes) / kBandwidth;
  const double wire = 2 * bytes / kWire;
  const auto step = [](const std::string& variation) {
    return step_of(run(in_a_row(2, {R"(training.strategy={"kind": "global",
                                    "activation_format": "fp8", "gradient_format": "fp8"})",
                                    "variation=" + variation})));
  };
  const double slow = 33 * kMillisecond + 2 * cast + 10 * 2 * cast + wire;
  CHECK(step(R"({"stragglers": [{"rank": 1, "slowdown": 10}]})") == doctest::Approx(slow));
  CHECK(step(R"({"speeds": [1, 0.1]})") == doctest::Approx(slow));
  INFO("machines whose memory differs: the profile has measured passes on both, and no casts");
  const auto machine = [](const std::string& bandwidth) {
    return R"({"kind": "machine", "nodes": 1, "port": {"bandwidth": "1000000 TB/s"}, "cards":
               {"bandwidth": "500 MB/s"}, "device": {"memory": "80 GB", "efficiency": "peak",
               "peak": {"bf16": "1 EFLOP/s"}, "memory_bandwidth": ")" +
           bandwidth + "\"}}";
  };
  for (const auto& [first, second] : {std::pair(1, 4), std::pair(4, 1)}) {
    const JsonValue text = document(
        R"({"model": {"kind": "profile", "modules": [{"repeat": 2, "forward": "1 ms",
            "backward_input": "1 ms", "backward_weight": "1 ms", "output": "1 MiB"}]},
            "cluster": {"machines": [)" +
            machine(std::to_string(first) + " GB/s") + ", " +
            machine(std::to_string(second) + " GB/s") +
            R"(]}, "parallel": {"pipeline": 2}, "training": {"micro_batches": 1, "steps": 1,
            "strategy": {"kind": "global", "activation_format": "fp8",
                         "gradient_format": "fp8"}}})",
        {});
    const ScenarioResult result = run_scenario(load_questions(text).front(), false);
    const auto busy = [&](std::size_t device) {
      const DeviceMetrics& metrics = result.measurement.metrics.devices.at(device);
      return metrics.busy * step_of(result);
    };
    CHECK(busy(0) == doctest::Approx(3 * kMillisecond + 2 * cast / first));
    CHECK(busy(1) == doctest::Approx(3 * kMillisecond + 2 * cast / second));
  }
}

TEST_CASE("tensor devices that send a part each cast that part, and all that they gathered") {
  // Two nodes of two tensor devices; memory of 1 GB/s, cards of 1 MB/s: one output goes up, and its
  // gradient comes down, each in two parts.
  const auto step = [](const std::string& format, const std::string& divides) {
    return step_of(
        run(small_run({R"(cluster={"kind": "machine", "devices_per_node": 2, "nodes": 2,
             "device": {"memory": "80 GB", "memory_bandwidth": "1 GB/s", "efficiency": "peak",
                        "peak": {"bf16": "1 EFLOP/s", "fp32": "1 EFLOP/s"}},
             "port": {"latency": "0 s", "bandwidth": "1 GB/s"},
             "cards": {"per_node": 2, "latency": "0 s", "bandwidth": "1 MB/s"}})",
                       "parallel.pipeline=2", "parallel.tensor=2", "training.micro_batches=1",
                       R"(training.framework={"divides_messages": )" + divides + "}",
                       R"(training.strategy={"kind": "global", "activation_format": ")" + format +
                           R"(", "gradient_format": ")" + format + "\"}"})));
  };
  const double tensor = 2 * 128 * 256 * 2, bytes = tensor / 2 * (1 + 4.0 / 128);
  const double cast = (tensor + bytes) / kBandwidth, less = tensor - bytes;
  CHECK(step("fp8", "false") - step("training", "false") ==
        doctest::Approx(2 * (2 * cast - less / 1e6)));
  CHECK(step("fp8", "true") - step("training", "true") ==
        doctest::Approx(2 * (cast / 2 + cast - less / 2 / 1e6 - less / 2 / kBandwidth)));
}

TEST_CASE("copies on the kernels' queue are of what is sent") {
  const auto copied = [](const char* format) {
    const auto step = [&](const std::string& framework) {
      return step_of(
          run(in_a_row(2, {R"(training.strategy={"kind": "global", "activation_format": ")" +
                               std::string(format) + R"(", "gradient_format": ")" + format + "\"}",
                           "training.framework=" + framework})));
    };
    return step(R"({"message_copies": "1 GB/s"})") - step("{}");
  };
  CHECK(copied("training") == doctest::Approx(4 * kOutput / kBandwidth));
  CHECK(copied("fp8") == doctest::Approx(2 * kOutput * (1 + 4.0 / 128) / kBandwidth));
}

TEST_CASE("of 32 bits a byte is a quarter") {
  CHECK(sent(cast("int8", "fp8", "fp32"), 0, 1) == doctest::Approx(kOutput / 4 * (1 + 4.0 / 4096)));
}

TEST_CASE("an op has both forms of what it makes, and one of what it reads") {
  const double stash = 2 * kOutput, packed = kOutput / 2 * (1 + 4.0 / 128);
  CHECK(peak(cast("training", "training"), 0) == stash + kOutput);
  CHECK(peak(cast("fp8", "training"), 0) == stash + kOutput + packed);
  CHECK(peak(cast("training", "fp8"), 0) == stash + kOutput);
  INFO("the last stage has the stash, and both forms of the gradient that it sends");
  CHECK(peak(cast("fp8", "fp8"), 1) == stash + kOutput + packed);
}

TEST_CASE("stages of one device cast nothing") {
  const auto folded = [](const std::string& format) {
    return run(in_a_row(
        4, {"parallel.pipeline=2", "parallel.stages=4", "cluster.devices=2",
            R"(training.strategy={"kind": "local", "activation_format": ")" + format + R"("})",
            "training.schedule=eager", R"(parallel.placement=[0, 0, 1, 1])"}));
  };
  const double packed = kOutput / 2 * (1 + 4.0 / 128);
  CHECK(sent(folded("fp8"), 0, 1) == doctest::Approx(packed));
  CHECK(sent(folded("training"), 0, 1) == doctest::Approx(kOutput));
}

/// Returns the time of one step in the long run of pairwise training whose gradients come down for
/// every `every`th micro-batch, by a recurrence over stages and micro-batches: messages take none.
double pairwise_step(int stages, int micro_batches, int every, int steps) {
  const double f = 1, a = 0.5, i = 1, w = 1;
  std::vector<double> free(stages, 0.0);
  double before = 0;
  for (int b = 0; b < micro_batches * steps; ++b) {
    const bool crosses = (b + 1) % every == 0;
    std::vector<double> seen(stages), handed(stages);
    for (int s = 0; s < stages; ++s) {
      const bool last = s + 1 == stages, head = every > 1 || s > 0;
      seen[s] = std::max(free[s], s > 0 ? seen[s - 1] : 0) + f;
      free[s] = seen[s] + (!last && head ? a : 0);
      if (crosses && !last && s > 0) free[s] += i;  // of its own loss, for the stage below
      handed[s] = last ? free[s] + i : free[s];
    }
    for (int s = 0; s < stages; ++s) {
      const bool last = s + 1 == stages;
      if (crosses && !last) free[s] = std::max(free[s], handed[s + 1]);
      free[s] += i + w;
    }
    if (b + 1 == micro_batches * (steps - 1)) before = *std::max_element(free.begin(), free.end());
  }
  return (*std::max_element(free.begin(), free.end()) - before) * kMillisecond;
}

ScenarioResult pairwise(int stages, int every, const Overrides& more = {}) {
  return run(
      joined(in_a_row(stages,
                      {R"(training.strategy={"kind": "pairwise", "gradient_every": )" +
                           std::to_string(every) + "}",
                       "training.schedule=eager", "training.micro_batches=8", "training.steps=12"}),
             more));
}

TEST_CASE("stages wait for gradients of every k-th micro-batch only, as a recurrence says") {
  const Overrides free = {R"(cluster.link.bandwidth="1000000 TB/s")"};
  for (const int stages : {2, 3, 5}) {
    for (const int every : {1, 2, 4, 8}) {
      INFO(stages << " stages, every " << every);
      CHECK(step_of(pairwise(stages, every, free)) ==
            doctest::Approx(pairwise_step(stages, 8, every, 12)).epsilon(1e-6));
    }
  }
}

TEST_CASE("as many gradients go down as cross, and every output goes up") {
  for (const int every : {1, 2, 4, 8}) {
    const ScenarioResult result = pairwise(3, every);
    CHECK(sent(result, 0, 1) == doctest::Approx(8 * kOutput));
    CHECK(sent(result, 1, 0) == doctest::Approx(8 / every * kOutput));
    CHECK(sent(result, 2, 1) == doctest::Approx(8 / every * kOutput));
  }
}

TEST_CASE("where N is 1 nothing crosses, whatever is let through") {
  const auto alone = [](const std::string& every) {
    return step_of(run(in_a_row(
        3, {R"(training.strategy={"kind": "interlocking", "n_wise": 1, "gradient_every": )" +
                every + "}",
            "training.schedule=eager", "training.micro_batches=8", "training.steps=6"})));
  };
  CHECK(alone("4") == doctest::Approx(alone("1")));
}

TEST_CASE("halves whose inner gradients come now and then are between halves and local stages") {
  const auto of = [](const std::string& strategy) {
    return step_of(run(in_a_row(4, {"training.strategy=" + strategy, "training.schedule=eager",
                                    "training.micro_batches=8", "training.steps=8"})));
  };
  const double halves = of(R"({"kind": "chunked", "chunks": 2})"),
               some = of(R"({"kind": "chunked", "chunks": 2, "gradient_every": 4})"),
               local = of(R"("local")");
  CHECK(local < some);
  CHECK(some < halves);
}

}  // namespace
}  // namespace interlock::boundaries_test
