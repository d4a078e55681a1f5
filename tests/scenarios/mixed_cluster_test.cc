// Clusters of several machines against closed forms, and partitions against all that there are.
// SPDX-License-Identifier: Apache-2.0
//
// Layers of an MLP take 2 x samples x inputs x outputs flops forward and twice that backward, on
// devices whose memory and links are so fast that nothing else takes time.
#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "base/random.h"
#include "hardware/networks/cluster_reader.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/economics.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"
#include "tests/support/cases.h"

namespace interlock::mixed_cluster_test {
namespace {

constexpr double kSamples = 1000, kWidth = 1024;
constexpr double kLayer = 2 * kSamples * kWidth * kWidth;  // flops of a forward

struct Kind {
  std::string name;
  double teraflops = 1;
  double gibibytes = 8;
  int nodes = 1;
};

/// A machine of one device a node.
std::string machine_text(const Kind& kind) {
  const std::string fast = R"({"bandwidth": "1000000 TB/s"})";
  return R"({"kind": "machine", "name": ")" + kind.name + R"(", "nodes": )" +
         std::to_string(kind.nodes) + R"(, "port": )" + fast + R"(, "cards": )" + fast +
         R"(, "device": {"name": ")" + kind.name + R"( card", "memory": ")" +
         std::to_string(kind.gibibytes) + R"( GiB", "memory_bandwidth": "1000000 TB/s", )" +
         R"("efficiency": "peak", "peak": {"bf16": ")" + std::to_string(kind.teraflops) +
         R"( TFLOP/s"}}})";
}

JsonValue scenario(const std::vector<Kind>& kinds, const std::string& widths,
                   const Overrides& overrides) {
  std::string machines;
  for (const Kind& kind : kinds) machines += (machines.empty() ? "" : ", ") + machine_text(kind);
  return document(R"({"model": {"kind": "mlp", "input_size": 1024, "hidden_sizes": )" + widths +
                      R"(, "classes": 1024}, "cluster": {"machines": [)" + machines +
                      R"(]}, "training": {"strategy": "global", "global_batch_size": 4000,
                      "micro_batch_size": 1000, "schedule": "gpipe"}})",
                  overrides);
}

Question question_of(const JsonValue& value) { return load_questions(value).front(); }
ScenarioResult result_of(const JsonValue& value) { return run_scenario(question_of(value), false); }
double step_of(const JsonValue& value) {
  return result_of(value).measurement.metrics.step_time.value();
}

const Kind kSlow = {"slow", 1}, kFast = {"fast", 4};
const std::string kOneHidden = "[1024]";

TEST_CASE("two stages on two kinds take the closed form of GPipe") {
  MESSAGE("f1 + (m - 1) max(f1, f2) + f2, and the same of b = 2 f; m = 4");
  for (const auto& [first, second] : {std::pair(kSlow, kFast), std::pair(kFast, kSlow)}) {
    const double f1 = kLayer / (first.teraflops * 1e12), f2 = kLayer / (second.teraflops * 1e12);
    const double expected = 3 * (f1 + 3 * std::max(f1, f2) + f2);
    const ScenarioResult result =
        result_of(scenario({first, second}, kOneHidden, {"parallel.pipeline=2"}));
    const Metrics& metrics = result.measurement.metrics;
    CHECK(metrics.step_time.value() == doctest::Approx(expected).epsilon(1e-6));
    MESSAGE("MFU counts each device's own peak: 4 x 2 layers x 3 x flops over 5 TFLOP/s");
    CHECK(*metrics.mfu == doctest::Approx(24 * kLayer / (expected * 5e12)).epsilon(1e-6));
    CHECK(metrics.devices[0].busy == doctest::Approx(12 * f1 / expected).epsilon(1e-6));
    CHECK(metrics.devices[1].busy == doctest::Approx(12 * f2 / expected).epsilon(1e-6));
  }
}

TEST_CASE("replicas and tensor devices of two kinds go at the pace of the slower one") {
  for (const char* parallel : {R"({"data": 2})", R"({"tensor": 2})"}) {
    const std::string keys = std::string("parallel=") + parallel;
    const Overrides overrides = {keys, "parallel.pipeline=1", "training.global_batch_size=8000"};
    const ScenarioResult mixed = result_of(scenario({kSlow, kFast}, kOneHidden, overrides));
    Kind pair = kSlow;
    pair.nodes = 2;
    const double slow = step_of(scenario({pair}, kOneHidden, overrides));
    CHECK(mixed.measurement.metrics.step_time.value() == doctest::Approx(slow).epsilon(1e-6));
    CHECK(mixed.measurement.metrics.devices.size() == 2);
    CHECK(mixed.measurement.metrics.devices[1].busy ==
          doctest::Approx(mixed.measurement.metrics.devices[0].busy / 4).epsilon(1e-4));
  }
}

TEST_CASE("every engine simulates a mixed cluster, and finds the same") {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "auto"}) {
    double steps[2];
    for (int i = 0; i < 2; ++i) {
      steps[i] = step_of(scenario(
          {kSlow, kFast}, "[1024, 512, 2048]",
          {"parallel.pipeline=2", std::string("simulate.engine=") + (i == 0 ? "native" : "simgrid"),
           std::string("training.schedule=") + schedule}));
    }
    CHECK(steps[0] == doctest::Approx(steps[1]).epsilon(1e-9));
  }
}

TEST_CASE("devices of other machines are not folded, and those of one machine are") {
  Kind slow = kSlow, fast = kFast;
  slow.nodes = fast.nodes = 2;
  const Overrides within = {R"(parallel={"pipeline": 2, "data": 2})",
                            "training.global_batch_size=8000"};
  CHECK(result_of(scenario({slow, fast}, kOneHidden, within)).measurement.metrics.devices.size() ==
        2);
  Overrides across = within;
  across.push_back(R"(parallel.order=["pipeline", "data", "tensor", "context"])");
  CHECK(result_of(scenario({slow, fast}, kOneHidden, across)).measurement.metrics.devices.size() ==
        4);
  across.push_back(R"(simulate.fold=["data"])");
  CHECK_THROWS_WITH_AS(make_plan(question_of(scenario({slow, fast}, kOneHidden, across))),
                       doctest::Contains("device 2 (fast card) is of another machine than "
                                         "device 0 (slow card)"),
                       Error);
}

TEST_CASE("memory is that of each device, and the fullest is full by its own") {
  const Kind small = {"small", 1, 0.03};
  const ScenarioResult result =
      result_of(scenario({kFast, small}, kOneHidden, {"parallel.pipeline=2", "partition=[1, 1]"}));
  const Metrics& metrics = result.measurement.metrics;
  CHECK_FALSE(metrics.fits_in_memory);
  CHECK(metrics.devices[0].memory_capacity == Bytes(8.0 * 1024 * 1024 * 1024));
  CHECK(fullest_device(metrics).rank == 1);
  CHECK(metrics.memory_capacity == metrics.devices[1].memory_capacity);
  CHECK(metrics.devices[0].peak_memory < metrics.devices[0].memory_capacity);
}

TEST_CASE("money and energy are those of each kind") {
  const std::string power = R"({"busy": "400 W", "idle": "100 W"})";
  const ScenarioResult result = result_of(
      scenario({kSlow, kFast}, kOneHidden,
               {"parallel.pipeline=2", R"(cluster.machines.0.price="1 USD/h")",
                R"(cluster.machines.1.price="5 USD/h")", "cluster.machines.0.power=" + power,
                R"(cluster.machines.1.power={"busy": "800 W", "idle": "50 W"})"}));
  const Metrics& metrics = result.measurement.metrics;
  const double step = metrics.step_time.value();
  const double slow = metrics.devices[0].busy, fast = metrics.devices[1].busy;
  const Economics costs = economics_of(result);
  CHECK(costs.cost->amount == doctest::Approx(6 * step / 3600));
  CHECK(costs.energy->value() ==
        doctest::Approx(step * (400 * slow + 100 * (1 - slow) + 800 * fast + 50 * (1 - fast))));
  CHECK(device_hour(result.plan.question)->amount == doctest::Approx(3));
}

/// Layers of random widths on random devices, two or three of a kind each.
struct Trial {
  std::vector<int> widths;  // with the input and the classes
  std::vector<Kind> kinds;

  explicit Trial(Random& random) {
    const int layers = random.integer(5, 8), ranks = random.integer(2, 3);
    widths = {1024};
    for (int i = 0; i < layers; ++i) widths.push_back(256 * random.integer(1, 6));
    widths.push_back(1024);
    for (int rank = 0; rank < ranks; ++rank) {
      kinds.push_back({"kind" + std::to_string(rank), double(random.integer(1, 6))});
    }
  }
  int modules() const { return static_cast<int>(widths.size()) - 1; }
  std::string hidden() const {
    std::string text = "[";
    for (std::size_t i = 1; i + 1 < widths.size(); ++i) {
      text += (i > 1 ? ", " : "") + std::to_string(widths[i]);
    }
    return text + "]";
  }
  JsonValue text(const std::string& partition) const {
    return scenario(kinds, hidden(),
                    {"parallel.pipeline=" + std::to_string(kinds.size()), "partition=" + partition,
                     "training.schedule=1f1b"});
  }
  /// The time of the busiest device for a micro-batch, by hand.
  double busiest(const std::vector<int>& cuts) const {
    double most = 0;
    for (std::size_t rank = 0; rank < kinds.size(); ++rank) {
      double flops = 0;
      for (int i = cuts[rank]; i < cuts[rank + 1]; ++i) {
        flops += 6 * kSamples * widths[i] * widths[i + 1];
      }
      most = std::max(most, flops / (kinds[rank].teraflops * 1e12));
    }
    return most;
  }
};

/// Visits all cuts of `modules` modules into as many stages as `cuts` shall have.
void visit_cuts(int modules, std::size_t stages, std::vector<int>& cuts,
                const std::function<void(const std::vector<int>&)>& visit) {
  if (cuts.size() == stages) {
    cuts.push_back(modules);
    visit(cuts);
    cuts.pop_back();
    return;
  }
  const int left = static_cast<int>(stages - cuts.size());
  for (int next = cuts.back() + 1; next <= modules - left; ++next) {
    cuts.push_back(next);
    visit_cuts(modules, stages, cuts, visit);
    cuts.pop_back();
  }
}

std::string lengths(const std::vector<int>& cuts) {
  std::string text = "[";
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(cuts[i + 1] - cuts[i]);
  }
  return text + "]";
}

TEST_CASE("no partition keeps the busiest of mixed devices less busy") {
  for (int seed = 0; seed < cases(40); ++seed) {
    Random random(static_cast<std::uint64_t>(seed), 5);
    const Trial trial(random);
    double least = kInfinity;
    std::vector<int> cuts = {0};
    visit_cuts(trial.modules(), trial.kinds.size(), cuts,
               [&](const auto& all) { least = std::min(least, trial.busiest(all)); });
    const Plan plan = make_plan(question_of(trial.text("\"balanced\"")));
    INFO("seed " << seed << ", widths " << trial.hidden());
    CHECK(trial.busiest(plan.partition.boundaries) == doctest::Approx(least).epsilon(1e-6));
  }
}

/// The least time of the busiest device of all partitions of `trial` that fit; infinite if none
/// does.
double least_that_fits(const Trial& trial) {
  double least = kInfinity;
  std::vector<int> cuts = {0};
  visit_cuts(trial.modules(), trial.kinds.size(), cuts, [&](const std::vector<int>& all) {
    const Metrics metrics = result_of(trial.text(lengths(all))).measurement.metrics;
    if (metrics.fits_in_memory) least = std::min(least, trial.busiest(all));
  });
  return least;
}

TEST_CASE("of the partitions that fit each device the one is taken whose busiest is least busy") {
  int moved = 0, none = 0, missed = 0;
  const int count = std::max(12, cases(12));
  for (int seed = 0; seed < count; ++seed) {
    Random random(static_cast<std::uint64_t>(seed), 6);
    Trial trial(random);
    for (Kind& kind : trial.kinds) kind.gibibytes = 0.02 + 0.09 * random.uniform();
    const double least = least_that_fits(trial);
    const ScenarioResult found = result_of(trial.text("\"balanced\""));
    const bool fits = found.measurement.metrics.fits_in_memory;
    const double busiest = fits ? trial.busiest(found.plan.partition.boundaries) : kInfinity;
    CHECK((!fits || busiest >= least * (1 - 1e-6)));
    none += least == kInfinity ? 1 : 0;
    missed += busiest > least * (1 + 1e-6) ? 1 : 0;
    for (Kind& kind : trial.kinds) kind.gibibytes = 8;
    const Plan free = make_plan(question_of(trial.text("\"balanced\"")));
    moved += fits && free.partition.boundaries != found.plan.partition.boundaries ? 1 : 0;
  }
  MESSAGE(moved << " cuts moved for memory; nothing fits in " << none << "; " << missed
                << " missed");
  CHECK(moved > 0);
  // Messages that come early lie at their receiver, so that a peak depends on other cuts, too.
  CHECK(missed * 50 <= count);
}

TEST_CASE("machines are called by those that are used, and joined by the network beside them") {
  const auto cluster_of = [](const std::string& text) {
    const JsonValue value = parse_json(text, "cluster.json");
    Diagnostics diagnostics;
    Cluster cluster = read_cluster({&value, ""}, diagnostics);
    diagnostics.throw_if_any();
    return cluster;
  };
  CHECK(cluster_of(R"({"machines": ["dgx-h100", "dgx-a100-80g"], "devices": 8})").name ==
        "dgx-h100");
  CHECK(cluster_of(R"({"machines": ["dgx-h100", "dgx-a100-80g"], "devices": 9})").name ==
        "dgx-h100 + dgx-a100-80g");
  CHECK(cluster_of(R"({"machines": ["dgx-h100", "dgx-a100-80g"], "name": "own", "devices": 8})")
            .name == "own");
  const std::string sites = R"({"kind": "wan", "nodes": [1, 1], "delay": [[null, "1 ms"],
      ["1 ms", null]], "bandwidth": [[null, "1 GB/s"], ["1 GB/s", null]]})";
  const std::string folder = std::filesystem::temp_directory_path() / "interlock_mixed_cluster";
  std::filesystem::create_directories(folder);
  write_file(folder + "/three.json", R"({"kind": "machine", "device": "a100-80g",
      "devices_per_node": 4, "port": {"bandwidth": "300 GB/s"}, "cards": {"bandwidth": "25 GB/s"},
      "network": {"kind": "torus", "dimensions": [3], "link": {"bandwidth": "25 GB/s"}}})");
  INFO("a node of a machine whose own network has three");
  const std::string machines = R"({"machines": ["dgx-h100", {"machine": ")" + folder +
                               R"(/three.json", "nodes": 1}], "network": )" + sites + "}";
  CHECK(cluster_of(machines).devices == 12);
  std::filesystem::remove_all(folder);
}

TEST_CASE("each device lends tokens as many multiprocessors as DeepEP takes, of its own") {
  const auto interference = [](const std::string& more) {
    const Question question =
        load_questions(document(R"({"model": {"kind": "transformer", "layers": 2,
            "hidden_size": 64, "attention_heads": 4, "vocab_size": 100, "sequence_length": 32,
            "experts": 4, "experts_per_token": 2},
            "cluster": {"machines": ["dgx-h100", "dgx-a100-80g"]},
            "parallel": {"data": 16, "expert": 4, "expert_dispatch": "deepep")" +
                                more + R"(}, "simulate": {"fold": "none"},
            "training": {"strategy": "global", "global_batch_size": 16}})"))
            .front();
    return lower_plan(make_plan(question), 1).interference;
  };
  const std::vector<Interference> own = interference("");
  REQUIRE(own.size() == 16);
  CHECK(own.front().token_sms == 20.0 / 132);  // H100
  CHECK(own.back().token_sms == 20.0 / 108);   // A100
  CHECK(interference(R"(, "dispatch_sms": 0.25)").back().token_sms == 0.25);
}

TEST_CASE("a host of unknown memory does not hide one that is over-full") {
  const auto fits = [](const std::string& memory) {
    const auto machine = [](const std::string& name, const std::string& host) {
      return R"({"kind": "machine", "name": ")" + name +
             R"(", "device": "a100-80g", "port": {"bandwidth": "300 GB/s"},
          "cards": {"bandwidth": "25 GB/s"}, "host": {"bandwidth": "25 GB/s")" +
             host + "}}";
    };
    return result_of(document(R"({"model": {"kind": "mlp", "input_size": 1024,
        "hidden_sizes": [1024], "classes": 1024}, "cluster": {"machines": [)" +
                              machine("known", ", \"memory\": \"" + memory + "\"") + ", " +
                              machine("unknown", "") + R"(]}, "training": {"strategy": "global",
        "global_batch_size": 4, "micro_batch_size": 1, "optimizer": "adam",
        "offload": {"optimizer": 1}}})"))
        .measurement.metrics;
  };
  const Metrics full = fits("1 kB");
  CHECK_FALSE(full.fits_in_memory);
  CHECK(full.host_capacity->value() == 1000);
  CHECK(fits("1 TB").fits_in_memory);
}

TEST_CASE("what fits no mixed cluster is said in one sentence") {
  const auto told = [](const std::string& cluster, const char* expected) {
    CHECK(doctest::String(mistakes({"cluster=null", "cluster=" + cluster}).c_str()) ==
          doctest::Contains(expected));
  };
  told(R"({"machines": []})", "wrong list of machines; expected 1 to 256 machines");
  told(R"({"machines": [{"kind": "uniform", "devices": 2, "memory": "1 GB",
       "link": {"bandwidth": "1 GB/s"}}]})",
       "joins its devices without nodes; expected a machine whose nodes have cards");
  told(R"({"machines": ["tpu-v3-pod", "dgx-h100"]})",
       "joins its devices without nodes; expected a machine whose nodes have cards");
  told(R"({"machines": ["dgx-h100", {"machine": "dgx-a100-80g", "network": {"kind": "switch"}}]})",
       "belongs to all machines together; expected it beside \"machines\"");
  told(R"({"machines": [{"machine": "dgx-h100", "price": "1 USD/h"},
       {"machine": "dgx-a100-80g", "price": "1 EUR/h"}]})",
       "prices in USD and EUR; expected one currency for all machines");
  told(R"({"machines": ["dgx-h100", "dgx-a100-80g"],
       "network": {"kind": "fat-tree", "nodes_per_leaf": 2}})",
       "a fat tree joins nodes whose cards are alike");
  told(R"({"machines": ["dgx-h100", "dgx-a100-80g"], "devices": 17})",
       "too many devices; expected 1 to the 16 of all machines, got 17");
  told(R"({"machines": ["dgx-h100"], "network": {"kind": "wan", "nodes": [1, 1],
       "delay": [[null, "1 ms"], ["1 ms", null]],
       "bandwidth": [[null, "1 GB/s"], ["1 GB/s", null]]}})",
       "the sites have 2 nodes; expected the 1 of the cluster");
}

TEST_CASE("the range of a mixed cluster is the widest of those of its kinds") {
  const auto range_of = [](const std::string& cluster) {
    const ScenarioResult result = result_of(
        document(R"({"model": "gpt2", "cluster": )" + cluster + R"(, "parallel": {"pipeline": 4},
            "training": {"strategy": "global", "global_batch_size": 16, "micro_batch_size": 2,
                         "precision": "bf16"}})",
                 {}));
    REQUIRE(result.confidence.range);
    const Seconds step = result.measurement.metrics.step_time;
    return std::pair(result.confidence.range->low / step, result.confidence.range->high / step);
  };
  const auto a100 = range_of(R"({"machine": "dgx-a100-80g", "devices": 4})");
  const auto borrowed = range_of(R"({"machine": "pcie-l40s", "devices": 4})");
  const auto both = range_of(R"({"machines": [{"machine": "dgx-a100-80g", "devices": 2},
                                              {"machine": "pcie-l40s", "devices": 2}]})");
  CHECK(borrowed.second - borrowed.first > a100.second - a100.first);
  CHECK(both.first == doctest::Approx(std::min(a100.first, borrowed.first)).epsilon(1e-12));
  CHECK(both.second == doctest::Approx(std::max(a100.second, borrowed.second)).epsilon(1e-12));
}

}  // namespace
}  // namespace interlock::mixed_cluster_test
