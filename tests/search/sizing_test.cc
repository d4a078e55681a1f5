// Sizes: the plans that search finds, priced by hand; front and recommendation by definition.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/starter/sizing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/simulate/economics.h"
#include "scenarios/starter/starter.h"
#include "tests/support/cases.h"

namespace interlock::sizing_test {
namespace {

/// GPT-2 with 64 sequences a step over a billion tokens, on two and four A100s.
SizingQuestion small_question() {
  return {.model = "gpt2",
          .machines = {{"dgx-a100-40g", ""}},
          .devices = {2, 4},
          .length = 1e9,
          .batch = 65536};
}

std::string refusal(const SizingQuestion& question) {
  try {
    size_up(question, 2);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Draws sizes from so few numbers that many are equal in one or in both.
std::vector<SizePrice> random_sizes(Random& random) {
  std::vector<SizePrice> sizes(static_cast<std::size_t>(random.integer(1, 12)));
  for (SizePrice& size : sizes) {
    size.time = Seconds(random.integer(1, 6));
    size.cost = random.integer(1, 6);
  }
  return sizes;
}

TEST_CASE("the front is what no other size beats, by its definition over all pairs") {
  Random random(11, 0);
  for (int i = 0; i < cases(300); ++i) {
    const std::vector<SizePrice> sizes = random_sizes(random);
    const std::vector<bool> front = pareto_front(sizes);
    REQUIRE(front.size() == sizes.size());
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      bool beaten = false;
      for (const SizePrice& b : sizes) {
        const bool no_worse = b.time <= sizes[a].time && b.cost <= sizes[a].cost;
        beaten = beaten || (no_worse && (b.time < sizes[a].time || b.cost < sizes[a].cost));
      }
      CHECK(front[a] == !beaten);
    }
  }
}

/// Returns the least of `measure` over the sizes that are `allowed`; infinite if none is.
double least(const std::vector<SizePrice>& sizes,
             const std::function<bool(const SizePrice&)>& allowed,
             const std::function<double(const SizePrice&)>& measure) {
  double found = INFINITY;
  for (const SizePrice& size : sizes) {
    if (allowed(size)) found = std::min(found, measure(size));
  }
  return found;
}

TEST_CASE("the recommended size is the cheapest in time, the quickest in the budget, or the knee") {
  Random random(12, 0);
  const auto time = [](const SizePrice& size) { return size.time.value(); };
  const auto cost = [](const SizePrice& size) { return size.cost; };
  const auto any = [](const SizePrice&) { return true; };
  for (int i = 0; i < cases(300); ++i) {
    const std::vector<SizePrice> sizes = random_sizes(random);
    const double most_time = 0.5 + random.integer(0, 6);
    const double most_cost = 0.5 + random.integer(0, 6);
    const auto first = [&](const SizingAims& aims) {
      const std::vector<std::size_t> order = recommended_order(sizes, aims);
      REQUIRE(order.size() == sizes.size());
      return sizes[order.front()];
    };
    const auto in_time = [&](const SizePrice& size) { return time(size) <= most_time; };
    const auto in_budget = [&](const SizePrice& size) { return cost(size) <= most_cost; };
    const Money budget = {most_cost, "USD"};

    const SizePrice knee = first({});
    CHECK(time(knee) * cost(knee) ==
          least(sizes, any, [](const SizePrice& size) { return size.time.value() * size.cost; }));
    const SizePrice cheap = first({.time = Seconds(most_time)});
    const double cheapest = least(sizes, in_time, cost);
    CHECK((cheapest < INFINITY ? cost(cheap) == cheapest : time(cheap) == least(sizes, any, time)));
    const SizePrice quick = first({.budget = budget});
    const double quickest = least(sizes, in_budget, time);
    CHECK((quickest < INFINITY ? time(quick) == quickest : cost(quick) == least(sizes, any, cost)));
    const SizePrice both = first({.time = Seconds(most_time), .budget = budget});
    const double within = least(
        sizes, [&](const SizePrice& size) { return in_time(size) && in_budget(size); }, cost);
    if (within < INFINITY) CHECK((in_time(both) && in_budget(both) && cost(both) == within));
  }
}

TEST_CASE("a size would lead with steps shorter by just the share that is told") {
  Random random(13, 0);
  int behind = 0;
  for (int i = 0; i < cases(300); ++i) {
    const std::vector<SizePrice> sizes = random_sizes(random);
    SizingAims aims;
    if (random.integer(0, 1) == 1) aims.time = Seconds(0.5 + random.integer(0, 6));
    if (random.integer(0, 1) == 1) aims.budget = Money{0.5 + random.integer(0, 6), "USD"};
    const std::vector<std::size_t> order = recommended_order(sizes, aims);
    for (std::size_t place = 1; place < order.size(); ++place) {
      const SizePrice &first = sizes[order[0]], &later = sizes[order[place]];
      const double share = share_to_lead(first, later, aims);
      REQUIRE(share >= 0);
      REQUIRE(share < 1);
      const auto leads = [&](double shorter) {
        const double left = 1 - shorter;
        const SizePrice faster = {left * later.time, left * later.cost};
        return recommended_order({first, faster}, aims).front() == 1;
      };
      CHECK(leads(share + 1e-9));
      CHECK_FALSE(leads(share - 1e-9));
      behind += share > 0;
    }
  }
  CHECK(behind > 0);
}

TEST_CASE("a machine that borrows its efficiencies says so, and each row what it rests on") {
  SizingQuestion question = small_question();
  question.machines = {{"dgx-h100", ""}, {"vr200-nvl72", ""}};
  question.devices = {2};
  const Sizing sizing = size_up(question, 2);
  REQUIRE(sizing.ranking.size() == 2);
  const SizedPlan &own = sizing.rows[0], &other = sizing.rows[1];
  CHECK_FALSE(own.borrowed);
  CHECK_FALSE(own.confidence.borrowed);
  REQUIRE(other.borrowed);
  CHECK(other.borrowed->from == "gb200");
  CHECK(other.confidence.borrowed);
  for (const SizedPlan& row : sizing.rows) {
    const ScenarioResult result = run_scenario(load_questions(row.plan->document).front(), false);
    REQUIRE(row.confidence.range);
    CHECK(row.confidence.range->low.value() ==
          doctest::Approx(result.confidence.range->low.value()));
    CHECK(row.confidence.range->high.value() ==
          doctest::Approx(result.confidence.range->high.value()));
    CHECK(row.confidence.extrapolates == result.confidence.extrapolates);
  }
}

TEST_CASE("a setting that every plan chooses by itself is refused, with what to type") {
  const auto refused = [](const std::string& set) {
    SizingQuestion question = small_question();
    question.overrides = {set};
    return refusal(question);
  };
  CHECK(has(refused("parallel.tensor=16"), "--set 'search.tensor=[16]' in its place"));
  CHECK(has(refused("training.schedule=zb-h1"), "'search.schedule=[\"zb-h1\"]'"));
  CHECK(has(refused("training.recompute=full"), "'search.recompute=[\"full\"]'"));
  CHECK(has(refused("training.micro_batch_size=4"), "'search.micro_batch_size=[4]'"));
  CHECK(has(refused("training={\"schedule\": \"gpipe\"}"), "'search.schedule=[\"gpipe\"]'"));
}

TEST_CASE("a value of a wrong type that every plan chooses is refused as what it is") {
  const auto refused = [](const std::string& set) {
    SizingQuestion question = small_question();
    question.overrides = {set};
    return refusal(question);
  };
  CHECK(refused("parallel.zero_stage=x") ==
        "--set parallel.zero_stage: expected a whole number from 0 to 3, got \"x\"; each plan "
        "chooses it: --set 'search.zero_stage=[...]'");
  CHECK(has(refused("training.recompute=17"), "expected a name or an object"));
  CHECK(has(refused("search.zero_stage=x"), "/search/zero_stage: expected a whole number"));
}

TEST_CASE("a slip in a key, name or type is told before any plan is listed, by plan and search") {
  for (const auto& [set, told] :
       {std::pair{"training.precison=bf16", "/training/precison: unknown key; did you mean"},
        {"training.precision=bf17", "/training/precision: unknown name \"bf17\""},
        {"parallel.sequenze_parallel=true", "/parallel/sequenze_parallel: unknown key"},
        {"simulate.engin=native", "/simulate/engin: unknown key"},
        {"training.precision=17", "/training/precision: wrong type; expected a name"},
        {"training.strategy=17", "/training/strategy: expected the name of a strategy"},
        {"training.optimizer=true", "/training/optimizer: expected \"adam\" or"},
        {"training.framework=5", "/training/framework: wrong type; expected a name"},
        {"training.offload=3", "/training/offload: expected an object, got 3"},
        {"parallel.sequence_parallel=7", "/parallel/sequence_parallel: expected true or false"},
        {"cluster.port.latency=3", "/cluster/port/latency: a plain number has no unit"},
        {"model.layerz=3", "/model/layerz: unknown key"}}) {
    CAPTURE(set);
    SizingQuestion question = small_question();
    question.machines = {{"dgx-a100-40g", ""}, {"dgx-h100", ""}};
    question.overrides = {set};
    int listed = 0;
    const SizingListener listener = {.told = [&](const SizingProgress&) { ++listed; }};
    std::string said;
    try {
      size_up(question, 2, listener);
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK(said.starts_with("--set "));
    CHECK(has(said, told));
    CHECK(!has(said, "\n"));  // once, for both machines
    JsonValue document = planless_document(
        begin_starter({.model = "gpt2", .machine = "dgx-a100-40g", .devices = 4}), "test");
    apply_overrides(document, question.overrides);
    CHECK_THROWS_WITH_AS(search_plans(document, 2, [&](std::size_t, std::size_t) { ++listed; }),
                         said.c_str(), Error);
    CHECK(listed == 0);
  }
}

TEST_CASE("a row is what a search of init's scenario finds, and its time follows by hand") {
  const Sizing sizing = size_up(small_question(), 2);
  REQUIRE(sizing.rows.size() == 2);
  for (const SizedPlan& row : sizing.rows) {
    CAPTURE(row.devices);
    const Starter starter = make_starter({.model = "gpt2",
                                          .machine = "dgx-a100-40g",
                                          .devices = row.devices,
                                          .global_batch_size = 64},
                                         2);
    JsonValue document = parse_json(starter_text(starter, ""), "init");
    apply_overrides(document, {"parallel.sequence_parallel=true"});
    const SearchResult searched = search_plans(document, 2);
    const PlanEstimate &found = row.plan->estimate, &best = searched.plans.front().estimate;
    CHECK(row.fits);
    CHECK(found.step_time == best.step_time);
    CHECK(found.peak_memory == best.peak_memory);
    // A billion tokens in steps of 64 x 1024, each a whole one.
    const double steps = std::ceil(1e9 / 65536);
    CHECK(row.time.value() == doctest::Approx(steps * best.step_time).epsilon(1e-12));
    const double tokens_per_s = 65536 / best.step_time;
    CHECK(row.time.value() / 86400 == doctest::Approx(1e9 / tokens_per_s / 86400).epsilon(1e-4));
    CHECK(row.device_hours == doctest::Approx(row.devices * row.time.value() / 3600));
    // 6 flops a token and parameter, and those of attention: 124 M parameters, 312 TFLOP/s.
    const double flops = 6 * 124e6 * tokens_per_s / row.devices;
    CHECK(found.mfu * 312e12 > flops);
    CHECK(found.mfu * 312e12 < 1.3 * flops);
    CHECK(found.flops_per_s == doctest::Approx(found.mfu * 312e12));
  }
}

TEST_CASE("prices of machines price their rows, and without all of them hours are compared") {
  SizingQuestion question = small_question();
  question.machines = {{"dgx-a100-40g", "2 USD/h"}, {"dgx-h100", "5 USD/h"}};
  const Sizing priced = size_up(question, 2);
  CHECK(priced.by_money);
  for (const SizedPlan& row : priced.rows) {
    const double hour = row.machine == 0 ? 2 : 5;
    CHECK(row.cost->amount == doctest::Approx(hour * row.device_hours));
    CHECK(row.energy.has_value());
  }
  question.machines[1].price = "";
  CHECK(!size_up(question, 2).by_money);
  question.machines[1].price = "5 EUR/h";
  CHECK(!size_up(question, 2).by_money);
}

TEST_CASE("failures lengthen a row by what a simulated run of its plan says") {
  SizingQuestion question = small_question();
  question.devices = {4};
  const SizedPlan calm = size_up(question, 2).rows.front();
  question.device_mtbf = "10 h";
  const SizedPlan row = size_up(question, 2).rows.front();
  CHECK_FALSE(calm.goodput);
  CHECK(row.plan->estimate.step_time == calm.plan->estimate.step_time);
  JsonValue document = row.plan->document;
  apply_overrides(document, {R"(run={"tokens": 1e9, "checkpoint": {"write": "1 min"},
      "failures": {"device_mtbf": "10 h"}, "detection": "2 min", "reload": "8 min"})"});
  const ScenarioResult result = run_scenario(load_questions(document).front(), false);
  const TrainingCosts costs = *economics_of(result).training;
  CHECK(costs.goodput < 1);
  CHECK(row.goodput.value() == doctest::Approx(costs.goodput).epsilon(1e-6));
  CHECK(row.time.value() == doctest::Approx(costs.time.value()).epsilon(1e-6));
  CHECK(row.energy->value() == doctest::Approx(costs.energy->value()).epsilon(1e-6));
}

TEST_CASE("under weak scaling each device keeps its share of the batch") {
  SizingQuestion question = small_question();
  question.weak = true;
  const Sizing sizing = size_up(question, 2);
  CHECK(sizing.rows[0].global_batch_size == 64);
  CHECK(sizing.rows[1].global_batch_size == 128);
  question.devices = {2, 3};
  question.batch = 1024;
  CHECK(has(size_up(question, 2).rows[1].problem, "makes 1.50 on 3"));
}

TEST_CASE("a size without a plan says why, and leaves the others alone") {
  SizingQuestion question = small_question();
  question.machines = {{"dgx-a100-40g", ""}, {"pcie-rtx-3090", ""}};
  question.devices = {4, 127};
  const Sizing sizing = size_up(question, 2);
  REQUIRE(sizing.rows.size() == 4);
  CHECK(sizing.rows[0].fits);
  CHECK(has(sizing.rows[1].problem, "the batch of 64 samples divides"));
  CHECK(sizing.ranking.size() == 2);

  question.model = "gpt3-175b";
  question.batch = 131072;
  question.machines.resize(1);
  question.devices = {2};
  const Sizing none = size_up(question, 2);
  CHECK(!none.rows[0].fits);
  CHECK(none.ranking.empty());
  REQUIRE(none.rows[0].plan);  // the leanest
  CHECK(none.rows[0].plan->estimate.peak_memory > none.rows[0].memory_limit.value());
}

TEST_CASE("a size that a limit leaves without a plan names the limit, not memory") {
  SizingQuestion question = small_question();
  const Sizing fast = size_up(question, 2);
  REQUIRE(fast.ranking.size() == 2);
  INFO("between the times of four devices and of two");
  const double between = (fast.rows[0].time.value() + fast.rows[1].time.value()) / 2;
  question.overrides = {"search.limits.time=\"" + std::to_string(between) + " s\""};
  const Sizing limited = size_up(question, 2);
  CHECK(limited.rows[0].problem == "no plan is within search.limits.time");
  CHECK_FALSE(limited.rows[0].plan);
  CHECK(limited.rows[1].fits);
  CHECK_FALSE(limited.rows[1].goodput);
}

TEST_CASE("an interrupt keeps the sizes that are done, and names the others") {
  int asked = 0;
  SizingListener listener;
  std::size_t row = 0;
  listener.told = [&](const SizingProgress& at) { row = at.row; };
  listener.stop = [&] { return row == 1 && ++asked > 0; };
  const Sizing sizing = size_up(small_question(), 2, listener);
  CHECK(sizing.stopped);
  CHECK(sizing.rows[0].fits);
  CHECK(sizing.rows[1].problem == "not searched: interrupted");
  CHECK(sizing.ranking == std::vector<std::size_t>{0});
}

TEST_CASE("what cannot be sized up is refused in a sentence") {
  SizingQuestion question = small_question();
  question.aims.budget = Money{100, "EUR"};
  CHECK(has(refusal(question), "the price of dgx-a100-40g is unknown"));
  question.machines[0].price = "2 USD/h";
  CHECK(has(refusal(question), "--budget: is in EUR, and dgx-a100-40g is paid in USD"));
  question = small_question();
  question.batch = 65537;
  CHECK(has(refusal(question), "expected a multiple, e.g. 65536"));
  question = small_question();
  question.machines = {{"dgx-h10", ""}, {"dgx-b20", ""}};
  CHECK(has(refusal(question), "did you mean \"dgx-h100\"?"));
  CHECK(has(refusal(question), "did you mean \"dgx-b200\"?"));
  question = small_question();
  question.model = "resnet-50";
  CHECK(has(refusal(question), "resnet-50 has no tokens; expected --samples N"));
  question = small_question();
  question.overrides = {"training.precision=fp3"};
  CHECK(has(refusal(question), "unknown name \"fp3\""));
}

}  // namespace
}  // namespace interlock::sizing_test
