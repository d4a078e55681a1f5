// Which jobs can be trained, and the plans of their stages.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/job_plan.h"

#include <algorithm>

#include "base/error.h"
#include "models/layers/footprint.h"
#include "validate/network/contrast.h"
#include "validate/network/denoising.h"

namespace interlock {
namespace {

std::shared_ptr<const std::vector<Layer>> layers_of(const Job& job, int stage) {
  auto layers = std::make_shared<std::vector<Layer>>();
  const ModuleRange modules = modules_of(job, stage);
  for (int module = modules.first; module < modules.end; ++module) {
    const auto& own = job.network.modules[static_cast<std::size_t>(module)].layers;
    layers->insert(layers->end(), own.begin(), own.end());
  }
  return layers;
}

/// Returns the modules of a stage that are computed again, as ranges of layers_of().
std::vector<LayerRange> again_of(const Job& job, int stage) {
  std::vector<LayerRange> ranges;
  if (job.stash != StashMode::Kept) return {{0, layers_of(job, stage)->size()}};
  if (job.recompute.empty()) return ranges;
  const ModuleRange modules = modules_of(job, stage);
  LayerRange range;
  for (int module = modules.first; module < modules.end; ++module) {
    const auto m = static_cast<std::size_t>(module);
    range = {range.end, range.end + job.network.modules[m].layers.size()};
    if (job.recompute[m] == Recompute::Selective) range.parts = LayerPart::CoreAttention;
    if (job.recompute[m] == Recompute::Parts) range.parts = job.recompute_parts;
    if (job.recompute[m] != Recompute::None) ranges.push_back(range);
  }
  return ranges;
}

/// Returns the bytes of a class that come right before the forward, or the head, of a stage.
std::int64_t bytes_before(const Program& program, OpKind kind, int stage, MemoryClass wanted) {
  std::int64_t bytes = 0;
  for (const Instruction& instruction : program.instructions) {
    const auto index = static_cast<std::size_t>(instruction.index);
    if (instruction.code == Opcode::Allocate) {
      const Buffer& buffer = program.buffers[index];
      // A forward's output that is cast comes behind its workspace.
      const bool output = wanted == MemoryClass::Workspace && bytes > 0;
      if (buffer.stage == stage && buffer.memory_class == wanted && !output) {
        bytes = static_cast<std::int64_t>(buffer.bytes.value());
      }
    } else if (instruction.code == Opcode::Compute) {
      const OpInfo& op = program.ops[index];
      if (op.kind == kind && op.stage == stage) return bytes;
      bytes = 0;
    }
  }
  return 0;
}

/// Returns the input of `stage`: the batch, or the output of the stage before.
Tensor input_of(const Job& job, int stage, int element) {
  if (model_stage(job.program, stage) == 0) {
    const NeuralNetwork& network = job.network;
    return {.rows = std::int64_t{network.samples_per_micro_batch} * network.rows_per_sample,
            .columns = network.features};
  }
  const auto layers = layers_of(job, stage - 1);
  const Tensor input = input_of(job, stage - 1, element);
  return plan_stage({.layers = *layers,
                     .samples = job.network.samples_per_micro_batch,
                     .rows = input.rows,
                     .columns = input.columns,
                     .element = element})
      .output;
}

/// Returns whether the model ends with `stage`.
bool is_last(const Job& job, int stage) {
  return modules_of(job, stage).end == job.first_module.back();
}

bool has_op(const Program& program, OpKind kind, int stage) {
  return std::any_of(program.ops.begin(), program.ops.end(), [&](const OpInfo& op) {
    return op.kind == kind && op.stage == stage && !op.replay;
  });
}

/// Returns why the stage cannot keep, and compute again, what the program says; empty if it can.
std::string why_not_kept(const Program& program, const StageJob& planned, int stage) {
  const std::string name = "stage " + std::to_string(stage);
  const bool split = has_op(program, OpKind::W, stage);
  if (split && !planned.plan.splits && planned.again > 1) {
    return name + " computes " + std::to_string(planned.again) +
           " modules again, each in the room of the one before, and the second half of its " +
           "backward reads them all; expected \"backward\": \"fused\"";
  }
  if (split && !planned.plan.splits) {
    return name +
           " keeps no gradients between the halves of its backward; expected "
           "\"backward\": \"fused\", or a model of residual blocks";
  }
  if (planned.runs_again &&
      planned.kept() != bytes_before(program, OpKind::F, stage, MemoryClass::Stash)) {
    return name +
           " keeps something else than what its backward reads; expected a schedule that keeps " +
           "activations";
  }
  return "";
}

std::string why_not_strategy(const Strategy& strategy) {
  switch (strategy.kind) {
    case StrategyKind::Global:
    case StrategyKind::Local:
    case StrategyKind::Interlocking:
    case StrategyKind::Greedy:
    case StrategyKind::Chunked:
    case StrategyKind::Independent:
    case StrategyKind::ForwardForward:
      break;
    default:
      return "strategy " + name_of(strategy) +
             " has no kernels; expected global, local, interlocking, greedy, chunked, independent "
             "or forward-forward";
  }
  if (strategy.readout_every > 0) {
    return "heads that are copies of the readout have no kernels; expected \"weights\": "
           "\"private\"";
  }
  return "";
}

/// Returns why the network cannot be rebuilt from the outputs of its stages; empty if it can: they
/// have couplings alone, but for the layer that reads the batch; the last one holds its input.
std::string why_not_reversible(const NeuralNetwork& network) {
  for (std::size_t m = 1; m + 1 < network.modules.size(); ++m) {
    const NetworkModule& module = network.modules[m];
    for (const Layer& layer : module.layers) {
      if (layer.kind == LayerKind::Coupling) continue;
      return "/training/schedule: \"petra\" computes the input of every module between the first "
             "and the last back from its output, which " +
             module.name + " of " + network.name +
             " does not allow; expected a model of reversible blocks, {\"kind\": "
             "\"residual-mlp\", \"reversible\": true}, or the schedule \"features-replay\", which "
             "keeps inputs";
    }
  }
  return "";
}

/// Returns why the memory that the program gives a stage does not suffice; empty if it does.
std::string why_not_stage(const Job& job, int stage) {
  const int element = static_cast<int>(element_bytes(job.precision));
  const StageJob planned = plan_stage_of_job(job, stage, element);
  const Program& program = job.program;
  const std::string name = "stage " + std::to_string(stage);
  if (std::string problem = why_not_kept(program, planned, stage); !problem.empty()) return problem;
  if (planned.needed() > planned.workspace) {
    return name + " needs " + std::to_string(planned.needed()) +
           " bytes of workspace, and the model has " + std::to_string(planned.workspace) +
           "; expected another \"ffn_hidden_size\"";
  }
  for (const StagePlan* head : {&planned.head_plan, &planned.head_alone}) {
    const std::int64_t needed = head->input + head->stash + head->workspace;
    if (needed <= planned.head) continue;
    return "the head of " + name + " needs " + std::to_string(needed) +
           " bytes, and the model has " + std::to_string(planned.head) +
           "; expected another \"head\"";
  }
  return "";
}

}  // namespace

const Traversal& traversal_of(const StageRole& role, int loss) {
  for (const Traversal& traversal : role.traversals) {
    if (traversal.loss == loss) return traversal;
  }
  CHECK(false, "a backward of a loss that reaches the stage");
}

bool reads_batch(const Job& job, int stage) {
  return model_stage(job.program, stage) == 0 || job.strategy.kind == StrategyKind::Independent;
}

std::vector<int> input_columns(const Job& job) {
  std::vector<int> columns;
  for (int stage = 0; stage < job.program.stages / job.program.replicas; ++stage) {
    columns.push_back(input_of(job, stage, static_cast<int>(sizeof(double))).columns);
  }
  return columns;
}

std::int64_t StageJob::needed() const {
  return (drops_input() ? plan.input : 0) + std::max(plan.workspace, plan_without.workspace);
}

StageJob plan_stage_of_job(const Job& job, int stage, int element) {
  StageJob planned;
  planned.layers = layers_of(job, stage);
  const Tensor input = input_of(job, stage, element);
  const bool first = reads_batch(job, stage);
  PlanInputs inputs = {.layers = *planned.layers,
                       .samples = job.network.samples_per_micro_batch,
                       .rows = input.rows,
                       .columns = input.columns,
                       .element = element,
                       .input_rectified = !first && ends_rectified(*layers_of(job, stage - 1)),
                       .again = again_of(job, stage)};
  planned.rereads_input = first && job.stash != StashMode::Kept;
  const bool reversible = job.stash == StashMode::Rebuilt;
  planned.rebuilds = inputs.rebuilds = reversible && !is_last(job, stage);
  planned.returns_input = reversible && !first;
  // The program counts numbers of the job's precision; an exact run may have larger ones.
  const auto room = [&](OpKind kind, MemoryClass memory_class) {
    const auto program_element = static_cast<std::int64_t>(element_bytes(job.precision));
    return bytes_before(job.program, kind, stage, memory_class) / program_element * element;
  };
  planned.workspace = room(OpKind::F, MemoryClass::Workspace);
  for (const bool early : {true, false}) {
    inputs.again_early = early;
    inputs.input_gradient = first ? Place::Workspace : Place::InputGradient;
    if (job.strategy.kind == StrategyKind::ForwardForward) inputs.input_gradient = Place::None;
    planned.plan = plan_stage(inputs);
    inputs.input_gradient = Place::None;
    planned.plan_without = plan_stage(inputs);
    if (planned.needed() <= planned.workspace) break;
  }
  planned.again = static_cast<int>(inputs.again.size());
  planned.runs_again = has_op(job.program, OpKind::R, stage);
  const StageRole& role = job.roles[static_cast<std::size_t>(stage)];
  if (!role.head) return planned;
  const int last = modules_of(job, stage).end - 1;
  planned.head_layers = std::make_shared<const std::vector<Layer>>(
      job.network.modules[static_cast<std::size_t>(last)].head);
  const auto head_plan = [&](const StageRole& of) {
    const bool read = of.traversals.front().loss == stage ||
                      (!of.only_added.empty() && of.only_added.front() == stage);
    return plan_stage({.layers = *planned.head_layers,
                       .samples = inputs.samples,
                       .rows = planned.plan.output.rows,
                       .columns = planned.plan.output.columns,
                       .element = element,
                       .input_rectified = ends_rectified(*planned.layers),
                       .input_gradient = read ? Place::InputGradient : Place::Workspace});
  };
  planned.head_plan = head_plan(role);
  if (!role.alone.empty()) planned.head_alone = head_plan(role.alone.front());
  planned.head = room(OpKind::H, MemoryClass::Head);
  return planned;
}

std::string why_not_trainable(const Job& job) {
  const Program& program = job.program;
  if (program.copies > 1) {
    return "copies of the model beside each other cannot be trained; expected a schedule of one "
           "copy, such as \"1f1b\"";
  }
  if (program.slices > 1 || !program.slice_counts.empty()) {
    return "slices of sequences cannot be trained; expected a schedule of whole micro-batches";
  }
  if (job.stash == StashMode::Rebuilt) {
    if (std::string problem = why_not_reversible(job.network); !problem.empty()) return problem;
  }
  if (std::string problem = why_not_strategy(job.strategy); !problem.empty()) return problem;
  const bool replays = std::ranges::any_of(program.ops, &OpInfo::replay);
  if (replays && job.strategy.activation_format != SentFormat::Computed) {
    return "inputs that stages learn from again are kept as they are computed; expected "
           "\"activation_format\": \"training\"";
  }
  if (job.strategy.kind == StrategyKind::Independent) {
    if (std::string problem = why_no_chain(job, input_columns(job)); !problem.empty()) {
      return problem;
    }
  }
  if (job.strategy.kind == StrategyKind::ForwardForward) {
    if (std::string problem = why_no_contrast(job); !problem.empty()) return problem;
  }
  for (int stage = 0; stage < program.stages; ++stage) {
    if (std::string problem = why_not_stage(job, stage); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace interlock
