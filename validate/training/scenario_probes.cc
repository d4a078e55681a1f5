// Scenario probes: works of a model, each met by the probe that is the same work.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/scenario_probes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "models/layers/footprint.h"
#include "validate/calibration/probe_grid.h"

namespace interlock {
namespace {

/// Sizes that a network has and works do not tell.
struct NetworkSizes {
  Precision precision = Precision::Fp32;
  std::int64_t rows = 1;           // of all samples of a micro-batch
  std::set<std::int64_t> widths;   // of rows that layers read or make
  int heads = 0, positions = 0;    // of attention
  int words = 0;                   // of embeddings
  std::vector<Probe> movers = {};  // everything that moves such rows
};

void note_layers(const std::vector<Layer>& layers, NetworkSizes& sizes) {
  for (const Layer& layer : layers) {
    if (layer.kind != LayerKind::Embedding) sizes.widths.insert(layer.inputs);
    sizes.widths.insert(layer.outputs);
    if (layer.kind == LayerKind::Embedding) sizes.words = layer.inputs;
    if (layer.kind == LayerKind::Attention) {
      sizes.heads = layer.heads;
      sizes.positions = layer.positions;
    }
    note_layers(layer.branch, sizes);
    note_layers(layer.shortcut, sizes);
  }
}

NetworkSizes sizes_of(const NeuralNetwork& network, Precision precision) {
  NetworkSizes sizes = {
      .precision = precision,
      .rows = std::int64_t{network.samples_per_micro_batch} * network.rows_per_sample};
  for (const NetworkModule& module : network.modules) {
    note_layers(module.layers, sizes);
    note_layers(module.head, sizes);
  }
  for (const std::int64_t width : sizes.widths) {
    for (Probe probe : mover_probes(sizes.rows, width, precision)) {
      // Updates and softmax go by other sizes than those of rows.
      if (probe.kind == ProbeKind::Momentum || probe.kind == ProbeKind::Adam) continue;
      if (probe.kind == ProbeKind::Softmax) continue;
      probe.words = sizes.words;
      sizes.movers.push_back(probe);
    }
  }
  return sizes;
}

/// Returns the update of as many parameters as `work` moves the bytes of, by any optimiser that is
/// executed.
std::optional<Probe> update_probe(const Work& work, const NetworkSizes& sizes) {
  for (const auto& [kind, optimizer] : {std::pair(ProbeKind::Momentum, Optimizer::SgdMomentum),
                                        std::pair(ProbeKind::Adam, Optimizer::Adam)}) {
    const auto work_of = [&, rule = optimizer](std::int64_t count) {
      return update_work(count, rule, sizes.precision).front();
    };
    const auto count = std::llround(work.bytes / work_of(1).bytes);
    if (count < 1 || !is_same_kernel(work_of(count), work)) continue;
    return Probe{.kind = kind, .precision = sizes.precision, .work = work, .width = count};
  }
  return std::nullopt;
}

/// Returns the probe of (rows, width) that is of `kind` and the role of `work`, and the same work.
std::optional<Probe> mover_of(ProbeKind kind, const Work& work, std::int64_t rows,
                              std::int64_t width, Precision precision) {
  for (const Probe& probe : mover_probes(rows, width, precision)) {
    if (probe.kind == kind && is_same_kernel(probe.work, work)) return probe;
  }
  return std::nullopt;
}

/// Returns the softmax over rows of scores.
std::optional<Probe> softmax_probe(const Work& work, const NetworkSizes& sizes) {
  if (sizes.positions == 0) return std::nullopt;
  for (const Probe& row : mover_probes(1, sizes.positions, sizes.precision)) {
    if (row.kind != ProbeKind::Softmax || row.work.role != work.role) continue;
    const auto rows = std::llround(work.bytes / row.work.bytes);
    return mover_of(ProbeKind::Softmax, work, rows, sizes.positions, sizes.precision);
  }
  return std::nullopt;
}

/// Returns a product of attention.
std::optional<Probe> attention_probe(const Work& work, const NetworkSizes& sizes) {
  if (sizes.heads == 0 || work.variant != OpVariant::Plain || work.shape.k <= 0) {
    return std::nullopt;
  }
  const bool scores = work.shape.n == sizes.positions;
  return Probe{.kind = scores ? ProbeKind::Scores : ProbeKind::Values,
               .precision = sizes.precision,
               .work = work,
               .heads = sizes.heads};
}

std::optional<Probe> probe_of(const Work& work, const NetworkSizes& sizes) {
  switch (work.op_class) {
    case OpClass::Gemm:
      if (work.shape.k <= 0 || work.shape.batch != 1) return std::nullopt;
      return Probe{.kind = ProbeKind::Linear,
                   .precision = sizes.precision,
                   .work = work,
                   .bias = work.role != OpRole::WeightGradient || work.launches > 1};
    case OpClass::Attention:
      return attention_probe(work, sizes);
    case OpClass::Optimizer:
      return update_probe(work, sizes);
    default:
      break;
  }
  if (work.variant == OpVariant::Softmax) return softmax_probe(work, sizes);
  const auto found =
      std::find_if(sizes.movers.begin(), sizes.movers.end(),
                   [&](const Probe& probe) { return is_same_kernel(probe.work, work); });
  return found == sizes.movers.end() ? std::nullopt : std::optional(*found);
}

bool has(const std::vector<Work>& works, const Work& work) {
  return std::any_of(works.begin(), works.end(),
                     [&](const Work& one) { return is_same_kernel(one, work); });
}

bool has(const std::vector<Probe>& probes, const Probe& probe) {
  return std::any_of(probes.begin(), probes.end(), [&](const Probe& one) {
    return one.precision == probe.precision && is_same_kernel(one.work, probe.work);
  });
}

}  // namespace

ScenarioProbes scenario_probes(const ModelGraph& graph, const NeuralNetwork& network,
                               Precision precision) {
  const NetworkSizes sizes = sizes_of(network, precision);
  ScenarioProbes all;
  for (const Module& module : graph.modules) {
    for (const auto* works :
         {&module.forward, &module.backward_input, &module.backward_weight, &module.recompute,
          &module.update, &module.head.work, &module.head.update}) {
      for (const Work& work : *works) {
        if (work.launches == 0 || work.op_class == OpClass::Measured) continue;
        const std::optional<Probe> probe = probe_of(work, sizes);
        ScenarioProbes one;
        if (probe) one.probes = {*probe};
        if (!probe) one.left_out = {work};
        append_probes(all, one);
      }
    }
  }
  return all;
}

void append_probes(ScenarioProbes& all, const ScenarioProbes& more) {
  for (const Probe& probe : more.probes) {
    if (!has(all.probes, probe)) all.probes.push_back(probe);
  }
  for (const Work& work : more.left_out) {
    if (!has(all.left_out, work)) all.left_out.push_back(work);
  }
}

}  // namespace interlock
