// Freezes the order of a simulated run, and writes turns on old inputs out.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/settled_program.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "validate/executors/unroll.h"

namespace interlock {
namespace {

bool replays(const Program& program) {
  return std::any_of(program.channels.begin(), program.channels.end(),
                     [](const Channel& channel) { return channel.replay >= 0; });
}

/// Returns whether two streams run ops of one stage.
bool shares_stages(const Program& program) {
  std::map<int, int> stream_of_stage;
  for (std::size_t s = 0; s < program.streams.size(); ++s) {
    const Stream& stream = program.streams[s];
    for (int i = stream.first; i < stream.first + stream.count; ++i) {
      const Segment& segment = program.segments[static_cast<std::size_t>(i)];
      for (int n = segment.first; n < segment.first + segment.count; ++n) {
        const Instruction& one = program.instructions[static_cast<std::size_t>(n)];
        if (one.code != Opcode::Compute) continue;
        const int stage = program.ops[static_cast<std::size_t>(one.index)].stage;
        const auto known = stream_of_stage.emplace(stage, static_cast<int>(s)).first;
        if (known->second != static_cast<int>(s)) return true;
      }
    }
  }
  return false;
}

/// The turns on old inputs that a rank made, each before the op of its own that comes next.
class Turns {
 public:
  Turns(const Program& program, const TraceLog& log) : program_(program) {
    spans_.resize(program.ranks.size());
    at_.resize(program.ranks.size());
    for (const Span& span : log.spans) spans_[static_cast<std::size_t>(span.rank)].push_back(span);
  }
  /// Appends to `code` those that `rank` made before its next own op.
  void append(int rank, std::vector<Instruction>& code) {
    const auto r = static_cast<std::size_t>(rank);
    for (; at_[r] < spans_[r].size() && is_turn(spans_[r][at_[r]]); ++at_[r]) {
      const Span& span = spans_[r][at_[r]];
      code.push_back({Opcode::Compute, span.op, span.micro_batch});
    }
  }
  void pass(int rank) { ++at_[static_cast<std::size_t>(rank)]; }

 private:
  bool is_turn(const Span& span) const {
    return program_.ops[static_cast<std::size_t>(span.op)].replay;
  }
  const Program& program_;
  std::vector<std::vector<Span>> spans_;  // by rank
  std::vector<std::size_t> at_;
};

/// Returns `program` without loops, whose ranks make the turns of `log` before they receive.
Program with_turns(const Program& program, const TraceLog& log) {
  Program written = program;
  written.instructions.clear();
  written.segments.clear();
  Turns turns(program, log);
  const std::vector<UnrolledStream> streams = unroll(program);
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const int rank = streams[s].rank;
    CHECK(program.ranks[static_cast<std::size_t>(rank)].streams == 1,
          "a rank that learns from old inputs has one stream");
    const auto first = static_cast<std::int32_t>(written.instructions.size());
    for (const Instruction& one : streams[s].code) {
      const bool waits = one.code == Opcode::Receive &&
                         program.channels[static_cast<std::size_t>(one.index)].replay >= 0;
      if (waits) turns.append(rank, written.instructions);
      if (one.code == Opcode::Compute) turns.pass(rank);
      written.instructions.push_back(one);
    }
    const auto count = static_cast<std::int32_t>(written.instructions.size()) - first;
    written.streams[s] = {.first = static_cast<std::int32_t>(written.segments.size()), .count = 1};
    written.segments.push_back({.first = first, .count = count});
  }
  for (Channel& channel : written.channels) channel.replay = -1;
  return written;
}

}  // namespace

bool leaves_numbers_open(const Program& program) {
  return replays(program) || (chooses_order(program) && shares_stages(program));
}

Program settled(const Program& program, EngineKind engine) {
  if (!leaves_numbers_open(program)) return program;
  TraceLog log;
  run_program(program, engine, log_sink(log));
  if (replays(program)) return with_turns(program, log);
  return freeze(program, log);
}

}  // namespace interlock
