// Sums over the devices of each node, folded ones included.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/host_memory.h"

#include <algorithm>
#include <map>

namespace interlock {

void add_host_memory(const Plan& plan, Metrics& metrics) {
  const Question& question = plan.question;
  metrics.host_capacity = question.cluster.host_memory;
  if (!question.offload.any()) return;
  const Mesh& mesh = question.mesh;
  const Unfolded& unfolded = plan.unfolded;
  std::map<Coordinates, Bytes> simulated;
  const std::vector<Coordinates> ranks = simulated_ranks(mesh, unfolded);
  for (const DeviceMetrics& device : metrics.devices) {
    simulated[ranks.at(device.rank)] = device.host.total();
  }
  std::map<int, Bytes> hosts;
  for (Coordinates at : simulated_ranks(mesh, {true, true, true, true})) {
    Bytes& kept = hosts[node_of(question.cluster, device_of(mesh, at))];
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      if (!unfolded[i]) at[i] = 0;
    }
    kept += simulated.at(at);
  }
  for (const auto& [node, kept] : hosts) metrics.host_memory = std::max(metrics.host_memory, kept);
  const bool known = metrics.host_capacity > Bytes(0);
  if (known && metrics.host_memory > metrics.host_capacity) metrics.fits_in_memory = false;
}

}  // namespace interlock
