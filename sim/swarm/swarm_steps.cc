// Steps of a swarm: which micro-batches run, whose gradients count, and when they are averaged.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/swarm/swarm_state.h"

namespace interlock {

/// Starts micro-batches as long as there is room; first those that lost something.
void Swarm::issue() {
  while (flying_ < window_) {
    const int id = next_micro_batch();
    if (id == kNobody) return;
    begin_pass(id);
  }
}

int Swarm::next_micro_batch() {
  if (!again_.empty()) {
    const int id = again_.front();
    again_.pop_front();
    return id;
  }
  const int size = inputs_.micro_batches;
  if (newest_ < 0 || issued_ == size) {
    if (open_steps_ >= (inputs_.delayed_update ? 2 : 1)) return kNobody;
    ++open_steps_;
    issued_ = 0;
    const int slot = static_cast<int>(++newest_ % 2);
    step_of_[slot] = newest_;
    for (int stage = 0; stage < stages_; ++stage) {
      Averaging& one = averaging(slot, stage);
      one.phase = Phase::Collecting;
      one.missing = size;
    }
    for (int i = slot * size; i < (slot + 1) * size; ++i) {
      MicroBatch& batch = batches_[i];
      batch.finished = false;
      std::fill(batch.owner.begin(), batch.owner.end(), kNobody);
      std::fill(batch.forward_ran.begin(), batch.forward_ran.end(), 0);
      std::fill(batch.backward_ran.begin(), batch.backward_ran.end(), 0);
    }
  }
  return static_cast<int>(newest_ % 2) * size + issued_++;
}

/// Returns true if one of the first `stages_below` stages lacks the micro-batch's part of the
/// gradient.
bool Swarm::lacks(int id, int stages_below) const {
  const MicroBatch& batch = batches_[id];
  for (int stage = 0; stage < stages_below; ++stage) {
    if (batch.owner[stage] != kNobody) continue;
    if (averaging_[slot_of(id) * stages_ + stage].phase != Phase::Averaged) return true;
  }
  return false;
}

void Swarm::begin_pass(int id) {
  batches_[id].in_flight = true;
  batches_[id].back = stages_;
  ++flying_;
  advance(id);
}

void Swarm::end_pass(int id) {
  MicroBatch& batch = batches_[id];
  for (int& holder : batch.holder) place(holder, kNobody);
  place(batch.gradient_at, kNobody);
  batch.in_flight = false;
  --flying_;
  if (lacks(id, stages_)) {
    again_.push_back(id);  // lost behind its back
  } else {
    batch.finished = true;
    ++finished_;
  }
  issue();
}

/// A part that some living peer has already, or that is averaged, is not added twice.
void Swarm::add_gradient(int id, int stage, int peer) {
  const int slot = slot_of(id);
  int& owner = batches_[id].owner[stage];
  if (owner != kNobody || averaging(slot, stage).phase == Phase::Averaged) return;
  owner = peer;
  record(SwarmRecord::Kind::Added, peer);
  if (records_) {
    records_->back().step = step_of_[slot];
    records_->back().stage = stage;
    records_->back().micro_batch = id % inputs_.micro_batches;
  }
  if (--averaging(slot, stage).missing == 0) try_averaging(slot, stage);
}

/// Drops the gradients that `dead` had added since the last averaging.
void Swarm::lose_gradients(int dead) {
  const int stage = peers_[dead].stage;
  for (int slot = 0; slot < 2; ++slot) {
    Averaging& one = averaging(slot, stage);
    if (step_of_[slot] < 0 || one.phase == Phase::Averaged) continue;
    const auto member = std::find(one.members.begin(), one.members.end(), dead);
    if (one.phase == Phase::Averaging && member != one.members.end()) stop_averaging(slot, stage);
    for (int i = 0; i < inputs_.micro_batches; ++i) {
      const int id = slot * inputs_.micro_batches + i;
      if (batches_[id].owner[stage] == dead) lose_gradient(one, id, stage);
    }
    try_averaging(slot, stage);
  }
}

/// Ends an averaging that is under way: the peers that are left begin anew.
void Swarm::stop_averaging(int slot, int stage) {
  Averaging& one = averaging(slot, stage);
  one.phase = Phase::Collecting;
  ++one.generation;
  for (Bulk& bulk : bulks_) {
    const bool of_it = bulk.purpose == Purpose::Averaging && bulk.place == slot * stages_ + stage;
    if (of_it) bulk.open = false;
  }
}

/// Drops the gradient of micro-batch `id` at `stage`; it is computed again, or given up.
void Swarm::lose_gradient(Averaging& one, int id, int stage) {
  MicroBatch& batch = batches_[id];
  if (!inputs_.redo_lost) {
    batch.owner[stage] = kDropped;
    ++out_.gradients_dropped;
    return;
  }
  batch.owner[stage] = kNobody;
  ++one.missing;
  if (batch.in_flight || !batch.finished) return;
  --finished_;
  batch.finished = false;
  again_.push_back(id);
}

void Swarm::try_averaging(int slot, int stage) {
  Averaging& one = averaging(slot, stage);
  if (step_of_[slot] < 0 || one.phase != Phase::Collecting || one.missing > 0) return;
  if (handing_over_[stage] > 0) return;
  const bool older_is_open = step_of_[1 - slot] >= 0 && step_of_[1 - slot] < step_of_[slot];
  if (older_is_open && averaging(1 - slot, stage).phase != Phase::Averaged) return;
  one.members.clear();
  for (int peer = 0; peer < static_cast<int>(peers_.size()); ++peer) {
    const Life life = peers_[peer].life;
    const bool takes_part = life == Life::Serving || life == Life::Draining;
    if (takes_part && peers_[peer].stage == stage) one.members.push_back(peer);
  }
  if (one.members.empty())
    return;  // all that it has was dropped; the next peer that comes tries again
  one.phase = Phase::Averaging;
  ++one.generation;
  const int members = static_cast<int>(one.members.size()), place = slot * stages_ + stage;
  one.pending = members;
  if (members == 1) {
    schedule(now_ + inputs_.stages[stage].update.value(), Kind::Updated, place, one.generation);
    return;
  }
  // Each sends its parts for the others to add up, and then what it has added up to the others:
  // 2 (n - 1) / n of the gradients leave and reach every peer, as in a ring.
  const double bytes = inputs_.stages[stage].gradients.value() * 2 * (members - 1) / members;
  for (int i = 0; i < members; ++i) {
    start_bulk({.purpose = Purpose::Averaging,
                .from = one.members[i],
                .to = one.members[(i + 1) % members],
                .place = place,
                .generation = one.generation},
               bytes);
  }
}

void Swarm::transfer_averaged(const Bulk& bulk) {
  Averaging& one = averaging_[bulk.place];
  if (one.phase != Phase::Averaging || one.generation != bulk.generation) return;
  if (--one.pending > 0) return;
  const Seconds update = inputs_.stages[bulk.place % stages_].update;
  schedule(now_ + update.value(), Kind::Updated, bulk.place, one.generation);
}

void Swarm::updated(int place, std::int64_t generation) {
  const int slot = place / stages_, stage = place % stages_;
  Averaging& one = averaging(slot, stage);
  if (one.phase != Phase::Averaging || one.generation != generation) return;
  for (const int member : one.members) {
    if (!is_alive(member)) return;  // the others will notice, and average again
  }
  one.phase = Phase::Averaged;
  record(SwarmRecord::Kind::Averaged, kNobody);
  if (records_) {
    records_->back().step = step_of_[slot];
    records_->back().stage = stage;
    records_->back().members = one.members;
  }
  for (const int life : life_of_) {
    if (life != kNobody && peers_[life].stage == stage) try_leave(life);
  }
  bool whole = true;
  for (int other = 0; other < stages_; ++other) {
    whole = whole && averaging(slot, other).phase == Phase::Averaged;
  }
  if (whole) {
    ++out_.steps;
    --open_steps_;
    step_of_[slot] = -1;
  }
  try_averaging(1 - slot, stage);
  if (whole) issue();
}

}  // namespace interlock
