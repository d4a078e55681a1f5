// TraceWorkload: a run that another program wrote down, in place of a model and its training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/work.h"
#include "sim/workloads/execution_trace.h"

namespace interlock {

struct TraceWorkload {
  Program program;   // on the cluster of its scenario
  TraceSteps steps;  // of another tool: one
  std::optional<Precision>
      precision;       // nothing: of computations without a duration nothing is known
  bool named = false;  // whether ops say what they are to us
  TraceNotes notes;
};

}  // namespace interlock
