// Documents that are loaded with parts of others are what they are when loaded alone.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/known_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/plan/known_prices.h"
#include "scenarios/plan/lower_plan.h"
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

const std::string kPipeline = R"({
  "name": "orders",
  "model": {"kind": "transformer", "layers": 8, "hidden_size": 64, "attention_heads": 4,
            "vocab_size": 256, "sequence_length": 128},
  "cluster": {"machine": "dgx-a100-40g", "devices": 4},
  "parallel": {"pipeline": 4, "stages": 8},
  "training": {"strategy": {"kind": "interlocking", "head": {"kind": "lm"}}, "micro_batches": 8,
               "global_batch_size": 16, "optimizer": "adam"}
})";

/// Returns plans on one cluster, each of which differs from another in one thing that its order
/// of work depends on.
std::vector<Plan> plans_of_orders() {
  const std::string head = R"(training.strategy.head.weights={"stale_every": )";
  const std::vector<std::string> sliced = {"training.strategy=global", "parallel.stages=4",
                                           R"(training.schedule={"kind": "terapipe"})"};
  const auto with = [](std::vector<std::string> overrides, const std::string& further) {
    overrides.push_back(further);
    return overrides;
  };
  std::vector<Plan> plans;
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {},
           {"training.micro_batches=4"},
           {"training.strategy.n_wise=3"},
           {"parallel.stages=4"},
           {"parallel.placement=v"},
           {"training.schedule.update_every=4"},
           {head + "2}"},
           {head + "3}"},
           with(sliced, "training.schedule.slices=2"),
           with(sliced, "training.schedule.slices=4"),
           with(with(sliced, "training.schedule.slices=4"), "training.micro_batches=4"),
       }) {
    JsonValue document = parse_json(kPipeline, "orders.json");
    apply_overrides(document, overrides);
    const auto shared = std::make_shared<const JsonValue>(std::move(document));
    plans.push_back(lay_out(load_point(shared)).ordered());
  }
  return plans;
}

/// Lists the loops and instructions of a program, and how long its ops take.
std::vector<double> numbers_of(const Program& program) {
  std::vector<double> numbers;
  for (const Stream& one : program.streams) {
    for (const int part : {one.count, one.repeats, one.stride, one.lead, one.tail}) {
      numbers.push_back(part);
    }
  }
  for (const Segment& one : program.segments) {
    for (const int part : {one.count, one.repeats, one.stride}) numbers.push_back(part);
  }
  for (const Instruction& one : program.instructions) {
    for (const int part : {static_cast<int>(one.code), one.index, one.micro_batch}) {
      numbers.push_back(part);
    }
  }
  for (const OpInfo& one : program.ops) numbers.push_back(one.duration.value());
  return numbers;
}

TEST_CASE("programs are the same whether orders of work are kept from plan to plan or not") {
  const auto prices = std::make_shared<KnownPrices>();
  std::size_t programs = 0, most_kept = 0;
  for (const int from : {1, 4}) {  // the later ones again
    for (int steps = from; steps <= 8; ++steps) {
      for (Plan& plan : plans_of_orders()) {
        CAPTURE(steps);
        CAPTURE(programs);
        plan.question.known_prices = nullptr;
        const std::vector<double> alone = numbers_of(lower_plan(plan, steps));
        plan.question.known_prices = prices;
        CHECK((numbers_of(lower_plan(plan, steps)) == alone));
        ++programs;
        most_kept = std::max(most_kept, prices->schedules.size());
      }
    }
  }
  CHECK(programs == 143);
  CHECK(most_kept == 64);
}

}  // namespace
}  // namespace interlock::known_parts_test
