// TraceWorkload: a run that another program wrote down, in place of a model and its training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/work.h"
#include "sim/workloads/execution_trace.h"

namespace interlock {

struct TraceWorkload {
  std::string files;                       // "traces/rank.%d.et"
  std::shared_ptr<const Program> program;  // on the cluster of its scenario
  TraceSteps steps;                        // of another tool: one
  std::optional<Precision>
      precision;  // nothing: of computations without a duration nothing is known
  TraceNotes notes;
};

}  // namespace interlock
