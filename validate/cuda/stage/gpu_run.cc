// GpuRun: checks a job, runs it, and says what ran.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_run.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "validate/cuda/device/links.h"
#include "validate/cuda/stage/gpu_pass.h"
#include "validate/executors/executor.h"
#include "validate/executors/issued_memory.h"

namespace interlock::cuda {

namespace {

void check(const Job& job) {
  for (const std::string& problem : {why_not_executable(job.program), why_not_trainable(job)}) {
    if (!problem.empty()) throw Error(problem);
  }
  if (has_couplings(job.network)) {
    throw Error("reversible blocks are trained on CPUs; expected \"executor\": \"cpu\"");
  }
  if (job.precision != Precision::Fp32 && job.precision != Precision::Bf16) {
    throw Error("GPUs train in fp32 and bf16; expected \"precision\": \"fp32\" or \"bf16\"");
  }
}

/// Products of all devices; those that ran alike are counted together.
std::vector<CudaProduct> products_of(const Rig& rig) {
  std::vector<CudaProduct> all;
  const auto key = [](const CudaProduct& p) {
    return std::tie(p.shape, p.algorithm, p.tile, p.stages, p.split_k, p.cluster);
  };
  for (const auto& products : rig.products) {
    for (const CudaProduct& one : products->record()) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const CudaProduct& p) { return key(p) == key(one); });
      if (known == all.end()) {
        all.push_back(one);
      } else {
        known->calls += one.calls;
      }
    }
  }
  return all;
}

std::int64_t workspace_of(const Rig& rig) {
  std::int64_t most = 0;
  for (const auto& scratch : rig.scratch) most = std::max(most, scratch->bytes());
  return most + Products::kWorkspace;
}

/// The trace, with the memory that the program says behind its ops and messages.
void deliver(const Program& program, const GpuPass& pass, const TraceSink& sink, CudaRun& run) {
  TraceLog log = pass.times().log();
  if (!log.spans.empty()) log.memory = memory_of_issued(program, pass.issued(), log);
  Seconds last(0);
  for (const Span& span : log.spans) last = std::max(last, span.end);
  const auto done = static_cast<std::int64_t>(log.spans.size() + log.transfers.size());
  run.summary = {"cuda", run.stopped ? done : count_tasks(program), last};
  deliver_in_order(log, sink);
}

}  // namespace

void run_job(const Job& job, const CudaOptions& options, const TraceSink& sink, CudaRun& run) {
  check(job);
  Rig rig(job, options);
  if (options.graph && !rig.group.one_gpu()) {
    throw Error("a run on several GPUs is no single graph; leave the graph out, or use partitions");
  }
  auto pass = std::make_unique<GpuPass>(job, options, rig, false);
  pass->run();
  run.outcome = pass->outcome();
  run.notes = rig.group.notes();
  if (options.graph && !pass->stopped()) {
    // What was dumped and made before; memory is let go before the second pass takes it.
    const Outcome before = std::move(run.outcome);
    pass.reset();
    pass = std::make_unique<GpuPass>(job, options, rig, true);
    pass->run();
    run.outcome = pass->outcome();
    run.outcome.dump = before.dump;
    run.notes.push_back(before.losses == run.outcome.losses
                            ? "the whole run as one graph, with the losses of the run before it"
                            : "the whole run as one graph, whose losses differ from those before");
  } else {
    run.notes.emplace_back("issued kernel by kernel");
  }
  run.notes.push_back(std::string("links: ") +
                      (rig.nccl ? "NCCL" : name_of_link(options.link, options.graph)));
  if (options.link == CudaLink::Paced && rig.group.link_sms() == 0) {
    run.notes.emplace_back("paced copies have no multiprocessors of their own");
  }
  run.products = products_of(rig);
  run.workspace = workspace_of(rig);
  run.wall = pass->wall();
  run.stopped = pass->stopped();
  deliver(job.program, *pass, sink, run);
}

}  // namespace interlock::cuda
