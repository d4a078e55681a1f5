// Hardware one step better: what is fast twice as fast, what is late half as late.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "hardware/devices/device_reader.h"
#include "scenarios/explain/change.h"

namespace interlock {
namespace {

/// A quantity of a machine, and what people call it.
struct MachinePart {
  const char* path;
  const char* words;
};

constexpr MachinePart kBandwidths[] = {
    {"cluster.link.bandwidth", "links between devices twice as fast"},
    {"cluster.port.bandwidth", "links inside a node twice as fast"},
    {"cluster.cards.bandwidth", "network cards twice as fast"},
    {"cluster.pcie.uplink.bandwidth", "PCIe uplinks twice as fast"},
    {"cluster.pcie.socket_link.bandwidth", "the link between sockets twice as fast"},
    {"cluster.host.bandwidth", "the way to the hosts' memory twice as fast"},
    {"cluster.network.link.bandwidth", "links of the torus twice as fast"},
    {"cluster.network.local.bandwidth", "local links of the dragonfly twice as fast"},
    {"cluster.network.global.bandwidth", "cables between groups twice as fast"},
    {"cluster.network.bandwidth", "links between sites twice as fast"},
    {"cluster.device.memory_bandwidth", "memory of the devices twice as fast"},
    {"training.framework.message_copies", "copies of messages to the hosts twice as fast"},
};

constexpr MachinePart kDelays[] = {
    {"cluster.link.latency", "half the latency of links between devices"},
    {"cluster.port.latency", "half the latency of links inside a node"},
    {"cluster.cards.latency", "half the latency of network cards"},
    {"cluster.pcie.uplink.latency", "half the latency of PCIe uplinks"},
    {"cluster.pcie.socket_link.latency", "half the latency between sockets"},
    {"cluster.host.latency", "half the latency of the way to the hosts"},
    {"cluster.network.link.latency", "half the latency of links of the torus"},
    {"cluster.network.local.latency", "half the latency of local links"},
    {"cluster.network.global.latency", "half the latency of cables between groups"},
    {"cluster.network.hop_latency", "half the latency of switches"},
    {"cluster.network.delay", "half the delay between sites"},
    {"cluster.device.launch_overhead", "half the time to launch a kernel"},
    {"training.framework.kernel_issue", "a host that issues kernels twice as fast"},
    {"training.framework.backward_issue", "a host that issues kernels of gradients twice as fast"},
    {"training.framework.expert_issue", "a host that issues products of experts twice as fast"},
    {"training.framework.exchange_issue", "a host that issues collectives twice as fast"},
};

std::string set(const std::string& path, const std::string& value) { return path + "=" + value; }

void scale_part(const Baseline& baseline, const MachinePart& part, double factor,
                std::vector<Change>& changes) {
  const std::string text = scaled_text(value_at(baseline.opened, part.path), factor);
  if (text.empty()) return;
  changes.push_back({Change::Kind::Machine, part.words, {set(part.path, text)}});
}

/// An oversubscribed level of a fat tree with twice the uplinks, at most as many as it takes.
void widen_tree(const Baseline& baseline, const MachinePart& part, std::vector<Change>& changes) {
  const JsonValue* written = value_at(baseline.opened, part.path);
  if (written == nullptr || written->kind != JsonValue::Kind::Number || written->number <= 1)
    return;
  const JsonValue less = {.kind = JsonValue::Kind::Number,
                          .number = std::max(1.0, written->number / 2)};
  changes.push_back({Change::Kind::Machine, part.words, {set(part.path, scaled_text(&less, 1))}});
}

/// Rates of the device, where kernels are priced by them.
void faster_arithmetic(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  const std::string peaks = "cluster.device.peak.";
  Change change{Change::Kind::Machine, "devices that compute twice as fast", {}};
  std::vector<std::string> names = {
      precision_names()[static_cast<std::size_t>(precision_of(scenario))]};
  if (names.front() == "fp8" || names.front() == "fp4")
    names.emplace_back("bf16");  // attention stays in 16 bits
  // Tiles begin and end in a time that is told at the rate in 16 bits.
  if (names.front() == "fp32" || names.front() == "tf32")
    names.insert(names.end(), {"bf16", "fp16"});
  for (const std::string& name : names) {
    const std::string text = scaled_text(value_at(baseline.opened, peaks + name), 2);
    if (!text.empty()) change.settings.push_back(set(peaks + name, text));
  }
  if (!change.settings.empty()) changes.push_back(change);
}

/// `speeds` of ranks, with those in `faster` doubled.
std::string speeds_text(const Question& scenario, const std::vector<bool>& faster) {
  std::vector<double> speeds(static_cast<std::size_t>(scenario.layout.ranks()), 1);
  if (scenario.variation && !scenario.variation->speeds.empty()) {
    speeds = scenario.variation->speeds;
  }
  JsonValue list = {.kind = JsonValue::Kind::Array};
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    list.items.push_back(
        {.kind = JsonValue::Kind::Number, .number = speeds[rank] * (faster.at(rank) ? 2 : 1)});
  }
  return scaled_text(&list, 1);
}

/// Measured times have no rates: devices are faster as a whole. So is the busiest one, or all that
/// are as busy while others wait for them.
void faster_devices(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  if (scenario.trace() || scenario.layout.ranks() > 1024) return;
  const auto ranks = static_cast<std::size_t>(scenario.layout.ranks());
  const auto add = [&](const std::string& words, const std::vector<bool>& faster) {
    changes.push_back(
        {Change::Kind::Machine, words, {set("variation.speeds", speeds_text(scenario, faster))}});
  };
  if (!have_rates(scenario.cluster)) {
    add("devices that are twice as fast", std::vector<bool>(ranks, true));
  }
  std::vector<bool> busiest(ranks, false);
  std::size_t count = 0;
  for (const int device : baseline.limits.as_busy) {
    const auto rank = static_cast<std::size_t>(device) % ranks;
    if (!busiest[rank]) ++count;
    busiest[rank] = true;
  }
  if (count == 0 || count == ranks) return;
  add(count == 1 ? "the busiest device twice as fast"
                 : "the " + std::to_string(count) + " busiest devices twice as fast",
      busiest);
}

/// Tells whether `other` could take the place of `own` in a machine: of the same vendor, and worse
/// in nothing but rounding.
bool could_replace(const Device& other, const Device& own, std::size_t precision) {
  constexpr double kAsGood = 0.95;
  const bool same_vendor = own.architecture.empty() || vendor_of(other) == vendor_of(own);
  const auto rate = [=](const Device& device) {
    return device.peak[precision].value_or(FlopsPerSecond(0));
  };
  return same_vendor && other.memory >= own.memory * kAsGood &&
         rate(other) >= rate(own) * kAsGood &&
         other.memory_bandwidth >= own.memory_bandwidth * kAsGood;
}

/// The device of the catalogue with the least of `measure` above that of the scenario's, among
/// those that are no worse otherwise.
template <class Measure>
void next_device(const Baseline& baseline, const Measure& measure, const char* of_what,
                 std::vector<Change>& changes) {
  const Question& question = baseline.result.plan.question;
  const Device& own = front_device(question.cluster);
  const auto precision = static_cast<std::size_t>(precision_of(question));
  std::optional<double> best;
  std::string name;
  for (const std::string& candidate : device_names()) {
    const JsonValue text = {.kind = JsonValue::Kind::String, .text = candidate};
    Diagnostics diagnostics;
    const Device device = read_device({&text, ""}, diagnostics);
    const double value = measure(device);
    if (!diagnostics.empty() || !could_replace(device, own, precision)) continue;
    if (value <= measure(own) || (best && value >= *best)) continue;
    best = value;
    name = candidate;
  }
  if (!best) return;
  changes.push_back({Change::Kind::Machine,
                     name + ", the next device of the catalogue with more " + of_what,
                     {set("cluster.device", name)}});
}

void other_devices(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  const auto precision = static_cast<std::size_t>(precision_of(scenario));
  const auto rate = [=](const Device& device) {
    return device.peak[precision].value_or(FlopsPerSecond(0)).value();
  };
  const auto memory = [](const Device& device) { return device.memory.value(); };
  if (have_rates(scenario.cluster) && !is_mixed(scenario.cluster)) {
    next_device(baseline, rate, "compute", changes);
    next_device(baseline, memory, "memory", changes);
  }
  for (const char* path : {"cluster.device.memory", "cluster.memory"}) {
    const std::string text = scaled_text(value_at(baseline.opened, path), 2);
    if (text.empty()) continue;
    changes.push_back({Change::Kind::Machine, "devices with twice the memory", {set(path, text)}});
  }
}

/// Takes away what slows devices and links down.
void undisturbed(const Baseline& baseline, std::vector<Change>& changes) {
  constexpr MachinePart kDisturbances[] = {
      {"variation.stragglers", "no stragglers"},
      {"variation.slow_links", "no slow links"},
      {"variation.jitter", "no jitter of kernels"},
      {"variation.link_jitter", "no jitter of transfers"},
  };
  for (const MachinePart& part : kDisturbances) {
    if (value_at(baseline.document, part.path) == nullptr) continue;
    changes.push_back({Change::Kind::Machine, part.words, {set(part.path, "null")}});
  }
}

}  // namespace

std::vector<Change> machine_changes(const Baseline& baseline) {
  std::vector<Change> changes;
  for (const MachinePart& part : kBandwidths) scale_part(baseline, part, 2, changes);
  for (const MachinePart& part : kDelays) scale_part(baseline, part, 0.5, changes);
  widen_tree(baseline, {"cluster.network.oversubscription", "twice the uplinks of leaf switches"},
             changes);
  widen_tree(baseline, {"cluster.network.pod_oversubscription", "twice the uplinks of pods"},
             changes);
  faster_arithmetic(baseline, changes);
  faster_devices(baseline, changes);
  other_devices(baseline, changes);
  undisturbed(baseline, changes);
  return changes;
}

}  // namespace interlock
