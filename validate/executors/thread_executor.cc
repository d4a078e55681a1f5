// Threads: starting and joining them, and the trace of what they did.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "sim/run/deadlock.h"
#include "validate/executors/issued_memory.h"
#include "validate/executors/thread_run.h"

namespace interlock {

ThreadedProgram::ThreadedProgram(const Program& program, const Workload& workload,
                                 const ThreadOptions& options)
    : program_(program),
      workload_(workload),
      options_(options),
      devices_(program.ranks.size()),
      queues_(program.channels.size()),
      wire_free_(program.wires.size(), 0),
      events_(program.events.size()),
      alive_(static_cast<int>(program.ranks.size())) {
  for (UnrolledStream& unrolled : unroll(program)) streams_.push_back({std::move(unrolled)});
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    devices_[r].first_stream = program.ranks[r].first_stream;
    devices_[r].streams = program.ranks[r].streams;
  }
  for (std::size_t c = 0; c < queues_.size(); ++c) {
    queues_[c].occupancy = std::llround(1e9 * program.channels[c].occupancy.value());
    queues_[c].latency = std::llround(1e9 * program.channels[c].latency.value());
  }
}

ThreadRun ThreadedProgram::run(const TraceSink& sink) {
  {
    std::vector<std::jthread> threads;
    start_all(threads);
  }  // joined
  if (failure_) std::rethrow_exception(failure_);
  ThreadRun result = summarise();
  deliver_in_order(log_, sink);
  if (result.stopped) return result;
  std::vector<std::optional<Instruction>> standing(streams_.size());
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!streams_[s].done()) standing[s] = streams_[s].instruction();
  }
  require_done(program_, standing);
  return result;
}

/// All begin at once, when there is a thread for each.
void ThreadedProgram::start_all(std::vector<std::jthread>& threads) {
  const Lock lock(mutex_);
  try {
    for (int rank = 0; rank < static_cast<int>(devices_.size()); ++rank) {
      threads.emplace_back([this, rank] { live(rank); });
    }
  } catch (...) {
    end_run(std::current_exception());
  }
  begin_ = std::chrono::steady_clock::now();
}

ThreadRun ThreadedProgram::summarise() {
  ThreadRun result;
  result.stopped = ended_ && options_.stop != nullptr && *options_.stop;
  Seconds end;
  for (const Span& span : log_.spans) end = std::max(end, span.end);
  for (const Transfer& transfer : log_.transfers) end = std::max(end, transfer.arrival);
  const std::int64_t done = static_cast<std::int64_t>(log_.spans.size() + log_.transfers.size());
  result.summary = {"threads", done, end};
  for (Device& device : devices_) {
    result.samples.insert(result.samples.end(), device.samples.begin(), device.samples.end());
  }
  return result;
}

ThreadRun run_threads(const Program& program, const Workload& workload,
                      const ThreadOptions& options, const TraceSink& sink) {
  CHECK(why_not_executable(program).empty(), "a program that can be run for real");
  return ThreadedProgram(program, workload, options).run(sink);
}

Workload waiting_workload(const Program& program) {
  std::vector<std::chrono::nanoseconds> durations;
  for (const OpInfo& op : program.ops) {
    durations.emplace_back(std::llround(1e9 * op.duration.value()));
  }
  Workload workload;
  workload.compute = [durations = std::move(durations)](int op, int) {
    const auto end = std::chrono::steady_clock::now() + durations[op];
    if (durations[op] > kWakeUpDelay) std::this_thread::sleep_until(end - kWakeUpDelay);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  return workload;
}

}  // namespace interlock
