// Interleaved 1F1B, fused, without bubbles or spread evenly in time: 1F1B over stages in loops.
// SPDX-License-Identifier: Apache-2.0
//
// With p ranks and v stages (chunks) a rank, a round of g micro-batches goes through a chunk before
// the next takes them, g = p if nothing is said: forward k of a rank is of chunk k / g % v,
// micro-batch k / (g v) * g + k % g; the last round may have fewer, but p. Backwards are counted
// likewise, last chunk first. After its warm-up rank r runs one forward and one backward in turn.
// Fused, the warm-up has 2 (p - r - 1) + (v - 1) g forwards, as in Megatron-LM; with one chunk
// p - r - 1, the plain 1F1B that Megatron-LM then runs. Zero bubble has p - r - 1 + (v - 1) g, and
// weight halves r behind their input halves. Fused pairs, in which tokens of one micro-batch pass
// to experts beside kernels of another, have one forward more ahead. Rounds of more than p leave
// messages between chunks time, and stash (v - 1)(g - p) chunks more.
//
// PipeOffload has no rounds: each micro-batch comes to chunk c k = p/2 (rounded up) forwards of the
// rank after it came to chunk c - 1, or one more, so that a rank does a forward, an input half and
// a weight half in turn, of one chunk after the other. That holds about half of the stash of rounds
// of p, and what each chunk holds hardly changes with time; so what the first chunks keep longest
// can leave for the host, and less than its share of the memory is left.
// Sources: Narayanan et al., arXiv 2104.04473, section 2.2; Megatron-LM's
// megatron/core/pipeline_parallel/schedules.py (get_schedule_table, get_pp_rank_microbatches); Qi
// et al., arXiv 2401.10241, applied to interleaving in PyTorch's ScheduleInterleavedZeroBubble; Wan
// et al., arXiv 2503.01328, and its authors' code (github.com/sail-sg/zero-bubble-pipeline-
// parallelism, zerobubble/scheduler/group_interleaved_1f1b.py, groups of one).
#include <algorithm>
#include <numeric>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

struct Rules {
  int ahead = 0;        // forwards before the first backward
  int held = 0;         // weight halves behind input halves
  bool halves = false;  // every backward is two ops
  bool pairs = false;   // a forward and the backward behind it run as one
};

int round_of(const ScheduleInputs& inputs, int ranks) {
  return inputs.policy.round > 0 ? inputs.policy.round : ranks;
}

/// Returns op `k` of its kind on a rank with `stages`, one a chunk.
Op counted_op(const ScheduleInputs& inputs, OpKind kind, const std::vector<int>& stages, int k) {
  const int chunks = static_cast<int>(stages.size());
  const int round = round_of(inputs, inputs.stages / chunks);
  const int first = k / (round * chunks) * round;  // micro-batch of its round
  const int size = std::min(round, inputs.micro_batches - first), within = k - first * chunks;
  const int chunk = within / size;
  const int stage = stages[kind == OpKind::F ? chunk : chunks - 1 - chunk];
  return global_op(inputs, kind, stage, first + within % size);
}

Sequence interleaved_sequence(const ScheduleInputs& inputs, const std::vector<int>& stages,
                              const Rules& rules) {
  const int chunks = static_cast<int>(stages.size());
  const int count = inputs.micro_batches * chunks;  // of a kind
  const int ahead = std::min(rules.ahead, count), held = std::min(rules.held, count);
  RunWriter order;
  for (int k = 0; k < ahead; ++k) order.append({counted_op(inputs, OpKind::F, stages, k)});
  const int turns = chunks > 1 ? chunks * round_of(inputs, inputs.stages / chunks) : 1;
  order.append_turns(count, turns, [&](auto& body, int k) {
    const auto add = [&](OpKind kind, int number) {
      body.push_back(counted_op(inputs, kind, stages, number));
    };
    if (ahead + k < count) {
      add(OpKind::F, ahead + k);
      body.back().overlaps_next = rules.pairs;
    }
    if (!rules.halves) {
      const Op backward = counted_op(inputs, OpKind::B, stages, k);
      return append_backward(body, inputs, backward.stage, backward.micro_batch);
    }
    add(OpKind::I, k);
    if (k >= held) add(OpKind::W, k - held);
  });
  for (int k = count - held; k < count; ++k) {
    order.append({counted_op(inputs, OpKind::W, stages, k)});
  }
  order.append_updates(inputs, stages);
  return {order.take(), inputs.steps, inputs.micro_batches};
}

Schedule make_rounds(const ScheduleInputs& inputs,
                     Rules (*rules)(int after, int rank, int chunks, int round)) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const int chunks = static_cast<int>(stages[rank].size());
    Rules of_rank = rules(ranks - 1 - rank, rank, chunks, round_of(inputs, ranks));
    if (inputs.policy.passes_in_pairs && !of_rank.halves) {
      of_rank.pairs = true;
      ++of_rank.ahead;
    }
    schedule.ranks[rank] = {interleaved_sequence(inputs, stages[rank], of_rank)};
  }
  return schedule;
}

Schedule make_interleaved(const ScheduleInputs& inputs) {
  return make_rounds(inputs, [](int after, int, int chunks, int round) -> Rules {
    return {.ahead = chunks == 1 ? after : 2 * after + (chunks - 1) * round};
  });
}

Schedule make_interleaved_zero_bubble(const ScheduleInputs& inputs) {
  return make_rounds(inputs, [](int after, int rank, int chunks, int round) -> Rules {
    return {.ahead = after + (chunks - 1) * round, .held = rank, .halves = true};
  });
}

/// The passes of a rank by cells of a forward's time: three for each chunk, of which one is for a
/// forward, one for an input half and one for the weight half behind it.
struct SpreadPass {
  int cell = 0;  // of the first micro-batch, after the rank's first forward
  OpKind kind = OpKind::F;
  int chunk = 0;
};

/// Returns the passes of micro-batch 0 on a rank, in the order in which a turn has them.
std::vector<SpreadPass> spread_passes(int ranks, int rank, int chunks) {
  const int apart = (ranks + 1) / 2, shared = std::gcd(chunks, apart), period = 3 * chunks;
  // So that no two chunks have the same cells of a turn.
  const auto cell_of = [&](int chunk) { return 3 * (apart * chunk + chunk / (chunks / shared)); };
  const int back = cell_of(chunks - 1) + 3 * (ranks - 1 - rank) + 1;
  std::vector<SpreadPass> passes;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    passes.push_back({cell_of(chunk), OpKind::F, chunk});
    const int input = back + cell_of(chunks - 1 - chunk);
    passes.push_back({input, OpKind::I, chunk});
    passes.push_back({input + 1, OpKind::W, chunk});
  }
  std::sort(passes.begin(), passes.end(), [&](const SpreadPass& a, const SpreadPass& b) {
    return a.cell % period < b.cell % period;
  });
  return passes;
}

Schedule make_pipeoffload(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const int chunks = static_cast<int>(stages[rank].size()), period = 3 * chunks;
    const std::vector<SpreadPass> passes = spread_passes(ranks, rank, chunks);
    int last = 0;  // the turn in which a micro-batch ends, after the one in which it begins
    for (const SpreadPass& pass : passes) last = std::max(last, pass.cell / period);
    RunWriter order;
    for (int turn = 0; turn < inputs.micro_batches + last; ++turn) {
      std::vector<Op> body;
      for (const SpreadPass& pass : passes) {
        const int stage = stages[rank][pass.chunk], micro_batch = turn - pass.cell / period;
        if (micro_batch < 0 || micro_batch >= inputs.micro_batches) continue;
        body.push_back(global_op(inputs, pass.kind, stage, micro_batch));
      }
      order.append(body);
    }
    order.append_updates(inputs, stages[rank]);
    schedule.ranks[rank] = {{order.take(), inputs.steps, inputs.micro_batches}};
  }
  return schedule;
}

/// With one chunk the order is plain 1F1B, whose pairs would wait for each other.
std::string several_chunks_problem(const ScheduleShape& shape) {
  if (shape.ranks == 1 || shape.stages > shape.ranks) return "";
  return "has no other micro-batch to run beside each with one stage a rank; expected several "
         "(chunks)";
}

/// Says what is wrong with rounds that a scenario sets. Source: the checks of
/// forward_backward_pipelining_with_interleaving in Megatron-LM's schedules.py.
std::string set_rounds_problem(const ScheduleShape& shape) {
  const auto got = "got " + std::to_string(shape.round);
  if (shape.round < shape.ranks || shape.round > shape.micro_batches) {
    return "has a \"round\" that leaves ranks waiting, or is longer than a step; expected from " +
           std::to_string(shape.ranks) + ", the ranks, to the " +
           std::to_string(shape.micro_batches) + " micro-batches, " + got;
  }
  const int last = shape.micro_batches % shape.round;
  if (last == 0 || last >= shape.ranks) return "";
  return "has a last round of " + std::to_string(last) +
         " micro-batches, fewer than ranks, which wait; expected a \"round\" that leaves none or " +
         std::to_string(shape.ranks) + " of " + std::to_string(shape.micro_batches) + ", " + got;
}

int every_round(const ScheduleShape& shape) { return shape.round > 0 ? shape.round : shape.ranks; }

std::string rounds_problem(const ScheduleShape& shape) {
  if (shape.stages == shape.ranks) return "";
  if (shape.round > 0) return set_rounds_problem(shape);
  const int over = shape.micro_batches % shape.ranks, below = shape.micro_batches - over;
  if (over == 0) return "";
  const std::string some = below > 0 ? std::to_string(below) + " or " : "";
  return "takes micro-batches through its chunks in rounds of one for each rank; expected a "
         "multiple of " +
         std::to_string(shape.ranks) + " such as " + some + std::to_string(below + shape.ranks) +
         ", got " + std::to_string(shape.micro_batches);
}

}  // namespace

ScheduleEntry schedules::interleaved() {
  return {.name = "interleaved",
          .flushes = true,
          .rounds = true,
          .layout = StageLayout::Loop,
          .chunks = 2,
          .summary = "1f1b over several stages a rank, laid in loops: less idle, more messages",
          .source = "Megatron-LM, arXiv 2104.04473",
          .make = make_interleaved,
          .problem = rounds_problem,
          .pair_problem = several_chunks_problem,
          .period = every_round,
          .bubble = formulas::kHalfFlush,
          .stashed = {"p + (p - 1)/2",
                      [](const PipelineShape& s) { return s.devices + (s.devices - 1) / 2.0; }}};
}

// Stages half as long leave half of what zb-h1 leaves.
ScheduleEntry schedules::interleaved_zero_bubble() {
  return {.name = "interleaved-zb",
          .split_backward = true,
          .flushes = true,
          .rounds = true,
          .layout = StageLayout::Loop,
          .chunks = 2,
          .summary = "interleaved, with weight gradients held back as in zb-h1",
          .source = "PyTorch's ScheduleInterleavedZeroBubble, after arXiv 2401.10241",
          .make = make_interleaved_zero_bubble,
          .problem = rounds_problem,
          .period = every_round,
          .bubble = {"(p - 1) / (6m + p - 1)",
                     [](const PipelineShape& s) {
                       return formulas::share(s.devices - 1, 6.0 * s.micro_batches);
                     }},
          .stashed = formulas::kDevices};
}

// In cells, of which a micro-batch has six with two chunks.
ScheduleEntry schedules::pipeoffload() {
  return {.name = "pipeoffload",
          .split_backward = true,
          .flushes = true,
          .for_hosts = true,
          .layout = StageLayout::Loop,
          .chunks = 2,
          .summary =
              "interleaved, spread evenly in time: half of its stash, less where it leaves "
              "for hosts",
          .source = "PipeOffload, arXiv 2503.01328",
          .make = make_pipeoffload,
          .period = every_micro_batch,
          .bubble = {"(7p - 10) / (12m + 7p - 10), p/2 even",
                     [](const PipelineShape& s) {
                       const int p = s.devices, even = (p + 1) / 2 % 2 == 0 ? 1 : 0;
                       const int idle = std::max(3 * (p - 1), (7 * p - 8) / 2 - even);
                       return formulas::share(idle, 6.0 * s.micro_batches);
                     }},
          .stashed = {"3p/4 + 1/2, p/2 even", [](const PipelineShape& s) {
                        const int p = s.devices, even = (p + 1) / 2 % 2 == 0 ? 1 : 0;
                        return ((3 * p + 1) / 2 + even) / 2.0;
                      }}};
}

}  // namespace interlock
