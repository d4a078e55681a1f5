// Builds a schedule in code: all forwards, then all backwards in reverse, and draws it.
// SPDX-License-Identifier: Apache-2.0
#include <interlock/interlock.h>

#include <cstdio>
#include <fstream>

int main(int count, char** arguments) {
  constexpr int kStages = 4, kMicroBatches = 8;
  interlock::Schedule schedule;
  schedule.name = "forwards first";
  schedule.link_bandwidth_bytes_per_s = 25e9;
  for (int stage = 0; stage < kStages; ++stage) {
    std::vector<interlock::Op> ops;
    for (int i = 0; i < kMicroBatches; ++i) ops.push_back({'F', stage, i});
    for (int i = 0; i < kMicroBatches; ++i) ops.push_back({'B', stage, i});
    schedule.ranks.push_back(ops);
    interlock::StageCost cost;
    cost.forward_s = cost.backward_input_s = cost.backward_weight_s = 2e-3;
    cost.output_bytes = 16e6;
    cost.stash_bytes = 300e6;
    schedule.stages.push_back(cost);
  }
  const interlock::Result step = interlock::simulate(schedule);
  std::printf("a step takes %.1f ms\n", step.step_time_s() * 1e3);
  for (const interlock::Device& device : step.devices()) {
    std::printf("rank %d: bubble %.1f ms, peak %.1f GB\n", device.rank,
                device.time_shares.at("bubble") * step.step_time_s() * 1e3,
                device.peak_memory_bytes / 1e9);
  }
  std::printf("%zu ops, %zu changes of memory\n", step.timeline().size(), step.memory().size());
  std::ofstream(count > 1 ? arguments[1] : "own_schedule.svg") << step.svg();
}
