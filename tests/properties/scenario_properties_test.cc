// Properties of random scenarios: what must be equal, whatever simulates it, and what must scale.
// SPDX-License-Identifier: Apache-2.0
//
// INTERLOCK_CASE=17 build/bin/properties_test checks and prints the scenario of seed 17 alone.
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "base/error.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "sim/engines/engines.h"
#include "tests/properties/random_scenario.h"
#include "tests/properties/scaled_scenario.h"
#include "tests/support/cases.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::scenario_properties_test {
namespace {

using Json = nlohmann::ordered_json;

/// Simulates `scenario`, or returns nothing where it is refused.
std::optional<ScenarioResult> result_of(const Json& scenario) {
  try {
    return simulate_plan(make_plan(load_questions(parse_json(scenario.dump(), "random")).front()),
                         Keep::Nothing);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json with(Json scenario, const char* key, const Json& value) {
  scenario["simulate"][key] = value;
  return scenario;
}

/// The verdict of a property on a scenario and its result: "" if it holds; nothing if it says
/// nothing.
using Verdict = std::optional<std::string>;
using Property = std::function<Verdict(const Json& scenario, const ScenarioResult& result)>;

/// Draws scenarios, and checks `property` on each that is not refused.
void check_property(const Property& property, int least) {
  const char* const only = std::getenv("INTERLOCK_CASE");
  const int first = only == nullptr ? 0 : std::atoi(only);
  const int count = only == nullptr ? cases(150) : 1;
  int refused = 0, held = 0, silent = 0;
  for (int seed = first; seed < first + count; ++seed) {
    const Json scenario = random_scenario(static_cast<std::uint64_t>(seed));
    if (only != nullptr) MESSAGE("seed " << seed << ": " << scenario.dump());
    const auto result = result_of(scenario);
    if (!result) {
      ++refused;
      continue;
    }
    const Verdict verdict = property(scenario, *result);
    ++(verdict ? held : silent);
    INFO("seed " << seed << ": " << scenario.dump());
    CHECK(verdict.value_or("") == "");
  }
  MESSAGE(count << " scenarios: " << refused << " refused by the loader, " << silent
                << " about which the property says nothing, " << held << " checked");
  if (only == nullptr) CHECK(held * 100 >= least * count);
}

Program program_of(const ScenarioResult& result) { return lower_plan(result.plan, 1); }

/// Returns how far two runs may differ whose times are equal but for rounding. Where links are
/// shared or kernels slow down, ends are rounded to ticks, whose length depends on the program.
double rounding(const Program& program) {
  return shares_links(program) || !program.interference.empty() ? 1e-7 : 1e-9;
}

bool folds(const ScenarioResult& result) {
  const Unfolded& unfolded = result.plan.unfolded;
  for (int i = 0; i + 1 < kDimensions; ++i) {
    if (!unfolded[i] && result.plan.question.layout.mesh.degrees[i] > 1) return true;
  }
  return false;
}

TEST_CASE("devices that stand for others have the figures of all of them") {
  check_property(
      [](const Json& scenario, const ScenarioResult& folded) -> Verdict {
        if (!folds(folded)) return std::nullopt;
        const auto whole = result_of(with(scenario, "fold", "none"));
        if (!whole) return "refused where nothing is folded";
        if (!folded.measurement.metrics.steady || !whole->measurement.metrics.steady) {
          return std::nullopt;
        }
        return difference(folded, *whole, rounding(program_of(*whole)));
      },
      15);
}

// A message without bytes reaches stage 3 when one of 13 MiB has reached stage 7 of the same
// device: both ask for their weights at one instant, on three devices, in the order of whole runs
// or folded.
TEST_CASE("gathers of two stages that are joined at one instant come in one order, folded or not") {
  const Json scenario = Json::parse(R"({
      "name": "tie", "training": {"strategy": "inference", "micro_batches": 3},
      "model": {"kind": "profile", "modules": [
        {"forward": "1 ms"}, {"forward": "3.7 ms"}, {"forward": "0.25 ms"},
        {"forward": "0.25 ms", "parameters": "32 MiB"}, {"forward": "3.7 ms"}, {"forward": "1 ms"},
        {"forward": "3.7 ms", "output": "13 MiB"}, {"forward": "2 ms", "parameters": "24 MiB"}]},
      "cluster": {"kind": "uniform", "devices": 12,
                  "link": {"latency": "0 us", "bandwidth": "10 GB/s"}, "memory": "80 GiB"},
      "parallel": {"pipeline": 4, "data": 3, "stages": 8, "zero_stage": 3}})");
  const auto folded = result_of(scenario), whole = result_of(with(scenario, "fold", "none"));
  REQUIRE(folded.has_value());
  REQUIRE(whole.has_value());
  CHECK(folds(*folded));
  CHECK(difference(*folded, *whole, 1e-9) == "");
}

TEST_CASE("engines agree on every device, whether links are shared or not") {
  check_property(
      [](const Json& scenario, const ScenarioResult&) -> Verdict {
        const Json unfolded = with(scenario, "fold", "none");
        const auto native = result_of(with(unfolded, "engine", "native"));
        const auto simgrid = result_of(with(unfolded, "engine", "simgrid"));
        if (!native || !simgrid) return native || simgrid ? "refused by one alone" : "";
        return difference(*native, *simgrid, 1e-9);
      },
      60);
}

TEST_CASE("a scenario whose durations are all twice as long has steps that are twice as long") {
  int anomalies = 0, chosen = 0;
  check_property(
      [&](const Json& scenario, const ScenarioResult& result) -> Verdict {
        const Program program = program_of(result);
        // Rounded ends send what never settles another way.
        const bool settles = !result.varied && result.measurement.metrics.steady;
        if (!settles && rounding(program) > 1e-9) return std::nullopt;
        const auto slower = result_of(slowed(scenario, 2));
        if (!slower) return "refused when it is slower";
        // Draws are those of the steps after the fill. Where two stages are equally slow, a tick of
        // rounding lets one drift against the other, so that the fill finds no end.
        const int fill = result.measurement.metrics.fill_steps;
        if (result.varied && slower->measurement.metrics.fill_steps != fill) return std::nullopt;
        const double once = result.measurement.metrics.step_time.value();
        const double twice = slower->measurement.metrics.step_time.value();
        const double rounded = result.varied ? 1e-5 : 1e-7;
        const bool doubles = std::abs(twice - 2 * once) <= rounded * twice;
        // Rounding may change which op a device chooses first, and with it the steps it settles on.
        if (chooses_order(program)) {
          ++chosen;
          anomalies += doubles ? 0 : 1;
          return std::nullopt;
        }
        if (doubles) return "";
        std::ostringstream text;
        text.precision(12);
        text << once << " s, then " << twice << " s";
        return text.str();
      },
      30);
  MESSAGE(chosen << " scenarios whose devices choose their order: steps of " << anomalies
                 << " do not double");
}

TEST_CASE("more bandwidth makes no step longer where orders are fixed and no link is shared") {
  int anomalies = 0, chosen = 0;
  check_property(
      [&](const Json& scenario, const ScenarioResult& result) -> Verdict {
        const Program program = program_of(result);
        if (shares_links(program)) return std::nullopt;
        const auto wider = result_of(widened(scenario, 2));
        if (!wider) return "refused with more bandwidth";
        // Draws are those of the steps after the fill.
        const int fill = result.measurement.metrics.fill_steps;
        if (result.varied && wider->measurement.metrics.fill_steps != fill) return std::nullopt;
        const double narrow = result.measurement.metrics.step_time.value();
        const double wide = wider->measurement.metrics.step_time.value();
        const bool longer = wide > narrow * (1 + 1e-9);
        if (chooses_order(program) || !program.interference.empty()) {
          ++chosen;
          anomalies += longer ? 1 : 0;
          return std::nullopt;
        }
        if (!longer) return "";
        return std::to_string(narrow) + " s, and " + std::to_string(wide) + " s with more";
      },
      20);
  MESSAGE(chosen << " scenarios whose devices choose their order: " << anomalies
                 << " are slower with more bandwidth");
}

TEST_CASE("no step is shorter than its bound") {
  check_property(
      [](const Json&, const ScenarioResult& result) -> Verdict {
        const Question& question = result.plan.question;
        const Metrics& metrics = result.measurement.metrics;
        if (question.trace() || question.variation || !metrics.steady) return std::nullopt;
        const double bound = estimate_step(result.plan, Grade::PlanBound).time.value();
        const double step = metrics.step_time.value();
        if (bound <= step * (1 + rounding(program_of(result)))) return "";
        return "a bound of " + std::to_string(bound) + " s, and a step of " + std::to_string(step);
      },
      30);
}

TEST_CASE("some of the scenarios that are drawn have attention on ranks of its own") {
  int helices = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto result = result_of(random_scenario(seed));
    if (result && result->plan.schedule.kind->layout == StageLayout::Helix) ++helices;
  }
  MESSAGE(helices << " of 150 scenarios");
  CHECK(helices >= 3);
}

TEST_CASE("some of the scenarios that are drawn pass weights round their ranks") {
  int rings = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto result = result_of(random_scenario(seed));
    if (result && result->plan.schedule.kind->layout == StageLayout::Ring) ++rings;
  }
  MESSAGE(rings << " of 150 scenarios");
  CHECK(rings >= 3);
}

TEST_CASE("some of the scenarios that are drawn cast messages, or send few gradients") {
  int casts = 0, few = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto result = result_of(random_scenario(seed));
    if (!result) continue;
    const Strategy& strategy = result->plan.question.training().strategy;
    casts += strategy.activation_format != SentFormat::Computed ||
                     strategy.gradient_format != SentFormat::Computed
                 ? 1
                 : 0;
    few += strategy.gradient_every > 1 ? 1 : 0;
  }
  MESSAGE(casts << " of 150 scenarios cast, " << few << " send few gradients");
  CHECK(casts >= 5);
  CHECK(few >= 1);
}

TEST_CASE("some of the scenarios that are drawn choose tokens, have latents, or 16 bits at ends") {
  int chosen = 0, latents = 0, ends = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Json scenario = random_scenario(seed);
    const Json &model = scenario["model"], &training = scenario["training"];
    const bool chooses = model.contains("latent_attention");
    const bool narrow = model.contains("expert_latent_size"),
               wide = training.contains("bf16_layers");
    if ((!chooses && !narrow && !wide) || !result_of(scenario)) continue;
    chosen += chooses ? 1 : 0;
    latents += narrow ? 1 : 0;
    ends += wide ? 1 : 0;
  }
  MESSAGE(chosen << " choose, " << latents << " have latents, " << ends << " have 16 bits");
  CHECK(chosen >= 3);
  CHECK(latents >= 3);
  CHECK(ends >= 1);
}

}  // namespace
}  // namespace interlock::scenario_properties_test
