// Choosing and running an engine.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/engines.h"

#include <algorithm>

#include "base/error.h"
#include "base/module_file.h"
#include "sim/engines/contention.h"
#include "sim/engines/event_loop.h"
#include "sim/processes/unavailable.h"
#include "sim/program/cursor.h"
#include "sim/sharing/binding_links.h"

namespace interlock {

namespace {

using SimGridRun = void (*)(const Program&, const TraceSink&, RunSummary&);

#ifdef INTERLOCK_NO_SIMGRID
constexpr bool kHasSimGrid = false;
#else
constexpr bool kHasSimGrid = true;
#endif

/// Opens the module, see module_file. It brings SimGrid, which takes tens of
/// milliseconds to load, so that runs without contention do not pay for it.
SimGridRun simgrid_module() {
  static const SimGridRun run = [] {
    const ModuleEntry entry = open_module("libinterlock_simgrid.so", "interlock_run_simgrid");
    if (entry.address == nullptr) {
      throw Unavailable("cannot open the SimGrid engine " + entry.path + ": " + entry.problem +
                        "; expected it beside the program, or in ../lib/interlock, and memory " +
                        "for it and SimGrid's libraries");
    }
    return reinterpret_cast<SimGridRun>(entry.address);
  }();
  return run;
}

/// Throws: Error if this build has no SimGrid.
void require_simgrid() {
#ifdef __EMSCRIPTEN__
  throw Error("a page has no SimGrid; expected \"auto\" or \"native\" as engine, whose times are " +
              std::string("the same, or interlock studio without --out"));
#elif defined(INTERLOCK_NO_SIMGRID)
  throw Error("this build has no SimGrid: when it was configured, " INTERLOCK_NO_SIMGRID
              "; expected \"auto\" or \"native\" as engine; or install it (Debian: "
              "libsimgrid-dev), then configure and build again");
#endif
}

/// Returns true if ranks have several streams in a fixed order of ops, but no order in which these
/// hand over messages and join collectives: LongestPath, whose streams run ahead, needs one.
bool lacks_wire_order(const Program& program) {
  return program.wire_order.empty() &&
         std::any_of(program.ranks.begin(), program.ranks.end(),
                     [](const Rank& rank) { return rank.streams > 1 && !rank.order.empty(); });
}

}  // namespace

RunSummary run_event_loop(const Program& program, const TraceSink& sink) {
  EventLoop loop(program, sink);
  if (shares_links(program)) {
    run_with_contention(program, loop);
  } else {
    loop.start();
    while (loop.next_time() < EventLoop::kForever) loop.run_instant();
  }
  return loop.finish("native");
}

RunSummary run_native(const Program& program, const TraceSink& sink) {
  const bool in_time_order = shares_links(program) || chooses_order(program) ||
                             !program.interference.empty() || lacks_wire_order(program);
  return in_time_order ? run_event_loop(program, sink) : run_longest_path(program, sink);
}

void load_simgrid() {
  require_simgrid();
  simgrid_module();
}

RunSummary run_simgrid(const Program& program, const TraceSink& sink) {
  CHECK(!crosses_again(program), "a program whose ways are routes of SimGrid");
  RunSummary summary;
  simgrid_module()(program, sink, summary);
  return summary;
}

EngineKind choose_engine(EngineKind kind, const Program& program) {
  if (kind != EngineKind::Auto) return kind;
  const bool simgrid = kHasSimGrid && shares_links(program) && !crosses_again(program);
  return simgrid ? EngineKind::SimGrid : EngineKind::Native;
}

RunSummary run_program(const Program& program, EngineKind kind, const TraceSink& sink) {
  if (choose_engine(kind, program) == EngineKind::Native) return run_native(program, sink);
  require_simgrid();
  return run_simgrid_apart(program, sink);
}

Program freeze(const Program& program, const TraceLog& log) {
  Program frozen = program;
  for (Rank& rank : frozen.ranks) rank.order.clear();
  frozen.wire_order.assign(program.wires.size(), {});
  // Which stream of its rank runs an op: the one whose cursor would come to it.
  std::vector<Cursor> cursors;
  for (const Stream& stream : program.streams) cursors.emplace_back(program, stream);
  auto skip_to_compute = [](Cursor& cursor) {
    while (!cursor.done() && cursor.instruction().code != Opcode::Compute) cursor.next();
  };
  const auto stream_of = [&](const Span& span) {
    const Rank& rank = program.ranks[span.rank];
    for (int number = 0; number < rank.streams; ++number) {
      Cursor& cursor = cursors[rank.first_stream + number];
      skip_to_compute(cursor);
      if (cursor.done() || cursor.instruction().index != span.op ||
          cursor.micro_batch() != span.micro_batch) {
        continue;
      }
      cursor.next();
      return number;
    }
    CHECK(false, "a span that no stream would run next");
  };
  for (const Span& span : log.spans) {
    if (program.ops[span.op].replay) continue;  // depends on times, not on any order
    frozen.ranks[span.rank].order.push_back(stream_of(span));
  }
  for (const Transfer& transfer : log.transfers) {
    frozen.wire_order[program.channels[transfer.channel].wire].push_back(transfer.channel);
  }
  return frozen;
}

Program freeze(const Program& program, EngineKind kind) {
  TraceLog log;
  run_program(program, kind, log_sink(log));
  return freeze(program, log);
}

}  // namespace interlock
