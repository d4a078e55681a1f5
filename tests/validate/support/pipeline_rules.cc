// Rules of flushed pipelines as lists of events, to compare schedules and engine with.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/pipeline_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"

namespace interlock {
namespace {

struct Event {
  char what;  // F, I, W, or B for I and W at once
  int chunk, micro_batch;
};
using Events = std::vector<Event>;

/// All events of one kind, rounds of p micro-batches going through the chunks.
Events rounds(const PipelineCase& c, char what) {
  Events events;
  for (int first = 0; first < c.micro_batches; first += c.ranks) {
    const int end = std::min(first + c.ranks, c.micro_batches);
    for (int i = 0; i < c.chunks; ++i) {
      const int chunk = what == 'F' ? i : c.chunks - 1 - i;
      for (int b = first; b < end; ++b) events.push_back({what, chunk, b});
    }
  }
  return events;
}

Events events_of(const PipelineCase& c, int rank) {
  const bool halves = c.rule == "zb-h1" || c.rule == "zb-h2";
  const int beyond = c.ranks - 1 - rank;
  const std::map<std::string, std::pair<int, int>> rules = {
      {"1f1b", {beyond, 0}},
      {"interleaved", {2 * beyond + (c.chunks - 1) * c.ranks, 0}},
      {"zb-h1", {beyond, rank}},
      {"zb-h2", {2 * beyond, 2 * rank}}};
  const auto [first, late] = rules.at(c.rule);
  const Events forwards = rounds(c, 'F'), backwards = rounds(c, halves ? 'I' : 'B');
  const Events weights = halves ? rounds(c, 'W') : Events();
  Events events;
  auto forward = forwards.begin();
  auto weight = weights.begin();
  for (int i = 0; i < first && forward != forwards.end(); ++i) events.push_back(*forward++);
  for (int k = 0; k < static_cast<int>(backwards.size()); ++k) {
    if (forward != forwards.end()) events.push_back(*forward++);
    events.push_back(backwards[k]);
    if (halves && k >= late) events.push_back(*weight++);
  }
  events.insert(events.end(), weight, weights.end());
  return events;
}

class Clock {
 public:
  explicit Clock(const PipelineCase& pipeline) : c_(pipeline) {
    for (int rank = 0; rank < c_.ranks; ++rank) events_.push_back(events_of(c_, rank));
  }

  PipelineOutcome run() {
    std::vector<std::size_t> next(c_.ranks, 0);
    std::vector<double> now(c_.ranks, 0), begin(c_.ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < c_.ranks; ++rank) {
        while (next[rank] < events_[rank].size()) {
          const Event& event = events_[rank][next[rank]];
          const std::optional<double> ready = ready_at(rank, event);
          if (!ready) break;
          const double start = std::max(now[rank], *ready);
          if (next[rank]++ == 0) begin[rank] = start;
          now[rank] = start + duration(event.what);
          moved = true;
          if (event.what == 'W') continue;  // no op waits for it
          end_[{event.what == 'F', event.chunk * c_.ranks + rank, event.micro_batch}] = now[rank];
        }
      }
    }
    PipelineOutcome outcome;
    for (int rank = 0; rank < c_.ranks; ++rank) {
      CHECK(next[rank] == events_[rank].size(), "the rule ends");
      outcome.makespan = std::max(outcome.makespan, now[rank]);
      outcome.longest_rank = std::max(outcome.longest_rank, now[rank] - begin[rank]);
    }
    return outcome;
  }

 private:
  double duration(char what) const {
    if (what == 'F') return c_.forward;
    return (what == 'W' ? 0 : c_.backward_input) + (what == 'I' ? 0 : c_.backward_weight);
  }

  /// When what an event needs from its neighbour is there; nothing while that is unknown.
  std::optional<double> ready_at(int rank, const Event& event) const {
    const int place = event.chunk * c_.ranks + rank;  // in the chain of all chunks
    if (event.what == 'W') return 0;
    const int from = event.what == 'F' ? place - 1 : place + 1;
    if (from < 0 || from == c_.ranks * c_.chunks) return 0;  // its own forward came before it
    const auto found = end_.find({event.what == 'F', from, event.micro_batch});
    if (found == end_.end()) return std::nullopt;
    return found->second + (c_.ranks > 1 ? c_.transfer : 0);
  }

  const PipelineCase& c_;
  std::vector<Events> events_;                        // (ranks, events)
  std::map<std::tuple<bool, int, int>, double> end_;  // of forwards and of what sends a gradient
};

}  // namespace

PipelineOutcome run_pipeline(const PipelineCase& pipeline) { return Clock(pipeline).run(); }

}  // namespace interlock
