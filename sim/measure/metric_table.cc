// The metrics of a step, and how a row reads and sets them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/metric_table.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

using Known = std::optional<double>;

Known each(const Known& rate, const Metrics& metrics) {
  return rate ? Known(*rate / metrics.devices_total) : std::nullopt;
}
Known samples_of_a_device(const Metrics& metrics) { return each(metrics.samples_per_s, metrics); }
Known tokens_of_a_device(const Metrics& metrics) { return each(metrics.tokens_per_s, metrics); }
Known steps_per_s(const Metrics& metrics) {
  return metrics.step_time > Seconds(0) ? 1 / metrics.step_time.value() : 0;
}
Known micro_batches_per_s(const Metrics& metrics) {
  if (!metrics.micro_batches_per_step) return std::nullopt;
  return *metrics.micro_batches_per_step * *steps_per_s(metrics);
}
Known bubble_fraction(const Metrics& metrics) { return 1 - metrics.busy; }

Known if_known(const std::optional<Bytes>& capacity) {
  return capacity ? Known(capacity->value()) : std::nullopt;
}
Known memory_capacity(const Metrics& metrics) { return if_known(metrics.memory_capacity); }
Known host_capacity(const Metrics& metrics) { return if_known(metrics.host_capacity); }

template <Bytes DeviceMetrics::*member>
Known largest(const Metrics& metrics) {
  Bytes most(0);
  for (const DeviceMetrics& device : metrics.devices) most = std::max(most, device.*member);
  return most.value();
}

template <MemoryClass memory_class>
Known most_of(const Metrics& metrics) {
  Bytes most(0);
  for (const DeviceMetrics& device : metrics.devices) {
    most = std::max(most, device.memory[static_cast<std::size_t>(memory_class)]);
  }
  return most.value();
}

Known most_stale(const Metrics& metrics) {
  return metrics.staleness.empty() ? std::nullopt : Known(metrics.staleness.rbegin()->first);
}

Known used_memory(const Metrics& metrics) {
  Known most;
  for (const DeviceMetrics& device : metrics.devices) {
    if (!device.used_memory) return std::nullopt;
    most = std::max(most.value_or(0), device.used_memory->value());
  }
  return most;
}

Known traffic(const Metrics& metrics) {
  Bytes bytes(0);
  for (const LinkMetrics& link : metrics.links) bytes += link.bytes * link.stands_for;
  return bytes.value();
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
const std::vector<MetricRow>& step_metrics() {
  using enum MetricKind;
  using M = Metrics;
  constexpr Better kMore = Better::More, kLess = Better::Less, kNeither = Better::Neither;
  constexpr Columns kFirst = Columns::Headline, kLast = Columns::Simulation, kNone = Columns::None;
  static const std::vector<MetricRow> rows = {
      {"engine", "/engine", nullptr, nullptr, Words, kNeither, kLast, Growth::None, 0, &M::engine,
       "engine that ran: `\"native\"` or `\"simgrid\"`"},
      {"tasks", "/tasks", nullptr, nullptr, Count, kNeither, kLast, Growth::Linear, 0, &M::tasks,
       "ops and messages of the run, fill included"},
      {"skipped_tasks", "/skipped_tasks", nullptr, nullptr, Count, kNeither, kLast, Growth::None, 0,
       &M::skipped_tasks,
       "of these, those in whole periods of micro-batches that were counted and not simulated "
       "(`simulate.skip_periods`)"},
      {"wall_time_s", "/wall_time_s", nullptr, nullptr, Time, kLess, kNone, Growth::None, 0,
       &M::wall_time, "seconds the simulation took on this computer"},
      {"step_time_s", "/step_time_s", "step_time", "step time", Time, kLess, kFirst, Growth::Linear,
       kMeanOverSeeds | kAlways | kOnPage, &M::step_time,
       "mean time of a step in the measured window"},
      {"makespan_s", "/makespan_s", nullptr, nullptr, Time, kLess, kLast, Growth::Linear, 0,
       &M::makespan, "from the first start to the last end of everything simulated"},
      {"steady", "/steady", nullptr, nullptr, Truth, kMore, kLast, Growth::None, 0, &M::steady,
       "whether the state repeated; if not, the figures are means over steps that still differ"},
      {"fill_steps", "/fill_steps", nullptr, nullptr, Count, kLess, kLast, Growth::None, 0,
       &M::fill_steps, "steps simulated before the measured window"},
      {"measured_steps", "/measured_steps", nullptr, nullptr, Count, kLess, kLast, Growth::None, 0,
       &M::measured_steps, "steps in the measured window"},
      {"fill_latency_s", "/fill_latency_s", nullptr, nullptr, Time, kLess, kLast, Growth::None, 0,
       &M::fill_latency, "time until the last stage first starts a forward"},
      {"window_begin_s", "/window_begin_s", nullptr, nullptr, Time, kNeither, kNone, Growth::Linear,
       0, &M::window_begin, "start of the measured window, since the run began"},
      {"window_end_s", "/window_end_s", nullptr, nullptr, Time, kNeither, kNone, Growth::Linear, 0,
       &M::window_end, "its end"},
      {"samples_per_s", "/samples_per_s", nullptr, "throughput", Rate, kMore, kFirst,
       Growth::Formula, kAlways, &M::samples_per_s,
       "samples trained on per second; null if the model does not say how many a micro-batch "
       "holds"},
      {"tokens_per_s", "/tokens_per_s", nullptr, "throughput", Rate, kMore, kFirst, Growth::Formula,
       kAlways, &M::tokens_per_s, "tokens per second; null for models without tokens"},
      {"micro_batches_per_s", nullptr, nullptr, "throughput", Rate, kMore, kNone, Growth::Formula,
       0, micro_batches_per_s, "micro-batches of all replicas per second; not counted in traces"},
      {"steps_per_s", nullptr, nullptr, "throughput", Rate, kMore, kNone, Growth::Formula, 0,
       steps_per_s, "steps per second"},
      {"samples_per_s_per_device", "/samples_per_s_per_device", nullptr, nullptr, Rate, kMore,
       kFirst, Growth::Formula, 0, samples_of_a_device, "`samples_per_s` over `devices_total`"},
      {"tokens_per_s_per_device", "/tokens_per_s_per_device", nullptr, nullptr, Rate, kMore, kFirst,
       Growth::Formula, 0, tokens_of_a_device, "`tokens_per_s` over `devices_total`"},
      {"busy", "/utilisation/busy", "busy", "busy", Share, kMore, kFirst, Growth::Share,
       kMeanOverSeeds | kAlways | kOnPage, &M::busy,
       "share of the time in which a device executes anything"},
      {"useful", "/utilisation/useful", "useful", "useful", Share, kMore, kFirst, Growth::Share,
       kMeanOverSeeds | kAlways | kOnPage, &M::useful,
       "share spent on the main network's own forward and backward: no heads, recompute, updates "
       "or gradients that only pass through"},
      {"mfu", "/utilisation/mfu", "mfu", "MFU", Share, kMore, kFirst, Growth::Share,
       kMeanOverSeeds | kOnPage, &M::mfu,
       "model flops, without heads and recompute, over what all devices could do at their peak "
       "rate"},
      {"hfu", "/utilisation/hfu", nullptr, nullptr, Share, kMore, kFirst, Growth::Share,
       kMeanOverSeeds, &M::hfu,
       "the same with all flops that were executed: heads and recomputation, too, and of attention "
       "what its kernels compute, [below](#flops-of-attention)"},
      {"attention_flops", "/attention_flops", nullptr, nullptr, Words, kNeither, kNone,
       Growth::None, 0, &M::attention_flops,
       "what `mfu` counts for attention: `\"full\"` (the whole square), `\"causal\"` (half of it), "
       "`\"chosen\"` (what an indexer chose) or `\"none\"` (no attention)"},
      {"bubble_fraction", "/bubble_fraction", nullptr, nullptr, Share, kLess, kFirst,
       Growth::Formula, 0, bubble_fraction,
       "`1 - busy`; waiting for messages, and exchanges inside ops, are part of it"},
      {"exposed_communication_s", "/exposed_communication_s", "exposed", "exposed communication",
       Time, kLess, kFirst, Growth::Linear, kMeanOverSeeds | kOnPage, &M::exposed_communication,
       "per step, time in which a device is idle while the message or collective that it waits for "
       "is on its way, exchanges inside ops included; mean over devices"},
      {"outer_exchanges", "/outer_exchanges", nullptr, "exchanges of outer steps", Count, kNeither,
       kNone, Growth::None, 0, &M::outer_exchanges,
       "exchanges, of one fragment each, in the `every` steps of `parallel.outer`; null without "
       "it"},
      {"outer_exchange_s", "/outer_exchange_s", nullptr, "exchange of outer steps", Time, kLess,
       kNone, Growth::None, 0, &M::outer_exchange_s,
       "time that workers take to exchange one fragment of their weights; null without "
       "`parallel.outer`"},
      {"outer_exposed_s", "/outer_exposed_s", nullptr, "exposed outer steps", Time, kLess, kNone,
       Growth::None, 0, &M::outer_exposed_s,
       "of `step_time_s`, what outer steps add to a step on average: exchanges as far as training "
       "waits for them, and updates"},
      {"limiting_device", "/limiting_device", nullptr, nullptr, Count, kNeither, kLast,
       Growth::None, 0, &M::limiting_device, "rank of the busiest device"},
      {"fits_in_memory", "/fits_in_memory", nullptr, nullptr, Truth, kMore, kFirst, Growth::None, 0,
       &M::fits_in_memory,
       "whether every device's peak stays within its memory, and what is kept on hosts within "
       "theirs"},
      {"peak_memory_bytes", nullptr, "memory", "memory", Size, kLess, kFirst, Growth::Formula,
       kOnPage, largest<&DeviceMetrics::peak_memory>,
       "most bytes that the fullest of the `devices` ever holds"},
      {"used_memory_bytes", nullptr, nullptr, nullptr, Size, kLess, kFirst, Growth::Formula, 0,
       used_memory,
       "most bytes in use on one of the `devices`, as `nvidia-smi` tells: its peak, what the "
       "allocator keeps beyond it, the process's context and its communicators' buffers; null if "
       "the device is no GPU of NVIDIA or AMD, and of recorded workloads"},
      {"peak_stash_bytes", nullptr, "stash", "stash", Size, kLess, kFirst, Growth::Formula, 0,
       largest<&DeviceMetrics::peak_stash>,
       "most bytes of stash that any of the `devices` ever keeps"},
      {"weights_bytes", nullptr, "weights", "weights", Size, kLess, kNone, Growth::Formula, 0,
       most_of<MemoryClass::Weights>, "weights of the device that holds most, at its peak"},
      {"weight_versions_bytes", nullptr, "versions", "weight versions", Size, kLess, kNone,
       Growth::Formula, 0, most_of<MemoryClass::WeightVersions>,
       "weight versions of the device that holds most, at its peak"},
      {"gradients_bytes", nullptr, "gradients", "gradients", Size, kLess, kNone, Growth::Formula, 0,
       most_of<MemoryClass::Gradients>, "gradients of the device that holds most, at its peak"},
      {"states_bytes", nullptr, "states", "optimiser states", Size, kLess, kNone, Growth::Formula,
       0, most_of<MemoryClass::Optimizer>,
       "optimiser states of the device that holds most, at its peak"},
      {"most_staleness", nullptr, "staleness", "staleness", Count, kLess, kNone, Growth::Formula, 0,
       most_stale,
       "updates that a stage made between a micro-batch's forward and the update that used its "
       "gradients, the most of all; null if nothing is trained"},
      {"traffic_bytes", nullptr, "traffic", "traffic", Size, kLess, kFirst, Growth::Formula, 0,
       traffic, "bytes of a step on all `links` together"},
      {"memory_capacity_bytes", "/memory_capacity_bytes", nullptr, nullptr, Size, kNeither, kFirst,
       Growth::Formula, kAlways, memory_capacity,
       "memory of the fullest device, the one whose peak takes the largest part of its own; null "
       "if the machine does not say"},
      {"host_peak_bytes", "/host_peak_bytes", nullptr, nullptr, Size, kLess, kFirst, Growth::None,
       0, &M::host_memory,
       "what devices of a node keep with their host, each at its peak: of the node that keeps "
       "most"},
      {"host_capacity_bytes", "/host_capacity_bytes", nullptr, nullptr, Size, kNeither, kNone,
       Growth::Formula, 0, host_capacity,
       "memory of a node's host; null if the machine does not say"},
  };
  return rows;
}

const MetricRow& step_metric(std::string_view key) {
  const auto row = std::find_if(step_metrics().begin(), step_metrics().end(),
                                [&](const MetricRow& one) { return key == one.key; });
  CHECK(row != step_metrics().end(), "a metric is asked for by a key of the table");
  return *row;
}

MetricRow telling_rate(const std::function<bool(const MetricRow&)>& known) {
  for (const char* key : {"tokens_per_s", "samples_per_s", "micro_batches_per_s"}) {
    if (known(step_metric(key))) return step_metric(key);
  }
  return step_metric("steps_per_s");
}

std::string rate_unit(const MetricRow& rate) {
  std::string unit = rate.key;
  unit.resize(unit.find("_per_s"));
  std::replace(unit.begin(), unit.end(), '_', '-');
  return unit + "/s";
}

namespace {

struct Reader {
  const Metrics& metrics;
  Known operator()(std::monostate) const { return std::nullopt; }
  Known operator()(MetricFormula formula) const { return formula(metrics); }
  Known operator()(std::string Metrics::*) const { return std::nullopt; }
  Known operator()(Seconds Metrics::*member) const { return (metrics.*member).value(); }
  Known operator()(Bytes Metrics::*member) const { return (metrics.*member).value(); }
  Known operator()(std::optional<double> Metrics::*member) const { return metrics.*member; }
  template <class Number>
  Known operator()(Number Metrics::*member) const {
    return static_cast<double>(metrics.*member);
  }
};

struct Writer {
  double value;
  Metrics& metrics;
  void operator()(std::monostate) const { refuse(); }
  void operator()(MetricFormula) const { refuse(); }
  void operator()(std::string Metrics::*) const { refuse(); }
  template <class Member>
  void operator()(Member Metrics::*member) const {
    metrics.*member = Member(value);
  }
  static void refuse() { CHECK(false, "only a number that is a member can be set"); }
};

}  // namespace

std::optional<double> number_of(const MetricRow& row, const Metrics& metrics) {
  return std::visit(Reader{metrics}, row.field);
}

void set_number(const MetricRow& row, double value, Metrics& metrics) {
  std::visit(Writer{value, metrics}, row.field);
}

}  // namespace interlock
