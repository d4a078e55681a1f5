// Metrics: what a trace says about the steady state, in the terms of the result contract.
// SPDX-License-Identifier: Apache-2.0
//
// Figures are means over the measured window [begin, end): whole steps after the fill. With one
// step there is no fill and the window is the whole run. Example: in the step of 11 ms of
// sim/causes/explanation.h device 0 is busy for 6 / 11: Forward 2 / 11 and Backward 4 / 11. Exposed
// is 2 / 11 and Bubble 3 / 11. exposed_communication, over two devices, is (2 + 1) / 2 = 1.5 ms.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/causes/explanation.h"
#include "sim/engines/engines.h"
#include "sim/measure/program_of_steps.h"

namespace interlock {

/// The uses of a device's time.
enum class TimeUse {
  Forward,
  BackwardInput,
  Backward,
  BackwardWeight,
  Head,
  Recompute,
  Extra,  // ops of the main network that train nothing on their stage, turns on old inputs, and
          // casts and copies of messages
  Update,
  Exposed,  // idle while the message that it waits for is on its way, and exchanges inside ops
  Bubble,   // idle for any other reason
};
inline constexpr int kTimeUses = 10;
/// Returns "forward", "backward_input", ...: the keys of the result.
const char* name_of(TimeUse use);

struct DeviceMetrics {
  int rank = 0;
  std::vector<int> stages;               // of the model
  int weight_versions = 1;               // the most that it keeps of any of its stages
  double busy = 0;                       // share of the time in which it executes anything
  double useful = 0;                     // share for the main network's own forward and backward
  std::array<double, kTimeUses> time{};  // shares by TimeUse, which add up to 1
  double reuse = 0;                      // turns on old inputs, for each micro-batch
  Bytes peak_memory, peak_stash, allocated_peak;
  std::optional<Bytes> memory_capacity, used_memory;  // used: by all of its process
  Seconds peak_time;                                  // when peak_memory is first reached
  std::array<Bytes, kMemoryClasses> memory{};         // the split at that instant
  HostMemory host;
};

struct LinkMetrics {
  std::string name;
  Bytes bytes;  // per step
  double utilisation = 0;
  int stands_for = 1;  // links that carry as much
};

/// Updates that a stage of the model made between forwards of its micro-batches and the updates
/// that used their gradients; of all its copies and replicas.
struct StageStaleness {
  int most = 0;
  double mean = 0;
};

struct Metrics {
  std::string engine;
  std::int64_t tasks = 0, skipped_tasks = 0;  // skipped: of these, not simulated, see periods.h
  Seconds wall_time;  // of the engine, for people; never part of a golden file
  Seconds step_time, makespan, fill_latency;
  Seconds window_begin, window_end;
  bool steady = true, by_clock = false;  // by_clock: how devices were timed, see TimeWindow
  int fill_steps = 0, measured_steps = 1;
  std::optional<double> samples_per_s, tokens_per_s, mfu, hfu;
  std::optional<double> outer_exchanges, outer_exchange_s, outer_exposed_s;
  std::string attention_flops = "none";
  double busy = 0, useful = 0;  // means over devices
  Seconds exposed_communication;
  int limiting_device = 0;                       // the first of the busiest
  int devices_total = 1;                         // of the layout, simulated or not
  std::optional<double> micro_batches_per_step;  // of all replicas; nothing: not counted
  bool fits_in_memory = true;
  std::optional<Bytes> memory_capacity, host_capacity;  // of the fullest ones; nothing: unknown
  Bytes host_memory;                                    // of the fullest host
  std::map<int, std::int64_t> staleness;  // updates between forward and own update: micro-batches
  std::vector<StageStaleness> stage_staleness;  // empty where no stage missed any
  std::vector<DeviceMetrics> devices;
  std::vector<LinkMetrics> links;
  std::optional<Explanation> explanation;  // where asked for, of runs that are short enough
  bool host_is_full() const { return host_capacity && host_memory > *host_capacity; }
};

/// Returns the window to which the times of devices refer.
inline TimeWindow window_of(const Metrics& metrics) {
  return {metrics.window_begin, metrics.window_end, metrics.fill_steps,
          metrics.by_clock ? 0 : metrics.measured_steps};
}

/// Returns the first of the busiest devices, which may differ by rounding; 0 if there is none.
int first_of_busiest(const std::vector<DeviceMetrics>& devices);
/// Returns the device whose peak takes the largest part of its memory. REQUIRES: there is one.
const DeviceMetrics& fullest_device(const Metrics& metrics);

/// The inputs that turn a trace into a result, besides the program.
struct MeasureInputs {
  int steps = 8;  // to measure
  EngineKind engine = EngineKind::Auto;
  int devices = 1;                               // of the layout, simulated or not
  std::optional<double> micro_batches_per_step;  // of all replicas; nothing: not counted
  std::optional<double> samples_per_step, tokens_per_step;
  FlopsPerSecond peak;  // of one device, a mean over all; 0 if unknown
  std::string attention_flops = "none";
  std::vector<Bytes> memory_capacity;  // by simulated rank; empty: unknown
  std::optional<LongStep> long_step;
  bool explain = false, fewest_steps = false;  // why steps take their time; see look_ahead()
};

/// Result of measuring: the metrics, and the program and trace they were read from.
struct Measurement {
  Metrics metrics;
  Program program;
  TraceLog log;            // of the last run; empty unless asked for
  bool all_begun = false;  // after measure_after: all steps, by the end of the window
};

/// Finds the steady state, then runs and measures `inputs.steps` steps of it.
Measurement measure(const ProgramOfSteps& lower, const MeasureInputs& inputs, bool keep_log);

/// Runs `program` and measures `inputs.steps` steps after `fill` others. REQUIRES: it has them.
Measurement measure_after(Program program, int fill, const MeasureInputs& inputs, bool keep_log);

/// Measures `inputs.steps` steps after the first `fill` ones of a run that was logged whole.
/// REQUIRES: it has that many; spans of a rank are in order of start.
Measurement measure_trace(Program program, TraceLog log, int fill, const MeasureInputs& inputs);

/// Returns the time that each step of a logged run took, from the end of the one before.
std::vector<Seconds> step_times(const Program& program, const TraceLog& log);

/// Sets samples and tokens a second, where a step's are known, from the step time.
void set_rates(const MeasureInputs& inputs, Metrics& metrics);

}  // namespace interlock
