// Answers: where the time of a step goes, and what every change would bring, simulated.
// SPDX-License-Identifier: Apache-2.0
//
// Example: a step of 11 ms with two micro-batches. With four of them it takes 19 ms for twice the
// work: a gain of 11 - 19 / 2 = 1.5 ms.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/explain/change.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {

/// The outcome of a changed scenario.
struct TriedChange {
  Change change;
  Seconds step_time;
  /// Work of its step over that of the baseline's: samples, or micro-batches if their samples are
  /// not known.
  double work = 1;
  Seconds gain;       // of the baseline's step time, for equal work; below 0: a loss
  Bytes peak_memory;  // of the fullest device
  Bytes memory_capacity;
  bool fits = true;
  /// Energy and money of a step, for equal work over the baseline's. None where either is unknown,
  /// and of other hardware, which has no power and price.
  std::optional<double> energy, cost;
};

struct Answers {
  Baseline baseline;
  std::vector<TriedChange> changes;  // what gains most first
  int refused = 0;                   // changes that the scenario does not allow
  int untried = 0;                   // changes that were left, as it was to stop
};

/// Told how many of how many changes were simulated.
using ChangesTried = std::function<void(std::size_t done, std::size_t of)>;

/// Simulates the scenario of `document`, then every change of it by `workers`, until `stop` says
/// so; with threads of a host, natively. Throws: Error if the document is wrong, or stands for
/// several scenarios.
Answers answer(const JsonValue& document, const Workers& workers, const ChangesTried& told = {},
               const std::function<bool()>& stop = {});

}  // namespace interlock
