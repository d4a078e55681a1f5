// When an engine does what, so that runs of two engines can be compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "sim/engines/engines.h"
#include "sim/program/trace.h"

namespace interlock {

using Engine = RunSummary (*)(const Program&, const TraceSink&);

/// Returns when a run of `program` does what, whatever the order in which it tells.
inline std::vector<std::vector<double>> times_of(const Program& program, Engine engine) {
  std::vector<std::vector<double>> times;
  TraceSink sink;
  sink.span = [&](const Span& span) {
    times.push_back({0.0, double(span.rank), double(span.op), double(span.micro_batch),
                     span.start.value(), span.end.value(), span.exposed.value()});
  };
  sink.transfer = [&](const Transfer& transfer) {
    times.push_back({1.0, double(transfer.channel), double(transfer.micro_batch),
                     transfer.start.value(), transfer.end.value(), transfer.arrival.value()});
  };
  sink.collective = [&](const CollectiveSpan& span) {
    times.push_back({2.0, double(span.collective), double(span.micro_batch), span.joined.value(),
                     span.start.value(), span.end.value()});
  };
  engine(program, sink);
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace interlock
