// Layers with degrees of their own in random scenarios: folded, by SimGrid, and said otherwise.
// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/support/random_layers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/lower/unfold.h"
#include "sim/plan/layer_layouts.h"
#include "sim/sharing/binding_links.h"
#include "tests/support/cases.h"
#include "tests/validate/support/engine_times.h"

namespace interlock::random_layers_test {
namespace {

/// Calls `check` with each of `count` random trials that load.
template <class Check>
void for_trials(int first, int count, Check check, int most_devices = 32) {
  for (int seed = first; seed < first + count; ++seed) {
    const LayersTrial trial = random_layers(static_cast<std::uint64_t>(seed), most_devices);
    CAPTURE(seed);
    try {
      load(trial.with_layers());
    } catch (const Error&) {
      continue;
    }
    check(trial);
  }
}

/// How often foldings were as good as none, were refused, or are not comparable.
struct FoldingCounts {
  int equal = 0, refused = 0, unsteady = 0, cut = 0;
};

/// Compares `random` folded in every way that there is with every device simulated.
void check_foldings(const LayersTrial& random, FoldingCounts& counts) {
  LayoutTrial trial = random.with_layers();
  trial.fold = "\"none\"";
  INFO(document(trial));
  const ScenarioResult whole = run(trial);
  for (const Folding& folding : foldings_of(whole.plan.question.layout)) {
    Plan plan = whole.plan;
    plan.unfolded = folding.unfolded;
    plan.folded_as = folding.as;
    if (!folding.as && folding.unfolded == whole.plan.unfolded) continue;
    const Mesh& mesh = simulated_mesh(plan);
    const std::size_t ranks = simulated_ranks(mesh, plan.unfolded).size();
    INFO(ranks << " simulated, in blocks of " << mesh.degree(Dimension::Tensor));
    if (!lower_plan(plan, 1).folding_problem.empty()) {
      ++counts.refused;
      continue;
    }
    const ScenarioResult folded = simulate_plan(plan, Keep::Explanation);
    if (!whole.measurement.metrics.steady || !folded.measurement.metrics.steady) {
      ++counts.unsteady;
      continue;
    }
    CHECK(difference(folded, whole, 1e-7) == "");  // ends are rounded where links are shared
    ++counts.equal;
    counts.cut += folding.as.has_value();
  }
}

TEST_CASE("layers of several layouts fold exactly or not at all") {
  FoldingCounts counts;
  for_trials(0, cases(60), [&](const LayersTrial& random) { check_foldings(random, counts); });
  MESSAGE(counts.equal << " foldings equal, " << counts.cut << " of them between degrees, "
                       << counts.refused << " refused, " << counts.unsteady << " not steady");
  CHECK(counts.equal >= met_by_cases(30));
  CHECK(counts.cut >= met_by_cases(10));
}

TEST_CASE("layers of several layouts fold exactly on machines of many nodes") {
  FoldingCounts counts;
  for_trials(
      4016, cases(8), [&](const LayersTrial& random) { check_foldings(random, counts); }, 256);
  MESSAGE(counts.equal << " foldings equal, " << counts.cut << " of them between degrees, "
                       << counts.refused << " refused, " << counts.unsteady << " not steady");
  CHECK(counts.equal >= met_by_cases(8));
  CHECK(counts.cut >= met_by_cases(4));
}

TEST_CASE("tensor and data devices of layers fold apart where a scenario says so") {
  int folded = 0;
  for_trials(5000, cases(20), [&](const LayersTrial& random) {
    LayoutTrial trial = random.with_layers();
    trial.fold = "\"none\"";
    INFO(document(trial));
    const ScenarioResult whole = run(trial);
    for (const std::string name : {"tensor", "data"}) {
      trial.fold = "[\"" + name + "\"]";
      CAPTURE(name);
      try {
        const ScenarioResult one = run(trial);
        if (!whole.measurement.metrics.steady || !one.measurement.metrics.steady) continue;
        CHECK(difference(one, whole, 1e-8) == "");
        ++folded;
      } catch (const Error& error) {
        const std::string what = error.what();
        CHECK(what.find("/simulate/fold: ") != std::string::npos);
      }
    }
  });
  MESSAGE(folded << " foldings of tensor devices, or of data devices");
  CHECK(folded >= met_by_cases(5));
}

TEST_CASE("no step with layers of several layouts is shorter than its bound") {
  int bounded = 0;
  double closest = 0;
  for_trials(3000, cases(60), [&](const LayersTrial& random) {
    const ScenarioResult result = run(random.with_layers());
    const Plan& plan = result.plan;
    if (!result.measurement.metrics.steady) return;
    INFO(document(random.with_layers()));
    const double step = result.measurement.metrics.step_time.value();
    const double bound = bound_plan(plan).time.value();
    CHECK(bound > 0);
    CHECK(bound <= step * (1 + 1e-9));
    const double of_layout =
        bound_layout(plan.question, {.overlap = 1, .keeps_stash = false}).time.value();
    CHECK(of_layout <= step * (1 + 1e-9));
    closest = std::max(closest, bound / step);
    ++bounded;
  });
  MESSAGE(bounded << " steps bounded, one by " << 100 * closest << " %");
  CHECK(bounded >= met_by_cases(30));
}

RunSummary run_native(const Program& program, const TraceSink& sink) {
  return run_program(program, EngineKind::Native, sink);
}
RunSummary run_simgrid_apart(const Program& program, const TraceSink& sink) {
  return run_program(program, EngineKind::SimGrid, sink);
}

TEST_CASE("native and SimGrid tell the same of layers of several layouts") {
  int shared = 0, apart = 0, resharded = 0;
  for_trials(1000, cases(60), [&](const LayersTrial& random) {
    LayoutTrial trial = random.with_layers();
    if (random.pipeline * random.context * random.tensor * random.data > 16) return;
    trial.fold = random.layers.size() % 2 == 0 ? "\"auto\"" : "\"none\"";
    const Program program = lower_plan(make_plan(load(trial)), 2);
    if (program.collectives.empty() || crosses_again(program)) return;
    ++(shares_links(program) ? shared : apart);
    resharded += std::ranges::any_of(program.collectives, [](const Collective& one) {
      return one.axis == MeshAxis::Resharding;
    });
    INFO(document(trial));
    CHECK(times_of(program, run_native) == times_of(program, run_simgrid_apart));
  });
  MESSAGE(shared << " programs that share links, " << apart << " that do not, " << resharded
                 << " with tensors laid anew");
  CHECK(shared >= met_by_cases(8));
  CHECK(apart >= met_by_cases(3));
  CHECK(resharded >= met_by_cases(12));
}

/// Compares the figures of the devices and links that two runs of all devices have.
void check_equal(const ScenarioResult& one, const ScenarioResult& other) {
  const Metrics &a = one.measurement.metrics, &b = other.measurement.metrics;
  CHECK(a.step_time.value() == doctest::Approx(b.step_time.value()).epsilon(1e-9));
  CHECK(a.mfu.value_or(0) == doctest::Approx(b.mfu.value_or(0)).epsilon(1e-9));
  CHECK(a.samples_per_s.value_or(0) == doctest::Approx(b.samples_per_s.value_or(0)).epsilon(1e-9));
  const std::vector<int> of_one = device_numbers(one.plan), of_other = device_numbers(other.plan);
  REQUIRE(of_one.size() == of_other.size());
  for (std::size_t i = 0; i < of_one.size(); ++i) {
    const auto at = std::ranges::find(of_other, of_one[i]) - of_other.begin();
    const DeviceMetrics &x = a.devices[i], &y = b.devices[static_cast<std::size_t>(at)];
    CAPTURE(of_one[i]);
    CHECK(x.busy == doctest::Approx(y.busy).epsilon(1e-9));
    CHECK(x.peak_memory.value() == doctest::Approx(y.peak_memory.value()).epsilon(1e-9));
    for (int kind = 0; kind < kMemoryClasses; ++kind) {
      CAPTURE(name_of(static_cast<MemoryClass>(kind)));
      CHECK(x.memory[kind].value() == doctest::Approx(y.memory[kind].value()).epsilon(1e-9));
    }
  }
  REQUIRE(a.links.size() == b.links.size());
  for (const LinkMetrics& link : a.links) {
    const auto same =
        std::ranges::find_if(b.links, [&](const LinkMetrics& l) { return l.name == link.name; });
    CAPTURE(link.name);
    REQUIRE(same != b.links.end());
    CHECK(link.bytes.value() == doctest::Approx(same->bytes.value()).epsilon(1e-9));
  }
}

TEST_CASE("a model all of whose layers have other degrees runs as a run of these degrees") {
  int compared = 0;
  for_trials(2000, cases(60), [&](LayersTrial random) {
    LayersOf layers = random.layers.front();
    if (layers.tensor == random.tensor) return;
    if (random.samples * random.data % layers.data != 0) return;
    LayersTrial other = random;
    layers.first = 0;
    layers.end = random.modules;
    random.layers = {layers};
    const auto replace = [&](std::string& text, const std::string& key, int from, int to) {
      const std::string old = "\"" + key + "\": " + std::to_string(from);
      const std::size_t at = text.find(old);
      REQUIRE(at != std::string::npos);
      text.replace(at, old.size(), "\"" + key + "\": " + std::to_string(to));
    };
    replace(other.trial.parallel, "tensor", random.tensor, layers.tensor);
    replace(other.trial.parallel, "data", random.data, layers.data);
    LayoutTrial own = random.with_layers(), plain = other.trial;
    own.fold = plain.fold = "\"none\"";
    INFO(document(own));
    try {
      load(plain);
    } catch (const Error&) {
      CHECK_THROWS_AS(load(own), Error);
      return;
    }
    ++compared;
    check_equal(run(own), run(plain));
  });
  MESSAGE(compared << " runs of other degrees");
  CHECK(compared >= met_by_cases(15));
}

}  // namespace
}  // namespace interlock::random_layers_test
