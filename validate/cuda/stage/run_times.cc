// RunTimes: events around what is issued, and the trace that they make when the run is over.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/run_times.h"

#include <algorithm>
#include <utility>

#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

Events::~Events() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

cudaEvent_t Events::make() {
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
  events_.push_back(event);
  return event;
}

cudaEvent_t Events::mark(cudaStream_t stream, bool capturing) {
  cudaEvent_t event = nullptr;
  require(cudaEventCreate(&event), "make an event");
  events_.push_back(event);
  require(cudaEventRecordWithFlags(event, stream,
                                   capturing ? cudaEventRecordExternal : cudaEventRecordDefault),
          "mark a time");
  return event;
}

Seconds RunTimes::time_of(int rank, cudaEvent_t event) const {
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin.at(gpu[static_cast<std::size_t>(rank)]), event),
          "read a time");
  return Seconds(milliseconds / 1e3);
}

HostLateness RunTimes::lateness() const {
  std::vector<IssuedSpan> spans;
  spans.reserve(ops.size());
  for (const MarkedOp& op : ops) {
    spans.push_back({time_of(op.rank, op.start), time_of(op.rank, op.end), op.issued});
  }
  return lateness_of(spans);
}

CollectiveSpan RunTimes::span_of(const MarkedCollective& marked) const {
  CollectiveSpan span = {.collective = marked.collective, .micro_batch = marked.micro_batch};
  Seconds longest(-1);
  for (const MarkedCollective::Share& share : marked.shares) {
    const Seconds start = time_of(share.rank, share.start), end = time_of(share.rank, share.end);
    span.joined = std::max(span.joined, time_of(share.rank, share.joined));
    if (end - start <= longest) continue;
    longest = end - start;
    span.start = start;
    span.end = end;
  }
  // GPUs have clocks of their own.
  span.joined = std::min(span.joined, span.start);
  return span;
}

TraceLog RunTimes::log() const {
  std::vector<Transfer> messages;
  for (const MarkedTransfer& t : transfers) {
    Transfer message = {.channel = t.channel, .micro_batch = t.micro_batch};
    message.sent = time_of(t.rank, t.sent);
    message.start = t.start != nullptr ? time_of(t.rank, t.start) : message.sent;
    message.end = t.end != nullptr ? time_of(t.rank, t.end) : message.sent;
    message.arrival = message.end;
    messages.push_back(message);
  }
  std::vector<CollectiveSpan> collectives;
  collectives.reserve(this->collectives.size());
  for (const MarkedCollective& one : this->collectives) collectives.push_back(span_of(one));
  std::vector<Span> spans;
  std::map<int, Seconds> free;  // by rank
  for (const MarkedOp& op : ops) {
    Span span = {.rank = op.rank, .op = op.op, .micro_batch = op.micro_batch};
    span.start = time_of(op.rank, op.start);
    span.end = time_of(op.rank, op.end);
    if (op.message >= 0) {
      const Transfer& message = messages[static_cast<std::size_t>(op.message)];
      const Seconds from = std::max(free[op.rank], message.sent);
      span.exposed = std::max(Seconds(0), std::min(span.start, message.arrival) - from);
    }
    if (op.collective >= 0) {
      const CollectiveSpan& waited = collectives[static_cast<std::size_t>(op.collective)];
      const Seconds from = std::max(free[op.rank], waited.start);
      span.exposed = std::max(span.exposed, std::min(span.start, waited.end) - from);
    }
    free[op.rank] = span.end;
    spans.push_back(span);
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.start < b.start; });
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Transfer& a, const Transfer& b) { return a.start < b.start; });
  std::stable_sort(
      collectives.begin(), collectives.end(),
      [](const CollectiveSpan& a, const CollectiveSpan& b) { return a.joined < b.joined; });
  TraceLog log;
  log.collectives = std::move(collectives);
  log.spans = std::move(spans);
  log.transfers = std::move(messages);
  return log;
}

}  // namespace interlock::cuda
