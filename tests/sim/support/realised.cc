// Running engines and comparing what they tell.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/support/realised.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace interlock {

namespace {

void sort_log(TraceLog& log) {
  std::sort(log.spans.begin(), log.spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.rank, a.op, a.micro_batch, a.start) <
           std::tie(b.rank, b.op, b.micro_batch, b.start);
  });
  std::sort(log.transfers.begin(), log.transfers.end(), [](const Transfer& a, const Transfer& b) {
    return std::tie(a.channel, a.micro_batch, a.start, a.sent, a.arrival) <
           std::tie(b.channel, b.micro_batch, b.start, b.sent, b.arrival);
  });
  std::sort(log.memory.begin(), log.memory.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return std::tie(a.rank, a.memory_class, a.bytes, a.time) <
           std::tie(b.rank, b.memory_class, b.bytes, b.time);
  });
  std::sort(log.collectives.begin(), log.collectives.end(),
            [](const CollectiveSpan& a, const CollectiveSpan& b) {
              return std::tie(a.collective, a.micro_batch, a.start, a.joined) <
                     std::tie(b.collective, b.micro_batch, b.start, b.joined);
            });
}

std::string text(const Span& s) {
  std::ostringstream out;
  out << "op " << s.op << " of micro-batch " << s.micro_batch << " on rank " << s.rank << " at "
      << s.start.value() << " to " << s.end.value() << ", exposed " << s.exposed.value();
  return out.str();
}

std::string text(const Transfer& t) {
  std::ostringstream out;
  out << "channel " << t.channel << ", micro-batch " << t.micro_batch << ", sent " << t.sent.value()
      << ", from " << t.start.value() << " to " << t.end.value() << ", arrived "
      << t.arrival.value();
  return out.str();
}

std::string text(const MemoryChange& m) {
  std::ostringstream out;
  out << m.bytes << " B of " << name_of(m.memory_class) << " on rank " << m.rank << " at "
      << m.time.value();
  return out.str();
}

std::string text(const CollectiveSpan& c) {
  std::ostringstream out;
  out << "collective " << c.collective << ", micro-batch " << c.micro_batch << ", joined "
      << c.joined.value() << ", from " << c.start.value() << " to " << c.end.value();
  return out.str();
}

/// Says where two sorted lists first differ.
template <class Record, class Same>
std::string compare(const std::vector<Record>& a, const std::vector<Record>& b, const char* what,
                    const Same& same) {
  if (a.size() != b.size()) {
    return std::to_string(a.size()) + " and " + std::to_string(b.size()) + ' ' + what;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return text(a[i]) + " | " + text(b[i]);
  }
  return "";
}

}  // namespace

Realised realise(const Program& program, Engine engine) {
  Realised realised;
  try {
    realised.summary = engine(program, log_sink(realised.log));
  } catch (const Error& error) {
    realised.deadlock = error.what();
  }
  sort_log(realised.log);
  return realised;
}

Realised realised(TraceLog log, RunSummary summary) {
  sort_log(log);
  return {.log = std::move(log), .summary = std::move(summary), .deadlock = ""};
}

Realised realise_simgrid(const Program& program) {
  return realise(program, [](const Program& p, const TraceSink& sink) {
    return run_program(p, EngineKind::SimGrid, sink);
  });
}

std::string difference(const Realised& a, const Realised& b, double tolerance) {
  if (a.deadlock.empty() != b.deadlock.empty()) {
    return "only one deadlocks: " + a.deadlock + b.deadlock;
  }
  if (!a.deadlock.empty()) return "";
  const double allowed = tolerance * a.summary.makespan.value();
  const auto near = [&](Seconds x, Seconds y) { return std::abs((x - y).value()) <= allowed; };
  if (!near(a.summary.makespan, b.summary.makespan)) return "makespans differ";
  if (a.summary.tasks != b.summary.tasks) return "tasks differ";
  std::string text = compare(a.log.spans, b.log.spans, "spans", [&](const Span& x, const Span& y) {
    return std::tie(x.rank, x.op, x.micro_batch) == std::tie(y.rank, y.op, y.micro_batch) &&
           near(x.start, y.start) && near(x.end, y.end) && near(x.exposed, y.exposed);
  });
  if (!text.empty()) return text;
  text = compare(
      a.log.transfers, b.log.transfers, "transfers", [&](const Transfer& x, const Transfer& y) {
        return std::tie(x.channel, x.micro_batch) == std::tie(y.channel, y.micro_batch) &&
               near(x.sent, y.sent) && near(x.start, y.start) && near(x.end, y.end) &&
               near(x.arrival, y.arrival);
      });
  if (!text.empty()) return text;
  text = compare(a.log.collectives, b.log.collectives, "collectives",
                 [&](const CollectiveSpan& x, const CollectiveSpan& y) {
                   return std::tie(x.collective, x.micro_batch) ==
                              std::tie(y.collective, y.micro_batch) &&
                          near(x.joined, y.joined) && near(x.start, y.start) && near(x.end, y.end);
                 });
  if (!text.empty()) return text;
  return compare(a.log.memory, b.log.memory, "memory changes",
                 [&](const MemoryChange& x, const MemoryChange& y) {
                   return std::tie(x.rank, x.memory_class, x.bytes) ==
                              std::tie(y.rank, y.memory_class, y.bytes) &&
                          near(x.time, y.time);
                 });
}

}  // namespace interlock
