// Price inputs: the device as a framework uses it, and what exchanges on the cluster take.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <tuple>

#include "hardware/collective.h"
#include "scenarios/run_scenario.h"

namespace interlock {

/// How `rank` divides its stages.
Mesh mesh_of(const Scenario& scenario, int rank) {
  Mesh mesh = scenario.mesh;
  if (scenario.rank_layouts.empty()) return mesh;
  const RankLayout& layout = scenario.rank_layouts[rank];
  mesh.degree(Dimension::Tensor) = layout.tensor;
  mesh.degree(Dimension::Data) = layout.data;
  if (scenario.data_parallel.zero_stage > 0) mesh.shard = layout.data;
  return mesh;
}

namespace {

/// `device` with the kernels of `framework`.
Device device_under(const Framework& framework, Device device) {
  const auto efficiency = [&](OpClass op_class) -> Efficiency& {
    return device.efficiency[static_cast<std::size_t>(op_class)];
  };
  Efficiency& products = efficiency(OpClass::Gemm);
  Efficiency& attention = efficiency(OpClass::Attention);
  products.compute *= framework.product_speed;
  attention.compute *= framework.attention_speed;
  for (std::optional<double>* own : {&products.compute_fp8, &products.compute_fp32}) {
    if (*own) **own *= framework.product_speed;
  }
  if (attention.compute_fp32) *attention.compute_fp32 *= framework.attention_speed;
  return device;
}

/// `framework` on hosts that issue kernels at the pace of `cluster`.
Framework framework_on(const Cluster& cluster, Framework framework) {
  framework.kernel_issue = framework.kernel_issue * cluster.host_pace;
  framework.exchange_issue = framework.exchange_issue * cluster.host_pace;
  if (auto& issue = framework.backward_issue) issue = *issue * cluster.host_pace;
  return framework;
}

}  // namespace

PriceInputs price_inputs(const Scenario& scenario, int rank) {
  PriceInputs prices = {device_under(scenario.framework, scenario.cluster.device),
                        scenario.precision, scenario.optimizer,
                        framework_on(scenario.cluster, scenario.framework)};
  // Groups of the first rank stand for all; many modules exchange the same.
  const auto known =
      std::make_shared<std::map<std::tuple<CollectiveKind, MeshAxis, double, double>, Seconds>>();
  prices.exchange_time = [known, cluster = scenario.cluster, mesh = mesh_of(scenario, rank),
                          rank](const Exchange& exchange) {
    const auto [entry, fresh] = known->try_emplace(
        {exchange.kind, exchange.axis, exchange.bytes.value(), exchange.back.value()}, Seconds(0));
    if (fresh) {
      const std::vector<int> group = group_of(mesh, exchange.axis, {0, 0, 0, rank});
      entry->second = time_alone(cluster, plan_exchange(cluster, group, exchange));
    }
    return entry->second;
  };
  return prices;
}

}  // namespace interlock
