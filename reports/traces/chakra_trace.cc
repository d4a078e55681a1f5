// A run as Chakra execution traces, all of its steps.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/chakra_trace.h"

#include "base/error.h"
#include "reports/words/mesh_words.h"
#include "sim/workloads/chakra_file.h"

namespace interlock {
namespace {

std::vector<ExecutionTrace> traces_of(const ScenarioResult& result) {
  if (!folded_dimensions(result.plan).empty()) {
    throw Error(
        "only some devices are simulated, which stand for the others; expected --set "
        "simulate.fold=none");
  }
  const Measurement& measured = result.measurement;
  std::vector<ExecutionTrace> traces =
      execution_traces(measured.program, measured.log, device_numbers(result.plan));
  for (ExecutionTrace& trace : traces) {
    trace.steps->fill = measured.metrics.fill_steps;
    trace.steps->measured = measured.metrics.measured_steps;
  }
  return traces;
}

}  // namespace

std::vector<std::string> chakra_files(const ScenarioResult& result) {
  std::vector<std::string> files;
  try {
    for (const ExecutionTrace& trace : traces_of(result)) files.push_back(chakra_bytes(trace));
  } catch (const Error& error) {
    throw Error(result.plan.question.file + ": " + result.plan.question.name +
                ": --chakra: " + error.what());
  }
  return files;
}

}  // namespace interlock
