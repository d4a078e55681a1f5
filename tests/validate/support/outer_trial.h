// Workers that train apart, on devices at a switch, and a list of all their steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/validate/support/layout_trial.h"

namespace interlock::outer_trial {

inline constexpr double kMs = 1e-3, kMegabyte = 1e6;

/// Each module takes 2 ms forward and 4 ms backward, and holds 6 MB of weights in bf16.
inline constexpr double kModule = 6, kModuleMb = 6;

struct Workers {
  int devices = 2, modules = 1, micro_batches = 1;
};

inline std::string at_switch(int devices, const std::string& memory) {
  return R"({"kind": "machine", "nodes": 1, "port": {"bandwidth": "1 GB/s"}, "device": {
                "memory": "80 GiB", "memory_bandwidth": ")" +
         memory + R"(", "peak": {"bf16": "1 PFLOP/s"}}, "devices_per_node": )" +
         std::to_string(devices) + "}";
}

inline LayoutTrial trial_of(const Workers& w, const std::string& more) {
  return {.model = R"({"kind": "profile", "modules": [{"repeat": )" + std::to_string(w.modules) +
                   R"(, "forward": "2 ms", "backward_input": "3 ms", "backward_weight": "1 ms",
                        "parameters": "6 MB"}]})",
          .cluster = at_switch(w.devices, "1000000 TB/s"),
          .parallel = R"("pipeline": 1, "data": )" + std::to_string(w.devices) +
                      R"(, "bucket": "1 GB", "overlap_gradients": false)" + more,
          .training = R"("strategy": "global", "schedule": "1f1b", "steps": 4,
                         "micro_batches": )" +
                      std::to_string(w.micro_batches)};
}

inline Metrics metrics_of(const LayoutTrial& trial) { return run(trial).measurement.metrics; }

struct Outer {
  int every = 1, fragments = 1, overlap = 0;
  const char* format = "fp32";
};

inline std::string key_of(const Outer& o, const std::string& more = "") {
  return R"(, "outer": {"every": )" + std::to_string(o.every) + R"(, "fragments": )" +
         std::to_string(o.fragments) + R"(, "overlap": )" + std::to_string(o.overlap) +
         R"(, "format": ")" + o.format + "\"" + more + "}";
}

/// Returns the milliseconds of an all-reduce of `mb`.
inline double all_reduce(int members, double mb) { return 2 * mb * (members - 1) / members; }

/// Returns the mean time of a step of many cycles, gone through one by one.
inline double listed(const Outer& o, double step, double exchange) {
  constexpr int kCycles = 400, kFirst = 200;
  struct Flight {
    int fragment, begun;
    double done;
  };
  std::vector<Flight> flights;
  double now = 0, wire = 0, first = 0;
  for (int s = 1; s <= kCycles * o.every; ++s) {
    now += step;
    const auto wait = [&] {
      for (const Flight& flight : flights) {
        if (flight.begun + o.overlap == s) now = std::max(now, flight.done);
      }
      std::erase_if(flights, [&](const Flight& flight) { return flight.begun + o.overlap <= s; });
    };
    if (o.overlap > 0) wait();
    for (int f = 0; f < o.fragments; ++f) {
      const int place = (f + 1) * o.every / o.fragments;
      if (s % o.every != place % o.every) continue;
      wire = std::max(wire, now) + exchange;
      flights.push_back({f, s, wire});
      if (o.overlap == 0) wait();
    }
    if (s == kFirst * o.every) first = now;
  }
  return (now - first) / ((kCycles - kFirst) * o.every);
}

}  // namespace interlock::outer_trial
