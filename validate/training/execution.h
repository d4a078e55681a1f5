// Execution: a scenario trained for real, on what its cluster names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "reports/charts/training_report.h"
#include "reports/result/execution_record.h"
#include "scenarios/plan/plan.h"
#include "validate/executors/executor.h"
#include "validate/network/job.h"
#include "validate/training/data_set.h"

namespace interlock {

struct ExecutionOptions {
  int steps = 1;
  BatchSource batches;
  Descent descent;
  std::uint64_t seed = 1;
  int dump_step = -1;     // see Job
  bool alone = false;     // ops one after the other, nothing beside them
  bool untraced = false;  // GPUs: once more without events, to know what they cost
  bool graph = false;     // on one GPU: at last as one CUDA graph
  bool streams = false;   // GPUs: plain streams in place of partitions
  const std::atomic<bool>* stop = nullptr;  // ends the run soon after it becomes true
};

struct Execution {
  Program program;
  TraceLog log;
  std::vector<OpSample> samples;
  Outcome outcome;
  std::optional<ExecutionRecord> record;  // of GPUs
  bool stopped = false;
};

/// Returns the layers of the scenario's model. Throws: Error if it has none that can be executed.
NeuralNetwork network_of(const Question& scenario);

/// Has every replica of `plan` run: one stands for no other.
void unfold_replicas(Plan& plan);

/// Returns the job that executors are given to train `program`, the program of `plan`. It refers to
/// `program` and `network`.
Job job_of(const Plan& plan, const Program& program, const NeuralNetwork& network,
           const ExecutionOptions& options);

/// Returns the plan by which `scenario` is trained.
/// Throws: Error if it cannot be, or not as a `graph`. Nothing runs.
Plan plan_training(const Question& scenario, const NeuralNetwork& network, bool graph);

/// Trains. Throws: Error if the scenario cannot be trained, or a loss is not a number.
Execution execute(const Plan& plan, const NeuralNetwork& network, const ExecutionOptions& options);

/// Returns the losses and times of `execution`, beside those of the simulated `plan`.
TrainingCurve training_curve(const Plan& plan, const Execution& execution,
                             const ExecutionOptions& options);

}  // namespace interlock
