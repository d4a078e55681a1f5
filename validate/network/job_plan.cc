// Which jobs can be trained, and the plans of their stages.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/job_plan.h"

#include <algorithm>

#include "base/error.h"
#include "models/footprint.h"

namespace interlock {
namespace {

std::shared_ptr<const std::vector<Layer>> layers_of(const Job& job, int stage) {
  auto layers = std::make_shared<std::vector<Layer>>();
  const auto s = static_cast<std::size_t>(stage);
  for (int module = job.first_module[s]; module < job.first_module[s + 1]; ++module) {
    const auto& own = job.network.modules[static_cast<std::size_t>(module)].layers;
    layers->insert(layers->end(), own.begin(), own.end());
  }
  return layers;
}

/// The bytes of a class that come right before the forward, or the head, of a stage.
std::int64_t bytes_before(const Program& program, OpKind kind, int stage, MemoryClass wanted) {
  std::int64_t bytes = 0;
  for (const Instruction& instruction : program.instructions) {
    const auto index = static_cast<std::size_t>(instruction.index);
    if (instruction.code == Opcode::Allocate) {
      const Buffer& buffer = program.buffers[index];
      if (buffer.stage == stage && buffer.memory_class == wanted) {
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

/// What the network hands to `stage`.
Tensor input_of(const Job& job, int stage, int element) {
  if (stage == 0) {
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

std::string number(std::int64_t value) { return std::to_string(value); }

bool any_op(const Program& program, OpKind kind) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [&](const OpInfo& op) { return op.kind == kind; });
}

std::string why_not_strategy(const Strategy& strategy) {
  switch (strategy.kind) {
    case StrategyKind::Global:
    case StrategyKind::Local:
    case StrategyKind::Interlocking:
    case StrategyKind::Greedy:
    case StrategyKind::Chunked:
      break;
    default:
      return "strategy " + name_of(strategy) +
             " has no kernels; expected global, local, interlocking, greedy or chunked";
  }
  if (strategy.readout_every > 0) {
    return "heads that are copies of the readout have no kernels; expected \"weights\": "
           "\"private\"";
  }
  return "";
}

/// What is wrong with the memory that the program gives a stage.
std::string why_not_stage(const Job& job, int stage) {
  const int element = static_cast<int>(element_bytes(job.precision));
  const StageJob planned = plan_stage_of_job(job, stage, element);
  const Program& program = job.program;
  const bool split = std::any_of(program.ops.begin(), program.ops.end(), [&](const OpInfo& op) {
    return op.kind == OpKind::W && op.stage == stage;
  });
  const std::string name = "stage " + number(stage);
  if (split && !planned.plan.splits) {
    return name +
           " keeps no gradients between the halves of its backward; expected "
           "\"backward\": \"fused\", or a model of residual blocks";
  }
  const std::int64_t needed = std::max(planned.plan.workspace, planned.plan_without.workspace);
  if (needed > planned.workspace) {
    return name + " needs " + number(needed) + " bytes of workspace, and the model has " +
           number(planned.workspace) + "; expected another \"ffn_hidden_size\"";
  }
  const StagePlan& head = planned.head_plan;
  if (head.input + head.stash + head.workspace > planned.head) {
    return "the head of " + name + " needs " + number(head.input + head.stash + head.workspace) +
           " bytes, and the model has " + number(planned.head) + "; expected another \"head\"";
  }
  return "";
}

}  // namespace

StageJob plan_stage_of_job(const Job& job, int stage, int element) {
  StageJob planned;
  planned.layers = layers_of(job, stage);
  const Tensor input = input_of(job, stage, element);
  PlanInputs inputs = {.layers = *planned.layers,
                       .samples = job.network.samples_per_micro_batch,
                       .rows = input.rows,
                       .columns = input.columns,
                       .element = element,
                       .input_rectified = stage > 0 && ends_rectified(*layers_of(job, stage - 1)),
                       .input_gradient = stage > 0 ? Place::InputGradient : Place::Workspace};
  planned.plan = plan_stage(inputs);
  inputs.input_gradient = Place::None;
  planned.plan_without = plan_stage(inputs);
  planned.workspace = bytes_before(job.program, OpKind::F, stage, MemoryClass::Workspace);
  const StageRole& role = job.roles[static_cast<std::size_t>(stage)];
  if (!role.head) return planned;
  const int last = job.first_module[static_cast<std::size_t>(stage) + 1] - 1;
  planned.head_layers = std::make_shared<const std::vector<Layer>>(
      job.network.modules[static_cast<std::size_t>(last)].head);
  const bool read = role.traversals.front().loss == stage ||
                    (!role.only_added.empty() && role.only_added.front() == stage);
  planned.head_plan =
      plan_stage({.layers = *planned.head_layers,
                  .samples = inputs.samples,
                  .rows = planned.plan.output.rows,
                  .columns = planned.plan.output.columns,
                  .element = element,
                  .input_rectified = ends_rectified(*planned.layers),
                  .input_gradient = read ? Place::InputGradient : Place::Workspace});
  planned.head = bytes_before(job.program, OpKind::H, stage, MemoryClass::Head);
  return planned;
}

std::string why_not_trainable(const Job& job) {
  const Program& program = job.program;
  if (program.copies > 1 || program.replicas > 1) {
    return "several copies of the model cannot be trained; expected one, without \"data\" and "
           "two-way schedules";
  }
  if (program.slices > 1 || !program.parts.empty()) {
    return "slices of sequences cannot be trained; expected a schedule of whole micro-batches";
  }
  if (!program.collectives.empty()) {
    return "devices that share a stage cannot be trained; expected \"pipeline\" and \"stages\" "
           "alone under \"parallel\"";
  }
  if (any_op(program, OpKind::R)) {
    return "forwards that run again cannot be trained; expected \"recompute\": \"none\" and a "
           "schedule that keeps activations";
  }
  if (std::string problem = why_not_strategy(job.strategy); !problem.empty()) return problem;
  for (int stage = 0; stage < program.stages; ++stage) {
    if (std::string problem = why_not_stage(job, stage); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace interlock
