// The ops of a stage: forwards and heads, traversals of its layers, updates, turns on old inputs.
// SPDX-License-Identifier: Apache-2.0
#include "validate/stage/stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/layers/footprint.h"
#include "sim/plan/schedules/message_bytes.h"

namespace interlock {
namespace {

/// Sets where a place lies: `bytes` behind the start of a block, nowhere if there is none.
void set(StageTensors& tensors, Place place, const Block& block, std::int64_t bytes = 0) {
  tensors.places[static_cast<std::size_t>(place)] = block ? block.data + bytes : nullptr;
}

/// Returns the format of what a channel carries.
SentFormat format_of(const Strategy& strategy, const Channel& channel) {
  if (channel.wire < 0) return SentFormat::Computed;
  return channel.cargo == Cargo::Activation ? strategy.activation_format : strategy.gradient_format;
}

/// Returns the format of what a stage sends to other ranks; Computed if it sends nothing there.
SentFormat sent_format(const Job& job, int stage, Cargo cargo) {
  const auto& channels = job.program.channels;
  const auto leaves = std::find_if(channels.begin(), channels.end(), [&](const Channel& channel) {
    return channel.cargo == cargo && channel.from_stage == stage && channel.wire >= 0;
  });
  return leaves == channels.end() ? SentFormat::Computed : format_of(job.strategy, *leaves);
}

}  // namespace

Stage::Stage(const Job& job, const Rank& rank, int stage, StageDevice& device)
    : job_(job),
      stage_(stage),
      role_(job.roles[static_cast<std::size_t>(stage)]),
      device_(device),
      up_(sent_format(job, stage, Cargo::Activation)),
      down_(sent_format(job, stage, Cargo::Gradient)),
      plans_(plan_stage_of_job(job, stage, device.number_bytes())),
      weights_(job, stage, rank.weight_versions > 1, device) {}

void place_parameters(const std::vector<Stage*>& stages, const Rank& rank) {
  Stage& first = *stages.front();
  std::vector<StageWeights*> weights;
  weights.reserve(stages.size());
  for (Stage* stage : stages) weights.push_back(&stage->weights_);
  Resident resident(first.job_, rank, first.device_, divided_states(weights));
  place_weights(weights, resident);
  // Room for inputs to learn from again; a rank that has some has no other stage.
  const std::int64_t input = first.plans_.plan.input;
  for (std::int64_t n = resident.left(MemoryClass::Boundary) / input; n > 0; --n) {
    first.input_room_.push_back(resident.take(MemoryClass::Boundary, input));
  }
  CHECK(resident.is_empty(), "what stays is what the program says");
}

EndOfOp Stage::run(const OpInfo& op, int micro_batch) {
  if (op.replay) return run_replay();
  switch (op.kind) {
    case OpKind::F:
      return run_forward(micro_batch);
    case OpKind::H:
      return run_head(micro_batch);
    case OpKind::I:
    case OpKind::W:
    case OpKind::B:
      return run_backward(op.kind, op.loss, micro_batch);
    case OpKind::U:
      return run_update(micro_batch);
    case OpKind::R:
      return run_again(op.loss, micro_batch);
    case OpKind::S:
    case OpKind::T:
    case OpKind::E:
    case OpKind::G:
      break;  // refused, see validate/training/execution.cc
  }
  CHECK(false, "an op of a known kind");
}

StageTensors Stage::tensors_of(int micro_batch) const {
  const MicroBatch& batch = under_way_.at(micro_batch);
  StageTensors tensors = {.weights = &weights_.of_version(batch.version),
                          .micro_batch = micro_batch,
                          .samples = job_.network.samples_per_micro_batch,
                          .rows_per_sample = job_.network.rows_per_sample};
  set(tensors, Place::Input, batch.input);
  if (batch.lent != nullptr) tensors.places[static_cast<std::size_t>(Place::Input)] = batch.lent;
  set(tensors, Place::Stash, batch.stash);
  set(tensors, Place::Output, batch.output);
  return tensors;
}

/// Sets the places inside the workspace: results computed again lie at its end, an input that is
/// not kept at its start.
void Stage::set_workspace(StageTensors& tensors, const Block& workspace) const {
  const std::int64_t input = plans_.drops_input() ? plans_.plan.input : 0;
  if (input > 0) set(tensors, Place::Input, workspace);
  set(tensors, Place::Workspace, workspace, input);
  set(tensors, Place::Again, workspace, workspace.bytes);
}

StageTensors Stage::tensors_of_traversal(int micro_batch, const Traversal& traversal) {
  const MicroBatch& batch = under_way_.at(micro_batch);
  StageTensors tensors = tensors_of(micro_batch);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    const std::int64_t returned = plans_.rebuilds ? output_bytes() : 0;
    if (returned > 0) set(tensors, Place::Returned, held->second);
    set(tensors, Place::OutputGradient, held->second, returned);
  }
  const std::int64_t input = plans_.returns_input ? plans_.plan.input : 0;
  set(tensors, Place::InputGradient, batch.below, input);
  set_workspace(tensors, batch.workspace);
  if (plans_.rebuilds && input > 0) set(tensors, Place::Input, batch.below);
  if (traversal.weights) tensors.gradients = &weights_.sum_for(micro_batch).of_stage;
  return tensors;
}

// Forwards and heads.

EndOfOp Stage::run_forward(int micro_batch) {
  MicroBatch& batch = under_way_[micro_batch];
  batch.version = weights_.version_of_forward(micro_batch);
  const StagePlan& plan = plans_.plan;
  if (batch.input_message) {
    batch.input = device_.allocate(plan.input, MemoryClass::Stash);
    device_.cast_back(batch.input_message, batch.input, job_.strategy.activation_format);
  }
  if (reads_own_batch() && !plans_.rereads_input) {
    batch.input = device_.allocate(plan.input, MemoryClass::Stash);
    device_.read_input(batch.input.data, plan.input, micro_batch);
  } else if (!reads_own_batch() && batch.lent == nullptr) {
    CHECK(batch.input.bytes == plan.input, "a stage reads what the one before it made");
  }
  if (batch.input && !reads_own_batch() && !plans_.rebuilds) {
    device_.retag(batch.input, MemoryClass::Stash);
    keep_input(micro_batch, batch.input);
  }
  batch.stash = device_.allocate(plan.stash, MemoryClass::Stash);
  const bool casts = casts_output(), leaves = casts && !role_.of(micro_batch).head;
  if (!ends_in_loss()) {
    batch.output =
        device_.allocate(output_bytes(), leaves ? MemoryClass::Workspace : MemoryClass::Boundary);
  }
  if (casts) {
    batch.output_message = device_.allocate(cast_size(up_, output_bytes()), MemoryClass::Boundary);
  }
  batch.sent = job_.strategy.kind == StrategyKind::Independent;  // no stage reads it
  Block workspace = device_.allocate(plans_.workspace, MemoryClass::Workspace);
  device_.free(batch.input_message);
  if (plans_.rereads_input) device_.read_input(workspace.data, plan.input, micro_batch);
  if (plans_.rebuilds && !reads_own_batch()) {
    device_.copy(workspace.data, batch.input.data, plan.input);
    device_.free(batch.input);
  }
  StageTensors tensors = tensors_of(micro_batch);
  set_workspace(tensors, workspace);
  device_.run(plan.forward, tensors, StepPart::All);
  if (casts) device_.cast(batch.output, batch.output_message, up_);
  if (has_loss(plans_.layers->back().kind)) device_.note_loss(micro_batch, replays_);
  batch.head_is_due = role_.of(micro_batch).head;
  return [this, micro_batch, workspace, leaves]() mutable {
    device_.free(workspace);
    if (leaves) device_.free(under_way_.at(micro_batch).output);
  };
}

EndOfOp Stage::run_head(int micro_batch) {
  MicroBatch& batch = under_way_.at(micro_batch);
  const bool crosses = &role_.of(micro_batch) == &role_;
  const StagePlan& plan = crosses ? plans_.head_plan : plans_.head_alone;
  StageTensors tensors = tensors_of(micro_batch);
  // Its memory has room for what it reads and writes over: the output itself if that has left, or
  // leaves as a cast, else a copy.
  const bool copies = !casts_output() && (!batch.sent || device_.messages_linger());
  Block input = copies ? Block() : std::exchange(batch.output, {});
  device_.retag(input, MemoryClass::Head);
  Block own = device_.allocate(plans_.head - input.bytes, MemoryClass::Head);
  for (const Step& step : plan.backward) {
    if (step.dx.place != Place::InputGradient || batch.gradients.count(stage_) > 0) continue;
    batch.gradients[stage_] = device_.allocate(output_bytes(), MemoryClass::Boundary);
    set(tensors, Place::InputGradient, batch.gradients[stage_]);
  }
  const std::int64_t copied = copies ? plan.input : 0;
  batch.head_is_due = false;
  if (copies) {
    device_.copy(own.data, batch.output.data, copied);
    batch.sent ? device_.free(batch.output) : device_.note_use(batch.output);
  }
  set(tensors, Place::Input, copies ? own : input);
  set(tensors, Place::Stash, own, copied);
  set(tensors, Place::Workspace, own, copied + plan.stash);
  tensors.weights = &weights_.of_head();
  GradientSum& sum = weights_.sum_for(micro_batch);
  tensors.gradients = &sum.of_head;
  device_.run(plan.forward, tensors, StepPart::All);
  device_.note_loss(micro_batch, replays_);
  device_.run(plan.backward, tensors, StepPart::All);
  ++sum.head_batches;
  return [this, micro_batch, own, input]() mutable {
    device_.free(own);
    device_.free(input);
    forget(micro_batch);
  };
}

// Traversals: gradients of losses, and what is computed again for them.

/// Returns whether the gradient of the input is made though nothing reads it.
bool Stage::drops_input_gradient(const Traversal& traversal) const {
  if (job_.strategy.kind == StrategyKind::ForwardForward) return false;  // it is not made
  return !traversal.to_previous && !job_.strategy.skip_unneeded_input_gradients;
}

/// Returns the plan without the gradient of the input where that is skipped.
const StagePlan& Stage::plan_for(const Traversal& traversal) const {
  const bool skips = job_.strategy.skip_unneeded_input_gradients;
  return traversal.to_previous || !skips ? plans_.plan : plans_.plan_without;
}

/// Allocates what a traversal writes, in its first op: the one that computes again, if there is
/// one.
void Stage::take_room(MicroBatch& batch, const Traversal& traversal) {
  read_gradients(batch);  // those of an op that computes again may come later than it
  if (std::exchange(batch.goes_back, true)) return;
  const bool dropped = drops_input_gradient(traversal);
  const bool casts = traversal.to_previous && down_ != SentFormat::Computed;
  if (!reads_own_batch() && (traversal.to_previous || dropped)) {
    batch.below = device_.allocate(
        sent_down_bytes(), dropped || casts ? MemoryClass::Workspace : MemoryClass::Boundary);
  }
  if (casts) {
    batch.below_message =
        device_.allocate(cast_size(down_, sent_down_bytes()), MemoryClass::Boundary);
  }
  // A backward that does nothing, of the first layer alone, takes no time in a program either.
  const bool idle = !traversal.weights && plan_for(traversal).passing.empty();
  if (idle && !plans_.runs_again) return;
  batch.workspace = device_.allocate(plans_.workspace, MemoryClass::Workspace);
}

/// Casts back the gradients that have come for a traversal.
void Stage::read_gradients(MicroBatch& batch) {
  for (auto& [loss, message] : batch.gradient_messages) {
    Block& gradient = batch.gradients[loss];
    gradient = device_.allocate(output_bytes(), MemoryClass::Boundary);
    device_.cast_back(message, gradient, job_.strategy.gradient_format);
    device_.free(message);
  }
  batch.gradient_messages.clear();
}

/// Keeps a gradient that has gone through the stage, which it trains beside others: the first
/// becomes the sum that later ones are added to.
void Stage::keep_for_sum(int micro_batch, int loss) {
  if (role_.of(micro_batch).summed_gradients == 0) return;
  MicroBatch& batch = under_way_.at(micro_batch);
  Block& gradient = batch.gradients.at(loss);
  if (batch.gradient_sum) return device_.add(gradient, batch.gradient_sum);
  batch.gradient_sum = std::exchange(gradient, {});
}

/// Adds up, in the place of the furthest loss's, all gradients that train the stage.
void Stage::sum_gradients(int micro_batch, int loss) {
  const StageRole& role = role_.of(micro_batch);
  MicroBatch& batch = under_way_.at(micro_batch);
  const Block& furthest = batch.gradients.at(loss);
  if (batch.gradient_sum) device_.add(batch.gradient_sum, furthest);
  for (const int added : role.only_added) device_.add(batch.gradients.at(added), furthest);
  if (job_.strategy.gradient != GradientMode::Mean) return;
  device_.scale(furthest, 1.0 / (role.summed_gradients + 1));
}

/// Frees the gradient of a loss, which has been read for the last time; the last one's
/// traversal is the last to read the stash, too.
void Stage::end_traversal(int micro_batch, const Traversal& traversal) {
  MicroBatch& batch = under_way_.at(micro_batch);
  if (!traversal.weights) keep_for_sum(micro_batch, traversal.loss);
  if (const auto held = batch.gradients.find(traversal.loss); held != batch.gradients.end()) {
    device_.free(held->second);
    batch.gradients.erase(held);
  }
  if (!traversal.weights) return;
  for (auto& [loss, gradient] : batch.gradients) device_.free(gradient);
  batch.gradients.clear();
  for (Block* block : {&batch.gradient_sum, &batch.stash, &batch.input}) device_.free(*block);
  ++weights_.sum_for(micro_batch).batches;
}

void Stage::go_back(int micro_batch, OpKind kind, const Traversal& traversal,
                    const StageTensors& tensors) {
  const StagePlan& plan = plan_for(traversal);
  if (!traversal.weights) return device_.run(plan.passing, tensors, StepPart::All);
  const bool sums = role_.of(micro_batch).summed_gradients > 0,
             passes = sums && traversal.to_previous;
  // The stage below gets the gradient of the furthest loss alone.
  if (passes) {
    device_.run(plan.passing, tensors, StepPart::All);
    device_.run(plan.again, tensors, StepPart::All);
  }
  if (sums) sum_gradients(micro_batch, traversal.loss);
  device_.run(passes ? plans_.plan_without.backward : plan.backward, tensors,
              kind == OpKind::I ? StepPart::ButLate : StepPart::All);
}

/// Runs R: computes again what I or B by the gradient of a loss reads.
EndOfOp Stage::run_again(int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(role_.of(micro_batch), loss);
  MicroBatch& batch = under_way_.at(micro_batch);
  take_room(batch, traversal);
  if (plans_.rereads_input) {
    device_.read_input(batch.workspace.data, plans_.plan.input, micro_batch);
  }
  device_.run(plans_.plan.again, tensors_of_traversal(micro_batch, traversal), StepPart::All);
  return [] {};
}

/// Runs I, W or B by the gradient of a loss.
EndOfOp Stage::run_backward(OpKind kind, int loss, int micro_batch) {
  const Traversal& traversal = traversal_of(role_.of(micro_batch), loss);
  if (kind == OpKind::W) return run_weight_half(micro_batch, traversal);
  MicroBatch& batch = under_way_.at(micro_batch);
  take_room(batch, traversal);
  const StageTensors tensors = tensors_of_traversal(micro_batch, traversal);
  if (plans_.returns_input && !plans_.rebuilds) {
    device_.copy(batch.below.data, batch.input.data, batch.input.bytes);
  }
  go_back(micro_batch, kind, traversal, tensors);
  if (batch.below_message) device_.cast(batch.below, batch.below_message, down_);
  return [this, micro_batch, kind, &traversal] {
    MicroBatch& own = under_way_.at(micro_batch);
    const bool half = kind == OpKind::I && traversal.weights;
    if (!half || !plans_.runs_again) device_.free(own.workspace);
    if (drops_input_gradient(traversal)) device_.free(own.below);
    if (own.below_message) {
      device_.free(own.below);
      own.below = std::exchange(own.below_message, {});
    }
    if (!half) end_traversal(micro_batch, traversal);
    Block below = std::exchange(own.below, {});
    if (traversal.to_previous) own.outgoing.emplace_back(traversal.loss, below);
    own.goes_back = false;
    forget(micro_batch);
  };
}

/// Runs W, the second half of a backward. Tensors that were computed again are there still.
EndOfOp Stage::run_weight_half(int micro_batch, const Traversal& traversal) {
  MicroBatch& batch = under_way_.at(micro_batch);
  if (!batch.workspace) {
    batch.workspace = device_.allocate(plans_.workspace, MemoryClass::Workspace);
  }
  device_.run(plans_.plan.backward, tensors_of_traversal(micro_batch, traversal), StepPart::Late);
  return [this, micro_batch, &traversal] {
    device_.free(under_way_.at(micro_batch).workspace);
    end_traversal(micro_batch, traversal);
    forget(micro_batch);
  };
}

EndOfOp Stage::run_update(int micro_batch) {
  const bool dumps = !replays_ && micro_batch / job_.program.micro_batches == job_.dump_step;
  weights_.update(micro_batch, versions_read(), dumps);
  return [this] { weights_.drop_versions(versions_read()); };
}

/// Returns the versions of weights that micro-batches under way went forward with.
std::set<int> Stage::versions_read() const {
  std::set<int> versions;
  for (const auto& [micro_batch, batch] : under_way_) {
    if (batch.input) versions.insert(batch.version);
  }
  return versions;
}

// Turns on old inputs: decoupled greedy learning, whose stages do not wait for new ones.
// Belilovsky et al., arXiv 1901.08164, section 3.2: a stage has a buffer of its last inputs; a turn
// takes the least used of them, the newest of equal ones, as the authors' code does. Forward, head,
// backward and update are those of a new input, with today's weights. Nothing is handed on.

/// Keeps the input of a new micro-batch for turns to come, in the place of the oldest if need be.
void Stage::keep_input(int micro_batch, const Block& input) {
  if (input_room_.empty() && old_inputs_.empty()) return;
  OldInput kept = {.micro_batch = micro_batch, .turns = 1};
  if (input_room_.empty()) {
    kept.data = old_inputs_.front().data;
    old_inputs_.erase(old_inputs_.begin());
  } else {
    kept.data = input_room_.back();
    input_room_.pop_back();
  }
  device_.copy(kept.data, input.data, input.bytes);
  old_inputs_.push_back(kept);
}

Stage::OldInput& Stage::next_old_input() {
  CHECK(!old_inputs_.empty(), "a stage has had an input before it learns from an old one");
  // Oldest first: of equal ones the last.
  OldInput* next = &old_inputs_.front();
  for (OldInput& one : old_inputs_) {
    if (one.turns <= next->turns) next = &one;
  }
  return *next;
}

/// Runs forward, head, backward and update of a micro-batch whose input the stage holds.
void Stage::run_turn(int micro_batch) {
  run_forward(micro_batch)();
  if (role_.head) run_head(micro_batch)();
  device_.free(under_way_.at(micro_batch).output);
  for (const Traversal& traversal : role_.traversals) {
    CHECK(!traversal.to_previous, "who learns from old inputs hands no gradient on");
    if (plans_.runs_again) run_again(traversal.loss, micro_batch)();
    run_backward(OpKind::B, traversal.loss, micro_batch)();
  }
  run_update(micro_batch)();
}

EndOfOp Stage::run_replay() {
  OldInput& old = next_old_input();
  ++old.turns;
  std::map<int, MicroBatch> others = std::exchange(under_way_, {});
  // No backward writes over the input of a stage, but of the first.
  under_way_[old.micro_batch].lent = old.data;
  replays_ = true;
  run_turn(old.micro_batch);
  replays_ = false;
  under_way_ = std::move(others);
  return [] {};
}

// Messages.

/// Returns what goes down at a time: a gradient of the input, and before it the input if that
/// returns.
std::int64_t Stage::sent_down_bytes() const {
  return plans_.returns_input ? 2 * plans_.plan.input : plans_.plan.input;
}

/// Returns the bytes of a cast of numbers that take `bytes`.
std::int64_t Stage::cast_size(SentFormat format, std::int64_t bytes) const {
  return cast_bytes(format, bytes / device_.number_bytes());
}

/// Returns how many gradients a message holds: in list form, one for each loss.
std::int64_t Stage::tensors_in(const Channel& channel) const {
  if (format_of(job_.strategy, channel) != SentFormat::Computed) return 1;
  const double numbers = channel.bytes.value() / element_bytes(job_.precision);
  return std::lround(numbers * device_.number_bytes() / static_cast<double>(sent_down_bytes()));
}

MessageBlocks Stage::pack(const Channel& channel, int micro_batch) {
  MicroBatch& batch = under_way_.at(micro_batch);
  if (channel.cargo == Cargo::Activation) {
    return {{0, casts_output() ? batch.output_message : batch.output}};
  }
  MessageBlocks blocks;
  for (std::int64_t n = tensors_in(channel); n > 0; --n) {
    CHECK(!batch.outgoing.empty(), "a gradient is made before it is sent");
    blocks.push_back(std::move(batch.outgoing.front()));
    batch.outgoing.pop_front();
  }
  forget(micro_batch);
  return blocks;
}

MessageBlocks Stage::hand_over(const Channel& channel, int micro_batch) {
  if (channel.cargo != Cargo::Activation) return pack(channel, micro_batch);
  MicroBatch& batch = under_way_.at(micro_batch);
  batch.sent = true;
  Block output = batch.output;
  if (batch.head_is_due) {
    output = device_.allocate(batch.output.bytes, MemoryClass::Boundary);
    device_.copy(output.data, batch.output.data, output.bytes);
  } else {
    batch.output = {};
  }
  forget(micro_batch);
  return {{0, output}};
}

void Stage::release(const Channel& channel, int micro_batch, MessageBlocks& blocks) {
  if (channel.cargo != Cargo::Activation) {
    for (auto& [loss, block] : blocks) device_.free(block);
    return;
  }
  MicroBatch& batch = under_way_.at(micro_batch);
  batch.sent = true;
  if (casts_output()) {
    device_.free(batch.output_message);
    return forget(micro_batch);
  }
  batch.head_is_due ? device_.note_use(batch.output) : device_.free(batch.output);
  forget(micro_batch);
}

void Stage::receive(const Channel& channel, int micro_batch, const MessageBlocks& blocks) {
  MicroBatch& batch = under_way_[micro_batch];
  const bool cast = format_of(job_.strategy, channel) != SentFormat::Computed;
  for (const auto& [loss, block] : blocks) {
    if (channel.cargo == Cargo::Activation) {
      (cast ? batch.input_message : batch.input) = block;
    } else {
      (cast ? batch.gradient_messages : batch.gradients)[loss] = block;
    }
  }
}

/// Forgets the micro-batch if nothing is held of it.
void Stage::forget(int micro_batch) {
  const auto found = under_way_.find(micro_batch);
  if (found == under_way_.end()) return;
  const MicroBatch& batch = found->second;
  const bool holds = batch.input || batch.stash || batch.output || !batch.outgoing.empty();
  const bool casts =
      batch.input_message || batch.output_message || !batch.gradient_messages.empty();
  if (!holds && !casts && batch.gradients.empty()) under_way_.erase(found);
}

}  // namespace interlock
