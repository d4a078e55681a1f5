// A sweep stands for the product of its lists.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/documents.h"

namespace interlock::sweep_test {
namespace {

std::vector<std::string> names_of(const std::vector<Question>& scenarios) {
  std::vector<std::string> names;
  names.reserve(scenarios.size());
  for (const Question& scenario : scenarios) names.push_back(scenario.name);
  return names;
}

TEST_CASE("a sweep runs every combination, the last path fastest, and names each") {
  const auto scenarios = loaded_all(
      {R"(sweep={"training.strategy": ["global", "pairwise"], "parallel.pipeline": [2, 4]})"});
  CHECK(names_of(scenarios) == std::vector<std::string>{"test | strategy=global | pipeline=2",
                                                        "test | strategy=global | pipeline=4",
                                                        "test | strategy=pairwise | pipeline=2",
                                                        "test | strategy=pairwise | pipeline=4"});
  CHECK(scenarios[1].layout.ranks() == 4);
  CHECK(scenarios[2].layout.ranks() == 2);
  CHECK(scenarios[2].training().strategy.kind == StrategyKind::Interlocking);
}

TEST_CASE("an object is merged over what is at its path") {
  const auto scenarios =
      loaded_all({"training.steps=5",
                  R"(sweep={"training": [{"micro_batches": 4, "schedule": "gpipe"},
                            {"strategy": "local"}]})"});
  REQUIRE(scenarios.size() == 2);
  CHECK(scenarios[0].training().schedule.kind->name == "gpipe");
  CHECK(scenarios[0].training().micro_batches == 4);
  CHECK(scenarios[1].training().strategy.kind == StrategyKind::Local);
  CHECK(scenarios[1].training().steps == 5);
  CHECK(scenarios[0].name == "test | micro_batches=4, schedule=gpipe");
}

TEST_CASE("a name in a value labels its scenario, and a swept name replaces it") {
  CHECK(names_of(loaded_all(
            {"name=base", R"(sweep={"training": [{"name": "A", "steps": 2}, {"steps": 3}]})"})) ==
        std::vector<std::string>{"base | A", "base | steps=3"});
  CHECK(names_of(loaded_all({R"(sweep={"name": ["one", "two"]})"})) ==
        std::vector<std::string>{"one", "two"});
  CHECK(names_of(loaded_all({R"(sweep={"cluster": [{"name": "mesh", "devices": 8}]})",
                             "parallel.pipeline=4"})) == std::vector<std::string>{"test | mesh"});
  CHECK(names_of(loaded_all({"cluster=dgx-h100", R"(sweep={"cluster": [
          {"name": "A", "machine": "dgx-a100-80g", "devices": 4}], "cluster.network": [
          {"name": "tree", "kind": "fat-tree", "nodes_per_leaf": 1}]})"})) ==
        std::vector<std::string>{"test | A | tree"});
}

TEST_CASE("an axis is named by as much of its path as tells it from the others") {
  const auto name = [](const std::string& sweep) {
    const std::string two = R"(model.modules=[{"forward": "1 ms"}, {"forward": "1 ms"}])";
    return names_of(loaded_all({two, "parallel.pipeline=1", "sweep=" + sweep})).at(0);
  };
  CHECK(name(R"({"model.modules.0.forward": ["2 ms"]})") == "test | forward=2 ms");
  CHECK(name(R"({"model.modules.0.forward": ["2 ms"], "model.modules.1.forward": ["3 ms"]})") ==
        "test | modules.0.forward=2 ms | modules.1.forward=3 ms");
  CHECK(name(R"({"training.schedule.kind": ["gpipe"], "training.strategy": [{"kind": "global"}],
                 "training.strategy.kind": ["global"]})") ==
        "test | schedule.kind=gpipe | kind=global | strategy.kind=global");
}

TEST_CASE("a value of another kind replaces what it lands on, and null removes it") {
  const auto scenarios =
      loaded_all({R"(training.strategy={"kind": "interlocking", "n_wise": 3})",
                  R"(sweep={"training.strategy": [{"n_wise": 2}, {"kind": "local"}],
                "training.steps": [null]})"});
  REQUIRE(scenarios.size() == 2);
  CHECK(scenarios[0].training().strategy.kind == StrategyKind::Interlocking);
  CHECK(scenarios[0].training().strategy.n_wise == 2);
  CHECK(scenarios[1].training().strategy.kind == StrategyKind::Local);
  CHECK(scenarios[1].training().steps == 8);
}

TEST_CASE("a sweep may reach into arrays and supply what the rest lacks") {
  JsonValue lacking = document(kFourModules, {R"(sweep={"model.modules.0.forward": ["1 ms", "2 ms"],
                               "training": [{"strategy": "local"}]})"});
  std::erase_if(lacking.members, [](const auto& member) { return member.first == "training"; });
  CHECK(load_questions(lacking).size() == 2);
}

TEST_CASE("paths with commas between them are set together") {
  const auto scenarios =
      loaded_all({R"(sweep={"parallel.pipeline, training.micro_batches": [2, [4, 8]],
                                              "training.steps": [3]})"});
  REQUIRE(scenarios.size() == 2);
  CHECK(scenarios[0].layout.ranks() == 2);
  CHECK(scenarios[0].training().micro_batches == 2);
  CHECK(scenarios[1].layout.ranks() == 4);
  CHECK(scenarios[1].training().micro_batches == 8);
  CHECK(scenarios[1].training().steps == 3);
  CHECK(scenarios[1].name == "test | pipeline=4 | steps=3");
  CHECK(scenarios[1].swept[0].number == 4);
  CHECK(mistakes({R"(sweep={"parallel.pipeline, training.steps": [[1, 2, 3]]})"})
            .find("a list with one for each, got 3") != std::string::npos);
  CHECK(mistakes({R"(sweep={"parallel.pipeline, nowhere": [1]})"})
            .find("the path \"nowhere\" leads to no key") != std::string::npos);
}

TEST_CASE("a published quality is told, and changes nothing") {
  const std::string good =
      R"(quality={"measure": "error, percent", "value": 7.5, "source": "table 1"})";
  CHECK(mistakes({good}).empty());
  CHECK(loaded({good}).document->find("quality")->find("value")->number == 7.5);
  CHECK(mistakes({R"(quality={"value": "good"})"}).find("measure") != std::string::npos);
}

TEST_CASE("sweeps that never end, hold nothing or too much are refused") {
  CHECK(mistakes({R"(sweep={"sweep": [{"name": ["a"]}]})"}) ==
        "set: /sweep/sweep: a sweep over the sweep itself never ends; expected the path of another "
        "key");
  CHECK(mistakes({R"(sweep={"sweep.training.steps": [[1]]})"}) ==
        "set: /sweep/sweep.training.steps: a sweep over the sweep itself never ends; expected the "
        "path of another key");
  CHECK(mistakes({R"(sweep={"training.steps": []})"}) ==
        "set: /sweep/training.steps: an empty list leaves nothing to run; expected a value");
  CHECK(mistakes({R"(sweep={"training.steps": 4})"}) ==
        "set: /sweep/training.steps: expected a list of values");
  CHECK(mistakes({R"(sweep={"trainin.steps": [4]})"}) ==
        "set: /sweep/trainin.steps: the path \"trainin.steps\" leads to no key; expected one such "
        "as \"training.strategy\"");
  CHECK(mistakes({"sweep=[]"}) == "set: /sweep: expected an object from paths to lists of values");
  std::string many = "[1";
  for (int i = 2; i <= 101; ++i) many += ", " + std::to_string(i);
  many += "]";
  CHECK(mistakes({R"(sweep={"training.steps": )" + many + R"(, "simulate.seed": )" + many + "}"}) ==
        "set: /sweep: stands for 10201 scenarios; expected at most 10000");
}

TEST_CASE("a mistake that several scenarios share is told once, one of a value where it stands") {
  CHECK(mistakes({"training.stps=4", R"(sweep={"training.steps": [1, 2, 3]})"}) ==
        "set: /training/stps: unknown key; did you mean \"steps\"?");
  std::string text = kFourModules;
  text.insert(text.rfind('}'), R"(,
  "sweep": {"training.steps": [1,
                               -2],
            "training.model.x": [1]})");
  CHECK(mistakes_of(parse_json(text, "sweep.json")) ==
        "sweep.json: /training/model: unknown key; did you mean \"model\"?\n"
        "sweep.json:9: /training/steps: expected a whole number from 1 to 1000000, got -2");
}

TEST_CASE("keys are set inside the name of a strategy, schedule, cluster or model too") {
  const auto swept = loaded_all({"model.modules.0.repeat=8", "training.micro_batches=8",
                                 R"(sweep={"training.schedule": ["dualpipe", "dualpipe-v"],
                 "training.schedule.overlap": [0, 0.5]})"});
  REQUIRE(swept.size() == 4);
  CHECK(swept[1].training().schedule.kind->name == "dualpipe");
  CHECK(swept[1].training().schedule.overlap == 0.5);
  CHECK(swept[3].training().schedule.kind->name == "dualpipe-v");
  const auto other = loaded_all(
      {"training.strategy=interlocking", "cluster=dgx-h100", "model=gpt2",
       "training.global_batch_size=8",
       R"(sweep={"cluster.devices": [2], "training.strategy.n_wise": [3], "model.layers": [4]})"});
  CHECK(other.front().cluster.devices == 2);
  CHECK(other.front().training().graph.modules.size() == 6);
  CHECK(mistakes({"training.strategy=local", R"(sweep={"training.strategy.n_wise": [3]})"}) != "");
}

TEST_CASE("a path through a scalar or past a list is refused where the sweep says it") {
  CHECK(
      mistakes({R"(sweep={"training.strategy.kind.x": [1]})"}).find("nothing can be set inside") !=
      std::string::npos);
  CHECK(mistakes({R"(sweep={"model.modules.7.repeat": [1]})"}).find("no such element") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::sweep_test
