// What devices keep in the memory of their hosts: copies out and back.
// SPDX-License-Identifier: Apache-2.0
//
// The stash of a forward leaves when the forward is done, unless its own backward comes next. It
// comes back while the op before that backward runs, not before it has left. Where a rank chooses
// its order nobody knows that op, and the copy begins when the backward could.
#include <algorithm>

#include "sim/run/op_lowering.h"

namespace interlock {

namespace {

constexpr int kMostTurns = 64;  // of the copies of an update

Exchange stash_copy(const StageCost& stage, MeshAxis way) {
  return {.kind = CollectiveKind::HostCopy, .axis = way, .bytes = stage.host_stash};
}

}  // namespace

bool OpLowering::reads_stash_first(const Op& op) const {
  const bool backward = op.kind == OpKind::I || op.kind == OpKind::B;
  return backward && costs_.of_stage(op).host_stash > Bytes(0) &&
         op.loss == inputs_.roles[op.stage].traversals.front().loss;
}

/// Whether nothing but ops of the same micro-batch come between a forward and its backward.
bool OpLowering::stays(const Op& forward) const {
  const auto own = [&](const Op& op) {
    return op.stage == forward.stage && op.micro_batch == forward.micro_batch;
  };
  const bool pair = next_.size() > 1 && next_.front().overlaps_next;
  if (pair && own(next_[1]) && reads_stash_first(next_[1])) return true;
  for (const Op& next : next_) {
    if (!own(next)) return false;
    if (reads_stash_first(next)) return true;
    if (next.kind != OpKind::H && next.kind != OpKind::R) return false;
  }
  return false;
}

void OpLowering::send_stash(const Op& op) {
  const StageCost& stage = costs_.of_stage(op);
  if (stage.host_stash <= Bytes(0)) return;
  stays_ = stays(op);
  if (stays_) return;
  exchanges_.begin_copy(op, stash_copy(stage, MeshAxis::ToHost));
  writer_.allocate(op, MemoryClass::HostStash, stage.host_stash);
}

/// What the op, or the pair, after [first, last] reads, unless they make it.
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
  exchanges_.end_copy(op, stash_copy(stage, MeshAxis::ToHost));
  writer_.allocate(op, MemoryClass::Stash, stage.host_stash);
  exchanges_.begin_copy(op, stash_copy(stage, MeshAxis::FromHost));
}

void OpLowering::wait_for_stash(const Op& op) {
  if (!reads_stash_first(op) || std::exchange(stays_, false)) return;
  if (!std::exchange(fetched_, false)) fetch(op);
  exchanges_.end_copy(op, stash_copy(costs_.of_stage(op), MeshAxis::FromHost));
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
