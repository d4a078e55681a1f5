// From spans and transfers to metrics.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/collect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

#include "base/error.h"

namespace interlock {

namespace {

constexpr double kNoBubble = 1e-12;  // of a share of time

TimeUse use_of(const OpInfo& op) {
  if (op.replay) return TimeUse::Extra;
  switch (op.kind) {
    case OpKind::H:
      return TimeUse::Head;
    case OpKind::R:
      return TimeUse::Recompute;
    case OpKind::U:
      return TimeUse::Update;
    case OpKind::S:
    case OpKind::E:
      return TimeUse::Forward;
    case OpKind::T:
    case OpKind::G:
      return TimeUse::Backward;
    case OpKind::F:
      return op.useful ? TimeUse::Forward : TimeUse::Extra;
    case OpKind::I:
      return op.useful ? TimeUse::BackwardInput : TimeUse::Extra;
    case OpKind::B:
      return op.useful ? TimeUse::Backward : TimeUse::Extra;
    case OpKind::W:
      return op.useful ? TimeUse::BackwardWeight : TimeUse::Extra;
  }
  return TimeUse::Extra;
}

}  // namespace

const char* name_of(TimeUse use) {
  static constexpr std::array kNames = {
      "forward",   "backward_input", "backward", "backward_weight",       "head",
      "recompute", "extra",          "update",   "exposed_communication", "bubble"};
  static_assert(kNames.size() == kTimeUses, "a name for each");
  return kNames[static_cast<std::size_t>(use)];
}

Collector::Collector(const Program& program, const StepWindow& window, const TimeWindow& times)
    : program_(program),
      window_(window),
      times_(times),
      idle_(program, times),
      memory_(program),
      ranks_(program.ranks.size()),
      stages_(program.stages),
      link_bytes_(program.links.size(), 0) {}

bool Collector::measured(int micro_batch) const {
  const int step = micro_batch / program_.micro_batches - window_.first_step;
  return 0 <= step && step < window_.steps;
}

/// Returns the share of an op or a transfer that belongs to the steps of the window, whenever it is
/// done: flops, bytes and replays count by it. Steps that do not repeat are cut by the window.
double Collector::share_inside(Seconds start, Seconds end, int micro_batch) const {
  const double duration = (end - start).value();
  if (window_.steady || duration == 0) return measured(micro_batch) ? 1 : 0;
  const Seconds inside = std::min(end, times_.end) - std::max(start, times_.begin);
  return std::max(0.0, inside.value() / duration);
}

void Collector::add(const Span& span) {
  const OpInfo& op = program_.ops[span.op];
  memory_.pass(span.rank, span.start);
  if (const auto idle = idle_.add(span, 0)) add_idle(*idle);
  const double counted = times_.share(program_, span);
  const Seconds duration = span.end - span.start;
  // Waiting inside an op is no work.
  const double waiting = counted * waiting_inside(op, span).value();
  const double busy = counted * duration.value() - waiting;
  RankState& rank = ranks_[span.rank];
  rank.busy += busy;
  const double messages = counted * op.messages * duration.value(), own = busy - messages;
  if (op.useful) rank.useful += own;
  rank.time[static_cast<std::size_t>(use_of(op))] += own;
  rank.time[static_cast<std::size_t>(TimeUse::Extra)] += messages;
  rank.time[static_cast<std::size_t>(TimeUse::Exposed)] += waiting;
  const double share = share_inside(span.start, span.end, span.micro_batch);
  if (op.replay) rank.replays += share;
  for (const auto& [collective, count] : op.inside) add_flows(collective, share * count);
  executed_flops_ += share * op.flops.value();
  if (op.useful) useful_flops_ += share * op.counted.value();
  const bool last_stage = model_stage(program_, op.stage + 1) == 0;
  const bool first_at_end = op.kind == OpKind::F && last_stage;
  if (first_at_end && (fill_latency_ < 0 || span.start.value() < fill_latency_)) {
    fill_latency_ = span.start.value();
  }
  count_staleness(op, span.micro_batch);
}

void Collector::add_idle(const IdleStretch& idle) {
  const double exposed = idle_.exposed(idle);
  auto& time = ranks_[idle.rank].time;
  time[static_cast<std::size_t>(TimeUse::Exposed)] += exposed;
  time[static_cast<std::size_t>(TimeUse::Bubble)] += idle_.length(idle) - exposed;
}

/// Counts the updates of a stage between the forward of a micro-batch there and the update that
/// uses its gradients.
void Collector::count_staleness(const OpInfo& op, int micro_batch) {
  StageState& stage = stages_[op.stage];
  const int every = program_.update_every, window = micro_batch / every;
  const bool piece = !stage.forwards.empty() && stage.forwards.back().end == micro_batch + 1;
  if (op.kind == OpKind::F && !piece) {
    const bool goes_on = !stage.forwards.empty() && stage.forwards.back().end == micro_batch &&
                         stage.forwards.back().updates == stage.updates &&
                         stage.forwards.back().first / every == window;
    if (!goes_on) stage.forwards.push_back({micro_batch, micro_batch, stage.updates});
    ++stage.forwards.back().end;
  }
  if (op.kind != OpKind::U) return;
  std::erase_if(stage.forwards, [&](const Forwards& forwards) {
    if (forwards.first / every != window) return false;
    const int missed =
        std::max(stage.updates - forwards.updates, std::min(program_.version_lag, window));
    for (int b = forwards.first; b < forwards.end; ++b) {
      if (!measured(b)) continue;
      ++stage.used;
      if (missed == 0) continue;
      stage.missed += missed;
      stage.most_missed = std::max(stage.most_missed, missed);
      int& most = stale_[slice_number(program_, b).micro_batch];
      most = std::max(most, missed);
    }
    return true;
  });
  ++stage.updates;
}

std::vector<StageStaleness> Collector::stage_staleness() const {
  if (stale_.empty()) return {};
  const std::size_t stages = stages_.size() / program_.copies / program_.replicas;
  std::vector<StageStaleness> all(stages);
  std::vector<std::int64_t> used(stages);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    StageStaleness& own = all[s % stages];
    own.most = std::max(own.most, stages_[s].most_missed);
    own.mean += static_cast<double>(stages_[s].missed);
    used[s % stages] += stages_[s].used;
  }
  for (std::size_t s = 0; s < stages; ++s) {
    if (used[s] > 0) all[s].mean /= static_cast<double>(used[s]);
  }
  return all;
}

void Collector::add(const Transfer& transfer) {
  const Channel& channel = program_.channels[transfer.channel];
  const double share = share_inside(transfer.start, transfer.end, transfer.micro_batch);
  const WireFlow whole = {channel.wire, channel.bytes};
  const bool single = channel.flows.empty();
  for (const WireFlow& flow :
       std::span(single ? &whole : channel.flows.data(), single ? 1 : channel.flows.size())) {
    for (const int link : program_.wires[flow.wire].links) {
      link_bytes_[link] += share * flow.bytes.value();
    }
  }
}

void Collector::add(const CollectiveSpan& span) {
  add_flows(span.collective, share_inside(span.start, span.end, span.micro_batch));
}

void Collector::add_flows(int collective, double times) {
  for (const LinkBytes& load : program_.collectives[collective].loads) {
    link_bytes_[load.link] += times * load.bytes.value();
  }
  if (!program_.collectives[collective].loads.empty()) return;
  for (const Collective::Flow& flow : program_.collectives[collective].flows) {
    for (const int link : program_.wires[flow.wire].links) {
      link_bytes_[link] += times * flow.bytes.value();
    }
  }
}

Metrics Collector::finish(const MeasureInputs& inputs) {
  Metrics metrics;
  for (const IdleStretch& idle : idle_.finish()) add_idle(idle);
  const double length = times_.length();
  metrics.window_begin = times_.begin;
  metrics.window_end = times_.end;
  metrics.by_clock = times_.by_clock();
  metrics.step_time = Seconds(length / window_.steps);
  metrics.steady = window_.steady;
  metrics.fill_steps = window_.first_step;
  metrics.measured_steps = window_.steps;
  metrics.fill_latency = Seconds(std::max(0.0, fill_latency_));
  metrics.attention_flops = inputs.attention_flops;
  metrics.devices_total = inputs.devices;
  metrics.micro_batches_per_step = inputs.micro_batches_per_step;
  fill_devices(metrics, inputs);
  fill_links(metrics);

  const double steps = window_.steps, devices = static_cast<double>(ranks_.size());
  double exposed = 0;
  for (const RankState& rank : ranks_) {
    exposed += rank.time[static_cast<std::size_t>(TimeUse::Exposed)];
  }
  metrics.exposed_communication = Seconds(exposed / steps / devices);
  if (length > 0 && inputs.peak.value() > 0 && useful_flops_ > 0) {
    const double possible = inputs.peak.value() * devices * length;
    metrics.mfu = useful_flops_ / possible;
    metrics.hfu = executed_flops_ / possible;
  }
  for (const auto& [micro_batch, missed] : stale_) ++metrics.staleness[missed];
  const std::int64_t all = static_cast<std::int64_t>(window_.steps) * whole_micro_batches(program_);
  const std::int64_t fresh = all - static_cast<std::int64_t>(stale_.size());
  if (fresh > 0) metrics.staleness[0] = fresh;
  metrics.stage_staleness = stage_staleness();
  return metrics;
}

/// Says on what rank `r` spends its time. REQUIRES: the window has a length.
void Collector::fill_shares(std::size_t r, DeviceMetrics& device) const {
  const double length = times_.length();
  device.busy = ranks_[r].busy / length;
  device.useful = ranks_[r].useful / length;
  for (int use = 0; use < kTimeUses; ++use) device.time[use] = ranks_[r].time[use] / length;
  double& bubble = device.time[static_cast<std::size_t>(TimeUse::Bubble)];
  if (!idle_.exact()) {  // what is neither work nor waiting
    double& exposed = device.time[static_cast<std::size_t>(TimeUse::Exposed)];
    exposed = std::min(exposed, std::max(0.0, 1 - device.busy));  // busy, too, is a rounded sum
    bubble = 1 - device.busy - exposed;
  }
  // A difference of sums: where it is nothing, rounding may leave its last bits.
  if (std::abs(bubble) < kNoBubble) bubble = 0;
  device.reuse = ranks_[r].replays / window_.steps / program_.micro_batches;
}

void Collector::fill_devices(Metrics& metrics, const MeasureInputs& inputs) {
  const std::vector<MemoryPeak> peaks = memory_.finish();
  const std::size_t known = inputs.memory_capacity.size();
  CHECK(known == 0 || known == ranks_.size(), "the memory of each simulated rank, or of none");
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = program_.ranks[r];
    DeviceMetrics device{.rank = static_cast<int>(r), .weight_versions = rank.weight_versions};
    for (const int stage : rank.stages) device.stages.push_back(model_stage(program_, stage));
    const std::set<int> once(device.stages.begin(), device.stages.end());
    if (once.size() < device.stages.size()) device.stages.assign(once.begin(), once.end());
    if (times_.length() > 0) fill_shares(r, device);
    if (!inputs.memory_capacity.empty()) device.memory_capacity = inputs.memory_capacity[r];
    device.peak_memory = peaks[r].total;
    device.peak_stash = peaks[r].stash;
    device.allocated_peak = peaks[r].allocated;
    device.peak_time = peaks[r].time;
    device.memory = peaks[r].at_peak;
    device.host = rank.host;
    device.host.stash = peaks[r].host_stash;
    metrics.busy += device.busy / static_cast<double>(ranks_.size());
    metrics.useful += device.useful / static_cast<double>(ranks_.size());
    metrics.devices.push_back(device);
    const std::optional<Bytes>& capacity = device.memory_capacity;
    if (capacity && device.peak_memory > *capacity) metrics.fits_in_memory = false;
  }
  metrics.limiting_device = first_of_busiest(metrics.devices);
  if (!metrics.devices.empty()) metrics.memory_capacity = fullest_device(metrics).memory_capacity;
}

const DeviceMetrics& fullest_device(const Metrics& metrics) {
  CHECK(!metrics.devices.empty(), "a result has at least one device");
  return *std::max_element(metrics.devices.begin(), metrics.devices.end(),
                           [](const DeviceMetrics& a, const DeviceMetrics& b) {
                             if (a.memory_capacity == b.memory_capacity)
                               return a.peak_memory < b.peak_memory;
                             return a.peak_memory / *a.memory_capacity <
                                    b.peak_memory / *b.memory_capacity;
                           });
}

int first_of_busiest(const std::vector<DeviceMetrics>& devices) {
  double most = 0;
  for (const DeviceMetrics& device : devices) most = std::max(most, device.busy);
  // Sums of equal durations in another order differ in their last bits.
  const double as_busy = most * (1 - 1e-12);
  const auto first = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceMetrics& d) { return d.busy >= as_busy; });
  return first == devices.end() ? 0 : static_cast<int>(first - devices.begin());
}

void Collector::fill_links(Metrics& metrics) const {
  for (std::size_t l = 0; l < link_bytes_.size(); ++l) {
    const Bytes per_step = Bytes(link_bytes_[l] / window_.steps / program_.links[l].share);
    const double length = times_.length();
    const double possible = program_.links[l].bandwidth.value() * length;
    metrics.links.push_back({program_.links[l].name, per_step,
                             possible > 0 ? link_bytes_[l] / possible : 0.0,
                             program_.links[l].stands_for});
  }
}

}  // namespace interlock
