// Chains: a stage takes one micro-batch through all its ops before the next.
// SPDX-License-Identifier: Apache-2.0
//
// Naive model parallelism, local and interlocking training are one family: forward, head, every
// gradient that passes (nearest loss first), update. What differs is the role of each stage. With
// several micro-batches in flight a stage has as many chains, each taking its share of the
// micro-batches in turn.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

std::vector<Op> chain_of(const ScheduleInputs& inputs, int stage, int micro_batch) {
  const StageRole& role = inputs.roles[stage].of(micro_batch);
  std::vector<Op> ops = {{OpKind::F, stage, micro_batch, stage}};
  if (role.runs_next_part) ops.push_back({OpKind::R, stage, micro_batch, stage});
  if (role.head) ops.push_back({OpKind::H, stage, micro_batch, stage});
  append_backward(ops, inputs, stage, micro_batch);
  if ((micro_batch + 1) % inputs.policy.update_every == 0) {
    ops.push_back({OpKind::U, stage, micro_batch, stage});
  }
  return ops;
}

/// Returns the micro-batches after which the pattern of chains, updates and readouts repeats.
std::int64_t body_length(const ScheduleInputs& inputs) {
  const std::int64_t updates =
      std::lcm<std::int64_t>(inputs.policy.update_every, inputs.policy.in_flight);
  const int of_gradients = inputs.roles.front().gradient_every;
  return std::lcm(std::lcm<std::int64_t>(updates, inputs.unroll), of_gradients);
}

/// Returns the chain that takes micro-batches first, first + in_flight, ... of the whole run. Its
/// loop is as long as the pattern of updates (and of whatever else asks for `unroll`) needs.
Sequence chain_sequence(const ScheduleInputs& inputs, int stage, int first) {
  const int total = inputs.steps * inputs.micro_batches;
  const int body = static_cast<int>(std::min<std::int64_t>(body_length(inputs), total));
  // With readouts, or several chains that update for each other, what surrounds an op depends on
  // its place in the body, so no two chains of it are alike.
  const bool alike = inputs.unroll == 1 && inputs.policy.in_flight == 1;
  auto chains = [&](int begin, int end) {
    RunWriter order;
    Run whole;
    for (int b = begin + first; b < end; b += inputs.policy.in_flight) {
      const std::vector<Op> chain = chain_of(inputs, stage, b);
      if (alike) order.append(chain);
      whole.ops.insert(whole.ops.end(), chain.begin(), chain.end());
    }
    return alike ? order.take() : std::vector<Run>{whole};
  };
  const std::vector<Run> rest = chains(total - total % body, total);
  Sequence sequence{chains(0, body), total / body, body, 0, static_cast<int>(rest.size())};
  sequence.runs.insert(sequence.runs.end(), rest.begin(), rest.end());
  return sequence;
}

Schedule make_chain(const ScheduleInputs& inputs) {
  Schedule schedule = one_sequence_a_stage(
      inputs, [](const ScheduleInputs& in, int stage) { return chain_sequence(in, stage, 0); });
  constexpr std::int64_t kNever = 1 << 30;  // a pattern that no run is long enough to repeat
  schedule.pattern = static_cast<int>(std::min(body_length(inputs), kNever));
  // A backward uses the weights that its forward used, so each further micro-batch in flight may
  // need a version of its own.
  schedule.weight_versions.assign(inputs.stages, inputs.policy.in_flight - 1);
  const int chains = std::min(inputs.policy.in_flight, inputs.steps * inputs.micro_batches);
  for (int first = 1; first < chains; ++first) {
    for (int stage = 0; stage < inputs.stages; ++stage) {
      schedule.ranks[inputs.rank_of_stage[stage]].push_back(chain_sequence(inputs, stage, first));
    }
  }
  return schedule;
}

}  // namespace

ScheduleEntry schedules::naive() {
  return {.name = "naive",
          .one_at_a_time = true,
          .other_backward = "naive-split",
          .summary = "one micro-batch at a time, one stage busy at a time",
          .source = "model parallelism",
          .make = make_chain,
          .bubble = {"1 - 1/p", [](const PipelineShape& s) { return 1 - 1.0 / s.devices; }},
          .stashed = formulas::kOne};
}

ScheduleEntry schedules::naive_split() {
  return {.name = "naive-split",
          .split_backward = true,
          .one_at_a_time = true,
          .other_backward = "naive",
          .summary = "naive, but input gradients are sent before weight gradients are made",
          .source = "2BP, arXiv 2405.18047",
          .make = make_chain,
          .bubble = {"1 - 3 / (2p + 1)",
                     [](const PipelineShape& s) { return 1 - 3.0 / (2 * s.devices + 1); }},
          .stashed = formulas::kOne};
}

ScheduleEntry schedules::eager() {
  return {.name = "eager",
          .trains = Trains::Partial,
          .split_backward = true,
          .limits_in_flight = true,
          .summary = "every gradient is sent the moment it exists; each stage updates on its own",
          .source = "Interlocking Backpropagation, JMLR 23(171), 2022, with eager sends",
          .make = make_chain,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kOne};
}

ScheduleEntry schedules::decoupled_greedy() {
  return {.name = "dgl",
          .trains = Trains::Local,
          .updates_each = true,
          .replays = true,
          .queue = 4,
          .layout = StageLayout::OneEach,
          .summary = "local training that learns again from a replay buffer rather than wait",
          .source = "Belilovsky et al., Decoupled Greedy Learning, arXiv 1901.08164",
          .make = make_chain,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kOne};
}

ScheduleEntry schedules::ppll() {
  return {.name = "ppll",
          .trains = Trains::Local,
          .queue = 4,
          .summary = "local training whose stages hand activations on through deeper queues",
          .source = "PPLL, arXiv 2411.12780",
          .make = make_chain,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kOne};
}

ScheduleEntry schedules::gradient_lists() {
  return {.name = "list",
          .trains = Trains::NWise,
          .sends_lists = true,
          .summary = "gradients travel as one list a stage, as in the authors' N-wise class",
          .source = "Interlocking Backpropagation, JMLR 23(171), 2022",
          .make = make_chain,
          .bubble = formulas::kNoBubble,
          .stashed = formulas::kOne};
}

}  // namespace interlock
