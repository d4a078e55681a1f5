// Question to Job, Job to Workload, Workload to an executor, and back to curves.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/execution.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/error_summary.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/plan/schedules/message_bytes.h"
#include "validate/cpu/cpu_run.h"
#include "validate/executors/cuda_executor.h"
#include "validate/executors/settled_program.h"
#include "validate/network/contrast.h"
#include "validate/training/staleness.h"

namespace interlock {

namespace {

[[noreturn]] void refuse(const Question& scenario, const std::string& path,
                         const std::string& problem) {
  throw Error(scenario.file + ": " + scenario.name + ": " + path + ": " + problem);
}

/// Checks that gradients of replicas are exchanged in a way that kernels do.
void check_replicas(const Question& scenario) {
  const DataParallel& data = scenario.layout.data_parallel;
  if (scenario.layout.mesh.replicas() == 1) return;
  const RealDevices& devices = scenario.cluster.executor;
  const bool parts = devices.kind == RealDevices::Kind::Cuda && devices.partitions;
  const auto most = static_cast<int>(kMostReplicas);
  if (parts && scenario.layout.mesh.replicas() > most) {
    refuse(scenario, "/parallel/data",
           "one GPU has at most " + std::to_string(most) +
               " replicas; expected fewer, or \"devices\": \"gpus\"");
  }
  if (data.zero_stage > 1) {
    refuse(scenario, "/parallel/zero_stage",
           "replicas keep whole weights and gradients; expected 0 or 1");
  }
  if (data.zero_stage > 0 && scenario.layout.mesh.shard < scenario.layout.mesh.replicas()) {
    refuse(scenario, "/parallel/shard", "all replicas divide updates; expected it left out");
  }
  if (scenario.training().schedule.replays) {
    refuse(scenario, "/training/schedule",
           "turns on old inputs would be each replica's own; expected \"data\" 1");
  }
  if (data.overlap_weights) {
    refuse(scenario, "/parallel/overlap_weights",
           "weights are exchanged right behind an update; expected false");
  }
  if (data.outer.any()) {
    refuse(scenario, "/parallel/outer", "outer steps are simulated only; expected it left out");
  }
  if (data.gradient_density != 1) {
    refuse(scenario, "/parallel/gradient_density", "all gradients are exchanged; expected 1");
  }
  const std::string whole = "gradients of a step are exchanged at once, behind its last backward; ";
  if (data.overlap_gradients) {
    refuse(scenario, "/parallel/overlap_gradients", whole + "expected false");
  }
  if (data.gradient_bucket()) {
    const bool told = data.bucket.has_value();
    refuse(scenario, told ? "/parallel/bucket" : "/parallel/gradient_reduction",
           whole + (told ? "expected it left out" : "expected \"step\""));
  }
}

/// Checks that the executor that the cluster names can train the network.
void check_executor(const Question& scenario, const NeuralNetwork& network, bool graph) {
  const RealDevices::Kind kind = scenario.cluster.executor.kind;
  if (kind == RealDevices::Kind::Virtual) {
    refuse(scenario, "/cluster/executor",
           "clocks alone learn nothing; expected \"cpu\" or \"cuda\"");
  }
  if (graph && kind != RealDevices::Kind::Cuda) {
    refuse(scenario, "/cluster/executor", "only GPUs run graphs; expected \"cuda\", or no --graph");
  }
  const Training& training = scenario.training();
  if (kind == RealDevices::Kind::Cpu && training.precision != Precision::Fp32) {
    refuse(scenario, "/training/precision", "the CPU trains in fp32; expected \"fp32\"");
  }
  const Optimizer optimizer = training.optimizer.kind;
  if (training.optimizer != OptimizerRule(optimizer) || optimizer > Optimizer::Adam) {
    refuse(scenario, "/training/optimizer",
           "trained are \"sgd\", \"sgd-momentum\" and \"adam\" with states of fp32");
  }
  if (training.narrow_activations) {
    refuse(scenario, "/training/activation_inputs",
           "kernels keep the inputs of activations as they are; expected \"training\"");
  }
  if (training.adapters.rank > 0 || training.frozen_modules > 0) {
    refuse(scenario, training.adapters.rank > 0 ? "/training/lora" : "/training/frozen_modules",
           "kernels train all weights; expected neither \"lora\" nor \"frozen_modules\"");
  }
  check_replicas(scenario);
  if (kind != RealDevices::Kind::Cuda) return;
  if (training.schedule.stash != StashMode::Kept || training.schedule.replays) {
    refuse(
        scenario, "/training/schedule",
        "stages that run forwards again, or learn from old inputs, are trained on CPUs; expected "
        "\"executor\": \"cpu\"");
  }
  if (training.strategy.kind == StrategyKind::Independent) {
    refuse(scenario, "/training/strategy",
           "independent stages are trained on CPUs; expected \"executor\": \"cpu\"");
  }
  if (training.strategy.kind == StrategyKind::ForwardForward) {
    refuse(scenario, "/training/strategy",
           "goodness of modules is trained on CPUs; expected \"executor\": \"cpu\"");
  }
  if (casts_messages(training.strategy)) {
    refuse(scenario, "/training/strategy",
           "messages are cast on CPUs; expected \"executor\": \"cpu\"");
  }
  if (training.strategy.gradient_every > 1) {
    refuse(scenario, "/training/strategy/gradient_every",
           "gradients that cross boundaries now and then are trained on CPUs; expected "
           "\"executor\": \"cpu\"");
  }
  if (has_couplings(network)) {
    refuse(scenario, "/model/reversible",
           "reversible blocks are trained on CPUs; expected \"executor\": \"cpu\"");
  }
  const CudaReport report = look_at_cuda();
  if (report.state != CudaState::Ready) refuse(scenario, "/cluster/executor", report.sentence);
  const bool apart = !scenario.cluster.executor.partitions;
  if (scenario.layout.mesh.replicas() > 1 && apart && report.nccl.empty()) {
    refuse(scenario, "/parallel/data",
           "replicas on several GPUs exchange by NCCL, and " + report.nccl_problem +
               "; expected it installed, or \"devices\": \"partitions\" of one GPU");
  }
}

/// Checks that no micro-batch can read weights which come together from several replicas. Two steps
/// show whether a stage has several micro-batches in flight.
void check_divided_updates(const Plan& plan) {
  const Program program = lower_plan(plan, 2);
  if (!divides_updates(program) || !leaves_numbers_open(program)) return;
  refuse(plan.question, "/parallel/zero_stage",
         "weights of replicas come together while other micro-batches in flight read them; "
         "expected 0, or an \"in_flight\" of 1");
}

void run_on_threads(const Question& scenario, const Job& job, const ExecutionOptions& options,
                    Execution& execution) {
  const CpuRun run = make_cpu_run(job, {});
  if (options.alone) {
    execution.samples = run_in_order(job.program, run.workload, options.stop);
  } else {
    const ThreadOptions threads = {
        .emulate_links = scenario.cluster.executor.links == RealDevices::Links::Emulated,
        .stop = options.stop};
    const ThreadRun done = run_threads(job.program, run.workload, threads, log_sink(execution.log));
    execution.samples = done.samples;
    execution.stopped = done.stopped;
  }
  execution.outcome = run.outcome();
}

CudaLink link_of(RealDevices::Links links) {
  if (links == RealDevices::Links::Paced) return CudaLink::Paced;
  return links == RealDevices::Links::Zero ? CudaLink::Zero : CudaLink::CopyEngine;
}

void run_on_gpus(const Question& scenario, const Job& job, const ExecutionOptions& options,
                 Execution& execution) {
  const RealDevices& devices = scenario.cluster.executor;
  if (options.streams && (!devices.partitions || devices.multiprocessors > 0)) {
    refuse(scenario, "/cluster/executor",
           "--streams shares one GPU; expected \"devices\": \"partitions\" and no "
           "\"multiprocessors\"");
  }
  const int ranks = static_cast<int>(job.program.ranks.size());
  const CudaOptions cuda{.partitions = devices.partitions ? ranks : 0,
                         .sms = devices.multiprocessors,
                         .split = options.streams ? CudaSplit::Streams : CudaSplit::Auto,
                         .link = link_of(devices.links),
                         .nccl = devices.nccl,
                         .graph = options.graph && !options.alone,
                         .untraced = options.untraced,
                         .alone = options.alone,
                         .stop = options.stop};
  CudaRun run = run_cuda(job, cuda, log_sink(execution.log));
  execution.outcome = std::move(run.outcome);
  execution.stopped = run.stopped;
  execution.record = std::move(run.record);
  for (const Span& span : execution.log.spans) {
    execution.samples.push_back({span.op, span.micro_batch, span.end - span.start, Seconds(0)});
  }
}

void check_job(const Question& scenario, const Job& job) {
  const std::string where = scenario.file + ": " + scenario.name + ": ";
  if (const std::string lacks = why_not_executable(job.program); !lacks.empty()) {
    throw Error(where + "this cannot be run for real: " + lacks);
  }
  if (const std::string problem = why_not_trainable(job); !problem.empty()) {
    throw Error(where + problem);
  }
}

/// Losses of every micro-batch of a stage as means over steps; NaN for steps that it did not end.
std::vector<double> step_losses(const std::map<int, double>& losses, const Program& program) {
  const int batches = program.micro_batches * program.replicas;
  std::vector<double> means;
  for (int step = 0; step < program.steps; ++step) {
    double sum = 0;
    for (int batch = step * batches; batch < (step + 1) * batches; ++batch) {
      const auto found = losses.find(batch);
      sum += found == losses.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
    }
    means.push_back(sum / batches);
  }
  return means;
}

/// Returns the loss of the network at each step: that of its last stage, or of a chain of stages
/// the sum of what each adds to it.
std::vector<double> losses_of_network(const Execution& execution, const Strategy& strategy) {
  const Outcome& outcome = execution.outcome;
  if (strategy.kind != StrategyKind::Independent) {
    return step_losses(outcome.losses.back(), execution.program);
  }
  std::vector<double> sums(static_cast<std::size_t>(execution.program.steps));
  for (const std::map<int, double>& terms : outcome.chain_terms) {
    const std::vector<double> of_stage = step_losses(terms, execution.program);
    for (std::size_t step = 0; step < sums.size(); ++step) sums[step] += of_stage[step];
  }
  return sums;
}

}  // namespace

NeuralNetwork network_of(const Question& scenario) {
  if (scenario.trace()) {
    refuse(scenario, "/workload", "a trace has times, but no layers to run; expected a model");
  }
  const Training& training = scenario.training();
  const bool parts = !training.recompute_parts.empty();
  LayerParts known = LayerPart::CoreAttention, asked = training.recompute_parts;
  known |= LayerPart::Norms;
  known |= LayerPart::Mlp;
  if (asked |= known; asked != known) {
    refuse(scenario, "/training/recompute/modules",
           "only some parts of a layer are run again; expected core_attn, layernorm or mlp");
  }
  if (parts && training.recompute == Recompute::Full) {
    refuse(scenario, "/training/recompute",
           "layers that are computed again in two ways are simulated only; expected \"modules\" "
           "or \"full_layers\"");
  }
  if (training.recompute == Recompute::Alternate) {
    refuse(scenario, "/training/recompute",
           "every second product is simulated only; expected \"none\", \"selective\" or \"full\"");
  }
  if (training.stage_recompute.any()) {
    refuse(
        scenario, "/training/recompute",
        "layers that stages count are simulated only; expected \"full\" or {\"full_layers\": 8}");
  }
  if (training.schedule.deferred_readout > 0) {
    refuse(scenario, "/training/schedule/deferred_readout",
           "weight gradients that are put off are simulated only; expected it left out");
  }
  if (training.schedule.vocabulary != VocabularySplit::Whole) {
    refuse(scenario, "/training/schedule/vocabulary",
           "a vocabulary that ranks divide is simulated only; expected \"whole\"");
  }
  if (training.schedule.messages.lines != MessageOrder::Lines::Free) {
    refuse(scenario, "/training/schedule/message_order",
           "messages that stand in line are simulated only; expected \"free\"");
  }
  if (!scenario.layout.layer_layouts.empty()) {
    refuse(scenario, "/parallel/layer_layouts",
           "layers of other degrees are simulated only; expected one layout of all layers");
  }
  if (!training.graph.samples_per_micro_batch) {
    refuse(scenario, "/model", "a profile has times, but no layers to run; expected a model");
  }
  const ModelText& text = *training.model_text;
  BuildOptions options = {
      .micro_batch_size = static_cast<int>(*training.graph.samples_per_micro_batch),
      .precision = training.precision,
      .optimizer = training.optimizer,
      .recompute = training.recompute,
      .sharding = scenario.layout.sharding};
  if (text.head) options.head = JsonNode{&*text.head, "/training/strategy/head"};
  Diagnostics diagnostics;
  NeuralNetwork network = build_network({&text.model, "/model"}, options, diagnostics);
  diagnostics.throw_if_any();
  const bool contrasts = training.strategy.kind == StrategyKind::ForwardForward;
  return contrasts ? contrasted(std::move(network)) : network;
}

void unfold_replicas(Plan& plan) {
  if (plan.question.layout.mesh.replicas() == 1) return;
  plan.folded_as.reset();
  plan.unfolded[static_cast<std::size_t>(Dimension::Data)] = true;
}

Job job_of(const Plan& plan, const Program& program, const NeuralNetwork& network,
           const ExecutionOptions& options) {
  const Question& scenario = plan.question;
  std::vector<Recompute> recompute;
  const Training& training = scenario.training();
  for (const Module& module : training.graph.modules) {
    recompute.push_back(module.recompute.empty() ? Recompute::None : training.recompute);
  }
  return {.program = program,
          .network = network,
          .first_module = plan.partition.boundaries,
          .strategy = training.strategy,
          .roles = roles_of_copies(lower_inputs(plan).roles, program.replicas),
          .recompute = std::move(recompute),
          .recompute_parts = training.recompute_parts,
          .stash = plan.schedule.stash,
          .precision = training.precision,
          .descent = options.descent,
          .seed = options.seed,
          .batch = options.batches,
          .dump_step = options.dump_step};
}

Plan plan_training(const Question& scenario, const NeuralNetwork& network, bool graph) {
  check_executor(scenario, network, graph);
  Plan plan = make_plan(scenario);
  unfold_replicas(plan);
  if (!plan.replica_micro_batches.empty()) {
    refuse(scenario, "/training/replica_micro_batches",
           "replicas train as many micro-batches each; expected \"equal\"");
  }
  check_divided_updates(plan);
  const Program program = settled(lower_plan(plan, 1), scenario.simulation.engine);
  check_job(scenario, job_of(plan, program, network, {}));
  return plan;
}

Execution execute(const Plan& plan, const NeuralNetwork& network, const ExecutionOptions& options) {
  const Question& scenario = plan.question;
  check_executor(scenario, network, options.graph);
  Execution execution{.program = lower_plan(plan, options.steps)};
  Program program = settled(execution.program, scenario.simulation.engine);
  const bool cuda = scenario.cluster.executor.kind == RealDevices::Kind::Cuda;
  // One host thread issues everything on GPUs, so nothing can be chosen on the way.
  if (cuda && chooses_order(program)) program = freeze(program, scenario.simulation.engine);
  const Job job = job_of(plan, program, network, options);
  check_job(scenario, job);
  if (cuda) {
    run_on_gpus(scenario, job, options, execution);
  } else {
    run_on_threads(scenario, job, options, execution);
  }
  return execution;
}

TrainingCurve training_curve(const Plan& plan, const Execution& execution,
                             const ExecutionOptions& options) {
  const Question& scenario = plan.question;
  const Metrics simulated = estimate_step(plan, Grade::Simulation).metrics;
  TrainingCurve curve{.name = scenario.name,
                      .strategy = name_of(scenario.training().strategy),
                      .schedule = scenario.training().schedule.kind->name,
                      .executor = name_of(scenario.cluster.executor.kind),
                      .seed = options.seed,
                      .wanted_steps = options.steps,
                      .staleness = staleness_of(execution.program, execution.log),
                      .simulated_step = simulated.step_time};
  const auto& losses = execution.outcome.losses;
  curve.execution = execution.record;
  curve.losses = losses_of_network(execution, scenario.training().strategy);
  while (!curve.losses.empty() && std::isnan(curve.losses.back())) curve.losses.pop_back();
  for (const auto& stage : losses) {
    curve.stage_losses.push_back(stage.empty() ? std::vector<double>()
                                               : step_losses(stage, execution.program));
    curve.stage_losses.back().resize(stage.empty() ? 0 : curve.losses.size());
  }
  const std::vector<Seconds> steps = step_times(execution.program, execution.log);
  Seconds end;
  std::vector<double> measured;
  for (std::size_t step = 0; step < curve.losses.size() && step < steps.size(); ++step) {
    end = end + steps[step];
    curve.ends.push_back(end);
    if (step > 0) measured.push_back(steps[step].value());  // the first one warms up
  }
  if (!measured.empty()) curve.measured_step = Seconds(median_of(measured));
  for (const HeldMemory& memory : execution.outcome.memory) curve.peaks.push_back(memory.peak);
  for (const DeviceMetrics& device : simulated.devices) {
    curve.simulated_peaks.push_back(static_cast<std::int64_t>(device.peak_memory.value()));
  }
  return curve;
}

}  // namespace interlock
