// Mesh words: degrees, folding and placement in sentences.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/mesh_words.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "hardware/devices/calibration_reader.h"
#include "scenarios/contract/contract.h"
#include "sim/plan/layer_layouts.h"

namespace interlock {
namespace {

constexpr std::array kOutermostFirst = {Dimension::Pipeline, Dimension::Data, Dimension::Context,
                                        Dimension::Tensor};

const std::string& name_of(Dimension dimension) {
  return dimension_names()[static_cast<std::size_t>(dimension)];
}

void append(std::string& list, const std::string& words, const std::string& before) {
  list += (list.empty() ? "" : before) + words;
}

std::string degree_words(const Mesh& mesh) {
  std::string words;
  for (const Dimension dimension : kOutermostFirst) {
    const int degree = mesh.degree(dimension);
    if (degree > 1) append(words, name_of(dimension) + " " + std::to_string(degree), " x ");
  }
  return words;
}

/// Returns how tokens reach experts, and what runs meanwhile, where that is not the usual.
std::string token_words(const Sharding& sharding) {
  std::string words;
  if (sharding.expert_dispatch == ExpertDispatch::DeepEp) words += ", tokens once to each node";
  if (sharding.expert_overlap == ExpertOverlap::SharedExperts) {
    words += ", tokens beside shared experts";
  } else if (sharding.expert_overlap == ExpertOverlap::MicroBatches) {
    words += ", tokens beside another micro-batch";
  }
  return words;
}

/// Returns how the devices of each dimension divide what they divide, where there is a choice.
std::string option_words(const Question& scenario) {
  const Mesh& mesh = scenario.layout.mesh;
  const Sharding& sharding = scenario.layout.sharding;
  std::string words;
  if (sharding.tensor > 1 && sharding.tensor_layout != TensorLayout::OneD) {
    const auto layout = static_cast<std::size_t>(sharding.tensor_layout);
    words += ", " + contract_names("parallel", "tensor_layout")[layout] + " tensors";
  }
  if (sharding.tensor > 1 && sharding.sequence_parallel) words += ", sequence parallel";
  if (sharding.context > 1) {
    const int turning = sharding.turning_devices(), ring = sharding.ring_devices();
    words += turning == 1 ? ", ring of contexts"
             : ring == 1  ? ", all-to-all contexts"
                          : ", rings of " + std::to_string(ring) + " contexts of all-to-alls of " +
                               std::to_string(turning);
  }
  if (sharding.image_parts() > 1) {
    words +=
        ", images in " + std::to_string(sharding.image_rows) +
        (sharding.image_columns == 1 ? " bands"
                                     : " x " + std::to_string(sharding.image_columns) + " parts");
  }
  if (sharding.split_brain > 1) {
    words += ", fully connected layers on " + std::to_string(sharding.split_brain);
  } else if (mesh.expert > 1) {
    words += ", experts on " + std::to_string(mesh.expert);
  }
  if (mesh.expert_tensor) {
    words += ", each expert on " + std::to_string(*mesh.expert_tensor);
  }
  if (sharding.expert > 1) words += token_words(sharding);
  if (scenario.layout.data_parallel.zero_stage > 0) {
    words += ", ZeRO " + std::to_string(scenario.layout.data_parallel.zero_stage);
    if (mesh.shard < mesh.replicas()) words += " in shards of " + std::to_string(mesh.shard);
  }
  return words;
}

}  // namespace

std::vector<Coordinates> rank_coordinates(const Plan& plan) {
  const Mesh& mesh = simulated_mesh(plan);
  std::vector<Coordinates> ranks = simulated_ranks(mesh, plan.unfolded);
  for (Coordinates& at : ranks) at = place_in(plan.question.layout.mesh, mesh, at);
  return ranks;
}

std::string device_name(const Plan& plan, int rank) {
  const int number = device_numbers(plan).at(static_cast<std::size_t>(rank));
  const Cluster& cluster = plan.question.cluster;
  const std::string name = "device " + std::to_string(number);
  return is_mixed(cluster) ? name + " (" + machine_of(cluster, number).device.name + ")" : name;
}

std::vector<Dimension> folded_dimensions(const Plan& plan) {
  std::vector<Dimension> folded;
  std::copy_if(kOutermostFirst.begin(), kOutermostFirst.end(), std::back_inserter(folded),
               [&](Dimension dimension) {
                 return simulated_mesh(plan).degree(dimension) > 1 &&
                        !plan.unfolded[static_cast<std::size_t>(dimension)];
               });
  return folded;
}

namespace {

/// Returns what one device stands for along a folded dimension: "1 of 4 data"; of blocks of
/// neighbours "1 of 4 blocks of 2 neighbours", or "1 of 2 neighbours".
std::string folded_words(const Plan& plan, Dimension dimension) {
  const Mesh& mesh = simulated_mesh(plan);
  const std::string words = "1 of " + std::to_string(mesh.degree(dimension)) + " ";
  if (plan.folded_as && dimension == Dimension::Tensor) return words + "neighbours";
  if (plan.folded_as && dimension == Dimension::Data) {
    return words + "blocks of " + std::to_string(mesh.degree(Dimension::Tensor)) + " neighbours";
  }
  return words + name_of(dimension);
}

}  // namespace

std::string device_words(const ScenarioResult& result) {
  const Question& scenario = result.plan.question;
  const int devices = scenario.layout.mesh.devices();
  std::string words = std::to_string(devices) + (devices == 1 ? " device" : " devices");
  if (!scenario.cluster.name.empty()) words += " of " + scenario.cluster.name;
  std::string folded;
  for (const Dimension dimension : folded_dimensions(result.plan)) {
    append(folded, folded_words(result.plan, dimension), ", ");
  }
  if (folded.empty()) return words;
  const std::size_t simulated = result.measurement.metrics.devices.size();
  const std::string how = result.plan.uneven.empty() ? "" : ", nearly exact";
  return words + " (" + std::to_string(simulated) + " simulated: " + folded + how + ")";
}

namespace {

/// Returns which layers have degrees of their own.
std::string layers_words(const Layout& layout) {
  std::string words;
  const std::vector<int>& of_module = layout.layout_of_module;
  for (std::size_t m = 0; m < of_module.size(); ++m) {
    const bool first = of_module[m] != 0 && (m == 0 || of_module[m - 1] != of_module[m]);
    if (!first) continue;
    std::size_t last = m;
    while (last + 1 < of_module.size() && of_module[last + 1] == of_module[m]) ++last;
    const LayerDegrees& degrees = layout.layer_layouts[of_module[m]];
    words += m == last ? ", module " + std::to_string(m)
                       : ", modules " + std::to_string(m) + " to " + std::to_string(last);
    words +=
        " on tensor " + std::to_string(degrees.tensor) + " x data " + std::to_string(degrees.data);
  }
  return words;
}

}  // namespace

std::string layout_words(const Question& scenario) {
  const Mesh& mesh = scenario.layout.mesh;
  if (mesh.devices() == mesh.degree(Dimension::Pipeline)) return "";
  std::string order;
  for (const Dimension dimension : mesh.order) append(order, name_of(dimension), ", ");
  return degree_words(mesh) + layers_words(scenario.layout) + option_words(scenario) + ", order " +
         order;
}

std::string name_of(CollectiveKind kind) {
  CHECK(collective_kind_names().size() >= kCollectiveKinds, "a name for each");
  return collective_kind_names()[static_cast<std::size_t>(kind)];
}

std::string name_of(MeshAxis axis) {
  static constexpr std::array kNames = {
      "tensor",      "tensor row",     "tensor column", "tensor depth", "context",
      "context row", "context column", "expert",        "data",         "shard",
      "replica",     "expert tensor",  "expert data",   "to host",      "from host",
      "pipeline",    "from first",     "from last",     "resharding"};
  static_assert(kNames.size() >= kMeshAxes, "a name for each");
  return kNames[static_cast<std::size_t>(axis)];
}

}  // namespace interlock
