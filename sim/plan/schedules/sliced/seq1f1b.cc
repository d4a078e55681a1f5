// Seq1F1B: 1F1B whose unit of work is a slice of the tokens of each sequence.
// SPDX-License-Identifier: Apache-2.0
//
// Forwards go through the slices of a micro-batch in order, backwards in reverse, since gradients
// of keys and values come from later slices. A stage runs as many slices ahead as there are stages
// after it, and the slices of a micro-batch but one: its first backward is of the last slice. Of k
// slices a stage keeps p + k - 1 at most, of whole micro-batches p. Where micro-batches differ in
// their slices, all stages run ahead by those of the largest.
// Source: Sun et al., Seq1F1B, arXiv 2406.03488, section 3.2; the forwards ahead, p - s - 2 + k,
// also in github.com/sail-sg/zero-bubble-pipeline-parallelism at 39f2c18, scheduler/seq1f1b.py.
#include <algorithm>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

Sequence seq1f1b_sequence(const ScheduleInputs& inputs, int stage) {
  const int round = inputs.slices, total = inputs.micro_batches;
  const std::vector<int> counts =
      inputs.slice_counts.empty() ? std::vector{round} : inputs.slice_counts;
  std::vector<int> reversed;  // (slices of a round)
  for (const int count : counts) {
    const int begin = static_cast<int>(reversed.size());
    for (int slice = count - 1; slice >= 0; --slice) reversed.push_back(begin + slice);
  }
  const int most = *std::max_element(counts.begin(), counts.end());
  const int ahead = std::min(inputs.stages - 2 - stage + most, total);
  // Slices of a round cost differently, so what repeats is whole rounds.
  std::vector<Op> body;
  body.reserve(static_cast<std::size_t>(std::max(ahead, 0)));
  for (int k = 0; k < ahead; ++k) body.push_back(global_op(inputs, OpKind::F, stage, k));
  RunWriter order;
  order.append(body);
  for (int first = 0; first < total; first += round) {
    body.clear();
    for (int k = first; k < first + round; ++k) {
      if (ahead + k < total) body.push_back(global_op(inputs, OpKind::F, stage, ahead + k));
      append_backward(body, inputs, stage, first + reversed[k - first]);
    }
    order.append(body);
  }
  const int stages[] = {stage};
  order.append_updates(inputs, stages);
  return {order.take(), inputs.steps, total};
}

}  // namespace

ScheduleEntry schedules::seq1f1b() {
  return {
      .name = "seq1f1b",
      .flushes = true,
      .slices = true,
      .summary = "1f1b by slices of the tokens of a sequence, not by whole micro-batches",
      .source = "Sun et al., Seq1F1B, arXiv 2406.03488",
      .make = [](const ScheduleInputs& in) { return one_sequence_a_stage(in, seq1f1b_sequence); },
      .bubble = {"(p - 1) / (4m + p - 1), of 4 slices",
                 [](const PipelineShape& s) {
                   return formulas::share(s.devices - 1, 4.0 * s.micro_batches);
                 }},
      .stashed = {"(p + 3)/4, of 4 slices",
                  [](const PipelineShape& s) { return (s.devices + 3) / 4.0; }}};
}

}  // namespace interlock
