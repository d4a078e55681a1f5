// Rules that hold in every run, checked over every small chain, strategy and schedule.
// SPDX-License-Identifier: Apache-2.0
//
// The rules are restated here from the definition of the strategies; stages count from 0.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "tests/validate/support/small_grid.h"

namespace interlock::properties_test {
namespace {

struct OpKey {
  char op = 'F';
  int stage = 0, batch = 0, loss = 0;
  auto operator<=>(const OpKey&) const = default;
};
struct Interval {
  Ticks start = 0, end = 0;
};

/// A traced grid point, and the rules of its plan.
struct Observed {
  const GridPoint& point;
  Traced traced;
  std::map<OpKey, Interval> spans;

  explicit Observed(const GridPoint& p) : point(p), traced(trace(p.trial)) {
    for (const ReferenceSpan& s : spans_of(traced)) {
      const bool first =
          spans.emplace(OpKey{s.op, s.stage, s.batch, s.loss}, Interval{s.start, s.end}).second;
      INFO("twice: " << s.op << " of stage " << s.stage << ", batch " << s.batch);
      CHECK(first);
    }
  }

  int stages() const { return static_cast<int>(point.trial.stages.size()); }
  int batches() const { return point.trial.micro_batches * point.trial.steps; }
  int furthest(int stage) const { return std::min(stage + point.plan.n_wise - 1, stages() - 1); }
  /// Some stage is trained by `loss`.
  bool used(int loss) const { return loss == stages() - 1 || loss >= point.plan.n_wise - 1; }
  bool has_head(int stage) const {
    return stage < stages() - 1 && (used(stage) || point.plan.all_heads);
  }
  /// With all heads unused gradients travel too; the eager form only spares the first stage its
  /// own.
  bool pushes(int stage, int loss) const {
    if (stage < 0 || loss < stage || loss > furthest(stage)) return false;
    if (loss == furthest(stage) || used(loss)) return true;
    return point.plan.all_heads && (point.plan.list() || loss > 0);
  }
  /// The op that makes the gradient of `loss` at the input of `stage`.
  char maker(int stage, int loss) const {
    const bool fused = loss == furthest(stage) && !(point.plan.split && pushes(stage - 1, loss));
    return fused ? 'B' : 'I';
  }
  Ticks transfer(int below, int tensors) const {
    return 1 + static_cast<Ticks>(point.trial.stages[below].output.value() / 1000) * tensors;
  }
  Interval at(char op, int stage, int batch, int loss) const {
    const auto found = spans.find({op, stage, batch, loss});
    INFO("missing: " << op << " of stage " << stage << ", batch " << batch << ", loss " << loss);
    REQUIRE(found != spans.end());
    return found->second;
  }
};

void for_runs(const std::function<void(const Observed&)>& check) {
  for_small_grid([&](const GridPoint& point) {
    INFO(document(point.trial));
    check(Observed(point));
  });
}

TEST_CASE("each op of each stage, micro-batch and loss runs exactly once, and no other") {
  for_runs([](const Observed& run) {
    std::size_t expected = 0;
    for (int i = 0; i < run.stages(); ++i) {
      for (int b = 0; b < run.batches(); ++b) {
        run.at('F', i, b, i);
        expected += 1;
        if (run.has_head(i)) run.at('H', i, b, i), ++expected;
        for (int loss = i; loss <= run.furthest(i); ++loss) {
          if (!run.pushes(i, loss)) continue;
          run.at(run.maker(i, loss), i, b, loss), ++expected;
          const bool halves = loss == run.furthest(i) && run.maker(i, loss) == 'I';
          if (halves) run.at('W', i, b, loss), ++expected;
        }
        if ((b + 1) % run.point.plan.update_every == 0) run.at('U', i, b, i), ++expected;
      }
    }
    CHECK(run.spans.size() == expected);
  });
}

TEST_CASE("the ops of a rank never overlap") {
  for_runs([](const Observed& run) {
    std::map<int, std::vector<Interval>> ranks;
    for (const auto& [key, interval] : run.spans) ranks[key.stage].push_back(interval);
    for (auto& [rank, intervals] : ranks) {
      std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
        return std::tie(a.start, a.end) < std::tie(b.start, b.end);
      });
      for (std::size_t k = 1; k < intervals.size(); ++k) {
        CHECK(intervals[k - 1].end <= intervals[k].start);
      }
    }
  });
}

/// Everything that `loss`'s gradient at the output of stage i waits for, arrived.
Ticks gradient_ready(const Observed& run, int i, int b, int loss) {
  if (loss == i) return run.has_head(i) ? run.at('H', i, b, i).end : run.at('F', i, b, i).end;
  if (!run.point.plan.list()) {
    return run.at(run.maker(i + 1, loss), i + 1, b, loss).end + run.transfer(i, 1);
  }
  const int above = run.furthest(i + 1);
  int tensors = 0;
  for (int j = i + 1; j <= above; ++j) tensors += run.pushes(i + 1, j) && run.pushes(i, j) ? 1 : 0;
  return run.at('B', i + 1, b, above).end + run.transfer(i, tensors);
}

TEST_CASE("nothing starts before its inputs have ended and arrived") {
  for_runs([](const Observed& run) {
    for (const auto& [key, interval] : run.spans) {
      const char op = key.op;
      const int i = key.stage, b = key.batch, loss = key.loss;
      INFO(op << " of stage " << i << ", batch " << b << ", loss " << loss);
      if (op == 'F' && i > 0) {
        CHECK(interval.start >= run.at('F', i - 1, b, i - 1).end + run.transfer(i - 1, 1));
      }
      if (op == 'H') CHECK(interval.start >= run.at('F', i, b, i).end);
      if (op == 'W') CHECK(interval.start >= run.at('I', i, b, loss).end);
      if (op == 'I' || op == 'B') CHECK(interval.start >= gradient_ready(run, i, b, loss));
      if (op != 'U') continue;
      for (int w = b + 1 - run.point.plan.update_every; w <= b; ++w) {
        const int trained = run.furthest(i);
        const char last = run.maker(i, trained) == 'I' ? 'W' : 'B';
        CHECK(interval.start >= run.at(last, i, w, trained).end);
      }
    }
  });
}

TEST_CASE("a stage begins no batch before it is done with the one its limit allows for") {
  for_runs([](const Observed& run) {
    const TrialPolicy& plan = run.point.plan;
    for (int i = 0; i < run.stages(); ++i) {
      for (int b = plan.flushed() ? run.point.trial.micro_batches : plan.in_flight;
           b < run.batches(); ++b) {
        // A flushed pipeline waits for the update of the last step, the others for their slot.
        const int before =
            plan.flushed() ? b - b % run.point.trial.micro_batches - 1 : b - plan.in_flight;
        const int trained = run.furthest(i);
        const char last = run.maker(i, trained) == 'I' ? 'W' : 'B';
        const Ticks start = run.at('F', i, b, i).start;
        CHECK(start >= run.at(last, i, before, trained).end);
        if ((before + 1) % plan.update_every == 0) CHECK(start >= run.at('U', i, before, i).end);
      }
    }
  });
}

/// Ticks of one op by the stage's costs.
Ticks cost(const StageTimes& times, char op) {
  const std::map<char, Seconds> costs = {{'F', times.forward},        {'H', times.head},
                                         {'I', times.backward_input}, {'W', times.backward_weight},
                                         {'B', times.backward()},     {'U', times.update}};
  return std::llround(costs.at(op).value() / kTick);
}

TEST_CASE("work is conserved, and a run lasts at least as long as its busiest rank works") {
  for_runs([](const Observed& run) {
    std::vector<Ticks> work(run.stages(), 0);
    Ticks first = 0, last = 0;
    for (const auto& [key, interval] : run.spans) {
      CHECK(interval.end - interval.start == cost(run.point.trial.stages[key.stage].times, key.op));
      work[key.stage] += interval.end - interval.start;
      last = std::max(last, interval.end);
    }
    CHECK(last - first >= *std::max_element(work.begin(), work.end()));
  });
}

TEST_CASE("memory never falls below what is resident and returns to it") {
  for_runs([](const Observed& run) {
    std::vector<MemoryChange> changes = run.traced.log.memory;
    // At one instant, allocations come first: a message may hand its bytes on while it arrives.
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return std::pair(a.time, -a.bytes) < std::pair(b.time, -b.bytes);
    });
    std::map<std::pair<int, MemoryClass>, double> held;
    for (const MemoryChange& change : changes) {
      double& bytes = held[{change.rank, change.memory_class}];
      bytes += change.bytes;
      CHECK(bytes >= 0);
    }
    for (const auto& entry : held) {
      INFO("rank " << entry.first.first << ", " << name_of(entry.first.second));
      CHECK(entry.second == 0);
    }
  });
}

}  // namespace
}  // namespace interlock::properties_test
