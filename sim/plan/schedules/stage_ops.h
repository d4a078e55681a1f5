// Parts that all schedule families share: the backward ops of a stage, and stages laid on ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/schedules/catalogue.h"

namespace interlock {

/// Appends the backward of `micro_batch` on `stage`: every traversal of its role, nearest loss
/// first. A traversal without weight gradients is one I; the last one is B, or, where the backward
/// is split and the stage below waits for the input gradient, I and W.
void append_backward(std::vector<Op>& ops, const ScheduleInputs& inputs, int stage,
                     int micro_batch);

/// Returns a schedule with sizes and ranks filled in, and no order yet.
Schedule empty_schedule(const ScheduleInputs& inputs);
int rank_count(const ScheduleInputs& inputs);

/// Returns an op of global training; I, B and W use the one loss that reaches the stage.
Op global_op(const ScheduleInputs& inputs, OpKind kind, int stage, int micro_batch);

/// Writes an order body by body; a body that repeats the one before, a stride of micro-batches
/// later, becomes one more turn of a loop. So a family writes what happens, in plain loops, and the
/// schedule stays as small as its pattern.
/// Example: append({F0}), append({F1}) and append({F2}) make one run {F0}, repeats 3, stride 1.
/// Then append({B0, F3}) and append({B1, F4}) make another, {B0, F3}, repeats 2, stride 1.
class RunWriter {
 public:
  /// `unit`: of which strides of loops are multiples, as of the slices of a sequence.
  explicit RunWriter(int unit = 1) : unit_(unit) {}
  void append(std::span<const Op> body);
  void append(std::initializer_list<Op> body) { append(std::span(body.begin(), body.size())); }
  /// Appends a loop of `repeats` turns of `body`.
  void append_loop(std::vector<Op> body, int repeats, int stride);
  /// Appends turns 0, 1, ... as `add_turn` writes them, which repeat for a while within a round of
  /// turns, and rounds repeat: the bodies are turns, or rounds if there are fewer turns in a round
  /// than there would be loops of turns.
  using AddTurn = std::function<void(std::vector<Op>& body, int turn)>;
  void append_turns(int turns, int round, const AddTurn& add_turn);
  /// Appends the updates of `stages` at the end of a step, in order of stages of the model: ranks
  /// that hold copies of the same stages then exchange gradients in the same order.
  void append_updates(const ScheduleInputs& inputs, std::span<const int> stages);
  std::vector<Run> take() { return std::move(runs_); }

 private:
  void append_rounds(int turns, int round, const AddTurn& add_turn);
  bool continues(const Run& run, std::span<const Op> body) const;
  int unit_;
  std::vector<Run> runs_;
};

/// Returns the stages of each rank, in order.
std::vector<std::vector<int>> stages_of_ranks(const ScheduleInputs& inputs);

/// Returns the chunk that a rank of a ring owns: so they lie that each comes to rank 0 in its turn.
/// Example: ranks 0 to 3 own chunks 0, 3, 2, 1, which pass by rank 0 as 0, 1, 2, 3.
constexpr int chunk_of_rank(int rank, int ranks) { return (ranks - rank) % ranks; }

/// Says what is wrong with a shape for two copies of the model in opposite directions, as
/// ScheduleEntry::problem says it.
std::string mirrored_problem(const ScheduleShape& shape);
/// Does so for units of as many micro-batches as ranks.
std::string whole_units_problem(const ScheduleShape& shape);
/// Does so for one V: a stage on the way down and one on the way up.
std::string one_v_problem(const ScheduleShape& shape);

/// Periods of steady loops, see ScheduleEntry::period.
int every_micro_batch(const ScheduleShape& shape);
int every_rank(const ScheduleShape& shape);

/// Returns a schedule whose ranks hold `of_stage(inputs, stage)` for each of their stages.
Schedule one_sequence_a_stage(const ScheduleInputs& inputs,
                              Sequence (*of_stage)(const ScheduleInputs&, int stage));

}  // namespace interlock
