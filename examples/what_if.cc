// Simulates a scenario with deeper and deeper pipelines.
// SPDX-License-Identifier: Apache-2.0
#include <interlock/interlock.h>

#include <cstdio>
#include <string>

int main() {
  const std::string scenario = R"({
    "model": "gpt2-xl",
    "cluster": {"machine": "dgx-a100-80g", "devices": 8},
    "training": {"strategy": "global", "global_batch_size": 64, "micro_batch_size": 1}})";
  try {
    std::printf("pipeline  step (ms)  busy  memory (GB)\n");
    for (const int pipeline : {1, 2, 4, 8}) {
      interlock::Options options;
      options.set = {"parallel.pipeline=" + std::to_string(pipeline),
                     "parallel.data=" + std::to_string(8 / pipeline)};
      const interlock::Result step = interlock::simulate(scenario, options);
      std::printf("%8d  %9.1f  %3.0f%%  %11.1f\n", pipeline, step.step_time_s() * 1e3,
                  step.busy() * 100, step.peak_memory_bytes() / 1e9);
    }
  } catch (const interlock::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
