// A run as execution traces: what it realised, walked rank by rank.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/execution_trace.h"

#include <algorithm>

#include "base/error.h"
#include "sim/engines/engines.h"
#include "sim/workloads/rank_walk.h"

namespace interlock {
namespace {

/// Refuses what no graph of nodes can say.
void check_words(const Program& program) {
  for (const Channel& channel : program.channels) {
    if (channel.replay >= 0) {
      throw Error("how often its stages replay depends on times, which such a trace cannot say");
    }
    if (!channel.flows.empty()) {
      throw Error(
          "stages of different layouts send over several links at once, which is no message from "
          "one rank to another");
    }
  }
  for (const Collective& collective : program.collectives) {
    const bool shifts =
        collective.kind == CollectiveKind::Shift || collective.kind == CollectiveKind::Halo;
    if (shifts) {
      throw Error("neighbours shift tensors or halos, which such a trace has no collective for");
    }
  }
}

void check_whole(const Program& program, const TraceLog& log) {
  std::int64_t ops = 0;
  for (const Rank& rank : program.ranks) {
    visit_rank(program, rank, [&](const Cursor& cursor) {
      if (cursor.instruction().code == Opcode::Compute) ++ops;
    });
  }
  if (ops == std::ssize(log.spans)) return;
  throw Error("the run is too long to be kept whole; expected fewer steps, e.g. training.steps 1");
}

std::vector<bool> events_of_several_ranks(const Program& program) {
  constexpr int kNobody = -1;
  std::vector<int> recorder(program.events.size(), kNobody);
  std::vector<bool> crosses(program.events.size(), false);
  for (int r = 0; r < static_cast<int>(program.ranks.size()); ++r) {
    visit_rank(program, program.ranks[r], [&](const Cursor& cursor) {
      const Instruction& instruction = cursor.instruction();
      if (instruction.code != Opcode::Record) return;
      const int before = std::exchange(recorder[instruction.index], r);
      if (before != kNobody && before != r) crosses[instruction.index] = true;
    });
  }
  return crosses;
}

std::vector<int> untaken_messages(const Program& program) {
  std::vector<int> untaken(program.channels.size(), 0);
  for (const Rank& rank : program.ranks) {
    visit_rank(program, rank, [&](const Cursor& cursor) {
      const Instruction& instruction = cursor.instruction();
      if (instruction.code == Opcode::Send) ++untaken[instruction.index];
      if (instruction.code == Opcode::Receive) --untaken[instruction.index];
    });
  }
  return untaken;
}

RealisedRun index_run(const Program& program, const TraceLog& log) {
  RealisedRun run{.program = freeze(program, log)};
  run.spans.resize(program.ranks.size());
  for (const Span& span : log.spans) run.spans[span.rank].push_back(&span);
  run.collectives.resize(program.collectives.size());
  for (const CollectiveSpan& span : log.collectives) {
    run.collectives[span.collective].push_back(&span);
  }
  for (auto& spans : run.collectives) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const auto* a, const auto* b) { return a->start < b->start; });
  }
  run.crosses = events_of_several_ranks(program);
  run.untaken = untaken_messages(program);
  return run;
}

}  // namespace

TraceNotes notes_on(const std::vector<ExecutionTrace>& traces) {
  TraceNotes notes;
  for (const ExecutionTrace& trace : traces) {
    for (const ExecutionNode& node : trace.nodes) {
      if (node.kind == NodeKind::Other) ++notes.others;
      const bool timeless = node.kind == NodeKind::Compute && node.duration <= Seconds(0);
      if (timeless && !node.op) ++notes.without_time;  // updates of ours may take none
    }
  }
  return notes;
}

std::vector<ExecutionTrace> execution_traces(const Program& program, const TraceLog& log,
                                             const std::vector<int>& devices) {
  check_words(program);
  check_whole(program, log);
  RealisedRun run = index_run(program, log);
  run.devices = devices;
  const TraceSteps steps{.stages = program.stages,
                         .micro_batches = program.micro_batches,
                         .steps = program.steps,
                         .update_every = program.update_every,
                         .measured = program.steps};
  std::vector<ExecutionTrace> traces(program.ranks.size());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    CHECK(static_cast<std::size_t>(devices[rank]) < traces.size(), "devices in use have no gaps");
    traces[devices[rank]] = {"", RankWalk(run, static_cast<int>(rank)).nodes(), steps};
  }
  return traces;
}

}  // namespace interlock
