// Stash and states that wait in the memory of hosts: the copies of an op, and their memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/lower/op_lowering.h"

namespace interlock {

namespace {

constexpr int kMostTurns = 64;  // of the copies of an update

Exchange host_copy(const StageCost& stage, MeshAxis way) {
  return {.kind = CollectiveKind::HostCopy, .axis = way, .bytes = stage.host_stash};
}

/// The stash of each layer of a stage, on its way to the host or back. That of the last layer does
/// not leave: its backward comes first.
Exchange layer_copies(const StageCost& stage, MeshAxis way) {
  return {.kind = CollectiveKind::HostCopy,
          .axis = way,
          .bytes = stage.host_stash / stage.modules,
          .count = stage.modules,
          .overlapped = true};
}

Bytes stash_on_host(const StageCost& stage) {
  return stage.host_stash * (static_cast<double>(stage.modules - 1) / stage.modules);
}

}  // namespace

bool OpLowering::reads_stash_first(const Op& op) const {
  const bool backward = op.kind == OpKind::I || op.kind == OpKind::B;
  return backward && costs_.of_stage(op).host_stash > Bytes(0) &&
         op.loss == costs_.role(op).traversals.front().loss;
}

/// Returns the backward of a forward if only ops of the same micro-batch come between the two.
const Op* OpLowering::backward_after(const Op& forward) const {
  const auto own = [&](const Op& op) {
    return op.stage == forward.stage && op.micro_batch == forward.micro_batch;
  };
  const bool pair = next_.size() > 1 && next_.front().overlaps_next;
  if (pair && own(next_[1]) && reads_stash_first(next_[1])) return &next_[1];
  for (const Op& next : next_) {
    if (!own(next)) return nullptr;
    if (reads_stash_first(next)) return &next;
    if (next.kind != OpKind::H && next.kind != OpKind::R) return nullptr;
  }
  return nullptr;
}

/// Returns true if the stash of a forward passes to the host and back layer by layer, since its
/// backward follows at once. What a split backward, or another loss, reads again stays.
bool OpLowering::passes_in_layers(const Op& forward) const {
  const StageCost& stage = costs_.of_stage(forward);
  if (stage.host_stash <= Bytes(0) || stage.modules < 2) return false;
  if (inputs_.policy.recomputes_early || costs_.role(forward).traversals.size() > 1) {
    return false;
  }
  const Op* backward = backward_after(forward);
  if (backward == nullptr || backward->kind != OpKind::B || backward->overlaps_next) return false;
  return std::none_of(next_.data(), backward,
                      [](const Op& op) { return op.overlaps_next || op.kind == OpKind::R; });
}

/// Returns what of a stash is on the device at most. Of layers that pass one by one, two shares
/// are: of the layer at work, and the one on its way.
Bytes OpLowering::kept_stash(const StageCost& stage) const {
  if (!in_layers_) return stage.stash;
  return stage.stash - stash_on_host(stage) + stage.host_stash / stage.modules;
}

void OpLowering::allocate_stash(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  writer_.allocate(op, MemoryClass::Stash, kept_stash(stage));
  if (in_layers_) writer_.allocate(op, MemoryClass::HostStash, stash_on_host(stage));
}

void OpLowering::free_stash(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  writer_.free(op, MemoryClass::Stash, kept_stash(stage));
  if (std::exchange(in_layers_, false)) {
    writer_.free(op, MemoryClass::HostStash, stash_on_host(stage));
  }
}

/// Copies run beside the kernels of the layer that comes next.
void OpLowering::add_layer_copies(const Op& op, ComputePiece& piece) const {
  if (!in_layers_ || (op.kind != OpKind::F && op.kind != OpKind::B)) return;
  const MeshAxis way = op.kind == OpKind::F ? MeshAxis::ToHost : MeshAxis::FromHost;
  piece.cost.exchanges.push_back(layer_copies(costs_.of_stage(op), way));
}

void OpLowering::send_stash(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  if (stage.host_stash <= Bytes(0)) return;
  stays_ = backward_after(op) != nullptr;
  if (stays_) return;
  exchanges_.begin_host_copy(op, host_copy(stage, MeshAxis::ToHost));
  writer_.allocate(op, MemoryClass::HostStash, stage.host_stash);
}

/// Fetches what the op, or the pair, after [first, last] reads, unless they make it.
void OpLowering::fetch_ahead(const Op& first, const Op& last) {
  if (next_.empty() || stays_) return;
  const auto makes_stash_of = [](const Op& op, const Op& next) {
    return op.kind == OpKind::F && op.stage == next.stage && op.micro_batch == next.micro_batch;
  };
  const std::size_t count = next_.front().overlaps_next ? 2 : 1;
  for (std::size_t i = 0; i < std::min(count, next_.size()); ++i) {
    if (!reads_stash_first(next_[i])) continue;
    if (makes_stash_of(first, next_[i]) || makes_stash_of(last, next_[i])) continue;
    fetch(next_[i]);
    fetched_ = true;
  }
}

void OpLowering::fetch(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  exchanges_.end_host_copy(op, host_copy(stage, MeshAxis::ToHost));
  writer_.allocate(op, MemoryClass::Stash, stage.host_stash);
  exchanges_.begin_host_copy(op, host_copy(stage, MeshAxis::FromHost));
}

void OpLowering::wait_for_stash(const Op& op) {
  if (!reads_stash_first(op) || std::exchange(stays_, false)) return;
  if (!std::exchange(fetched_, false)) fetch(op);
  exchanges_.end_host_copy(op, host_copy(costs_.of_stage(op), MeshAxis::FromHost));
}

/// Module by module: gradients to the host, or weights from it.
std::vector<Exchange> OpLowering::copies_of_update(const Op& op, MeshAxis way) const {
  const StageCost& stage = costs_.of_stage(op);
  const Bytes bytes = way == MeshAxis::ToHost ? stage.host_gradients : stage.host_weights;
  if (bytes <= Bytes(0)) return {};
  const int turns = std::min(stage.modules, kMostTurns);
  return {{.kind = CollectiveKind::HostCopy, .axis = way, .bytes = bytes / turns, .count = turns}};
}

/// Weights come back as soon as the host has updated them, whatever the device does meanwhile.
void OpLowering::begin_copies(const Op& op) {
  const auto gradients = copies_of_update(op, MeshAxis::ToHost);
  const auto weights = copies_of_update(op, MeshAxis::FromHost);
  if (gradients.empty()) return;
  exchanges_.answer(op, gradients.front(), weights.front(), update_every());
  exchanges_.begin(op, gradients, update_every());
}

void OpLowering::finish_copies(const Op& op) {
  exchanges_.end(op, copies_of_update(op, MeshAxis::FromHost), update_every(), op.micro_batch);
}

}  // namespace interlock
