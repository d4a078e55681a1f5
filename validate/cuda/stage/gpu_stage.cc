// Forwards and heads of a stage on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/stage/gpu_stage.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/gpu_tensors.h"

namespace interlock::cuda {

namespace {

void copy(const GpuStage& stage, const Extent& to, const Extent& from, std::int64_t bytes) {
  scale(stage.engine.lane, to.data, from.data, 1, bytes / bytes_of(stage.engine.lane.element));
}

/// Features of the micro-batch; tokens are read where they are.
void read_input(const GpuStage& stage, const Extent& input, int micro_batch) {
  const GpuBatch& batch = stage.batches[static_cast<std::size_t>(micro_batch)];
  if (batch.features == nullptr) return;
  from_fp32(stage.engine.lane, input.data, batch.features,
            input.bytes / bytes_of(stage.engine.lane.element));
}

}  // namespace

Extent GpuStage::take(std::int64_t bytes, MemoryClass memory_class, const char* what) const {
  return memory->take(bytes, memory_class, engine.lane.stream,
                      std::string(what) + " of stage " + std::to_string(stage));
}

void run_forward(GpuStage& stage, int micro_batch) {
  GpuMicroBatch& batch = stage.under_way[micro_batch];
  batch.version = version_of_forward(stage, micro_batch);
  const bool last = stage.plans.layers->back().kind == LayerKind::CrossEntropy;
  if (stage.is_first()) {
    batch.input = stage.take(stage.plans.plan.input, MemoryClass::Stash, "the input");
    read_input(stage, batch.input, micro_batch);
  } else {
    CHECK(batch.input.bytes == stage.plans.plan.input, "a stage reads what the one before made");
    batch.input.memory->retag(batch.input, MemoryClass::Stash);
  }
  batch.stash = stage.take(stage.plans.plan.stash, MemoryClass::Stash, "the stash");
  if (!last) batch.output = stage.take(stage.output_bytes(), MemoryClass::Boundary, "the output");
  Extent workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  set_workspace(tensors, workspace);
  run_steps(stage.engine, stage.plans.plan.forward, tensors);
  give_back(workspace, stage.now());
  batch.head_is_due = stage.role.head;
}

void run_head(GpuStage& stage, int micro_batch) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  const StagePlan& plan = stage.plans.head_plan;
  Extent own = stage.take(stage.plans.head, MemoryClass::Head, "the head");
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  const bool read = std::any_of(plan.backward.begin(), plan.backward.end(), [](const Step& step) {
    return step.dx.place == Place::InputGradient;
  });
  if (read) {
    batch.gradients[stage.stage] =
        stage.take(stage.output_bytes(), MemoryClass::Boundary, "the head's gradient");
    set(tensors, Place::InputGradient, batch.gradients[stage.stage]);
  }
  copy(stage, own, batch.output, plan.input);
  batch.head_is_due = false;
  if (batch.sent) {
    give_back(batch.output, stage.now());
  } else {
    batch.output.memory->note_use(batch.output, stage.now());
  }
  set(tensors, Place::Input, own);
  set(tensors, Place::Stash, own, plan.input);
  set(tensors, Place::Workspace, own, plan.input + plan.stash);
  tensors.weights = &stage.head_weights;
  GpuSum& sum = sum_for(stage, micro_batch);
  tensors.gradients = &sum.of_head;
  run_steps(stage.engine, plan.forward, tensors);
  run_steps(stage.engine, plan.backward, tensors);
  ++sum.head_batches;
  give_back(own, stage.now());
  forget(stage, micro_batch);
}

void release_output(GpuStage& stage, int micro_batch, const LastUse& use) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  batch.sent = true;
  if (!batch.head_is_due) {
    give_back(batch.output, use);
  } else {
    batch.output.memory->note_use(batch.output, use);
  }
  forget(stage, micro_batch);
}

void forget(GpuStage& stage, int micro_batch) {
  const auto found = stage.under_way.find(micro_batch);
  const GpuMicroBatch& batch = found->second;
  const bool holds = batch.input || batch.stash || batch.output || !batch.outgoing.empty();
  if (!holds && batch.gradients.empty()) stage.under_way.erase(found);
}

namespace {

std::int64_t numbers_in(const GpuStage& stage, const Extent& extent) {
  return extent.bytes / bytes_of(stage.engine.lane.element);
}

void add_to(const GpuStage& stage, const Extent& from, const Extent& to) {
  add(stage.engine.lane, to.data, to.data, from.data, numbers_in(stage, from));
}

/// The gradient of a loss that trains the stage beside others has gone through it: the first
/// becomes the sum that later ones are added to.
void keep_for_sum(const GpuStage& stage, GpuMicroBatch& batch, int loss) {
  if (stage.role.summed_gradients == 0) return;
  Extent& gradient = batch.gradients.at(loss);
  if (batch.gradient_sum) return add_to(stage, gradient, batch.gradient_sum);
  batch.gradient_sum = std::exchange(gradient, {});
}

/// Adds up, in the place of the furthest loss's, all gradients that train the stage.
void sum_gradients(const GpuStage& stage, GpuMicroBatch& batch, int loss) {
  const Extent& furthest = batch.gradients.at(loss);
  if (batch.gradient_sum) add_to(stage, batch.gradient_sum, furthest);
  for (const int added : stage.role.only_added) {
    add_to(stage, batch.gradients.at(added), furthest);
  }
  if (stage.job->strategy.gradient != GradientMode::Mean) return;
  const float share = 1 / static_cast<float>(stage.role.summed_gradients + 1);
  scale(stage.engine.lane, furthest.data, furthest.data, share, numbers_in(stage, furthest));
}

/// The gradient of `loss` has been read for the last time; of the last one, so has the stash.
void end_traversal(GpuStage& stage, int micro_batch, const Traversal& traversal) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  if (!traversal.weights) keep_for_sum(stage, batch, traversal.loss);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    give_back(held->second, stage.now());
    batch.gradients.erase(held);
  }
  if (!traversal.weights) return;
  for (auto& [loss, gradient] : batch.gradients) give_back(gradient, stage.now());
  batch.gradients.clear();
  for (Extent* extent : {&batch.gradient_sum, &batch.stash, &batch.input}) {
    give_back(*extent, stage.now());
  }
  ++sum_for(stage, micro_batch).batches;
}

/// The gradient of the input is made, and nobody reads it.
bool drops_input_gradient(const GpuStage& stage, const Traversal& traversal) {
  return !traversal.to_previous && !stage.job->strategy.skip_unneeded_input_gradients;
}

/// Without the gradient of its input where that is skipped.
const StagePlan& plan_for(const GpuStage& stage, const Traversal& traversal) {
  const bool skips = stage.job->strategy.skip_unneeded_input_gradients;
  return traversal.to_previous || !skips ? stage.plans.plan : stage.plans.plan_without;
}

void go_back(const GpuStage& stage, GpuMicroBatch& batch, OpKind kind, const Traversal& traversal,
             const GpuTensors& tensors) {
  const StagePlan& plan = plan_for(stage, traversal);
  if (!traversal.weights) return run_steps(stage.engine, plan.passing, tensors);
  const GpuPart part = kind == OpKind::I ? GpuPart::ButLate : GpuPart::All;
  const bool sums = stage.role.summed_gradients > 0;
  // What goes further down is the gradient of the furthest loss alone.
  if (sums && traversal.to_previous) {
    run_steps(stage.engine, plan.passing, tensors);
    run_steps(stage.engine, plan.again, tensors);
  }
  if (sums) sum_gradients(stage, batch, traversal.loss);
  run_steps(stage.engine,
            sums && traversal.to_previous ? stage.plans.plan_without.backward : plan.backward,
            tensors, part);
}

/// What a traversal writes, from its first op on: that which computes again, if there is one.
void take_room(const GpuStage& stage, GpuMicroBatch& batch, const Traversal& traversal) {
  if (std::exchange(batch.goes_back, true)) return;
  const bool dropped = drops_input_gradient(stage, traversal);
  if (!stage.is_first() && (traversal.to_previous || dropped)) {
    batch.below =
        stage.take(stage.plans.plan.input, dropped ? MemoryClass::Workspace : MemoryClass::Boundary,
                   "the input's gradient");
  }
  // A backward that does nothing, of the first layer alone, takes no time in a program either.
  const bool idle = !traversal.weights && plan_for(stage, traversal).passing.empty();
  if (idle && !stage.plans.runs_again) return;
  batch.workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
}

/// What the steps of a traversal work on.
GpuTensors tensors_of_traversal(GpuStage& stage, int micro_batch, const Traversal& traversal) {
  const GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  GpuTensors tensors = tensors_of(stage, batch, micro_batch);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    set(tensors, Place::OutputGradient, held->second);
  }
  set(tensors, Place::InputGradient, batch.below);
  set_workspace(tensors, batch.workspace);
  if (traversal.weights) tensors.gradients = &sum_for(stage, micro_batch).of_stage;
  return tensors;
}

/// The second half of a backward. What was computed again is there still.
void run_weight_half(GpuStage& stage, int micro_batch, const Traversal& traversal) {
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  if (!batch.workspace) {
    batch.workspace = stage.take(stage.plans.workspace, MemoryClass::Workspace, "the workspace");
  }
  run_steps(stage.engine, stage.plans.plan.backward,
            tensors_of_traversal(stage, micro_batch, traversal), GpuPart::Late);
  give_back(batch.workspace, stage.now());
  end_traversal(stage, micro_batch, traversal);
  forget(stage, micro_batch);
}

}  // namespace

void run_again(GpuStage& stage, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(stage.role, loss);
  take_room(stage, stage.under_way.at(micro_batch), traversal);
  run_steps(stage.engine, stage.plans.plan.again,
            tensors_of_traversal(stage, micro_batch, traversal));
}

void run_backward(GpuStage& stage, OpKind kind, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(stage.role, loss);
  if (kind == OpKind::W) return run_weight_half(stage, micro_batch, traversal);
  GpuMicroBatch& batch = stage.under_way.at(micro_batch);
  take_room(stage, batch, traversal);
  go_back(stage, batch, kind, traversal, tensors_of_traversal(stage, micro_batch, traversal));
  const bool half = kind == OpKind::I && traversal.weights;
  if (!half || !stage.plans.runs_again) give_back(batch.workspace, stage.now());
  if (drops_input_gradient(stage, traversal)) give_back(batch.below, stage.now());
  if (!half) end_traversal(stage, micro_batch, traversal);
  const Extent below = std::exchange(batch.below, {});
  if (traversal.to_previous) batch.outgoing.emplace_back(loss, below);
  batch.goes_back = false;
  forget(stage, micro_batch);
}

namespace {

/// Hands out the resident bytes of a rank, class by class; all begin as zeros.
class Resident {
 public:
  Resident(const Rank& rank, const GpuStage& stage) {
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      const auto bytes = static_cast<std::int64_t>(rank.resident[c].value());
      left_[c] = stage.take(bytes, static_cast<MemoryClass>(c), "what stays");
      if (left_[c]) {
        require(cudaMemsetAsync(left_[c].data, 0, static_cast<std::size_t>(bytes),
                                stage.engine.lane.stream),
                "begin with zeros");
      }
    }
  }
  char* take(MemoryClass memory_class, std::int64_t bytes) {
    Extent& left = left_[static_cast<std::size_t>(memory_class)];
    CHECK(bytes <= left.bytes, "the program has room for what stays");
    char* begin = left.data;
    left.data += bytes;
    left.bytes -= bytes;
    return begin;
  }
  std::int64_t left(MemoryClass memory_class) const {
    return left_[static_cast<std::size_t>(memory_class)].bytes;
  }

 private:
  std::array<Extent, kMemoryClasses> left_;
};

std::int64_t weight_bytes(const GpuStage& stage) {
  std::int64_t count = 0;
  for (const GpuParameter& p : stage.parameters) count += p.parameter.size();
  return count * bytes_of(stage.engine.lane.element);
}

/// The first values of a parameter, as every executor has them; masters are exact, weights rounded.
void begin_parameter(const GpuStage& stage, const GpuParameter& p) {
  std::vector<float> values(static_cast<std::size_t>(p.parameter.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(
        first_value(p.parameter, stage.job->seed, p.number, static_cast<std::int64_t>(i)));
  }
  const auto send = [&](void* to, const auto& numbers) {
    require(cudaMemcpyAsync(to, numbers.data(), numbers.size() * sizeof(numbers[0]),
                            cudaMemcpyHostToDevice, stage.engine.lane.stream),
            "send weights");
    require(cudaStreamSynchronize(stage.engine.lane.stream), "send weights");
  };
  if (p.at.masters != nullptr) send(p.at.masters, values);
  if (stage.engine.lane.element == Element::Fp32) return send(p.at.weights, values);
  std::vector<__nv_bfloat16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(),
                 [](float value) { return __float2bfloat16_rn(value); });
  send(p.at.weights, rounded);
}

void place(GpuStage& stage, Resident& resident) {
  const Optimizer optimizer = stage.job->descent.optimizer;
  const std::int64_t element = bytes_of(stage.engine.lane.element);
  const auto fp32 = [&](std::int64_t size) {
    return reinterpret_cast<float*>(
        resident.take(MemoryClass::Optimizer, size * static_cast<std::int64_t>(sizeof(float))));
  };
  for (GpuParameter& p : stage.parameters) {
    const std::int64_t size = p.parameter.size();
    char* weight = resident.take(MemoryClass::Weights, size * element);
    p.at.weights = weight;
    if (stage.engine.lane.element == Element::Bf16) p.at.masters = fp32(size);
    if (optimizer != Optimizer::Sgd) p.at.first = fp32(size);
    if (optimizer == Optimizer::Adam) p.at.second = fp32(size);
    begin_parameter(stage, p);
    (p.of_head ? stage.head_weights : stage.weights).push_back(weight);
  }
}

/// The bytes from `at` on as a sum of the gradients of all parameters.
GpuSum sum_at(const GpuStage& stage, char* at) {
  GpuSum sum;
  for (const GpuParameter& p : stage.parameters) {
    (p.of_head ? sum.of_head : sum.of_stage).push_back(at);
    at += p.parameter.size() * bytes_of(stage.engine.lane.element);
  }
  return sum;
}

/// The resident room for gradients and old weights, as much of it for each stage of the rank.
void share_out(const std::vector<GpuStage*>& stages, Resident& resident) {
  std::int64_t once = 0;
  for (const GpuStage* stage : stages) once += weight_bytes(*stage);
  if (once == 0) return;
  for (std::int64_t n = resident.left(MemoryClass::Gradients) / once; n > 0; --n) {
    for (GpuStage* stage : stages) {
      char* const begin = resident.take(MemoryClass::Gradients, weight_bytes(*stage));
      stage->spare_sums.push_back(sum_at(*stage, begin));
    }
  }
  for (std::int64_t n = resident.left(MemoryClass::WeightVersions) / once; n > 0; --n) {
    for (GpuStage* stage : stages) {
      stage->spare.push_back(resident.take(MemoryClass::WeightVersions, weight_bytes(*stage)));
    }
  }
}

/// Dumps `factor` times `values`, or adds that to what is dumped.
void note(GpuStage& stage, NamedArray& array, const void* values, double factor, bool adds) {
  const Lane& lane = stage.engine.lane;
  const std::size_t size = array.values.size();
  auto* exact = reinterpret_cast<float*>(
      stage.engine.scratch->take(static_cast<std::int64_t>(size * sizeof(float)), lane.stream));
  to_fp32(lane, exact, values, static_cast<std::int64_t>(size));
  std::vector<float> numbers(size);
  require(cudaMemcpyAsync(numbers.data(), exact, size * sizeof(float), cudaMemcpyDeviceToHost,
                          lane.stream),
          "fetch a dump");
  require(cudaStreamSynchronize(lane.stream), "fetch a dump");
  for (std::size_t i = 0; i < size; ++i) {
    array.values[i] = (adds ? array.values[i] : 0) + numbers[i] * factor;
  }
}

bool is_read(const GpuStage& stage, int version) {
  return std::any_of(stage.under_way.begin(), stage.under_way.end(), [&](const auto& entry) {
    return entry.second.input && entry.second.version == version;
  });
}

/// Old weights that no backward under way and no later forward will ask for are dropped.
void drop_versions(GpuStage& stage) {
  for (auto it = stage.versions.begin(); it != stage.versions.end();) {
    const bool later = it->first >= stage.version - stage.job->program.version_lag;
    if (later || is_read(stage, it->first)) {
      ++it;
      continue;
    }
    stage.spare.push_back(it->second.data);
    it = stage.versions.erase(it);
  }
}

/// The newest weights stay as they are for whoever began with them.
void keep_version(GpuStage& stage) {
  if (!stage.keeps_versions) return;
  if (!is_read(stage, stage.version) && stage.job->program.version_lag == 0) return;
  drop_versions(stage);
  if (stage.spare.empty()) {
    stage.spare.push_back(
        stage.take(weight_bytes(stage), MemoryClass::WeightVersions, "old weights").data);
  }
  GpuWeights old = {.data = stage.spare.back(), .weights = {}};
  stage.spare.pop_back();
  char* to = old.data;
  for (const GpuParameter& p : stage.parameters) {
    scale(stage.engine.lane, to, p.at.weights, 1, p.parameter.size());
    if (!p.of_head) old.weights.push_back(to);
    to += p.parameter.size() * bytes_of(stage.engine.lane.element);
  }
  stage.versions[stage.version] = std::move(old);
}

DescentStep step_of(const GpuStage& stage) {
  const Descent& d = stage.job->descent;
  DescentStep step = {.kind = static_cast<int>(d.optimizer)};
  step.rate = static_cast<float>(d.rate);
  step.momentum = static_cast<float>(d.momentum);
  step.beta1 = static_cast<float>(d.beta1);
  step.beta2 = static_cast<float>(d.beta2);
  step.epsilon = static_cast<float>(d.epsilon);
  step.unbias1 = static_cast<float>(1 / (1 - std::pow(d.beta1, stage.steps)));
  step.unbias2 = static_cast<float>(1 / (1 - std::pow(d.beta2, stage.steps)));
  return step;
}

}  // namespace

void place_parameters(const std::vector<GpuStage*>& stages, const Rank& rank) {
  static_assert(static_cast<int>(Optimizer::Sgd) == 0 &&
                static_cast<int>(Optimizer::SgdMomentum) == 1 &&
                static_cast<int>(Optimizer::Adam) == 2);
  Resident resident(rank, *stages.front());
  for (GpuStage* stage : stages) place(*stage, resident);
  share_out(stages, resident);
}

void run_update(GpuStage& stage, int micro_batch) {
  keep_version(stage);
  ++stage.steps;
  ++stage.version;
  const Job& job = *stage.job;
  const bool dumps = stage.dumps && micro_batch / job.program.micro_batches == job.dump_step;
  const UpdateOfStep place = update_of_step(job.program, micro_batch);
  DescentStep step = step_of(stage);
  auto sum = stage.sums.extract(micro_batch / job.program.update_every);
  CHECK(!sum.empty(), "an update has gradients");
  CHECK(sum.mapped().batches == job.program.update_every, "an update covers its own micro-batches");
  auto of_stage = sum.mapped().of_stage.begin(), of_head = sum.mapped().of_head.begin();
  for (GpuParameter& p : stage.parameters) {
    p.at.gradients = p.of_head ? *of_head++ : *of_stage++;
    const int batches = p.of_head ? sum.mapped().head_batches : sum.mapped().batches;
    step.share = 1 / static_cast<float>(batches);
    step.decay = static_cast<float>(p.parameter.decays ? job.descent.decay : 0);
    const auto dumped = [&](const char* what) -> NamedArray& {
      return dumped_array(stage.dump, what, p.parameter);
    };
    if (dumps && place.is_first()) note(stage, dumped("weights"), p.at.weights, 1, false);
    if (dumps) {
      const double share = 1.0 / batches / place.updates;
      note(stage, dumped("gradients"), p.at.gradients, share, !place.is_first());
    }
    descend(stage.engine.lane, p.at, step, p.parameter.size());
    if (dumps) note(stage, dumped("updated"), p.at.weights, 1, false);
  }
  sum.mapped().batches = sum.mapped().head_batches = 0;
  stage.spare_sums.push_back(std::move(sum.mapped()));
  drop_versions(stage);
}

GpuSum& sum_for(GpuStage& stage, int micro_batch) {
  const int update = micro_batch / stage.job->program.update_every;
  if (const auto found = stage.sums.find(update); found != stage.sums.end()) return found->second;
  if (stage.spare_sums.empty()) {
    const std::int64_t bytes = weight_bytes(stage);
    const Extent room = stage.take(bytes, MemoryClass::Gradients, "gradients of another update");
    require(
        cudaMemsetAsync(room.data, 0, static_cast<std::size_t>(bytes), stage.engine.lane.stream),
        "begin with zeros");
    stage.spare_sums.push_back(sum_at(stage, room.data));
  }
  GpuSum& sum = stage.sums[update] = std::move(stage.spare_sums.back());
  stage.spare_sums.pop_back();
  return sum;
}

int version_of_forward(const GpuStage& stage, int micro_batch) {
  const Program& program = stage.job->program;
  if (program.version_lag == 0) return stage.version;
  return std::max(0, micro_batch / program.update_every - program.version_lag);
}

const std::vector<char*>& weights_of(const GpuStage& stage, int version) {
  if (version == stage.version) return stage.weights;
  const auto found = stage.versions.find(version);
  CHECK(found != stage.versions.end(), "old weights that are needed are there");
  return found->second.weights;
}

}  // namespace interlock::cuda
