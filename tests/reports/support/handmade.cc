// Handmade results: what reports are tested on, made without any engine.
// SPDX-License-Identifier: Apache-2.0
#include "tests/reports/support/handmade.h"

#include <algorithm>

namespace interlock {
namespace {

constexpr double kMs = 1e-3;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;

Plan plan_named(const std::string& name, int stages, std::string_view schedule) {
  Plan plan;
  Question& scenario = plan.question;
  scenario = {.name = name, .file = "handmade.json"};
  scenario.training().graph.name = "toy-mlp";
  scenario.cluster.name = "toy-node";
  scenario.layout.mesh.degree(Dimension::Pipeline) = stages;
  for (int stage = 0; stage <= stages; ++stage) plan.partition.boundaries.push_back(3 * stage);
  plan.schedule.kind = &schedule_named(schedule);
  return plan;
}

/// Ops F, B and U of each stage (3 * stage + 0, 1, 2), channels up (2 * s) and down (2 * s + 1).
Program chain_program(int stages, Seconds occupancy, Seconds latency) {
  Program program{.stages = stages};
  for (int stage = 0; stage < stages; ++stage) {
    const int loss = stages - 1;
    program.ops.push_back({OpKind::F, stage, stage, true, Seconds(kMs)});
    program.ops.push_back({OpKind::B, stage, loss, true, Seconds(2 * kMs)});
    program.ops.push_back({OpKind::U, stage, stage, false, Seconds(0.5 * kMs)});
    Rank rank{.streams = 0, .stages = {stage}};  // only its log says what it does
    rank.resident[static_cast<int>(MemoryClass::Weights)] = Bytes(3 * kGiB);
    rank.resident[static_cast<int>(MemoryClass::Gradients)] = Bytes(3 * kGiB);
    rank.resident[static_cast<int>(MemoryClass::Optimizer)] = Bytes(6 * kGiB);
    program.ranks.push_back(rank);
  }
  for (int stage = 0; stage + 1 < stages; ++stage) {
    for (const bool up : {true, false}) {
      const int from = up ? stage : stage + 1, to = up ? stage + 1 : stage;
      const int wire = static_cast<int>(program.wires.size());
      program.wires.push_back({.from_rank = from, .to_rank = to, .links = {wire}});
      program.channels.push_back({.from_rank = from,
                                  .to_rank = to,
                                  .from_stage = from,
                                  .to_stage = to,
                                  .wire = wire,
                                  .bytes = Bytes(2 * kMiB),
                                  .occupancy = occupancy,
                                  .latency = latency});
    }
  }
  return program;
}

DeviceMetrics device_metrics(int rank, double busy, double useful) {
  DeviceMetrics device{.rank = rank, .stages = {rank}, .busy = busy, .useful = useful};
  device.memory[static_cast<int>(MemoryClass::Weights)] = Bytes(3 * kGiB);
  device.memory[static_cast<int>(MemoryClass::Gradients)] = Bytes(3 * kGiB);
  device.memory[static_cast<int>(MemoryClass::Optimizer)] = Bytes(6 * kGiB);
  device.memory[static_cast<int>(MemoryClass::Stash)] = Bytes((20 - 2 * (rank % 8)) * kGiB);
  for (const Bytes bytes : device.memory) device.peak_memory += bytes;
  device.peak_stash = device.memory[static_cast<int>(MemoryClass::Stash)];
  device.allocated_peak = device.peak_memory + Bytes(kGiB / 2);
  device.peak_time = Seconds(kMs);
  return device;
}

/// Adds spans and messages of one run of a GPipe step that begins at `begin`; gives its end.
class PipelineLog {
 public:
  PipelineLog(TraceLog& log, const PipelineSize& size) : log_(log), size_(size) {}

  Seconds step(int step, Seconds begin) {
    std::vector<Seconds> free(static_cast<std::size_t>(size_.devices), begin);
    std::vector<Seconds> ready(static_cast<std::size_t>(size_.micro_batches), begin);
    for (int device = 0; device < size_.devices; ++device) pass(step, device, 0, free, ready);
    for (int device = size_.devices - 1; device >= 0; --device) pass(step, device, 1, free, ready);
    Seconds end = begin;
    for (int device = 0; device < size_.devices; ++device) {
      const Seconds start = free[device];
      log_.spans.push_back({start, start + Seconds(0.5 * kMs), Seconds(0), device, 3 * device + 2,
                            (step + 1) * size_.micro_batches - 1});
      end = std::max(end, start + Seconds(0.5 * kMs));
    }
    return end;
  }

 private:
  /// All micro-batches of one step through one device, forward (0) or backward (1).
  void pass(int step, int device, int direction, std::vector<Seconds>& free,
            std::vector<Seconds>& ready) {
    const Seconds length(direction == 0 ? kMs : 2 * kMs);
    for (int m = 0; m < size_.micro_batches; ++m) {
      const int batch = step * size_.micro_batches + m;
      const Seconds start = std::max(free[device], ready[m]);
      const Seconds end = start + length;
      log_.spans.push_back(
          {start, end, start - free[device], device, 3 * device + direction, batch});
      const double stash = direction == 0 ? 1 : -1;
      log_.memory.push_back({direction == 0 ? start : end,
                             stash * kGiB * (20.0 - 2 * (device % 8)) / size_.micro_batches, device,
                             MemoryClass::Stash});
      free[device] = end;
      ready[m] = send(device, direction, batch, end);
    }
  }

  Seconds send(int device, int direction, int batch, Seconds sent) {
    const int channel = direction == 0 ? 2 * device : 2 * (device - 1) + 1;
    const bool leaves = direction == 0 ? device + 1 < size_.devices : device > 0;
    if (!leaves) return sent;
    const Seconds end = sent + Seconds(0.1 * kMs), arrival = end + Seconds(0.05 * kMs);
    log_.transfers.push_back({sent, sent, end, arrival, channel, batch});
    return arrival;
  }

  TraceLog& log_;
  PipelineSize size_;
};

}  // namespace

ScenarioResult two_devices() {
  ScenarioResult result;
  result.plan = plan_named("two devices", 2, "naive");
  Measurement& measurement = result.measurement;
  measurement.program = chain_program(2, Seconds(0.25 * kMs), Seconds(0));
  const auto at = [](double ms) { return Seconds(ms * kMs); };
  measurement.log.spans = {{at(0), at(1), at(0), 0, 0, 0},
                           {at(1), at(2), at(0.25), 1, 3, 0},
                           {at(2), at(4), at(0), 1, 4, 0},
                           {at(4), at(6), at(0.25), 0, 1, 0}};
  measurement.log.transfers = {{at(0.75), at(0.75), at(1), at(1), 0, 0},
                               {at(3.75), at(3.75), at(4), at(4), 1, 0}};
  measurement.log.memory = {{at(0), 4 * kGiB, 0, MemoryClass::Stash},
                            {at(6), -4 * kGiB, 0, MemoryClass::Stash}};
  Metrics& metrics = measurement.metrics;
  metrics = {.engine = "native", .tasks = 6, .step_time = at(6), .makespan = at(6)};
  metrics.window_end = at(6);
  metrics.fill_latency = at(2);
  metrics.samples_per_s = 128 / 6e-3;
  metrics.mfu = 0.25;
  metrics.hfu = 0.25;
  metrics.busy = metrics.useful = 0.5;
  metrics.exposed_communication = at(0.25);
  metrics.limiting_device = 1;
  metrics.staleness = {{0, 1}};
  metrics.devices = {device_metrics(0, 0.5, 0.5), device_metrics(1, 0.5, 0.5)};
  set_memory(metrics, Bytes(80 * kGiB));
  metrics.links = {{"0->1", Bytes(2 * kMiB), 0.04}, {"1->0", Bytes(2 * kMiB), 0.04}};
  return result;
}

void set_memory(Metrics& metrics, const std::optional<Bytes>& capacity) {
  metrics.memory_capacity = capacity;
  for (DeviceMetrics& device : metrics.devices) device.memory_capacity = capacity;
}

ScenarioResult pipeline_run(const PipelineSize& size) {
  ScenarioResult result;
  result.plan = plan_named("synthetic pipeline", size.devices, "gpipe");
  result.plan.micro_batches = size.micro_batches;
  Measurement& measurement = result.measurement;
  measurement.program = chain_program(size.devices, Seconds(0.1 * kMs), Seconds(0.05 * kMs));
  measurement.program.micro_batches = size.micro_batches;
  measurement.program.steps = size.steps + 1;
  Metrics& metrics = measurement.metrics;
  PipelineLog log(measurement.log, size);
  Seconds now = log.step(0, Seconds(0));
  metrics.window_begin = now;
  for (int step = 1; step <= size.steps; ++step) now = log.step(step, now);
  metrics.window_end = metrics.makespan = now;
  metrics.engine = "native";
  metrics.fill_steps = 1;
  metrics.measured_steps = size.steps;
  metrics.step_time = (metrics.window_end - metrics.window_begin) / size.steps;
  metrics.busy = (3 * kMs * size.micro_batches + 0.5 * kMs) / metrics.step_time.value();
  metrics.useful = 3 * kMs * size.micro_batches / metrics.step_time.value();
  metrics.exposed_communication = Seconds(0.45 * kMs);
  metrics.tasks = static_cast<std::int64_t>(measurement.log.spans.size());
  for (int device = 0; device < size.devices; ++device) {
    metrics.devices.push_back(device_metrics(device, metrics.busy, metrics.useful));
  }
  set_memory(metrics, Bytes(40 * kGiB));
  for (const Wire& wire : measurement.program.wires) {
    metrics.links.push_back({std::to_string(wire.from_rank) + "->" + std::to_string(wire.to_rank),
                             Bytes(2 * kMiB * size.micro_batches), 0.03});
  }
  return result;
}

}  // namespace interlock
