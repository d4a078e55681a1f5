// A trial: one scenario of a chain of stages, written as the document a user would write, and run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"
#include "tests/formulas/closed_form.h"
#include "tests/validate/support/reference_loop.h"

namespace interlock {

/// One module of a profile, which is one stage here.
struct TrialStage {
  StageTimes times;
  Bytes output, stash, parameters;
};

struct Trial {
  std::vector<TrialStage> stages;
  std::string strategy = "\"local\"";  // JSON
  std::string schedule = "\"eager\"";  // JSON
  Seconds latency;
  BytesPerSecond bandwidth{1e9};
  std::string cluster;         // JSON; empty: a mesh with the two above
  std::vector<int> placement;  // rank of each stage; empty: one stage a rank
  int overlap = 0;             // 1: blocks of two modules that share one, so one stage fewer
  int micro_batches = 1;
  int steps = 8;
  std::string engine = "native";
};

/// `count` equal stages; the tensors between them take `occupancy` on a wire of 1 GB/s.
std::vector<TrialStage> equal_stages(int count, const StageTimes& times,
                                     Seconds occupancy = Seconds(0));
/// The chain that `trial`, of equal stages, stands for.
EqualChain chain_of(const Trial& trial);

// Strategies and schedules as JSON.
std::string n_wise(int n, bool all_heads = false, bool skipped = false);
std::string interlocking(const std::string& n, bool all_heads, bool skipped);
std::string rendezvous(const std::string& kind);  // fused, as the authors shipped it

std::string document(const Trial& trial);
Question load(const Trial& trial);
Measurement simulate(const Trial& trial);

/// One run of `trial.steps` steps, no search for a steady state.
struct Traced {
  Program program;
  TraceLog log;
};
Traced trace(const Trial& trial);

/// metrics.step_time, having checked that the run was steady.
double step_time(const Trial& trial);

/// Reference ticks are 2^-10 s and 1 kB on a wire, so that both sides count exactly.
inline constexpr double kTick = 1.0 / 1024;
/// The trial of all batches of `reference` in one step, so that its spans can be compared.
Trial trial_of(const ReferenceCase& reference);

/// Ops as the reference writes them, in ticks, sorted.
std::vector<ReferenceSpan> spans_of(const Traced& traced);

/// Equal to 1e-9 of the larger, which is what the engines promise.
bool close(double a, double b);

}  // namespace interlock
