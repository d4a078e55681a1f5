// Writes the instructions around each compute op: messages, memory and events.
// SPDX-License-Identifier: Apache-2.0
//
// Memory: a forward turns the received activation into stash, which lives until the weight
// gradients are made. An output belongs to its message from the start of the op that makes it to
// the end of the transfer, and until its stage's head has begun. A received gradient lives until
// the last op that reads it has run; the first of those that are added up, until the sum is read.
#include "sim/lower/op_lowering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "sim/plan/layer_layouts.h"

namespace interlock {

OpLowering::OpLowering(const LowerInputs& inputs, const Brevity& brevity, Wiring& wiring,
                       Program& program)
    : inputs_(inputs),
      ranks_(program.ranks),
      wiring_(wiring),
      costs_(inputs),
      writer_(program, inputs.schedule.stages),
      exchanges_(inputs, brevity, wiring, writer_, program),
      ring_(inputs, wiring, program),
      window_events_(inputs.schedule.stages, -1),
      update_events_(inputs.schedule.stages, -1) {
  completes_.resize(static_cast<std::size_t>(inputs.schedule.stages), false);
  for (const std::vector<Sequence>& rank : inputs.schedule.ranks) {
    for (const Sequence& sequence : rank) {
      for (const Run& run : sequence.runs) {
        for (const Op& op : run.ops) {
          if (op.completes) completes_[op.stage] = true;
        }
      }
    }
  }
}

void OpLowering::append(const Op& op) {
  ring_.before(op);
  if (recomputes_early(op)) recompute_early(op);
  if (op.kind == OpKind::F) in_layers_ = passes_in_layers(op);
  begin(op);
  begin_trade(op);
  fetch_ahead(op, op);
  run(op, 1);
  end_trade(op);
  end(op);
  ring_.after(op);
}

void OpLowering::append_pair(const Op& first, const Op& second) {
  if (takes_turns(first, second)) return append_in_turns(first, second);
  const double a = whole_time(first).value(), b = whole_time(second).value();
  const double share = a + b > 0 ? 1 - inputs_.policy.overlap * std::min(a, b) / (a + b) : 1;
  begin(first);
  begin(second);
  fetch_ahead(first, second);
  run(first, share);
  run(second, share);
  end(first);
  end(second);
}

/// The stash of the backward shrinks while that of the forward grows: they meet in one layer. What
/// the backward computes again runs before the pair.
void OpLowering::append_in_turns(const Op& forward, const Op& backward) {
  begin(backward);
  const Bytes layer = hand_stash_over(forward, backward);
  begin(forward);
  fetch_ahead(forward, backward);
  writer_.allocate(forward, MemoryClass::Workspace, layer);
  const Prepared first = prepare(forward, 1);
  Prepared second = prepare(backward, 1);
  if (inputs_.policy.delays_weights && backward.kind == OpKind::B) {
    second.piece.delayed = costs_.weight_gradients(backward);
  }
  if (second.again) exchanges_.compute(backward, *second.again);
  exchanges_.compute_pair(forward, first.piece, backward, second.piece);
  writer_.free(forward, MemoryClass::Communication, first.buffers);
  writer_.free(backward, MemoryClass::Communication, second.buffers);
  writer_.free(forward, MemoryClass::Workspace, layer);
  end(forward);
  end(backward);
}

/// Frees the stash that a backward gives back layer by layer while a forward makes its own. Returns
/// the part of the forward's that has no room in it yet.
Bytes OpLowering::hand_stash_over(const Op& forward, const Op& backward) {
  const StageCost& stage = costs_.of_stage(backward);
  const bool last = backward.loss == inputs_.roles[backward.stage].traversals.back().loss;
  int layers = 0;
  for (const Exchange& exchange : costs_.of(forward).exchanges) {
    if (exchange.way != TokenWay::None) layers = exchange.count;
  }
  if (layers == 0 || !last || backward.kind != OpKind::B || stage.host_stash > Bytes(0)) {
    return Bytes(0);
  }
  writer_.free(backward, MemoryClass::Stash, stage.stash);
  handed_over_ = true;
  return costs_.of_stage(forward).stash / layers;
}

/// Writes what an op waits for and takes.
void OpLowering::begin(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  switch (op.kind) {
    case OpKind::F:
      return begin_forward(op);
    case OpKind::H:
      return begin_head(op);
    case OpKind::R:
      return;
    case OpKind::I:
    case OpKind::B:
      return begin_traversal(op);
    case OpKind::W:
      if (op.defers) return;
      if (!recomputes(op)) writer_.allocate(op, MemoryClass::Workspace, stage.workspace);
      return;
    case OpKind::U:
      return begin_update(op);
    case OpKind::S:
    case OpKind::T:
    case OpKind::E:
    case OpKind::G:
      return begin_of_vocabulary(op);
  }
}

/// Takes what the computing itself needs, in `share` of the time that it takes alone.
OpLowering::Prepared OpLowering::prepare(const Op& op, double share) {
  const StageCost& stage = costs_.of_stage(op);
  const bool makes_input_gradient = op.kind == OpKind::I || op.kind == OpKind::B;
  const bool early = makes_input_gradient && std::exchange(recomputed_, false);
  const bool again = makes_input_gradient && recomputes(op) && !early;
  ComputePiece first{.kind = OpKind::R, .share = share}, piece = piece_of(op, share);
  if (again) first.cost = costs_.recompute(op);
  // Weights that were gathered for the recompute are still there.
  const bool gathers = op.kind == OpKind::F || (makes_input_gradient && !early);
  if (gathers) add_gathers(op, again ? first : piece);
  add_layer_copies(op, again ? first : piece);
  add_sends(op, piece);
  const Bytes buffers = buffers_of(op, first) + buffers_of(op, piece);
  writer_.allocate(op, MemoryClass::Communication, buffers);
  if (op.completes) writer_.allocate(op, MemoryClass::Communication, unsent_gradients(op));
  // Recomputed activations lie in the workspace.
  if (makes_input_gradient && !early) {
    writer_.allocate(op, MemoryClass::Workspace, stage.workspace);
  }
  const Bytes gathered = std::exchange(gathered_, Bytes(0));
  return {again ? std::optional(first) : std::nullopt, piece, buffers + gathered};
}

/// The computing itself.
void OpLowering::run(const Op& op, double share) {
  const Prepared prepared = prepare(op, share);
  if (prepared.again) exchanges_.compute(op, *prepared.again);
  exchanges_.compute(op, prepared.piece);
  writer_.free(op, MemoryClass::Communication, prepared.buffers);
}

/// Returns whether a backward computes again before its gradient is there, in what would be a
/// bubble. A rank that chooses its order would begin it long before.
bool OpLowering::recomputes_early(const Op& op) const {
  const int rank = inputs_.schedule.rank_of_stage[op.stage];
  return inputs_.policy.recomputes_early && (op.kind == OpKind::I || op.kind == OpKind::B) &&
         inputs_.schedule.ranks[rank].size() == 1 && recomputes(op);
}

/// Writes what prepare() and run() would of what is computed again.
void OpLowering::recompute_early(const Op& op) {
  wait_for_stash(op);
  ComputePiece again{.kind = OpKind::R, .cost = costs_.recompute(op)};
  add_gathers(op, again);
  gathered_ = buffers_of(op, again);
  writer_.allocate(op, MemoryClass::Communication, gathered_);
  writer_.allocate(op, MemoryClass::Workspace, costs_.of_stage(op).workspace);
  exchanges_.compute(op, again);
  recomputed_ = true;
}

/// Returns whether tokens of each op of a pair pass beside kernels of the other.
bool OpLowering::takes_turns(const Op& first, const Op& second) const {
  const bool back = second.kind == OpKind::I || second.kind == OpKind::B;
  return inputs_.policy.passes_in_pairs && first.kind == OpKind::F && back;
}

ComputePiece OpLowering::piece_of(const Op& op, double share) const {
  const bool backward = op.kind == OpKind::I || op.kind == OpKind::B || op.kind == OpKind::W;
  return {.kind = op.kind,
          .cost = costs_.of(op),
          .useful = op.kind == OpKind::F || of_vocabulary(op.kind) ||
                    (backward && costs_.traversal(op).weights),
          .share = share};
}

/// Writes what an op frees and sends.
void OpLowering::end(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  switch (op.kind) {
    case OpKind::F:
      writer_.free(op, MemoryClass::Workspace, stage.workspace);
      send_stash(op);
      hand_to_vocabulary(op);
      for (const int next : costs_.after(op.stage)) {
        message(Opcode::Send, Cargo::Activation, op, op.stage, next);
      }
      return;
    case OpKind::H:
      return writer_.free(op, MemoryClass::Head, stage.head_memory);
    case OpKind::R:
      return;
    case OpKind::W:
      if (op.defers) return writer_.free(op, MemoryClass::Stash, stage.deferred);
      return end_backward(op);
    case OpKind::I:
    case OpKind::B:
      return end_backward(op);
    case OpKind::U:
      return end_update(op);
    case OpKind::S:
    case OpKind::T:
    case OpKind::E:
    case OpKind::G:
      return end_of_vocabulary(op);
  }
}

void OpLowering::begin_forward(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  exchange_readout(op);
  wait_for_vocabulary(op);
  wait_for_updates(op);
  wait_for_weights(op);
  if (const int from = costs_.before(op.stage); from >= 0) {
    message(Opcode::Receive, Cargo::Activation, op, from, op.stage);
  }
  allocate_stash(op);
  for (int held = costs_.outputs_held(op.stage); held > 0; --held) {
    writer_.allocate(op, MemoryClass::Boundary, stage.output);
  }
  writer_.allocate(op, MemoryClass::Workspace, stage.workspace);
  writer_.free(op, MemoryClass::Boundary, costs_.input(op));
}

/// The memory of a head has room for what it reads, so that the output is the message's alone from
/// here on.
void OpLowering::begin_head(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  const StageRole& role = inputs_.roles[op.stage];
  const bool consumed = role.traversals.front().loss == op.stage ||
                        (!role.only_added.empty() && role.only_added.front() == op.stage);
  const std::vector<int> readers = costs_.after(op.stage);
  if (readers.empty()) writer_.free(op, MemoryClass::Boundary, stage.output);
  writer_.allocate(op, MemoryClass::Head, stage.head_memory);
  if (consumed) writer_.allocate(op, MemoryClass::Boundary, stage.output_gradient());
  if (readers.empty()) return;
  const int channel = wiring_.channel(Cargo::Activation, op.stage, readers.front(), op.micro_batch);
  writer_.free_message(op, stage.output, channel);
}

/// Writes what a traversal reads and makes: the gradient from above, and the one for the stage
/// below, if there is a stage below.
void OpLowering::begin_traversal(const Op& op) {
  const Traversal& traversal = costs_.traversal(op);
  receive_gradients(op);
  wait_for_vocabulary(op);
  if (!recomputed_) wait_for_stash(op);
  if (traversal.to_previous) {
    writer_.allocate(op, MemoryClass::Boundary, costs_.input_gradient(op));
  } else if (drops_input_gradient(traversal)) {
    writer_.allocate(op, MemoryClass::Workspace, costs_.input_gradient(op));
  }
}

void OpLowering::end_backward(const Op& op) {
  const Traversal& traversal = costs_.traversal(op);
  const bool makes_input_gradient = op.kind != OpKind::W;
  // Recomputed activations live in the workspace: those of one traversal, from I until W if split.
  const bool keeps_workspace = recomputes(op) && op.kind == OpKind::I && traversal.weights;
  if (!keeps_workspace) {
    writer_.free(op, MemoryClass::Workspace, costs_.of_stage(op).workspace);
  }
  if (makes_input_gradient && drops_input_gradient(traversal)) {
    writer_.free(op, MemoryClass::Workspace, costs_.input_gradient(op));
  }
  // A split backward reads the gradient of its output twice: I, then W.
  if (op.kind != OpKind::I || !traversal.weights) end_traversal(op);
  if (makes_input_gradient) send_gradients(op, traversal);
  hand_to_vocabulary(op);
}

/// The gradient of the output has been read for the last time; with the weight gradients the stash
/// has, too. Comes before the send, which may have to stand.
void OpLowering::end_traversal(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  const StageRole& role = inputs_.roles[op.stage];
  const bool last = op.loss == role.traversals.back().loss;
  const bool sums = role.summed_gradients > 0 && role.traversals.size() > 1;
  const bool becomes_sum = sums && op.loss == role.traversals.front().loss;
  const bool held = op.loss != op.stage || role.head;
  if (held && !becomes_sum) writer_.free(op, MemoryClass::Boundary, stage.output_gradient());
  if (!last) return;
  const std::size_t others = role.only_added.size() + (sums ? 1 : 0);
  for (std::size_t i = 0; i < others; ++i) {
    writer_.free(op, MemoryClass::Boundary, stage.output_gradient());
  }
  if (!std::exchange(handed_over_, false)) free_stash(op);
  if (op.defers) writer_.allocate(op, MemoryClass::Stash, stage.deferred);
  if (has_windows()) writer_.emit(Opcode::Record, window_event(op.stage), op.micro_batch);
}

Seconds OpLowering::whole_time(const Op& op) const {
  const bool again = op.kind == OpKind::I || op.kind == OpKind::B;
  const Seconds recompute = again ? costs_.recompute(op).time : Seconds(0);
  return recompute + costs_.of(op).time;
}

bool OpLowering::recomputes(const Op& op) const { return costs_.recomputes(op); }

/// Returns true if the input gradient of a traversal is dropped: no stage needs it. It is made all
/// the same, unless it is skipped; a gradient that stops inside the stage is not one of its input.
bool OpLowering::drops_input_gradient(const Traversal& traversal) const {
  if (traversal.partial || inputs_.strategy.kind == StrategyKind::ForwardForward) return false;
  return !traversal.to_previous && !inputs_.strategy.skip_unneeded_input_gradients;
}

void OpLowering::receive_gradients(const Op& op) {
  const StageRole& role = inputs_.roles[op.stage];
  const bool list = inputs_.policy.kind->sends_lists;
  const bool first = op.loss == role.traversals.front().loss;
  int messages = op.loss > op.stage ? 1 : 0;
  if (list) {
    messages = first && role.traversals.back().loss > op.stage ? 1 : 0;
  } else {
    messages += static_cast<int>(added_before(role, op.stage, op.loss).size());
  }
  for (; messages > 0; --messages) {
    message(Opcode::Receive, Cargo::Gradient, op, op.stage + 1, op.stage);
  }
}

void OpLowering::send_gradients(const Op& op, const Traversal& traversal) {
  const auto& traversals = inputs_.roles[op.stage].traversals;
  const bool list = inputs_.policy.kind->sends_lists;
  const bool any = std::any_of(traversals.begin(), traversals.end(),
                               [](const Traversal& t) { return t.to_previous; });
  if (!(list ? any && traversal.weights : traversal.to_previous)) return;
  message(Opcode::Send, Cargo::Gradient, op, op.stage, op.stage - 1);
}

bool OpLowering::has_windows() const { return inputs_.policy.in_flight > 1 && update_every() > 1; }

int OpLowering::barrier() {
  const Schedule& schedule = inputs_.schedule;
  const int replicas = schedule.replicas, whole = schedule.stages / replicas;
  const int stages = updates_one_copy(inputs_) ? whole / schedule.copies : whole;
  const bool helix = inputs_.policy.kind->layout == StageLayout::Helix;  // every second has weights
  return writer_.event(barrier_event_, replicas * (helix ? stages / 2 + 1 : stages),
                       update_every());
}

int OpLowering::window_event(int stage) {
  return writer_.event(window_events_[stage], update_every(), update_every());
}

int OpLowering::update_event(int stage) {
  return writer_.event(update_events_[stage], 1, update_every());
}

/// A micro-batch may begin once all updates are done that were due `in_flight` micro-batches
/// before. Another stream of the stage may have to do the last one.
void OpLowering::wait_for_updates(const Op& op) {
  const int window = update_every(), in_flight = inputs_.policy.in_flight;
  if (in_flight == 1 || window == 1) return;
  const int before = op.micro_batch - in_flight;
  // The last micro-batch, at or before that one, which ends a window; below 0 there is none yet.
  const int due = before - ((before + 1) % window + window) % window;
  writer_.emit(Opcode::Wait, update_event(op.stage), due);
}

void OpLowering::message(Opcode code, Cargo cargo, const Op& op, int from, int to) {
  writer_.emit(code, wiring_.channel(cargo, from, to, op.micro_batch), op.micro_batch);
}

namespace {

constexpr int kMostBuckets = 64;  // of a stage; more take longer to simulate than they tell

/// `exchange` in `count` equal parts.
Exchange in_parts(Exchange exchange, int count) {
  exchange.count = count;
  exchange.bytes = exchange.bytes / count;
  return exchange;
}

/// Returns the places of the modules of `part` in an op of its stage. `back`: it goes from the last
/// module to the first.
std::vector<int> places_of(const StageCost& part, const StageCost& stage, bool back) {
  std::vector<int> places = part.places;
  if (&part == &stage) {
    places.resize(static_cast<std::size_t>(stage.modules));
    std::iota(places.begin(), places.end(), 0);
  } else if (back) {
    std::reverse(places.begin(), places.end());
    for (int& place : places) place = stage.modules - 1 - place;
  }
  return places;
}

/// Says when each gather begins: `prefetch` modules ahead, but not before the last module of
/// another layout that comes first, whose weights have come by then.
void order_gathers(std::vector<WeightGather>& gathers, int modules, int prefetch) {
  std::vector<int> layouts(static_cast<std::size_t>(modules), -1);  // by place
  for (const WeightGather& gather : gathers) {
    for (const int place : gather.places) layouts[place] = gather.exchange.layout;
  }
  std::vector<int> begins(layouts.size());
  int other = 0, before = -1;  // places: of the last one of another layout, of the last one
  for (int place = 0; place < modules; ++place) {
    if (layouts[place] < 0) continue;
    if (before >= 0 && layouts[before] != layouts[place]) other = before;
    before = place;
    begins[place] = std::max(other, place - prefetch);
  }
  for (WeightGather& gather : gathers) {
    for (const int place : gather.places) gather.begins.push_back(begins[place]);
  }
}

/// Returns the most bytes of weights that are there, or on their way, beside one module.
Bytes most_gathered(const ComputePiece& piece) {
  Bytes most(0);
  for (int place = 0; place < piece.modules; ++place) {
    Bytes bytes(0);
    for (const WeightGather& gather : piece.gathers) {
      const auto past = std::ranges::lower_bound(gather.places, place) - gather.places.begin();
      const auto begun = std::ranges::upper_bound(gather.begins, place) - gather.begins.begin();
      bytes += gather.exchange.bytes * static_cast<double>(begun - past);
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

/// ZeRO 3: weights come, module by module, ahead of the kernels that read them.
void OpLowering::add_gathers(const Op& op, ComputePiece& piece) const {
  const DataParallel& policy = inputs_.data_parallel;
  if (policy.zero_stage < 3) return;
  const StageCost& stage = costs_.of_stage(op);
  piece.modules = stage.modules;
  for (const StageCost& part : parts_of(stage)) {
    for (const Exchange& whole : weight_exchanges(policy, mesh_of(op, part), part)) {
      const Exchange gather = in_parts(whole, part.modules);
      piece.gathers.push_back({gather, places_of(part, stage, op.kind != OpKind::F), {}});
    }
  }
  order_gathers(piece.gathers, piece.modules, policy.prefetch);
}

/// Adds the gradients that leave while `op` runs: those of an update beside the op that completes
/// them; those of every micro-batch where they are reduced one by one.
void OpLowering::add_sends(const Op& op, ComputePiece& piece) const {
  const bool makes_gradients =
      op.kind == OpKind::W || op.kind == OpKind::B || op.kind == OpKind::T || op.kind == OpKind::G;
  if (!makes_gradients) return;
  const bool each = costs_.of_stage(op).reduces_each_backward;
  if (op.completes ? !sends_early(op.stage) : !each) return;  // the update does it
  piece.sends = gradients_in_buckets(op);
  piece.sends_all = op.completes;
}

/// Returns the buffers of communication while an op runs: weights of the module at work and of
/// those gathered ahead, and a bucket for gradients.
Bytes OpLowering::buffers_of(const Op& op, const ComputePiece& piece) const {
  Bytes bytes = most_gathered(piece);
  for (const Exchange& send : piece.sends) {
    if (exchanges_.is_buffered(op.stage, send)) bytes += send.bytes;
  }
  return bytes;
}

/// Returns the gradients that the op that completes them leaves for the update to send.
Bytes OpLowering::unsent_gradients(const Op& op) const {
  Bytes bytes(0);
  if (sends_early(op.stage)) return bytes;
  for (const Exchange& gradients : gradients_in_buckets(op)) {
    if (exchanges_.is_buffered(op.stage, gradients)) bytes += gradients.bytes * gradients.count;
  }
  return bytes;
}

std::vector<Exchange> OpLowering::gradients_in_buckets(const Op& op) const {
  const DataParallel& policy = inputs_.data_parallel;
  std::vector<Exchange> exchanges;
  for (const StageCost& part : parts_of(costs_.of_stage(op))) {
    const std::optional<Bytes> bucket = policy.gradient_bucket();
    const Bytes sent = part.whole_gradients * policy.gradient_density;
    const double wanted = bucket ? std::ceil(sent / *bucket) : 1;
    const double least = part.reduces_each_backward ? 2 : 1;  // two buffers take turns
    const int buckets = static_cast<int>(std::clamp(wanted, least, double{kMostBuckets}));
    for (const Exchange& whole : gradient_exchanges(policy, mesh_of(op, part), part)) {
      exchanges.push_back(in_parts(whole, buckets));
    }
  }
  return exchanges;
}

/// Returns the exchanges that bring the weights of all layers of a stage together again.
std::vector<Exchange> OpLowering::whole_weights(const Op& op) const {
  std::vector<Exchange> exchanges;
  for (const StageCost& part : parts_of(costs_.of_stage(op))) {
    const auto own = weight_exchanges(inputs_.data_parallel, mesh_of(op, part), part);
    exchanges.insert(exchanges.end(), own.begin(), own.end());
  }
  return exchanges;
}

void OpLowering::begin_updates(const Op& first, int updates) {
  if (has_windows()) writer_.emit(Opcode::Wait, window_event(first.stage), first.micro_batch);
  if (!inputs_.policy.barrier) return;
  for (; updates > 0; --updates) writer_.emit(Opcode::Record, barrier(), first.micro_batch);
}

void OpLowering::begin_update(const Op& op) {
  if (inputs_.policy.barrier) writer_.emit(Opcode::Wait, barrier(), op.micro_batch);
  add_up_copies(op);
  const std::vector<Exchange> gradients = gradients_in_buckets(op);
  if (completes_[op.stage]) {
    writer_.free(op, MemoryClass::Communication, unsent_gradients(op));
  }
  if (!sends_early(op.stage)) exchanges_.begin(op, gradients, update_every());
  exchanges_.end(op, gradients, update_every(), op.micro_batch);
  begin_copies(op);
  writer_.allocate(op, MemoryClass::Workspace, update_copies(op));
}

/// Copies of a stage add up their gradients: each sends its own to every other.
void OpLowering::add_up_copies(const Op& op) {
  const int copies = updates_one_copy(inputs_) ? 1 : inputs_.schedule.copies;
  for (int on = 1; on < copies; ++on) {
    message(Opcode::Send, Cargo::Copy, op, op.stage, costs_.in_copy_after(op.stage, on));
  }
  for (int on = 1; on < copies; ++on) {
    message(Opcode::Receive, Cargo::Copy, op, costs_.in_copy_after(op.stage, copies - on),
            op.stage);
    writer_.free(op, MemoryClass::Boundary, costs_.of_stage(op).state.gradients);
  }
}

void OpLowering::end_update(const Op& op) {
  const DataParallel& policy = inputs_.data_parallel;
  finish_copies(op);
  if (policy.zero_stage == 1 || policy.zero_stage == 2) {
    const auto weights = whole_weights(op);
    exchanges_.begin(op, weights, update_every());
    if (!policy.overlap_weights) exchanges_.end(op, weights, update_every(), op.micro_batch);
  }
  writer_.free(op, MemoryClass::Workspace, update_copies(op));
  if (has_windows()) writer_.emit(Opcode::Record, update_event(op.stage), op.micro_batch);
}

/// Weights of the last update that are still on their way. Asynchronous schedules go on with those
/// that they have.
void OpLowering::wait_for_weights(const Op& op) {
  const DataParallel& policy = inputs_.data_parallel;
  const bool later = policy.overlap_weights && policy.zero_stage > 0 && policy.zero_stage < 3;
  if (!later || inputs_.schedule.version_lag > 0 || inputs_.schedule.ahead > 0) return;
  if (!keeps_state(inputs_, op.stage)) return;  // another copy of the stage, on this rank, has done
  exchanges_.end(op, whole_weights(op), update_every(), op.micro_batch - update_every());
}

// The last stage hands its readout on at the start of each period; the other stages take it over
// before the last micro-batch of that period, by when it has long arrived.
void OpLowering::exchange_readout(const Op& op) {
  const int period = inputs_.strategy.readout_every * inputs_.schedule.micro_batches;
  if (period == 0) return;
  CHECK(period > 1, "a readout period of one micro-batch would wait for itself");
  const int last = costs_.last_of_replica(op.stage);
  if (op.stage == last && op.micro_batch % period == 0) {
    for (int stage = costs_.first_of_replica(op.stage); stage < last; ++stage) {
      if (!inputs_.roles[stage].head) continue;
      const int taken_before = op.micro_batch + period - 1;
      writer_.emit(Opcode::Send, wiring_.channel(Cargo::Readout, last, stage, taken_before),
                   op.micro_batch);
    }
  } else if (op.stage < last && inputs_.roles[op.stage].head &&
             op.micro_batch % period == period - 1) {
    message(Opcode::Receive, Cargo::Readout, op, last, op.stage);
    writer_.free(op, MemoryClass::Boundary, costs_.of_stage(op).readout);
  }
}

}  // namespace interlock
