// Lowering: each compute op becomes the instructions around it.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: for each rank, each sequence becomes a stream, each run a segment, each op a handful of
// instructions (receive what it reads, take memory, compute, give memory back, send what it made).
// Then durations are rounded to a common tick, and wires that share a link are marked.
#include "sim/lower/lower.h"

#include <algorithm>

#include "base/error.h"
#include "sim/lower/known_ops.h"
#include "sim/lower/op_lowering.h"
#include "sim/lower/unfold.h"
#include "sim/lower/wiring.h"
#include "sim/plan/orders/next_ops.h"
#include "sim/plan/vocabulary.h"
#include "sim/program/message_streams.h"
#include "sim/program/ticks.h"

namespace interlock {

namespace {

/// Updates that follow each other from op `first` of `run` on, in this run and the next ones.
int updates_in_a_row(const Sequence& sequence, std::size_t run, std::size_t first) {
  int updates = 0;
  for (; run < sequence.runs.size(); ++run, first = 0) {
    if (sequence.runs[run].repeats <= 0) continue;
    for (std::size_t i = first; i < sequence.runs[run].ops.size(); ++i, ++updates) {
      if (sequence.runs[run].ops[i].kind != OpKind::U) return updates;
    }
  }
  return updates;
}

/// Returns the op that comes after op `index` of run `run` in every turn of both; null if none
/// does.
const Op* always_after(const Sequence& sequence, std::size_t run, std::size_t index) {
  const std::vector<Op>& ops = sequence.runs[run].ops;
  if (index + 1 < ops.size()) return &ops[index + 1];
  if (sequence.runs[run].repeats != 1) return nullptr;
  for (++run; run < sequence.runs.size(); ++run) {
    const Run& next = sequence.runs[run];
    if (next.repeats > 0 && !next.ops.empty()) return next.repeats == 1 ? &next.ops[0] : nullptr;
  }
  return nullptr;
}

/// Lowers ops, each kind of them once.
struct OpsAtWork {
  OpLowering ops;
  KnownOps known;
};

/// One turn of run `index`. Returns whether it ends in updates, as the run before did if
/// `updating`.
bool lower_run(OpsAtWork& lowering, const Sequence& sequence, std::size_t index, bool updating,
               bool fetches_ahead) {
  OpLowering& ops = lowering.ops;
  const std::vector<Op>& run = sequence.runs[index].ops;
  for (std::size_t i = 0; i < run.size(); ++i) {
    const bool update = run[i].kind == OpKind::U;
    if (update && !updating) ops.begin_updates(run[i], updates_in_a_row(sequence, index, i));
    updating = update;
    const std::size_t last = run[i].overlaps_next ? i + 1 : i;
    if (fetches_ahead) ops.expect(ops_after(sequence, index, last));
    if (last == i) {
      const Op* const next = always_after(sequence, index, i);
      if (next != nullptr) ops.receive_ahead(*next);
      lowering.known.append(run[i], nullptr, [&] { ops.append(run[i]); });
      continue;
    }
    CHECK(last < run.size(), "an op overlaps the next one of its run");
    lowering.known.append(run[i], &run[last], [&] { ops.append_pair(run[i], run[last]); });
    i = last;
  }
  return updating;
}

void lower_sequence(OpsAtWork& lowering, Program& program, const Sequence& sequence,
                    bool fetches_ahead) {
  bool updating = false;
  Stream stream{.first = static_cast<int>(program.segments.size()),
                .repeats = sequence.repeats,
                .stride = sequence.stride};
  for (std::size_t r = 0; r < sequence.runs.size(); ++r) {
    const Run& run = sequence.runs[r];
    const bool leads = r < static_cast<std::size_t>(sequence.lead);
    const bool trails = r + sequence.tail >= sequence.runs.size();
    if (run.repeats <= 0 || run.ops.empty()) continue;
    stream.lead += leads ? 1 : 0;
    stream.tail += trails ? 1 : 0;
    Segment segment{.first = static_cast<int>(program.instructions.size()),
                    .repeats = run.repeats,
                    .stride = run.stride};
    const int slices = program.slices;
    CHECK(slices == 1 || run.repeats == 1 || run.stride % slices == 0, "whole sequences in a loop");
    updating = lower_run(lowering, sequence, r, updating, fetches_ahead);
    segment.count = static_cast<int>(program.instructions.size()) - segment.first;
    program.segments.push_back(segment);
    ++stream.count;
  }
  program.streams.push_back(stream);
}

/// Updates to come that micro-batches in flight may add up gradients for, beside the next one:
/// they go back, and through heads, before updates of older ones are done.
int further_sums(const SchedulePolicy& policy) {
  return (policy.in_flight - 1 + policy.update_every - 1) / policy.update_every;
}

std::array<Bytes, kMemoryClasses> resident_bytes(const LowerInputs& inputs,
                                                 const std::vector<int>& stages) {
  std::array<Bytes, kMemoryClasses> bytes{};
  auto at = [&](MemoryClass memory_class) -> Bytes& {
    return bytes[static_cast<int>(memory_class)];
  };
  at(MemoryClass::Communication) = ring_buffers(inputs);
  for (const int stage : stages) {
    if (!keeps_state(inputs, stage)) continue;
    const Footprint& state = inputs.stages[stage].state;
    at(MemoryClass::Weights) += state.weights;
    at(MemoryClass::Gradients) +=
        state.gradients * (1 + further_sums(inputs.policy)) + state.made_gradients;
    at(MemoryClass::Optimizer) += state.optimizer + state.update_buffers;
    at(MemoryClass::Communication) += inputs.stages[stage].outer_buffer;
    at(MemoryClass::WeightVersions) += state.predicted;
    const auto& versions = inputs.schedule.weight_versions;
    if (!versions.empty()) at(MemoryClass::WeightVersions) += state.weights * versions[stage];
    const OpCosts costs(inputs);
    const int from = costs.before(stage);
    if (inputs.policy.replays && from >= 0) {
      at(MemoryClass::Boundary) += costs.sent_output(from, stage, 0) * inputs.policy.queue.depth;
    }
  }
  return bytes;
}

/// Returns true if ops of a stage exchange anything.
bool exchanges_inside(const StageCost& stage) {
  const auto costs = costs_of_ops(stage);
  return std::any_of(costs.begin(), costs.end(),
                     [](const OpCost* cost) { return !cost->exchanges.empty(); });
}

bool has_stash_on_hosts(const LowerInputs& inputs) {
  return std::any_of(inputs.stages.begin(), inputs.stages.end(),
                     [](const StageCost& stage) { return stage.host_stash > Bytes(0); });
}

/// Returns the share of the multiprocessors of `device` that carries tokens to experts. DeepEP
/// takes 20 of them. Source: DeepSeek-V3, arXiv 2412.19437, section 3.2.2.
double token_sms_of(const Device& device, const LowerInputs& inputs) {
  constexpr double kTaken = 20, kOfH800 = 132;
  if (inputs.token_sms || !inputs.passes_by_deepep) {
    return inputs.token_sms.value_or(device.collective_sms);
  }
  const int all = device.tiles.multiprocessors;
  return kTaken / (all > 0 ? all : kOfH800);
}

/// Returns what communication takes from the kernels of each simulated rank; nothing if it takes
/// nothing from any.
std::vector<Interference> interference_of(const LowerInputs& inputs) {
  std::vector<Interference> interference;
  for (const Coordinates& at : simulated_ranks(inputs.mesh, inputs.unfolded)) {
    const Device& device = machine_of(inputs.cluster, device_of(inputs.mesh, at)).device;
    interference.push_back({.collective_sms = device.collective_sms,
                            .message_sms = device.message_sms,
                            .token_sms = token_sms_of(device, inputs)});
    if (inputs.memory_contention) interference.back().memory_bandwidth = device.memory_bandwidth;
  }
  const bool any = std::any_of(interference.begin(), interference.end(),
                               [](const Interference& one) { return one.any(); });
  return any ? interference : std::vector<Interference>();
}

/// Returns why a rank stands for devices of other machines than its own; or "".
std::string machine_problem(const LowerInputs& inputs) {
  if (!is_mixed(inputs.cluster)) return "";
  const Mesh& mesh = inputs.mesh;
  const std::vector<Coordinates> folded = folded_ranks(mesh, inputs.unfolded);
  for (const Coordinates& rank : simulated_ranks(mesh, inputs.unfolded)) {
    const int own = device_of(mesh, rank);
    for (const Coordinates& by : folded) {
      const int other = device_of(mesh, shifted(mesh, rank, by));
      const Machine &one = machine_of(inputs.cluster, own), &of = machine_of(inputs.cluster, other);
      if (&one == &of) continue;
      return "device " + std::to_string(other) + " (" + of.device.name +
             ") is of another machine than device " + std::to_string(own) + " (" + one.device.name +
             ")";
    }
  }
  return "";
}

/// Returns the first step of `schedule`, whose ranks have one order each.
StepOrder step_of(const Schedule& schedule) {
  StepOrder order{.stages = schedule.stages,
                  .copies = schedule.copies * schedule.replicas,
                  .micro_batches = schedule.micro_batches,
                  .rank_of_stage = schedule.rank_of_stage};
  for (const std::vector<Sequence>& rank : schedule.ranks) {
    CHECK(rank.size() == 1 && rank.front().lead == 0 && rank.front().tail == 0, "a loop of steps");
    Sequence step = rank.front();
    step.repeats = 1;
    order.ranks.push_back(expand(step));
  }
  return order;
}

/// Returns the program of `inputs`, whose replicas are unfolded.
Program lower_all(const LowerInputs& inputs, const Brevity& brevity) {
  const Schedule& schedule = inputs.schedule;
  const std::size_t stages = schedule.stages;
  CHECK(schedule.rank_of_stage.size() == stages, "a rank for each stage");
  CHECK(inputs.roles.size() == stages, "a role for each stage");
  CHECK(inputs.stages.size() == stages * schedule.slices, "a cost for each stage and slice");
  Program program;
  program.stages = schedule.stages;
  program.copies = schedule.copies;
  program.replicas = schedule.replicas;
  program.slices = schedule.slices;
  program.slice_counts = schedule.slice_counts;
  program.version_lag = schedule.version_lag;
  program.ahead = schedule.ahead;
  program.micro_batches = schedule.micro_batches;
  program.steps = schedule.steps;
  program.update_every = inputs.policy.update_every;
  program.pattern = schedule.pattern;
  program.memory_held = inputs.memory_held;
  program.interference = interference_of(inputs);
  program.ranks.resize(schedule.ranks.size());
  for (int stage = 0; stage < schedule.stages; ++stage) {
    program.ranks[schedule.rank_of_stage[stage]].stages.push_back(stage);
  }
  Wiring wiring(inputs, brevity.alone, program);
  OpsAtWork lowering = {{inputs, brevity, wiring, program}, {inputs, program}};
  OpLowering& ops = lowering.ops;
  const bool stash_on_hosts = has_stash_on_hosts(inputs);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    Rank& rank = program.ranks[r];
    rank.first_stream = static_cast<int>(program.streams.size());
    rank.streams = static_cast<int>(schedule.ranks[r].size());
    rank.resident = resident_bytes(inputs, rank.stages);
    if (!inputs.libraries.empty()) rank.libraries = inputs.libraries.at(r);
    for (const int stage : rank.stages) {
      if (!keeps_state(inputs, stage)) continue;
      rank.update_copies += inputs.stages[stage].state.update_copies;
      rank.host.optimizer += inputs.stages[stage].host_optimizer;
      rank.host.gradients += inputs.stages[stage].host_gradients;
    }
    for (const int stage : rank.stages) {
      if (schedule.weight_versions.empty()) break;
      rank.weight_versions = std::max(rank.weight_versions, 1 + schedule.weight_versions[stage]);
    }
    const bool fetches_ahead = rank.streams == 1 && stash_on_hosts;
    if (!fetches_ahead) ops.expect({});
    for (const Sequence& sequence : schedule.ranks[r]) {
      lower_sequence(lowering, program, sequence, fetches_ahead);
    }
    ops.finish_rank(static_cast<int>(r));
  }
  program.folding_problem = wiring.finish();
  if (program.folding_problem.empty()) program.folding_problem = machine_problem(inputs);
  const MessageOrder& messages = inputs.policy.messages;
  if (messages.lines != MessageOrder::Lines::Free && schedule.ranks.size() > 1) {
    add_message_streams(program, step_of(schedule), messages);
  }
  round_durations(program, inputs.most_ticks_per_second);
  return program;
}

/// Has exchanges beside kernels written out.
void keep_overlapped(const LowerInputs& inputs, Brevity& brevity) {
  for (const StageCost& stage : inputs.stages) {
    for (const OpCost* cost : costs_of_ops(stage)) {
      for (const Exchange& exchange : cost->exchanges) {
        if (exchange.overlapped || exchange.way != TokenWay::None)
          brevity.inside[static_cast<int>(exchange.axis)] = false;
      }
    }
  }
}

/// Returns whether ops wait in their middle for something whose time is not known beforehand:
/// weights that are gathered, room for gradients, or exchanges that are written out. What runs
/// beside their kernels runs beside such a wait, too.
bool waits_inside(const LowerInputs& inputs, const Brevity& brevity) {
  if (inputs.data_parallel.zero_stage >= 3 || has_stash_on_hosts(inputs)) return true;
  for (std::size_t s = 0; s < inputs.stages.size(); ++s) {
    const StageCost& stage = inputs.stages[s];
    const std::size_t of_copies = s % inputs.schedule.rank_of_stage.size();  // whatever the slice
    const int rank = inputs.schedule.rank_of_stage[of_copies];
    if (waits_for_buckets(inputs, stage)) return true;
    for (const OpCost* cost : costs_of_ops(stage)) {
      for (const Exchange& exchange : cost->exchanges) {
        const Mesh& mesh = mesh_of_layers(inputs, rank, exchange.layout);
        const bool alone = group_size(mesh, exchange.axis) == 1;
        if (!alone && !brevity.inside[static_cast<int>(exchange.axis)]) return true;
      }
    }
  }
  return false;
}

/// Returns whether exchanges may be left out of the program.
bool may_leave_out(const LowerInputs& inputs) {
  const bool any = std::any_of(inputs.stages.begin(), inputs.stages.end(), exchanges_inside);
  const auto& ranks = inputs.schedule.ranks;
  const bool waits_are_used = std::any_of(ranks.begin(), ranks.end(), [](const auto& sequences) {
    return sequences.size() > 1;  // another micro-batch computes meanwhile
  });
  // When a rendezvous is known depends on the waits inside the ops before it.
  const bool announces = inputs.policy.queue.kind == QueuePolicy::Kind::Rendezvous;
  return any && !waits_are_used && !announces;
}

/// Returns the axes along which exchanges need not be written out: nothing else uses their links,
/// of each group one member is simulated, and what they take is known as they are met. `links`: a
/// program that has every exchange once.
Brevity what_to_leave_out(const LowerInputs& inputs, const Program& links) {
  Brevity brevity;
  brevity.inside.fill(true);
  for (const Collective& collective : links.collectives) {
    const bool own = (!collective.shared && !collective.known_late) || !inputs.contention;
    const bool alone = own && links.communicators[collective.communicator].ranks.size() == 1;
    if (!alone) brevity.inside[static_cast<int>(collective.axis)] = false;
  }
  // A kernel slows down while communication is under way beside it, not while its op waits.
  if (!links.interference.empty()) return Brevity{};
  if (waits_inside(inputs, brevity)) keep_overlapped(inputs, brevity);
  return brevity;
}

/// Returns what is to be known of the links of `inputs`; works it out once for all programs that
/// share that. `brief`: exchanges may be left out.
KnownLinks links_of(const LowerInputs& inputs, bool brief) {
  const bool keeps = inputs.known_links && inputs.schedule.steps > 1;
  if (keeps && inputs.known_links->known) return *inputs.known_links;
  const Program links = lower_all(inputs, {.once = true});
  KnownLinks found{
      .known = true, .shared = shares_links(links), .folds = links.folding_problem.empty()};
  if (brief) found.left_out = what_to_leave_out(inputs, links).inside;
  if (keeps) *inputs.known_links = found;
  return found;
}

}  // namespace

Program lower(const LowerInputs& given) {
  LowerInputs inputs = unfold(given);
  slow_down(inputs);
  const auto reduces = [](const Mesh& mesh) {
    return mesh.replicas() > 1 || group_size(mesh, MeshAxis::ExpertData) > 1;
  };
  const bool any_reduces =
      inputs.layers.empty() ? reduces(inputs.mesh) : std::ranges::any_of(inputs.layers, reduces);
  if (any_reduces || !inputs.layouts.empty()) mark_last_backwards(inputs.schedule);
  if (has_stash_on_hosts(inputs)) {
    for (std::vector<Sequence>& rank : inputs.schedule.ranks) {
      if (rank.size() == 1) part_turns_at_backwards(rank.front());
    }
  }
  const bool brief = !inputs.written_out && may_leave_out(inputs);
  KnownLinks links;
  if (brief || !inputs.contention) links = links_of(inputs, brief);
  Brevity brevity{.inside = links.left_out};
  // If equal ranks do not do the same, it is unknown which of them meet.
  if (!inputs.contention) brevity.alone = !links.folds;
  Program program = lower_all(inputs, brevity);
  if (inputs.contention) return program;
  program.ignores_contention = (brief && links.shared) || shares_links(program);
  share_no_links(program);
  return program;
}

void share_no_links(Program& program) {
  for (Wire& wire : program.wires) wire.shared = false;
  for (Collective& collective : program.collectives) collective.shared = false;
}

}  // namespace interlock
