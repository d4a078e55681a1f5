// Programs side by side, and their traces parted again.
// SPDX-License-Identifier: Apache-2.0
#include "sim/jobs/joined_program.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "sim/lower/links/shared_links.h"
#include "sim/program/ticks.h"

namespace interlock {
namespace {

/// Moves `number` on, unless it stands for nothing.
void shift(int& number, int by) {
  if (number >= 0) number += by;
}

int size_of(const auto& parts) { return static_cast<int>(parts.size()); }

JobBegin end_of(const Program& program) {
  return {.rank = size_of(program.ranks),
          .stream = size_of(program.streams),
          .segment = size_of(program.segments),
          .instruction = size_of(program.instructions),
          .stage = program.stages,
          .op = size_of(program.ops),
          .channel = size_of(program.channels),
          .wire = size_of(program.wires),
          .buffer = size_of(program.buffers),
          .event = size_of(program.events),
          .collective = size_of(program.collectives),
          .communicator = size_of(program.communicators)};
}

/// Adds one job behind those that are there.
class Joiner {
 public:
  Joiner(const Program& job, JoinedProgram& joined)
      : job_(job), all_(joined.program), begin_(end_of(joined.program)) {
    joined.begins.push_back(begin_);
  }

  void add_code() {
    for (Instruction one : job_.instructions) {
      one.index += first_of(one.code);
      all_.instructions.push_back(one);
    }
    for (Rank one : job_.ranks) {
      CHECK(one.order.empty(), "jobs that are not frozen");
      one.first_stream += begin_.stream;
      for (int& stage : one.stages) stage += begin_.stage;
      all_.ranks.push_back(std::move(one));
    }
    for (OpInfo one : job_.ops) {
      one.stage += begin_.stage;
      one.loss += begin_.stage;
      for (auto& inside : one.inside) inside.first += begin_.collective;
      all_.ops.push_back(std::move(one));
    }
    for (Buffer one : job_.buffers) {
      one.stage += begin_.stage;
      shift(one.message, begin_.channel);
      all_.buffers.push_back(one);
    }
    for (Event one : job_.events) {
      shift(one.collective, begin_.collective);
      shift(one.gives_back, begin_.buffer);
      shift(one.next, begin_.event);
      shift(one.message, begin_.channel);
      all_.events.push_back(one);
    }
  }

  /// Adds the loops of all streams, behind a wait for the clock if the job begins later.
  void add_streams(Seconds start) {
    const int clock = static_cast<int>(all_.events.size());  // behind the job's own
    const int wait = static_cast<int>(all_.instructions.size());
    const bool waits = start > Seconds(0);
    if (waits) {
      all_.instructions.push_back({Opcode::Wait, clock, 0});
      all_.events.push_back({});
    }
    for (Stream one : job_.streams) {
      const int first = one.first, count = one.count;
      one.first = size_of(all_.segments);
      if (waits) {
        all_.segments.push_back({.first = wait, .count = 1});
        ++one.lead;
        ++one.count;
      }
      for (int s = first; s < first + count; ++s) {
        all_.segments.push_back(job_.segments[static_cast<std::size_t>(s)]);
        all_.segments.back().first += begin_.instruction;
      }
      all_.streams.push_back(one);
    }
    if (waits) add_clock(start, clock);
  }

  void add_messages(const std::vector<int>& links) {
    for (Channel one : job_.channels) {
      one.from_rank += begin_.rank;
      one.to_rank += begin_.rank;
      one.from_stage += begin_.stage;
      one.to_stage += begin_.stage;
      shift(one.wire, begin_.wire);
      shift(one.replay, begin_.op);
      for (WireFlow& flow : one.flows) flow.wire += begin_.wire;
      all_.channels.push_back(std::move(one));
    }
    for (Wire one : job_.wires) {
      one.from_rank += begin_.rank;
      one.to_rank += begin_.rank;
      shift(one.communicator, begin_.communicator);
      shift(one.part_of, begin_.wire);
      for (int& link : one.links) link = links[static_cast<std::size_t>(link)];
      all_.wires.push_back(std::move(one));
    }
    for (Collective one : job_.collectives) {
      one.stage += begin_.stage;
      one.communicator += begin_.communicator;
      for (WireFlow& flow : one.flows) flow.wire += begin_.wire;
      for (LinkBytes& load : one.loads) load.link = links[static_cast<std::size_t>(load.link)];
      all_.collectives.push_back(std::move(one));
    }
    for (Communicator one : job_.communicators) {
      for (int& rank : one.ranks) rank += begin_.rank;
      all_.communicators.push_back(std::move(one));
    }
  }

 private:
  /// Adds a rank that records `event` after `start`.
  void add_clock(Seconds start, int event) {
    const Seconds rounded = in_seconds(all_, in_ticks(all_, start));
    all_.ranks.push_back({.first_stream = size_of(all_.streams), .streams = 1});
    all_.streams.push_back({.first = size_of(all_.segments), .count = 1});
    all_.segments.push_back({.first = size_of(all_.instructions), .count = 2});
    all_.instructions.push_back({Opcode::Compute, size_of(all_.ops), 0});
    all_.instructions.push_back({Opcode::Record, event, 0});
    all_.ops.push_back({.stage = begin_.stage, .loss = begin_.stage, .duration = rounded});
  }

  int first_of(Opcode code) const {
    switch (code) {
      case Opcode::Compute:
        return begin_.op;
      case Opcode::Send:
      case Opcode::Receive:
        return begin_.channel;
      case Opcode::Record:
      case Opcode::Wait:
        return begin_.event;
      case Opcode::Allocate:
      case Opcode::Free:
        return begin_.buffer;
    }
    return 0;
  }

  const Program& job_;
  Program& all_;
  const JobBegin begin_;
};

using LinksByName = std::unordered_map<std::string, int>;

/// Adds the links of `job` that are not there. Returns the numbers of all of its links.
std::vector<int> add_links(const Program& job, LinksByName& known, Program& all) {
  std::vector<int> numbers;
  for (const ProgramLink& link : job.links) {
    CHECK(link.share == 1 && link.stands_for == 1, "jobs whose ranks stand for no others");
    const auto [entry, fresh] = known.try_emplace(link.name, size_of(all.links));
    if (fresh) all.links.push_back(link);
    const ProgramLink& one = all.links[static_cast<std::size_t>(entry->second)];
    CHECK(one.bandwidth == link.bandwidth, "one bandwidth of link " + link.name);
    numbers.push_back(entry->second);
  }
  return numbers;
}

/// Returns the job that the part with number `part` belongs to.
int job_of(const JoinedProgram& joined, int JobBegin::*kind, int part) {
  int job = size_of(joined.begins) - 1;
  while (joined.begins[static_cast<std::size_t>(job)].*kind > part) --job;
  return job;
}

}  // namespace

JoinedProgram join(const std::vector<Program>& jobs, const std::vector<Seconds>& starts) {
  JoinedProgram joined;
  Program& all = joined.program;
  all.stages = 0;
  all.ticks_per_second = jobs.front().ticks_per_second;
  LinksByName known;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Program& job = jobs[j];
    CHECK(job.ticks_per_second == all.ticks_per_second, "jobs of equal ticks");
    CHECK(!job.variation.of_compute() && !job.variation.of_transfers() && !job.packed &&
              job.wire_order.empty() && !job.ignores_contention,
          "jobs whose steps are alike");
    joined.links.push_back(add_links(job, known, all));
    Joiner joiner(job, joined);
    joiner.add_code();
    joiner.add_messages(joined.links.back());
    joined.ranks.push_back(size_of(job.ranks));
    joiner.add_streams(starts.empty() ? Seconds(0) : starts[j]);
    all.stages += job.stages;
    if (job.interference.empty() && all.interference.empty()) continue;
    all.interference.resize(static_cast<std::size_t>(joined.begins.back().rank));
    all.interference.insert(all.interference.end(), job.interference.begin(),
                            job.interference.end());
    all.interference.resize(all.ranks.size());
  }
  mark_shared_links(all);
  return joined;
}

TraceSink parted(const JoinedProgram& joined, const std::vector<TraceSink>& sinks) {
  TraceSink sink;
  const bool watches_memory = std::any_of(sinks.begin(), sinks.end(), [](const TraceSink& one) {
    return static_cast<bool>(one.memory);
  });
  sink.span = [&](Span span) {
    const auto job = static_cast<std::size_t>(job_of(joined, &JobBegin::rank, span.rank));
    span.rank -= joined.begins[job].rank;
    if (!sinks[job].span || span.rank >= joined.ranks[job]) return;  // a clock
    span.op -= joined.begins[job].op;
    sinks[job].span(span);
  };
  sink.transfer = [&](Transfer transfer) {
    const auto job = static_cast<std::size_t>(job_of(joined, &JobBegin::channel, transfer.channel));
    if (!sinks[job].transfer) return;
    transfer.channel -= joined.begins[job].channel;
    sinks[job].transfer(transfer);
  };
  sink.collective = [&](CollectiveSpan span) {
    const auto job =
        static_cast<std::size_t>(job_of(joined, &JobBegin::collective, span.collective));
    if (!sinks[job].collective) return;
    span.collective -= joined.begins[job].collective;
    sinks[job].collective(span);
  };
  if (!watches_memory) return sink;
  sink.memory = [&](MemoryChange change) {
    const auto job = static_cast<std::size_t>(job_of(joined, &JobBegin::rank, change.rank));
    if (!sinks[job].memory) return;
    change.rank -= joined.begins[job].rank;
    sinks[job].memory(change);
  };
  return sink;
}

}  // namespace interlock
