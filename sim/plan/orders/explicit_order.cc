// Explicit order: the ops of one step written or found by a search, repeated for every step.
// SPDX-License-Identifier: Apache-2.0
//
// An order is a plain list; runs are found again by looking, at each op, for the body that repeats
// over the most ops, so that a schedule read from a file is as small as one that was written.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {

namespace {

constexpr std::size_t kLongestBody = 64;

/// How often the body of `length` ops at `first` repeats, each time `stride` later: a multiple of
/// `unit`.
struct Repeats {
  int count = 1, stride = 1;
};

Repeats count_repeats(const std::vector<Op>& ops, std::size_t first, std::size_t length, int unit) {
  if (first + 2 * length > ops.size() || ops[first + length - 1].overlaps_next) return {};
  const int stride = ops[first + length].micro_batch - ops[first].micro_batch;
  std::size_t same = 0;  // ops that equal the one a body earlier
  for (std::size_t i = first + length; i < ops.size(); ++i, ++same) {
    Op expected = ops[i - length];
    expected.micro_batch += stride;
    if (stride == 0 || stride % unit != 0 || expected != ops[i]) break;
  }
  return {1 + static_cast<int>(same / length), stride};
}

/// Returns the longest run that starts at `first`; of equally long ones that with the shortest
/// body.
Run run_at(const std::vector<Op>& ops, std::size_t first, int unit) {
  std::size_t best_length = 1, best_covered = 1;
  Repeats best;
  for (std::size_t length = 1; length <= kLongestBody; ++length) {
    const Repeats repeats = count_repeats(ops, first, length, unit);
    const std::size_t covered = length * repeats.count;
    if (repeats.count < 2 || covered <= best_covered) continue;
    best_length = length;
    best_covered = covered;
    best = repeats;
  }
  while (best_covered == best_length && ops[first + best_length - 1].overlaps_next) {
    best_covered = ++best_length;
  }
  const auto begin = ops.begin() + static_cast<std::ptrdiff_t>(first);
  return {{begin, begin + static_cast<std::ptrdiff_t>(best_length)}, best.count, best.stride};
}

std::vector<Run> compress(const std::vector<Op>& ops, int unit) {
  std::vector<Run> runs;
  for (std::size_t at = 0; at < ops.size();) {
    runs.push_back(run_at(ops, at, unit));
    at += runs.back().ops.size() * static_cast<std::size_t>(runs.back().repeats);
  }
  return runs;
}

/// `ops` with an update at the end for each stage of `rank` that has none, in order of stages of
/// the model: ranks that hold copies of the same stages then exchange gradients in one order.
std::vector<Op> with_updates(std::vector<Op> ops, const ScheduleInputs& inputs, int rank) {
  for (int i = 0; i < inputs.stages; ++i) {
    const int stage = i / inputs.copies + i % inputs.copies * (inputs.stages / inputs.copies);
    const bool updated = std::any_of(ops.begin(), ops.end(), [stage](const Op& op) {
      return op.kind == OpKind::U && op.stage == stage;
    });
    if (inputs.rank_of_stage[stage] != rank || updated) continue;
    ops.push_back({OpKind::U, stage, inputs.micro_batches - 1, stage});
  }
  return ops;
}

Schedule make_explicit_order(const ScheduleInputs& inputs) {
  CHECK(inputs.policy.order, "an explicit order is there");
  Schedule schedule = empty_schedule(inputs);
  const auto& order = *inputs.policy.order;
  CHECK(order.size() == schedule.ranks.size(), "an order for each rank");
  // Micro-batches in flight have channels of their own and wait for each other's updates.
  const SchedulePolicy& policy = inputs.policy;
  const int unit = policy.in_flight > 1 ? std::lcm(policy.in_flight, policy.update_every) : 1;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const std::vector<Op> ops = with_updates(order[rank], inputs, static_cast<int>(rank));
    schedule.ranks[rank] = {{compress(ops, unit), inputs.steps, inputs.micro_batches}};
  }
  // As in chains: each further micro-batch in flight may need a version of its own.
  if (inputs.policy.in_flight > 1) {
    schedule.weight_versions.assign(inputs.stages, inputs.policy.in_flight - 1);
  }
  return schedule;
}

}  // namespace

ScheduleEntry schedules::searched_order() {
  return {
      .name = "auto",
      .trains = Trains::Any,
      .order = OrderSource::Search,
      .limits_in_flight = true,
      .summary = "an order found for these times and this memory, by list scheduling and search",
      .source = "after the automatic schedules of Zero Bubble, arXiv 2401.10241",
      .make = make_explicit_order};
}

ScheduleEntry schedules::file_order() {
  return {.name = "file",
          .order = OrderSource::File,
          .flushes = true,
          .overlaps = true,
          .summary = "the order that a CSV file writes, {\"file\": \"order.csv\"}",
          .source = "the form of PyTorch's torch.distributed.pipelining",
          .make = make_explicit_order};
}

}  // namespace interlock
