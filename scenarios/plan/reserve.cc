// Prices what a process holds beside its tensors.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/reserve.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace interlock {
namespace {

constexpr double kMebibyte = 1024 * 1024;
constexpr Bytes kContext(0.4e9);
constexpr Bytes kOfTwo(544 * kMebibyte), kOfMore(688 * kMebibyte);  // of a communicator
constexpr Bytes kPeer(3.28e9 / 7);                                  // of all-to-alls
constexpr double kHeld = 0.1;

struct Peers {
  int members = 1;
  bool all_to_all = false;
};

/// Returns whether a module has the layout of this number.
bool is_used(const Layout& layout, std::size_t number) {
  const std::vector<int>& all = layout.layout_of_module;
  return all.empty() || std::ranges::count(all, static_cast<int>(number)) > 0;
}

/// Returns the communicators that a device is a member of, each of several devices.
std::vector<Peers> communicators_of(const Question& question) {
  const Layout& layout = question.layout;
  const std::vector<Mesh> layers = layout.layers();
  // Groups of neighbours by their distance and number: tensor devices, replicas, and those between
  // which tensors are laid anew. Equal ones of several layouts are the same devices.
  std::map<std::pair<int, int>, bool> neighbours;
  std::size_t first = layers.size();
  for (std::size_t number = 0; number < layers.size(); ++number) {
    const Mesh& of = layers[number];
    const int tensor = of.degree(Dimension::Tensor);
    if (of.joined > 1) {
      neighbours[{tensor, of.joined}] |= layout.sharding.sequence_parallel;
    } else if (is_used(layout, number)) {
      first = std::min(first, number);
      neighbours[{1, tensor}] |= false;
      neighbours[{tensor, of.replicas()}] |= false;
    }
  }
  const Mesh& mesh = layers.at(first);
  const int tensor = mesh.degree(Dimension::Tensor), parts = mesh.tensor_of_experts();
  // An all-to-all of context devices, and a ring of them or of parts of images.
  const int turning = layout.sharding.turning_devices();
  std::vector<Peers> all = {{mesh.degree(Dimension::Pipeline)},
                            {mesh.degree(Dimension::Context) / turning},
                            {turning, true},
                            {mesh.expert, true}};
  for (const auto& [group, all_to_all] : neighbours) all.push_back({group.second, all_to_all});
  if (mesh.expert > 1) all.push_back({mesh.devices_of_rank() / (mesh.expert * parts)});
  if (parts != tensor) all.push_back({parts});
  std::erase_if(all, [](const Peers& one) { return one.members == 1; });
  return all;
}

}  // namespace

bool is_gpu(const Device& device) {
  return device.architecture.starts_with("NVIDIA") || device.architecture.starts_with("AMD");
}

MemoryReserve priced_reserve(const Question& question, const Device& device) {
  MemoryReserve reserve{.held = question.training().framework.reserve > 0 ? 0 : kHeld};
  if (!is_gpu(device)) return reserve;
  reserve.process = question.training().framework.context_memory.value_or(kContext);
  int of_node = 1;
  for (const Machine& machine : question.cluster.machines) {
    of_node = std::max(of_node, machine.devices_per_node);
  }
  for (const Peers& one : communicators_of(question)) {
    reserve.process += one.members == 2 ? kOfTwo : kOfMore;
    if (one.all_to_all) reserve.process += (std::min(one.members, of_node) - 1) * kPeer;
  }
  return reserve;
}

double usable_share(const Question& question, const std::optional<MemoryReserve>& asked) {
  double least = 1;
  for (const Machine& machine : question.cluster.machines) {
    const Device& device = machine.device;
    if (device.memory <= Bytes(0)) continue;
    const MemoryReserve reserve = asked ? *asked : priced_reserve(question, device);
    const double left = 1 - reserve.share - reserve.process / device.memory;
    least = std::min(least, std::max(0.0, left) / (1 + reserve.held));
  }
  return least;
}

std::string reserve_words(const Question& question, const std::optional<MemoryReserve>& asked) {
  if (asked) {
    return (asked->share > 0 ? format_percent(asked->share) + " of each device"
                             : format(asked->process) + " of each device") +
           ", as asked";
  }
  const Device& device = question.cluster.machines.front().device;
  const MemoryReserve reserve = priced_reserve(question, device);
  const std::size_t members = communicators_of(question).size();
  std::string words;
  if (reserve.process > Bytes(0)) {
    words = format(reserve.process) + " for its context";
    if (members > 0) {
      words += " and " + std::to_string(members) + " communicator" + (members > 1 ? "s" : "");
    }
  }
  if (reserve.held == 0) return words;
  return words + (words.empty() ? "" : ", ") + format_percent(reserve.held) +
         " of what tensors take for its allocator";
}

}  // namespace interlock
