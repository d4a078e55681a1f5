// Comparison: how far a prediction is from the run that it predicted, error by error.
// SPDX-License-Identifier: Apache-2.0
//
// The error of a step time has three sources, which are told apart:
//   op model       ops alone on their device take another time than predicted;
//   interference   ops take longer in the run than alone;
//   replay         with the times that ops took in that very run the engine finds another step:
//                  what is wrong with order, dependencies and messages.
// Between the first two and the last stands the step that the engine makes of the times of ops
// alone: a prediction from measured ops, of a schedule that they were not measured in.
//
// Example: a step is predicted to take 10 ms and takes 12 ms. From the times of ops alone the
// engine makes 11 ms, from those in the run 11.8 ms: end_to_end_error() is -16.7 %,
// from_alone_error() -8.3 %, replay_error() -1.7 %.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error_summary.h"
#include "reports/result/execution_record.h"
#include "sim/measure/metrics.h"
#include "validate/executors/executor.h"

namespace interlock {

/// The clock by which ops of a run are counted: of the wall; or of processors, on machines where
/// ranks are threads that share them.
enum class OpClock { Wall, Processor };
const char* name_of(OpClock clock);

/// Returns `program` with the times that its ops took in a run, in the order that the run realised.
Program replay_of(const Program& program, const TraceLog& log, const std::vector<OpSample>& samples,
                  OpClock clock);

/// One kind of op of one stage: medians over the measured steps.
struct OpComparison {
  OpKind kind = OpKind::F;
  int stage = 0, loss = 0;
  Seconds predicted, measured;
  std::optional<Seconds> alone;  // measured one after the other, on an idle device
};

/// One collective of a stage: its time alone by the cluster's links or by a calibration, and the
/// median on the wall over the measured steps.
struct CollectiveComparison {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int stage = 0, members = 0;
  Bytes bytes;
  Seconds predicted, measured;
};

/// A run of real work and everything that was found out beside it.
struct MeasuredRun {
  TraceLog log;
  std::vector<OpSample> samples;  // of the run
  std::vector<OpSample> alone;    // of the same ops, one after the other; empty: not measured
  std::vector<Bytes> peaks;       // that tensors took, by rank; empty: not counted
};

struct DeviceComparison {
  double predicted_busy = 0, measured_busy = 0;  // shares
  Bytes predicted_peak, measured_peak;           // of the trace, as a simulator counts
  std::optional<Bytes> held_peak;                // of tensors that were really there
};

struct Comparison {
  std::string name;
  OpClock clock = OpClock::Wall;
  int steps = 0;                          // measured
  Seconds predicted, measured, replayed;  // step times, means over the measured steps
  std::optional<Seconds> from_alone;      // step time of a simulation with the times of ops alone
  Seconds wall;                           // of the run, whatever the clock of ops
  double spread = 0;                      // of measured steps: (p95 - median) / median
  std::vector<OpComparison> ops;
  ErrorSummary op_model, interference;  // over `ops`, weighted equally
  std::vector<CollectiveComparison> collectives;
  ErrorSummary collective_model;  // over `collectives`, likewise
  std::vector<DeviceComparison> devices;
  std::optional<ExecutionRecord> execution;  // of a run on GPUs
  double end_to_end_error() const { return predicted / measured - 1; }
  double replay_error() const { return replayed / measured - 1; }
  std::optional<double> from_alone_error() const;
};

struct ComparisonInputs {
  std::string name;
  int fill = 1;  // steps at the start that are left out
  OpClock clock = OpClock::Wall;
  MeasureInputs measure;
};

/// Compares `predicted`, a run of the program by an engine, with `run`, of the same program.
/// With OpClock::Processor the measured steps are those of the replay: threads that share
/// processors make no steps that anyone could predict. The replay then tells nothing.
Comparison compare_runs(const Measurement& predicted, const MeasuredRun& run,
                        const ComparisonInputs& inputs);

}  // namespace interlock
