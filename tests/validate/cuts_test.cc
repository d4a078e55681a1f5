// Balanced cuts of random models, against every other cut by formulas.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "base/random.h"
#include "scenarios/plan/plan.h"
#include "tests/formulas/closed_form.h"
#include "tests/validate/support/trial.h"

namespace interlock::cuts_test {
namespace {

using Cuts = std::vector<int>;  // the first module of each stage, and behind the last one

/// A model of random modules, to be cut into stages on a rank each.
struct RandomModel {
  Trial trial;
  int stages = 1, n_wise = 1;

  explicit RandomModel(std::uint64_t seed) {
    Random random(37, seed);
    const int modules = random.integer(2, 9);
    stages = random.integer(2, std::min(modules, 6));
    n_wise = random.integer(1, stages);
    trial.latency = Seconds(random.integer(0, 3) * kTick);
    const int most = std::vector<int>{8, 60, 400}[random.integer(0, 2)];  // of what messages take
    for (int m = 0; m < modules; ++m) {
      const auto ticks = [&](int longest) { return Seconds(random.integer(1, longest) * kTick); };
      trial.stages.push_back({.times = {ticks(20), ticks(20), ticks(20), ticks(30), ticks(5)},
                              .output = ticks(most).value() * Bytes(1e9)});
    }
  }

  Cuts balanced(const std::string& strategy, const std::string& schedule) const {
    Trial written = trial;
    written.strategy = strategy;
    written.schedule = schedule;
    JsonValue value = parse_json(document(written), "trial");
    const std::string count = std::to_string(stages);
    set_json(value, "parallel.pipeline", parse_override(count, ""), "");
    set_json(value, "parallel.stages", parse_override(count, ""), "");
    set_json(value, "partition", parse_override("balanced", ""), "");
    return lay_out(load_questions(value).front()).draft.partition.boundaries;
  }

  std::vector<StageTimes> times_of(const Cuts& cuts) const {
    std::vector<StageTimes> times(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s) {
      for (int m = cuts[s]; m < cuts[s + 1]; ++m) {
        const StageTimes& module = trial.stages[m].times;
        times[s].forward += module.forward;
        times[s].backward_input += module.backward_input;
        times[s].backward_weight += module.backward_weight;
        times[s].update += module.update;
        times[s].head = module.head;
      }
    }
    return times;
  }

  /// Returns how long messages over each boundary occupy a link.
  std::vector<Seconds> messages_of(const Cuts& cuts) const {
    std::vector<Seconds> messages;
    for (int s = 1; s < stages; ++s) {
      messages.push_back(trial.stages[cuts[s] - 1].output / trial.bandwidth);
    }
    return messages;
  }

  void for_cuts(const std::function<void(const Cuts&)>& visit) const {
    const int modules = static_cast<int>(trial.stages.size());
    Cuts cuts = {0};
    const std::function<void()> extend = [&] {
      const int more = stages - static_cast<int>(cuts.size());  // cuts to come but for the end
      if (more == 0) {
        cuts.push_back(modules);
        visit(cuts);
        cuts.pop_back();
        return;
      }
      for (int cut = cuts.back() + 1; cut <= modules - more; ++cut) {
        cuts.push_back(cut);
        extend();
        cuts.pop_back();
      }
    };
    extend();
  }
};

Seconds longest(const std::vector<Seconds>& messages) {
  return messages.empty() ? Seconds(0) : *std::max_element(messages.begin(), messages.end());
}

TEST_CASE("a balanced cut of N-wise stages has the shortest longest loop of all cuts") {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomModel model(seed);
    const auto bound = [&](const Cuts& cuts) {
      const std::vector<StageTimes> times = model.times_of(cuts);
      std::vector<Seconds> transfers = model.messages_of(cuts);
      for (Seconds& transfer : transfers) transfer += model.trial.latency;
      return std::max({loop_bound(times, transfers, model.n_wise),
                       busiest_stage(times, model.n_wise), longest(model.messages_of(cuts))});
    };
    Seconds least(kInfinity), least_busy(kInfinity), of_least_busy;
    model.for_cuts([&](const Cuts& cuts) {
      least = std::min(least, bound(cuts));
      const Seconds busy = busiest_stage(model.times_of(cuts), model.n_wise);
      if (busy < least_busy) of_least_busy = bound(cuts);
      least_busy = std::min(least_busy, busy);
    });
    const Seconds found = bound(model.balanced(n_wise(model.n_wise), "\"eager\""));
    INFO("seed " << seed << ": " << model.trial.stages.size() << " modules in " << model.stages
                 << " stages, " << model.n_wise << "-wise: " << found.value() << " s, the best "
                 << least.value() << " s");
    CHECK(found <= least * (1 + 2e-6));
    moved += of_least_busy > least * 1.05 ? 1 : 0;
  }
  CHECK(moved > 50);  // the cut of least busy stages is often worse
}

TEST_CASE("a balanced cut of chunks has the shortest longest loop, to the chunk's end and back") {
  for (std::uint64_t seed = 600; seed < 700; ++seed) {
    RandomModel model(seed);
    if (model.stages % 2 != 0 || model.stages == 2) continue;
    std::vector<int> losses;
    for (int s = 0; s < model.stages; ++s) {
      losses.push_back(s < model.stages / 2 ? model.stages / 2 : model.stages);
    }
    const auto bound = [&](const Cuts& cuts) {
      std::vector<Seconds> transfers = model.messages_of(cuts);
      for (Seconds& transfer : transfers) transfer += model.trial.latency;
      return std::max(loop_bound(model.times_of(cuts), transfers, losses),
                      longest(model.messages_of(cuts)));
    };
    Seconds least(kInfinity);
    model.for_cuts([&](const Cuts& cuts) { least = std::min(least, bound(cuts)); });
    const Seconds found = bound(model.balanced(R"({"kind": "chunked", "chunks": 2})", "\"eager\""));
    INFO("seed " << seed << ": " << model.trial.stages.size() << " modules in " << model.stages
                 << " stages: " << found.value() << " s, the best " << least.value() << " s");
    CHECK(found <= least * (1 + 2e-6));
  }
}

TEST_CASE("a balanced cut lets no message take longer than it must, and then levels stages") {
  int moved = 0;
  for (std::uint64_t seed = 300; seed < 600; ++seed) {
    const RandomModel model(seed);
    const auto busiest = [&](const Cuts& cuts) {
      Seconds most;
      for (const StageTimes& stage : model.times_of(cuts)) {
        most = std::max(most, stage.work(false, 0));
      }
      return most;
    };
    const auto slowest = [&](const Cuts& cuts) {
      return std::max(busiest(cuts), longest(model.messages_of(cuts)));
    };
    Seconds least(kInfinity), least_busy(kInfinity), of_all(kInfinity), of_level;
    model.for_cuts([&](const Cuts& cuts) {
      least = std::min(least, slowest(cuts));
      if (busiest(cuts) < of_all) of_level = slowest(cuts);
      of_all = std::min(of_all, busiest(cuts));
    });
    model.for_cuts([&](const Cuts& cuts) {
      if (longest(model.messages_of(cuts)) <= least) {
        least_busy = std::min(least_busy, busiest(cuts));
      }
    });
    const Cuts found = model.balanced("\"global\"", "\"1f1b\"");
    INFO("seed " << seed << ": " << model.trial.stages.size() << " modules in " << model.stages
                 << " stages: " << slowest(found).value() << " s, the best " << least.value());
    CHECK(close(slowest(found).value(), least.value()));
    CHECK(close(busiest(found).value(), least_busy.value()));
    moved += of_level > least * 1.05 ? 1 : 0;
  }
  CHECK(moved > 20);  // the cut of least busy stages is often worse
}

}  // namespace
}  // namespace interlock::cuts_test
