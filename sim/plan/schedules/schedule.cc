// Schedules expanded, marked where gradients are complete, and with readouts put off.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedules/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

char letter(OpKind kind) { return "FHRIBWUSTEG"[static_cast<int>(kind)]; }

void split_turns(Sequence& sequence, std::size_t index, int turns) {
  Run rest = sequence.runs[index];
  sequence.runs[index].repeats = turns;
  rest.repeats -= turns;
  for (Op& op : rest.ops) op.micro_batch += turns * rest.stride;
  if (index < static_cast<std::size_t>(sequence.lead)) ++sequence.lead;
  if (index + static_cast<std::size_t>(sequence.tail) >= sequence.runs.size()) ++sequence.tail;
  sequence.runs.insert(sequence.runs.begin() + static_cast<std::ptrdiff_t>(index) + 1, rest);
}

std::vector<Op> expand(const Sequence& sequence) {
  std::vector<Op> ops;
  auto append = [&](std::size_t first, std::size_t end, int later) {
    for (std::size_t r = first; r < end; ++r) {
      const Run& run = sequence.runs[r];
      for (int iteration = 0; iteration < run.repeats; ++iteration) {
        for (Op op : run.ops) {
          op.micro_batch += iteration * run.stride + later;
          ops.push_back(op);
        }
      }
    }
  };
  const std::size_t tail = sequence.runs.size() - sequence.tail;
  append(0, sequence.lead, 0);
  for (int round = 0; round < sequence.repeats; ++round) {
    append(sequence.lead, tail, round * sequence.stride);
  }
  append(tail, sequence.runs.size(), 0);
  return ops;
}

namespace {

bool makes_gradients(const Op& op) {
  using enum OpKind;
  return op.kind == B || op.kind == W || op.kind == T || op.kind == G;
}

/// Returns the next of `ops` from `first` on that makes or uses gradients of `stage`; nothing if
/// none does.
const Op* next_of_stage(const std::vector<Op>& ops, std::size_t first, int stage) {
  const auto found =
      std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(first), ops.end(), [&](const Op& op) {
        const bool uses = op.kind == OpKind::U;
        return op.stage == stage && (uses || makes_gradients(op));
      });
  return found == ops.end() ? nullptr : &*found;
}

/// Returns whether the next op of the stage after op `index` is its update, in the last turn of run
/// `run`.
bool is_last(const Sequence& sequence, std::size_t run, std::size_t index) {
  const int stage = sequence.runs[run].ops[index].stage;
  const Op* next = next_of_stage(sequence.runs[run].ops, index + 1, stage);
  for (++run; next == nullptr && run < sequence.runs.size(); ++run) {
    if (sequence.runs[run].repeats > 0) next = next_of_stage(sequence.runs[run].ops, 0, stage);
  }
  return next != nullptr && next->kind == OpKind::U;
}

/// Returns whether the next op of the stage after op `index` is its update, in every turn.
bool is_last_in_turn(const Run& run, std::size_t index) {
  const Op* next = next_of_stage(run.ops, index + 1, run.ops[index].stage);
  return next != nullptr && next->kind == OpKind::U;
}

void mark(Sequence& sequence) {
  for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
    const auto only_at_the_end = [&](std::size_t i) {
      return is_last(sequence, r, i) && !is_last_in_turn(sequence.runs[r], i);
    };
    bool parts = false;
    for (std::size_t i = 0; i < sequence.runs[r].ops.size(); ++i) {
      parts = parts || (makes_gradients(sequence.runs[r].ops[i]) && only_at_the_end(i));
    }
    const int repeats = sequence.runs[r].repeats;
    if (parts && repeats > 1) split_turns(sequence, r, repeats - 1);
    for (std::size_t i = 0; i < sequence.runs[r].ops.size(); ++i) {
      Op& op = sequence.runs[r].ops[i];
      // A run that was parted has a turn of its own after it, whose ops come first.
      op.completes = makes_gradients(op) && is_last(sequence, r, i);
    }
  }
}

/// Marks the backwards of `stage` in the first `count` of each `step` micro-batches. A run is
/// parted where one turn has other marks than the next.
void mark_deferring(Sequence& sequence, int stage, int step, int count) {
  const auto defers = [&](const Run& run, const Op& op, int turn) {
    return op.kind == OpKind::B && op.stage == stage &&
           (op.micro_batch + turn * run.stride) % step < count;
  };
  for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
    const Run& run = sequence.runs[r];
    const auto alike = [&](int turn) {
      return std::ranges::all_of(
          run.ops, [&](const Op& op) { return defers(run, op, turn) == defers(run, op, 0); });
    };
    int turns = 1;
    while (turns < run.repeats && alike(turns)) ++turns;
    if (turns < run.repeats) split_turns(sequence, r, turns);
    for (Op& op : sequence.runs[r].ops) op.defers = defers(sequence.runs[r], op, 0);
  }
}

bool is_update(const Op& op) { return op.kind == OpKind::U; }

/// Puts `made`, ops of one step, before the update of `stage`, and before others in a row with it.
/// Returns whether `sequence` has that update.
bool insert_before_updates(Sequence& sequence, int stage, const Run& made) {
  for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
    const auto of_stage = [&](const Op& op) { return is_update(op) && op.stage == stage; };
    if (!std::ranges::any_of(sequence.runs[r].ops, of_stage)) continue;
    while (r > 0 && std::ranges::all_of(sequence.runs[r].ops, is_update) &&
           std::ranges::all_of(sequence.runs[r - 1].ops, is_update)) {
      --r;
    }
    Run& run = sequence.runs[r];
    CHECK(run.repeats == 1, "updates that are not repeated within a step");
    const auto first = std::ranges::find_if(run.ops, is_update);
    Run before = {.ops = {run.ops.begin(), first}};
    run.ops.erase(run.ops.begin(), first);
    const auto place = sequence.runs.begin() + static_cast<std::ptrdiff_t>(r);
    if (before.ops.empty()) {
      sequence.runs.insert(place, made);
    } else {
      sequence.runs.insert(place, {before, made});
    }
    return true;
  }
  return false;
}

}  // namespace

void defer_readout(Schedule& schedule, int micro_batches) {
  CHECK(schedule.copies == 1, "one stage with a readout");
  const int stage = schedule.stages - 1, count = std::min(micro_batches, schedule.micro_batches);
  bool updated = false;
  for (Sequence& sequence : schedule.ranks[schedule.rank_of_stage[stage]]) {
    CHECK(sequence.lead == 0 && sequence.tail == 0, "steps that end with a flush");
    mark_deferring(sequence, stage, schedule.micro_batches, count);
    const Op later = {.kind = OpKind::W, .stage = stage, .loss = stage, .defers = true};
    updated = insert_before_updates(sequence, stage, {.ops = {later}, .repeats = count}) || updated;
  }
  CHECK(updated, "an update of the last stage");
}

void mark_last_backwards(Schedule& schedule) {
  for (std::vector<Sequence>& rank : schedule.ranks) {
    for (Sequence& sequence : rank) mark(sequence);
  }
}

}  // namespace interlock
