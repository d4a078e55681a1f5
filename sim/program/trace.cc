// Sinks.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/trace.h"

namespace interlock {

namespace {

template <class Record>
std::function<void(const Record&)> both(const std::function<void(const Record&)>& first,
                                        const std::function<void(const Record&)>& second) {
  if (!first) return second;
  if (!second) return first;
  return [first, second](const Record& record) {
    first(record);
    second(record);
  };
}

}  // namespace

TraceSink tee(const TraceSink& first, const TraceSink& second) {
  return {both(first.span, second.span), both(first.transfer, second.transfer),
          both(first.memory, second.memory), both(first.collective, second.collective)};
}

TraceSink log_sink(TraceLog& log) {
  return {[&log](const Span& span) { log.spans.push_back(span); },
          [&log](const Transfer& transfer) { log.transfers.push_back(transfer); },
          [&log](const MemoryChange& change) { log.memory.push_back(change); },
          [&log](const CollectiveSpan& span) { log.collectives.push_back(span); }};
}

}  // namespace interlock
