// DurationTable: how long the ops of a model took, out of traces of real runs.
// SPDX-License-Identifier: Apache-2.0
//
// The table is a model of kind "profile" that scenarios can name as it is, with what it was made of
// beside it. An op takes the time that its kernels cover; the gaps between them, in which a device
// waits for its host or for messages, are the simulation's to find. The span, gaps included, stands
// beside it. Of messages only the bytes are kept, since the time of a message holds waiting.
//
// Example: a part whose forwards were covered for 1, 2 and 9 s has a forward of 2 s in the model.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "reports/kineto/kineto_events.h"
#include "reports/kineto/phase_names.h"
#include "reports/report.h"

namespace interlock {

/// Samples of one phase of one part, in seconds: time covered, and first start to last end.
struct OpSamples {
  std::vector<double> busy, spans;
};

struct MeasuredPart {
  std::string name;
  std::array<OpSamples, kPhases> phases;
};

struct KernelSamples {
  std::vector<double> durations;  // seconds
  double in_ops = 0;              // of their sum
};

struct MessageSamples {
  int count = 0;
  std::vector<double> bytes;  // of those that say it
};

struct DurationTable {
  std::vector<std::string> files;
  std::vector<MeasuredPart> parts;  // in the order of the model, as far as names tell it
  std::map<std::string, KernelSamples> kernels;
  std::map<std::string, MessageSamples> messages;
  Seconds in_ops, other_kernels, communication, copies;  // sums over all events of devices
  int steps = 0;                                         // of the trace that has most
  int without_time = 0, duplicates = 0;
};

/// Adds what one trace says.
void add_trace(DurationTable& table, const KinetoEvents& events);
/// Puts parts in order: by number, where all are numbers of one kind; else as they first ran.
void order_parts(DurationTable& table);

/// The times of a part as a module has them: medians. A half of the backward that was not measured
/// is what the whole leaves of the other; if neither was, they are equal.
struct ModuleTimes {
  Seconds forward, backward_input, backward_weight, head, update;
  bool halved = false;
};
ModuleTimes module_times(const MeasuredPart& part);

/// Returns the table as a model file: modules in the order of parts.
std::string duration_json(const DurationTable& table);
/// Reports for a terminal what was read of the traces, and what the table lacks.
std::string duration_report(const DurationTable& table, const TableStyle& style);

}  // namespace interlock
