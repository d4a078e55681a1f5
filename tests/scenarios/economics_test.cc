// Power, energy and money against cases that are worked by hand, and what nonsense is told.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/economics.h"

#include "tests/scenarios/documents.h"

namespace interlock::economics_test {
namespace {

const std::string kPower = R"(cluster.power={"busy": "400 W", "idle": "100 W"})";

/// Four modules of 1 ms an op, one behind the other: a step of 12 ms, each device busy for 3 ms.
Economics economics(const Overrides& overrides) {
  return economics_of(run_scenario(loaded(overrides), false));
}

TEST_CASE("a step draws busy power for its busy share and idle power for the rest") {
  MESSAGE("4 devices x (3 ms x 400 W + 9 ms x 100 W) = 4 x 2.1 J = 8.4 J; / 12 ms = 700 W");
  const Economics step = economics({kPower});
  CHECK(step.devices == 4);
  REQUIRE(step.energy);
  CHECK(step.energy->value() == doctest::Approx(8.4));
  CHECK(step.device_energy.value() == doctest::Approx(8.4));
  CHECK(step.power->value() == doctest::Approx(700));
  CHECK(!step.covers_links);
  CHECK(!step.covers_nodes);
  CHECK(!step.cost);
  CHECK(!step.training);
}

TEST_CASE("nodes, links and the building add to it") {
  MESSAGE("the four devices are one node: 12 ms x 1 kW = 12 J; (8.4 + 12) x 1.5 = 30.6 J");
  Economics step = economics({kPower, "cluster.power.node=\"1 kW\"", "cluster.power.pue=1.5"});
  CHECK(step.node_energy.value() == doctest::Approx(12));
  CHECK(step.energy->value() == doctest::Approx(30.6));
  CHECK(step.power->value() == doctest::Approx(30.6 / 12e-3));
  MESSAGE("outputs of 50 MB over 100 GB/s: 0.5 ms on each of 3 boundaries, forward and back.");
  MESSAGE("6 x 0.5 ms x 20 W = 0.06 J, whatever the step lasts: 12 + 6 x 0.5 = 15 ms");
  MESSAGE("devices: 4 x (3 ms x 400 W + 12 ms x 100 W) = 9.6 J; all: 9.66 J");
  step = economics({kPower, "model.modules.0.output=\"50 MB\"", "cluster.power.link=\"20 W\""});
  CHECK(step.link_energy.value() == doctest::Approx(0.06));
  CHECK(step.energy->value() == doctest::Approx(9.66));
}

TEST_CASE("devices that others stand for in the simulation draw and cost as well") {
  MESSAGE("4 replicas of 2 devices, of which one replica is simulated; no gradients to send.");
  MESSAGE("a device has 6 of 12 ms: 8 x (6 ms x 400 W + 6 ms x 100 W) = 24 J");
  MESSAGE("8 x 12 ms x 3.60 USD/h = 8 x 12e-6 USD = 96e-6 USD");
  const Overrides folded = {kPower, "cluster.devices=8", "cluster.price=\"3.60 USD/h\"",
                            "training.global_batch_size=8",
                            R"(parallel={"pipeline": 2, "data": 4})"};
  const ScenarioResult result = run_scenario(loaded(folded), false);
  CHECK(result.measurement.metrics.devices.size() == 2);
  const Economics step = economics_of(result);
  CHECK(step.devices == 8);
  CHECK(step.energy->value() == doctest::Approx(24));
  REQUIRE(step.cost);
  CHECK(step.cost->amount == doctest::Approx(96e-6));
  CHECK(step.cost->currency == "USD");
}

TEST_CASE("half of a machine answers for half of what is around its devices") {
  MESSAGE("DGX A100: 3.3 kW beside its devices (catalogue); 4 of 8 devices answer for 1.65 kW");
  const Question scenario =
      loaded({"cluster=null",
              R"(cluster={"machine": "dgx-a100-80g", "devices": 4, "power": {"node": "3.3 kW"}})"});
  const Economics step =
      economics_of(lay_out(scenario).draft, {.step_time = Seconds(2), .busy = 0.5});
  CHECK(step.node_energy.value() == doctest::Approx(3300));
}

TEST_CASE("a goal is its steps, and K(B) = c1 / B + c2 for each strategy") {
  const Overrides base = {kPower, "cluster.price=\"1.50 EUR/h\"", "training.global_batch_size=8"};
  const auto goal = [&](const std::string& text, const Overrides& more = {}) {
    Overrides all = base;
    all.insert(all.end(), more.begin(), more.end());
    all.push_back("goal=" + text);
    const Economics found = economics(all);
    REQUIRE(found.training);
    return *found.training;
  };
  MESSAGE("3,000,000 steps of 12 ms = 36,000 s = 10 h; x 700 W = 7 kWh; 4 x 10 h x 1.50 = 60 EUR");
  const TrainingCosts costs = goal(R"({"steps": 3000000})");
  CHECK(costs.steps == 3e6);
  CHECK(costs.time.value() == doctest::Approx(36000));
  CHECK(costs.goodput == 1);
  CHECK(costs.energy->value() / 3.6e6 == doctest::Approx(7));
  CHECK(costs.cost->amount == doctest::Approx(60));
  CHECK(costs.cost->currency == "EUR");
  MESSAGE("1000 samples of 8 a step: 125 steps, and 30 besides");
  CHECK(goal(R"({"samples": 1000})").steps == 125);
  const std::string curves = R"({"samples": 1000, "further_steps": 30, "strategies": {
    "local": {"samples": 1600, "further_steps": 50}, "interlocking": {"steps": 7},
    "3-wise": {"samples": 1200, "further_steps": 40}}})";
  CHECK(goal(curves).steps == 155);
  MESSAGE("local 1600 / 8 + 50; 3-wise 1200 / 8 + 40; pairwise as its kind says");
  CHECK(goal(curves, {"training.strategy=local"}).steps == 250);
  const std::string n_wise = R"(training.strategy={"kind": "interlocking", "n_wise": )";
  CHECK(goal(curves, {n_wise + "3}"}).steps == 190);
  CHECK(goal(curves, {n_wise + "2}"}).steps == 7);
  CHECK(goal(curves, {"training.strategy=pairwise"}).steps == 7);
  const std::string modules = R"({"steps": 1, "strategies": {"pairwise": {"steps": 2},
    "pairwise of 2-stage modules": {"steps": 3}, "chunked": {"steps": 4}}})";
  CHECK(goal(modules, {"training.strategy=pairwise"}).steps == 2);
  CHECK(goal(modules, {n_wise + R"(2, "module_stages": 2})"}).steps == 3);
  CHECK(goal(modules, {n_wise + R"(1, "module_stages": 2})"}).steps == 4);
  CHECK(goal(modules, {n_wise + R"(3, "module_stages": 2})"}).steps == 3);  // two modules: pairs
}

TEST_CASE("a run's checkpoints, failures and spares are paid for") {
  MESSAGE("1000 steps of 12 ms, a blocking write of 1 s behind each 100: 12 + 10 = 22 s.");
  MESSAGE(
      "steps draw 700 W: 8.4 kJ; while it writes 4 x 100 W: 4 kJ; a spare 100 W x 22 s: 2.2 kJ");
  MESSAGE("5 devices x 22 s x 36 USD/h = 1.10 USD");
  const Overrides run = {kPower, "cluster.price=\"36 USD/h\"",
                         R"(run={"steps": 1000, "spares": 1,
                                 "checkpoint": {"interval": 100, "write": "1 s"}})"};
  const Economics found = economics(run);
  REQUIRE(found.training);
  CHECK(found.training->steps == 1000);
  CHECK(found.training->time.value() == doctest::Approx(22));
  CHECK(found.training->goodput == doctest::Approx(12.0 / 22));
  CHECK(found.training->energy->value() == doctest::Approx(14600));
  CHECK(found.training->cost->amount == doctest::Approx(1.10));
  MESSAGE("a goal of ten times as many steps takes ten times of all that");
  Overrides longer = run;
  longer.push_back(R"(goal={"steps": 10000})");
  const TrainingCosts ten = *economics(longer).training;
  CHECK(ten.time.value() == doctest::Approx(220));
  CHECK(ten.energy->value() == doctest::Approx(146000));
  CHECK(ten.cost->amount == doctest::Approx(11));
}

TEST_CASE("what is not known is no number") {
  const Economics step = economics({R"(cluster.power={"node": "1 kW"})", R"(goal={"steps": 9})"});
  CHECK(!step.energy);
  CHECK(!step.power);
  CHECK(!step.cost);
  CHECK(step.covers_nodes);
  CHECK(step.training->steps == 9);
  CHECK(!step.training->energy);
  CHECK(!step.training->cost);
}

TEST_CASE("nonsense about power, prices and goals is told") {
  const auto price = [](const std::string& text) { return mistakes({"cluster.price=" + text}); };
  const std::string expected =
      "; expected a price of a device and hour such as \"2.50 USD/h\", got ";
  CHECK(price("\"-2 USD/h\"") ==
        "set: /cluster/price: must not be negative" + expected + "\"-2 USD/h\"");
  CHECK(price("2.5") == "set: /cluster/price: a plain number has no currency" + expected + "2.5");
  for (const std::string text : {"\"$2.50/h\"", "\"2.50 dollars/h\"", "\"2.50 USD\"",
                                 "\"2.50 usd/h\"", "\"2.50 USD/d\"", "true"}) {
    CHECK(price(text) ==
          "set: /cluster/price: not a number with a currency of three capital "
          "letters and \"/h\"" +
              expected + text);
  }
  CHECK(price("\"1e300 USD/h\"").find("out of range") != std::string::npos);
  CHECK(mistakes({R"(cluster.power={"busy": "400 J", "idle": 50, "pue": 0.5, "node": "-1 W",
                                    "link": "2 GW", "card": "1 W"})"}) ==
        "set: /cluster/power/node: must not be negative; expected a power such as \"400 W\", got "
        "\"-1 W\"\n"
        "set: /cluster/power/link: out of range; expected 0 W to 1 GW, got \"2 GW\"\n"
        "set: /cluster/power/pue: expected a number from 1 to 10, got 0.5\n"
        "set: /cluster/power/busy: wrong unit; expected a power such as \"400 W\", got \"400 J\"\n"
        "set: /cluster/power/idle: a plain number has no unit; expected a power such as \"400 W\", "
        "got 50\n"
        "set: /cluster/power/card: unknown key; known: node, link, pue, busy, idle");
  CHECK(mistakes({R"(cluster.power={"busy": "50 W", "idle": "400 W"})"}) ==
        "set: /cluster/power: a device draws more when idle than when busy; expected \"busy\" to "
        "be at least \"idle\"");
  CHECK(mistakes({R"(cluster.power={"busy": "50 W"})"}) ==
        "set: /cluster/power: the device's other power is unknown; expected \"busy\" and \"idle\"");
  CHECK(mistakes({R"(goal={"tokens": 5, "steps": 5, "strategies": {"locale": {"steps": 0}}})"}) ==
        "set: /goal: expected how long to train as one of \"steps\", \"samples\" and \"tokens\"\n"
        "set: /goal/strategies/locale: unknown strategy \"locale\"; expected global, local, "
        "interlocking, greedy, chunked, overlapping, forward-forward, backlink, tree, independent, "
        "pairwise, "
        "inference or 3-wise (did you mean \"local\"?)\n"
        "set: /goal/strategies/locale/steps: expected a whole number from 1 to 1000000000, got 0");
  CHECK(mistakes({R"(goal={"tokens": 5})", "training.global_batch_size=4"}) ==
        "set: /goal/tokens: the model has no tokens; expected \"samples\" or \"steps\"");
  CHECK(mistakes({R"(goal={"steps": 5, "strategies": {"global": {"samples": 5}}})"}) ==
        "set: /goal/strategies/global/samples: nothing says how many samples a micro-batch holds; "
        "expected \"steps\", or training.global_batch_size");
}

}  // namespace
}  // namespace interlock::economics_test
