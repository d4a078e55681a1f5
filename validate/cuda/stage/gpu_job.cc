// Runs a job on GPUs, from its check to its trace.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sim/plan/schedules/message_bytes.h"
#include "validate/cuda/stage/gpu_run.h"
#include "validate/cuda/stage/run_record.h"
#include "validate/executors/issued_memory.h"

namespace interlock::cuda {

namespace {

void check(const Job& job) {
  for (const std::string& problem : {why_not_executable(job.program), why_not_trainable(job)}) {
    if (!problem.empty()) throw Error(problem);
  }
  if (job.strategy.kind == StrategyKind::Independent) {
    throw Error("independent stages are trained on CPUs; expected \"executor\": \"cpu\"");
  }
  if (job.strategy.kind == StrategyKind::ForwardForward) {
    throw Error("goodness of modules is trained on CPUs; expected \"executor\": \"cpu\"");
  }
  if (casts_messages(job.strategy)) {
    throw Error("messages are cast on CPUs; expected \"executor\": \"cpu\"");
  }
  if (job.strategy.gradient_every > 1) {
    throw Error(
        "gradients that cross boundaries now and then are trained on CPUs; expected "
        "\"executor\": \"cpu\"");
  }
  if (has_couplings(job.network)) {
    throw Error("reversible blocks are trained on CPUs; expected \"executor\": \"cpu\"");
  }
  if (job.precision != Precision::Fp32 && job.precision != Precision::Bf16) {
    throw Error("GPUs train in fp32 and bf16; expected \"precision\": \"fp32\" or \"bf16\"");
  }
}

/// Returns how often ranks joined a collective, which is a task of the program, too.
std::int64_t count_joinings(const Program& program, const std::vector<Issue>& issued) {
  return std::count_if(issued.begin(), issued.end(), [&](const Issue& one) {
    if (one.instruction.code != Opcode::Record) return false;
    return program.events[static_cast<std::size_t>(one.instruction.index)].collective >= 0;
  });
}

/// Delivers the trace, with the memory that the program gives its ops and messages.
void deliver(const Program& program, const GpuRun& gpu_run, const TraceSink& sink, CudaRun& run) {
  TraceLog log = gpu_run.times().log();
  if (!log.spans.empty()) log.memory = memory_of_issued(program, gpu_run.issued(), log);
  Seconds last(0);
  for (const Span& span : log.spans) last = std::max(last, span.end);
  const auto timed = static_cast<std::int64_t>(log.spans.size() + log.transfers.size());
  const std::int64_t done = timed + count_joinings(program, gpu_run.issued());
  run.summary = {"cuda", run.stopped || timed > 0 ? done : count_tasks(program), last};
  deliver_in_order(log, sink);
}

/// Returns how long the run takes without events around its ops, if that is asked for. What it
/// learns is forgotten.
std::optional<Seconds> untraced_wall(const Job& job, const CudaOptions& options, Rig& rig) {
  if (!options.untraced) return std::nullopt;
  CudaOptions bare = options;
  bare.times = false;
  Job silent = job;
  silent.dump_step = -1;  // which waits for a stream
  auto gpu_run = std::make_unique<GpuRun>(silent, bare, rig, false);
  gpu_run->run();
  if (options.graph && !gpu_run->stopped()) {
    gpu_run.reset();
    gpu_run = std::make_unique<GpuRun>(silent, bare, rig, true);
    gpu_run->run();
  }
  return gpu_run->wall();
}

/// Has every product choose its algorithm, and every kernel be loaded, before anything is measured.
void warm_up(const Job& job, const CudaOptions& options, Rig& rig) {
  CudaOptions bare = options;
  bare.times = bare.alone = false;
  Job silent = job;
  silent.dump_step = -1;
  GpuRun(silent, bare, rig, false).warm_up();
  for (const auto& products : rig.products) products->count_again();
}

}  // namespace

void run_job(const Job& job, const CudaOptions& options, const TraceSink& sink, CudaRun& run) {
  check(job);
  Rig rig(job, options);
  if (options.graph && !rig.group.one_gpu()) {
    throw Error("a run on several GPUs is no single graph; leave the graph out, or use partitions");
  }
  if (options.graph && options.alone) {
    throw Error("ops of a graph do not run one after the other; leave one of the two out");
  }
  warm_up(job, options, rig);
  const std::optional<Seconds> untraced = untraced_wall(job, options, rig);
  auto gpu_run = std::make_unique<GpuRun>(job, options, rig, false);
  ClockSampler clocks(sampled_gpus(rig));
  gpu_run->run();
  run.outcome = gpu_run->outcome();
  const bool graph = options.graph && !gpu_run->stopped();
  std::string same;
  if (graph) {
    // Keeps the results of the first run; its memory is freed before the second run takes it.
    const Outcome before = std::move(run.outcome);
    gpu_run.reset();
    gpu_run = std::make_unique<GpuRun>(job, options, rig, true);
    gpu_run->run();
    run.outcome = gpu_run->outcome();
    run.outcome.dump = before.dump;
    same = before.losses == run.outcome.losses
               ? "the graph's losses are those of the run before it"
               : "the graph's losses differ from those of the run before it";
  }
  std::vector<ClockReading> readings = clocks.finish();
  run.record = record_of(rig, *gpu_run, options);
  run.record.clocks = std::move(readings);
  run.record.graph = graph;
  run.record.untraced = untraced;
  if (graph) run.record.notes.push_back(same);
  run.stopped = gpu_run->stopped();
  deliver(job.program, *gpu_run, sink, run);
}

}  // namespace interlock::cuda
