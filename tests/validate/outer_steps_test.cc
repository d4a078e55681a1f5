// Outer steps against closed forms, lists of all steps, and data parallelism that does the same.
// SPDX-License-Identifier: Apache-2.0
//
// n devices at a switch, 1 MB per ms in and out and no latency: to all-reduce S, 2 (n-1)/n S leave
// each device. Their memory is so fast that outer updates take no time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "scenarios/long_run/run_plan.h"
#include "tests/validate/support/outer_trial.h"

namespace interlock::outer_steps_test {
namespace {

using namespace outer_trial;

TEST_CASE("DiLoCo: a step, and an H-th of the exchange of all weights in its format") {
  for (const int n : {2, 3, 4}) {
    for (const int modules : {1, 3}) {
      for (const int every : {1, 2, 7, 500}) {
        for (const auto& [format, of_bf16] : {std::pair("fp32", 2.0), std::pair("bf16", 1.0),
                                              std::pair("fp8", 0.5), std::pair("fp4", 0.25)}) {
          const double step = 2 * modules * kModule;
          const double exchange = all_reduce(n, kModuleMb * modules * of_bf16);
          const std::string name = format;  // clang 14 lets INFO see no binding
          INFO(n << " workers of " << modules << " modules: a step of " << step << " ms, every "
                 << every << " of them " << exchange << " ms in " << name);
          const Metrics metrics =
              metrics_of(trial_of({n, modules, 2}, key_of({every, 1, 0, format})));
          CHECK(metrics.step_time.value() / kMs ==
                doctest::Approx(step + exchange / every).epsilon(1e-6));
          CHECK(*metrics.outer_exchange_s / kMs == doctest::Approx(exchange).epsilon(1e-6));
          CHECK(*metrics.outer_exposed_s / kMs == doctest::Approx(exchange / every).epsilon(1e-6));
          CHECK(metrics.busy == doctest::Approx(step / (step + exchange / every)).epsilon(1e-6));
          CHECK(metrics.exposed_communication.value() / kMs ==
                doctest::Approx(exchange / every).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("DiLoCo takes as long as data parallelism that adds up H times the micro-batches") {
  // Both compute H steps of micro-batches, then all-reduce as many bytes: a whole simulation.
  for (const int n : {2, 4}) {
    for (const int every : {1, 2, 3, 8}) {
      for (const int micro_batches : {1, 3}) {
        const Metrics whole = metrics_of(trial_of({n, 2, every * micro_batches}, ""));
        const Metrics outer =
            metrics_of(trial_of({n, 2, micro_batches}, key_of({every, 1, 0, "bf16"})));
        INFO(n << " devices, H = " << every << ", " << micro_batches << " micro-batches a step");
        CHECK(outer.step_time * every / whole.step_time == doctest::Approx(1).epsilon(1e-6));
        CHECK(outer.busy == doctest::Approx(whole.busy).epsilon(1e-6));
        REQUIRE(outer.links.size() == whole.links.size());
        for (std::size_t l = 0; l < whole.links.size(); ++l) {
          CHECK(outer.links[l].name == whole.links[l].name);
          CHECK(outer.links[l].bytes * every / whole.links[l].bytes ==
                doctest::Approx(1).epsilon(1e-6));
          CHECK(outer.links[l].utilisation ==
                doctest::Approx(whole.links[l].utilisation).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("Streaming DiLoCo: exchanges beside steps, as a list of all steps has them") {
  for (const int every : {1, 2, 5, 12}) {
    for (const int fragments : {1, 2, 3, 5, 12}) {
      for (const int overlap : {0, 1, 2, 5, 12}) {
        if (fragments > every || overlap > every) continue;
        for (const int modules : {1, 4}) {
          for (const char* format : {"fp32", "fp4"}) {
            const double step = modules * kModule;
            // fp32 of 6 MB in bf16 is 12 MB, which takes twice as long as a module.
            const double of_bf16 = std::string(format) == "fp32" ? 2 : 0.25;
            const double whole = all_reduce(2, kModuleMb * modules * of_bf16);
            const Outer outer = {every, fragments, overlap, format};
            const double expected = listed(outer, step, whole / fragments);
            INFO("H = " << every << ", " << fragments << " fragments, overlap " << overlap << ", "
                        << format << ": steps of " << step << " ms, exchanges of "
                        << whole / fragments << " ms");
            const Metrics metrics = metrics_of(trial_of({2, modules, 1}, key_of(outer)));
            CHECK(metrics.step_time.value() / kMs == doctest::Approx(expected).epsilon(1e-6));
          }
        }
      }
    }
  }
}

TEST_CASE(
    "CoCoDC: as many exchanges as take a share of the steps, as a list of all steps has them") {
  int more = 0, most = 0, capped = 0;
  for (const int every : {12, 30}) {
    for (const int fragments : {1, 3, 5}) {
      for (const int overlap : {1, 4, 12}) {
        for (const double share : {0.11, 0.43, 0.76, 0.99}) {
          const double step = 4 * kModule, exchange = all_reduce(2, kModuleMb * 4 * 2) / fragments;
          int exchanges = fragments;
          // A fragment comes back `overlap` steps after it left, in time for its next turn.
          const int turns = fragments * every / overlap;
          while (exchanges < std::min(every, turns) &&
                 (exchanges + 1) * exchange <= share * every * step)
            ++exchanges;
          more += exchanges > fragments ? 1 : 0;
          most += exchanges == every ? 1 : 0;
          capped += exchanges == turns && exchanges < every ? 1 : 0;
          const std::string asked = R"(, "network_share": )" + std::to_string(share);
          const Metrics metrics =
              metrics_of(trial_of({2, 4, 1}, key_of({every, fragments, overlap, "fp32"}, asked)));
          INFO("H = " << every << ", " << fragments << " fragments, overlap " << overlap << ", "
                      << share << " of the network: " << exchanges << " exchanges of " << exchange
                      << " ms");
          const double expected = listed({every, exchanges, overlap, "fp32"}, step, exchange);
          CHECK(metrics.step_time.value() / kMs == doctest::Approx(expected).epsilon(1e-6));
          CHECK(*metrics.outer_exchanges == exchanges);
          // An all-reduce of two members has each send as much as it sums.
          const double sent = kModuleMb * kMegabyte * 4 * 2 / fragments * exchanges / every;
          for (const LinkMetrics& link : metrics.links) {
            CHECK(link.bytes.value() == doctest::Approx(sent).epsilon(1e-6));
          }
        }
      }
    }
  }
  CHECK(more > 20);
  CHECK(most > 3);
  CHECK(capped > 3);
}

TEST_CASE("what comes late is corrected from a copy of its fragment, and 12 bytes a parameter") {
  const double parameters = 4 * kModuleMb * kMegabyte / 2;
  const auto with = [](const std::string& more) {
    LayoutTrial trial = trial_of({2, 4, 1}, key_of({10, 2, 5, "fp4"}, more));
    trial.cluster = at_switch(2, "1 TB/s");
    return metrics_of(trial);
  };
  const Metrics plain = with(""), corrected = with(R"(, "delay_compensation": true)");
  const auto held = [](const Metrics& metrics) {
    const auto communication = static_cast<std::size_t>(MemoryClass::Communication);
    return metrics.devices.front().memory[communication].value();
  };
  CHECK(held(corrected) - held(plain) == doctest::Approx(4 * parameters / 2));
  const auto updating = [](const Metrics& metrics) {
    const auto update = static_cast<std::size_t>(TimeUse::Update);
    return metrics.devices.front().time[update] * metrics.step_time.value() * 10;
  };
  const double reached = 0.85;  // as below
  CHECK(updating(corrected) - updating(plain) ==
        doctest::Approx(parameters * 12 / 1e12 / reached).epsilon(1e-6));
}

/// Returns the most exchanges on their way at once, of a list of all steps in which fragments take
/// turns; 0 if one leaves before it has come.
int on_their_way(const Outer& o, int exchanges) {
  std::vector<int> back(static_cast<std::size_t>(o.fragments), 0);  // the step of its return
  int most = 0;
  for (int s = 1, turn = 0; s <= 20 * o.every; ++s) {
    const auto leaves = [&](int e) {
      return s % o.every == (e + 1) * o.every / exchanges % o.every;
    };
    for (int e = 0; e < exchanges; ++e) {
      if (!leaves(e)) continue;
      int& fragment = back[static_cast<std::size_t>(turn++ % o.fragments)];
      if (fragment > s) return 0;
      fragment = s + o.overlap;
    }
    most = std::max(most, static_cast<int>(std::ranges::count_if(
                              back, [&](int returns) { return returns > s; })));
  }
  return most;
}

TEST_CASE("each fragment on its way has a buffer, as many as a list of all steps has at once") {
  const double parameters = 4 * kModuleMb * kMegabyte / 2;
  const auto communication = static_cast<std::size_t>(MemoryClass::Communication);
  int several = 0;
  for (const int every : {12, 30, 50}) {
    for (const int fragments : {1, 3, 5, 10}) {
      for (const int overlap : {1, 4, 7, 12}) {
        for (const double share : {0.0, 0.2, 0.6, 1.0}) {
          const Outer outer = {every, fragments, overlap, "fp4"};
          const std::string asked =
              R"(, "delay_compensation": true, "network_share": )" + std::to_string(share);
          const Metrics metrics = metrics_of(trial_of({2, 4, 1}, key_of(outer, asked)));
          const int held = on_their_way(outer, static_cast<int>(*metrics.outer_exchanges));
          INFO("H = " << every << ", " << fragments << " fragments, overlap " << overlap << ", "
                      << share << " of the network: " << *metrics.outer_exchanges << " exchanges");
          REQUIRE(held > 0);
          several += share > 0 && held > (overlap * fragments + every - 1) / every ? 1 : 0;
          const DeviceMetrics& device = metrics.devices.front();
          const double buffers = (0.5 + 4) * parameters / fragments * held;
          CHECK(device.memory[communication].value() == doctest::Approx(buffers).epsilon(1e-6));
          double all = 0;
          for (const Bytes bytes : device.memory) all += bytes.value();
          CHECK(device.peak_memory.value() == doctest::Approx(all).epsilon(1e-9));
        }
      }
    }
  }
  CHECK(several > 20);
}

TEST_CASE("buffers that the network's share asks for may be too many for the memory") {
  LayoutTrial trial = trial_of({2, 4, 1}, key_of({12, 3, 4, "fp4"}));
  const double peak = metrics_of(trial).devices.front().peak_memory.value();
  trial.parallel =
      trial_of({2, 4, 1}, key_of({12, 3, 4, "fp4"}, R"(, "network_share": 1)")).parallel;
  for (const bool fits : {false, true}) {
    trial.cluster = R"({"kind": "machine", "nodes": 1, "port": {"bandwidth": "1 GB/s"},
        "devices_per_node": 2, "device": {"memory_bandwidth": "1000000 TB/s",
        "peak": {"bf16": "1 PFLOP/s"}, "memory": ")" +
                    std::to_string(static_cast<std::int64_t>(peak * (fits ? 2 : 1))) + R"( B"}})";
    CHECK(metrics_of(trial).fits_in_memory == fits);
  }
}

TEST_CASE("fragments need an F-th of the bandwidth at a time, and as much traffic") {
  const auto with = [](int fragments) {
    return metrics_of(trial_of({4, 2, 1}, key_of({100, fragments, 0})));
  };
  const Metrics whole = with(1);
  for (const int fragments : {2, 4, 10}) {
    const Metrics streamed = with(fragments);
    CHECK(*streamed.outer_exchange_s * fragments ==
          doctest::Approx(*whole.outer_exchange_s).epsilon(1e-6));
    for (std::size_t l = 0; l < whole.links.size(); ++l) {
      CHECK(streamed.links[l].bytes / whole.links[l].bytes == doctest::Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("a worker of several replicas reduces gradients in it, and divides what it exchanges") {
  // 4 devices, 2 workers. In a step 2 members all-reduce 60 MB. In an outer step each device
  // all-reduces half of 120 MB with its like, and workers gather 60 MB of weights.
  LayoutTrial trial = trial_of({4, 10, 1}, key_of({10, 1, 0}, R"(, "workers": 2)"));
  const double step = 10 * kModule + all_reduce(2, 60);
  const double exchange = all_reduce(2, 60), gather = 60.0 / 2;
  const Metrics metrics = metrics_of(trial);
  CHECK(*metrics.outer_exchange_s / kMs == doctest::Approx(exchange).epsilon(1e-6));
  CHECK(metrics.step_time.value() / kMs ==
        doctest::Approx(step + (exchange + gather) / 10).epsilon(1e-6));
}

TEST_CASE("a cycle is no shorter than what its links carry") {
  // Two workers of two devices exchange in every step, hidden behind it.
  LayoutTrial trial = trial_of({4, 1, 1}, key_of({1, 1, 1}, R"(, "workers": 2)"));
  trial.model = R"({"kind": "profile", "modules": [{"forward": "2 ms", "backward_input": "3 ms",
                    "backward_weight": "1 ms", "parameters": "60 MB"}]})";
  const double gradients = all_reduce(2, 60), exchange = all_reduce(2, 60);
  const double gather = 60.0 / 2;
  const Metrics metrics = metrics_of(trial);
  CHECK(metrics.step_time.value() / kMs ==
        doctest::Approx(gradients + exchange + gather).epsilon(1e-6));
  for (const LinkMetrics& link : metrics.links) CHECK(link.utilisation <= 1 + 1e-6);
}

TEST_CASE("outer states are 8 bytes a parameter, divided within workers; a buffer if overlapped") {
  const double parameters = 4 * kModuleMb * kMegabyte / 2;
  const auto memory = [&](const std::string& more) {
    return metrics_of(trial_of({4, 4, 1}, more)).devices.front().memory;
  };
  const auto optimizer = static_cast<std::size_t>(MemoryClass::Optimizer);
  const auto communication = static_cast<std::size_t>(MemoryClass::Communication);
  for (const int zero : {0, 1, 2, 3}) {
    const std::string stage = R"(, "zero_stage": )" + std::to_string(zero);
    for (const int workers : {2, 4}) {
      const std::string more = R"(, "workers": )" + std::to_string(workers);
      const int members = 4 / workers;
      const std::string alike =
          zero == 0 ? stage : stage + R"(, "shard": )" + std::to_string(members);
      const auto plain = memory(alike);
      const auto outer = memory(stage + key_of({10, 2, 0}, more));
      const auto overlapped = memory(stage + key_of({10, 2, 5, "fp4"}, more));
      INFO("ZeRO " << zero << ", " << workers << " workers");
      CHECK((outer[optimizer] - plain[optimizer]).value() ==
            doctest::Approx(8 * parameters / members));
      CHECK(outer[communication] == plain[communication]);
      CHECK((overlapped[communication] - plain[communication]).value() ==
            doctest::Approx(0.5 * parameters / members / 2));
    }
  }
}

TEST_CASE("an outer update moves 28 bytes a parameter, and outer gradients twice") {
  const double parameters = 100 * kMegabyte / 2, bandwidth = 1e12;
  const auto updating = [&](const char* format) {
    LayoutTrial trial = trial_of({2, 1, 1}, key_of({10, 1, 0, format}));
    trial.model = R"({"kind": "profile", "modules": [{"forward": "2 ms", "backward_input": "3 ms",
                      "backward_weight": "1 ms", "parameters": "100 MB"}]})";
    trial.cluster = at_switch(2, "1 TB/s");
    const Metrics metrics = metrics_of(trial);
    return metrics.devices.front().time[static_cast<std::size_t>(TimeUse::Update)] *
           metrics.step_time * 10;
  };
  const double reached = 0.85;  // of the bandwidth of memory, what devices without kernels borrow
  CHECK(updating("fp32").value() ==
        doctest::Approx(parameters * (28 + 2 * 4) / bandwidth / reached).epsilon(1e-6));
  CHECK(updating("fp4").value() ==
        doctest::Approx(parameters * (28 + 2 * 0.5) / bandwidth / reached).epsilon(1e-6));
}

TEST_CASE("one device stands for its likes in outer steps") {
  const std::vector<std::string> clusters = {
      R"({"kind": "uniform", "memory": "80 GiB", "devices": 8,
          "link": {"latency": "1 us", "bandwidth": "1 GB/s"}})",
      R"({"machine": "dgx-a100-40g", "nodes": 1})",
      R"({"kind": "machine", "device": "a100-40g", "nodes": 4, "devices_per_node": 2,
          "port": {"bandwidth": "100 GB/s"}, "cards": {"bandwidth": "1 GB/s"},
          "network": {"kind": "wan", "delay": [["1 us", "10 ms"], ["10 ms", "1 us"]],
                      "bandwidth": [["1 GB/s", "0.5 GB/s"], ["0.5 GB/s", "1 GB/s"]]}})"};
  for (const std::string& cluster : clusters) {
    for (const char* layout :
         {R"("pipeline": 2, "data": 4)", R"("pipeline": 1, "data": 8, "zero_stage": 3)",
          R"("pipeline": 2, "data": 4, "zero_stage": 1,
             "order": ["tensor", "context", "pipeline", "data"])"}) {
      for (const char* workers : {R"(, "workers": 2)", R"(, "workers": 4)"}) {
        LayoutTrial trial = trial_of({8, 6, 4}, "");
        trial.cluster = cluster;
        trial.parallel = layout + key_of({4, 2, 1}, workers);
        const ScenarioResult folded = run(trial);
        trial.fold = "\"none\"";
        INFO(cluster << " " << trial.parallel);
        CHECK(difference(folded, run(trial), 1e-9) == "");
      }
    }
  }
}

TEST_CASE("a run fails worker by worker, each of which has all of the state") {
  LayoutTrial trial =
      trial_of({8, 1, 1}, R"(, "zero_stage": 3)" + key_of({4, 2, 1}, R"(, "workers": 2)"));
  const ReplicaLayout layout = replica_layout(load(trial));
  CHECK(layout.replicas == 2);
  CHECK(layout.devices_per_replica == 4);
  CHECK(layout.hold_state);
}

TEST_CASE("outer steps that mean nothing are refused with what to write") {
  const auto refused = [](const std::string& parallel, const std::string& message) {
    LayoutTrial trial = trial_of({4, 4, 1}, "");
    trial.parallel = parallel;
    std::string said;
    try {
      load(trial);
    } catch (const Error& error) {
      said = error.what();
    }
    INFO(parallel << ": " << said);
    CHECK(said.find(message) != std::string::npos);
  };
  refused(R"("pipeline": 4, "outer": {"every": 5})", "expected \"data\" of at least 2 beside it");
  refused(R"("data": 4, "outer": {})", "missing key \"every\"");
  refused(R"("data": 4, "outer": {"every": 5, "workers": 3})", "expected a divisor of 4");
  refused(R"("data": 4, "outer": {"every": 5, "fragments": 6})",
          "at most the 5 steps of \"every\"");
  refused(R"("data": 4, "outer": {"every": 5, "overlap": 6})", "at most the 5 steps of \"every\"");
  for (const char* const late : {R"("network_share": 0.5)", R"("delay_compensation": true)"}) {
    refused(std::string(R"("data": 4, "outer": {"every": 5, )") + late + "}",
            "expected \"overlap\" of 1 step or more beside it");
  }
  refused(R"("data": 4, "outer": {"every": 5, "overlap": 1, "network_share": 2})",
          "expected a number from 0 to 1");
  refused(R"("data": 4, "zero_stage": 1, "shard": 2, "outer": {"every": 5, "workers": 2})",
          "expected \"workers\" of \"outer\" alone");
  refused(R"("data": 4, "expert": 2, "outer": {"every": 5})", "expected no \"expert\"");
  refused(R"("data": 4, "outer": {"every": 5, "format": "int4"})", "fp4");
}

}  // namespace
}  // namespace interlock::outer_steps_test
