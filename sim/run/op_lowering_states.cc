// What keeps equal weights equal: gradients that leave, weights that are gathered.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "sim/run/op_lowering.h"

namespace interlock {

namespace {

constexpr int kMostBuckets = 64;  // of a stage; more take longer to simulate than they tell

/// `exchange` in `count` equal parts.
Exchange in_parts(Exchange exchange, int count) {
  exchange.count = count;
  exchange.bytes = exchange.bytes / count;
  return exchange;
}

}  // namespace

/// ZeRO 3: weights come, module by module, ahead of the kernels that read them.
void OpLowering::add_gathers(const Op& op, ComputePiece& piece) const {
  const DataParallel& policy = inputs_.data_parallel;
  if (policy.zero_stage < 3) return;
  const StageCost& stage = costs_.of_stage(op);
  for (const Exchange& whole : weight_exchanges(policy, mesh_of(op), stage)) {
    piece.gathers.push_back(in_parts(whole, stage.modules));
  }
}

/// Adds the gradients that leave while `op` runs: those of an update beside the op that completes
/// them; those of every micro-batch where they are reduced one by one.
void OpLowering::add_sends(const Op& op, ComputePiece& piece) const {
  const bool makes_gradients = op.kind == OpKind::W || op.kind == OpKind::B;
  if (!makes_gradients) return;
  const bool each = costs_.of_stage(op).reduces_each_backward;
  if (op.completes ? !sends_early(op.stage) : !each) return;  // the update does it
  piece.sends = gradients_in_buckets(op);
  piece.sends_all = op.completes;
}

/// What communication takes while an op runs: weights of the module at work and of those gathered
/// ahead, and a bucket that gradients are put into.
Bytes OpLowering::buffers_of(const Op& op, const ComputePiece& piece) const {
  Bytes bytes(0);
  for (const Exchange& gather : piece.gathers) {
    bytes += gather.bytes * std::min(inputs_.data_parallel.prefetch + 1, gather.count);
  }
  for (const Exchange& send : piece.sends) {
    if (exchanges_.is_buffered(op.stage, send)) bytes += send.bytes;
  }
  return bytes;
}

/// What the op that completes gradients leaves for the update to send.
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
  const StageCost& stage = costs_.of_stage(op);
  std::vector<Exchange> exchanges = gradient_exchanges(policy, mesh_of(op), stage);
  const double wanted = std::ceil(stage.whole_gradients * policy.gradient_density / policy.bucket);
  const double least = stage.reduces_each_backward ? 2 : 1;  // two buffers take turns
  const int buckets = static_cast<int>(std::clamp(wanted, least, double{kMostBuckets}));
  for (Exchange& exchange : exchanges) exchange = in_parts(exchange, buckets);
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
}

/// Copies of a stage add up their gradients: each sends its own to every other.
void OpLowering::add_up_copies(const Op& op) {
  const int copies = inputs_.schedule.copies;
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
    const auto weights = weight_exchanges(policy, mesh_of(op), costs_.of_stage(op));
    exchanges_.begin(op, weights, update_every());
    if (!policy.overlap_weights) exchanges_.end(op, weights, update_every(), op.micro_batch);
  }
  if (has_windows()) writer_.emit(Opcode::Record, update_event(op.stage), op.micro_batch);
}

/// Weights of the last update that are still on their way. Asynchronous schedules go on with those
/// that they have.
void OpLowering::wait_for_weights(const Op& op) {
  const DataParallel& policy = inputs_.data_parallel;
  const bool later = policy.overlap_weights && policy.zero_stage > 0 && policy.zero_stage < 3;
  if (!later || inputs_.schedule.version_lag > 0 || inputs_.schedule.ahead > 0) return;
  exchanges_.end(op, weight_exchanges(policy, mesh_of(op), costs_.of_stage(op)), update_every(),
                 op.micro_batch - update_every());
}

// The last stage hands its readout on at the begin of each period; the other stages take it over
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
