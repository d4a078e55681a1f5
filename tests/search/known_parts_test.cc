// Documents that are loaded with parts of others are what they are when loaded alone.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/known_parts.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/plan/known_prices.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/search/plan_estimate.h"
#include "scenarios/sweep/sweep_plan.h"
#include "tests/search/random_space.h"
#include "tests/support/cases.h"

namespace interlock::known_parts_test {
namespace {

/// The numbers that a document stands for; or its mistakes.
struct Told {
  std::vector<double> numbers;
  std::string mistakes;
  bool operator==(const Told&) const = default;
};

template <class Load>
Told told_by(const Load& load) {
  try {
    const Question question = load();
    Told told;
    const StepEstimate layout =
        bound_layout(question, {.overlap = question.training().schedule.overlap});
    const LaidOut laid_out = lay_out(question);
    const Plan& plan = laid_out.ordered();
    const StepEstimate bound = estimate_step(plan, Grade::PlanBound);
    const PlanEstimate look = estimate_by_look(plan);
    told.numbers = {layout.time.value(),
                    layout.memory.value(),
                    bound.time.value(),
                    bound.memory.value(),
                    look.step_time,
                    look.peak_memory,
                    look.busy,
                    look.working_links,
                    look.mfu};
    told.numbers.insert(told.numbers.end(), look.values.begin(), look.values.end());
    for (const int boundary : plan.partition.boundaries) told.numbers.push_back(boundary);
    return told;
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

/// Makes a mistake, or none.
void spoil(JsonValue& document, Random& random) {
  switch (random.integer(0, 9)) {
    case 0:
      set_json(document, "cluster.machine", json_text("dgx-a1000"), "test");
      return;
    case 1:
      set_json(document, "model.hidden_size", json_number(-3), "test");
      return;
    case 2:
      set_json(document, "training.framework", json_text("no-such-framework"), "test");
      return;
    case 3:
      set_json(document, "training.framework", json_text("megatron-lm"), "test");
      return;
    default:
      return;
  }
}

TEST_CASE("a document loaded with parts of others says what it says alone, mistakes included") {
  constexpr int kDocuments = 40;
  int right = 0, wrong = 0;
  for (int seed = 0; seed < cases(8); ++seed) {
    const std::string space = random_space(seed, false);
    KnownParts parts;
    const auto prices = std::make_shared<KnownPrices>();
    Random random(static_cast<std::uint64_t>(seed), 3);
    for (int i = 0; i < kDocuments; ++i) {
      CAPTURE(seed);
      CAPTURE(i);
      JsonValue made = random_plan(space, random);
      spoil(made, random);
      const auto document = std::make_shared<const JsonValue>(std::move(made));
      const Told alone = told_by([&] { return load_point(document); });
      const Told among = told_by([&] {
        Question question = load_point(document, parts);
        question.known_prices = prices;
        return question;
      });
      CHECK(among.mistakes == alone.mistakes);
      CHECK(among.numbers == alone.numbers);
      ++(alone.mistakes.empty() ? right : wrong);
    }
  }
  CHECK(right > met_by_cases(50));
  CHECK(wrong > met_by_cases(50));
}

}  // namespace
}  // namespace interlock::known_parts_test
