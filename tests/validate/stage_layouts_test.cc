// Stages of different layouts: messages by hand, and runs beside layouts that are alike.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::stage_layouts_test {
namespace {

constexpr double kCard = 10e9;

/// An MLP of equal layers whose output is 4096 numbers of 2 bytes a sample; nodes of one device, a
/// card of 10 GB/s each way, no latency.
const std::string kLayers = R"({
  "model": {"kind": "mlp", "input_size": 4096, "layers": 7, "hidden_size": 4096, "classes": 4096},
  "cluster": {"kind": "machine", "device": "a100-80g", "devices_per_node": 1, "nodes": 8,
              "port": {"latency": "0 us", "bandwidth": "10 GB/s"},
              "cards": {"per_node": 1, "latency": "0 us", "bandwidth": "10 GB/s"}},
  "partition": "uniform",
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 64,
               "micro_batch_size": 16, "steps": 2}
})";
constexpr double kSample = 4096 * 2;

Question laid(const Overrides& overrides) {
  const std::vector<Question> all = load_questions(document(kLayers, overrides));
  REQUIRE(all.size() == 1);
  return all.front();
}

std::string layouts(const std::string& list) { return "parallel.stage_layouts=" + list; }

/// Alone: of the messages from one rank to another.
double message_time(const Question& scenario, int from, int to) {
  const Program program = lower_plan(make_plan(scenario), 1);
  for (const Channel& channel : program.channels) {
    if (channel.from_rank == from && channel.to_rank == to) {
      return (channel.occupancy + channel.latency).value();
    }
  }
  FAIL("no message from rank " << from << " to rank " << to);
  return 0;
}

double step_time(const Question& scenario) {
  return run_scenario(scenario, false).measurement.metrics.step_time.value();
}

TEST_CASE("equal layouts, one to one: a slice over a link (arXiv 2211.05322)") {
  for (const char* strategy : {"point_to_point", "local_all_gather", "broadcast"}) {
    const Question scenario = laid(
        {layouts(R"([{"data": 4}, {"data": 4}])"), std::string("parallel.resharding=") + strategy});
    INFO("a quarter of 16 samples over each of four cards");
    CHECK(message_time(scenario, 0, 1) == doctest::Approx(4 * kSample / kCard));
    CHECK(message_time(scenario, 1, 0) == doctest::Approx(4 * kSample / kCard));
  }
}

TEST_CASE("copies for n hosts take n times as long from one sender, a broadcast does not") {
  for (const int n : {2, 4}) {
    const std::string one = R"({"tensor": )" + std::to_string(n) + "}";
    Overrides all = {layouts("[" + one + ", " + one + "]"),
                     "cluster.nodes=" + std::to_string(2 * n), "parallel.sender_balancing=false",
                     // An even layer: the tensor is whole on each device behind it.
                     "partition=[2, 6]", "parallel.resharding=point_to_point"};
    const double once = 16 * kSample / kCard;
    CHECK(message_time(laid(all), 0, 1) == doctest::Approx(n * once));
    all.back() = "parallel.resharding=broadcast";
    // 64 chunks; each further hop is a chunk later.
    CHECK(message_time(laid(all), 0, 1) == doctest::Approx(once * (1 + (n - 1) / 64.0)));
    all.back() = "parallel.resharding=point_to_point";
    all[2] = "parallel.sender_balancing=true";
    INFO("n holders send a copy each");
    CHECK(message_time(laid(all), 0, 1) == doctest::Approx(once));
  }
}

TEST_CASE("a half for four receivers: two copies from each of two holders") {
  // tensor 2 x data 2: two devices hold each half of the samples. tensor 4: each needs all.
  const Overrides all = {layouts(R"([{"tensor": 2, "data": 2}, {"tensor": 4}])"),
                         "partition=[2, 6]", "parallel.resharding=point_to_point"};
  const double half = 8 * kSample / kCard;
  CHECK(message_time(laid(all), 0, 1) == doctest::Approx(2 * half));
  Overrides first = all;
  first.push_back("parallel.sender_balancing=false");
  CHECK(message_time(laid(first), 0, 1) == doctest::Approx(4 * half));
  // Back: each of two receivers of a half takes it from one of four holders.
  CHECK(message_time(laid(all), 1, 0) == doctest::Approx(half));
}

TEST_CASE("a stage of an uneven layer hands on parts, which the next one puts together") {
  // Behind the first of a pair the features are divided by tensor devices: a fourth each.
  const Overrides all = {layouts(R"([{"tensor": 4}, {"data": 4}])"), "partition=[1, 7]",
                         "parallel.resharding=point_to_point"};
  INFO("sixteen parts of 4 samples x 1024 numbers; each device sends and receives four");
  CHECK(message_time(laid(all), 0, 1) == doctest::Approx(4 * (4 * kSample / 4) / kCard));
}

TEST_CASE("stages laid alike run as if the layout was written once") {
  struct Case {
    std::string list, degrees;
    int own;  // samples of a micro-batch, of one data rank
  };
  for (const Case& one : {Case{R"([{"data": 4}, {"data": 4}])", R"("data": 4)", 4},
                          Case{R"([{"tensor": 2, "data": 2}, {"tensor": 2, "data": 2}])",
                               R"("tensor": 2, "data": 2)", 8},
                          Case{R"([{"tensor": 4}, {"tensor": 4}])", R"("tensor": 4)", 16}}) {
    CAPTURE(one.degrees);
    const Overrides common = {"partition=[4, 4]"};
    Overrides each = common, once = common;
    each.push_back(layouts(one.list));
    each.push_back("parallel.resharding=point_to_point");
    once.push_back("parallel={\"pipeline\": 2, " + one.degrees + "}");
    once.push_back("training.micro_batch_size=" + std::to_string(one.own));
    const ScenarioResult a = run_scenario(laid(each), false);
    const ScenarioResult b = run_scenario(laid(once), false);
    const Metrics& own = a.measurement.metrics;
    const Metrics& plain = b.measurement.metrics;
    CHECK(own.step_time.value() == doctest::Approx(plain.step_time.value()).epsilon(1e-9));
    CHECK(*own.mfu == doctest::Approx(*plain.mfu).epsilon(1e-9));
    CHECK(*own.samples_per_s == doctest::Approx(*plain.samples_per_s).epsilon(1e-9));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(own.devices[rank].peak_memory == plain.devices[rank].peak_memory);
    }
  }
}

TEST_CASE("eager 1F1B hides resharding that is shorter than an op, 1F1B does not") {
  // The time that a further micro-batch adds to a step; without communication both add F + B.
  const auto period = [](const std::string& schedule, const std::string& bandwidth) {
    const auto step = [&](int micro_batches) {
      return step_time(
          laid({layouts(R"([{"tensor": 2}, {"data": 2}, {"tensor": 2}, {"data": 2}])"),
                "training.schedule=" + schedule, "cluster.cards.bandwidth=" + bandwidth,
                "training.global_batch_size=" + std::to_string(1024 * micro_batches),
                "training.micro_batch_size=1024", "simulate.skip_periods=false"}));
    };
    return (step(32) - step(16)) / 16;
  };
  const double eager = period("eager-1f1b", "100 GB/s"), plain = period("1f1b", "100 GB/s");
  const double ideal = period("1f1b", "1000000 GB/s");
  INFO("ideal " << ideal << ", eager-1f1b " << eager << ", 1f1b " << plain << " s");
  CHECK(period("eager-1f1b", "1000000 GB/s") == doctest::Approx(ideal).epsilon(1e-3));
  CHECK(eager == doctest::Approx(ideal).epsilon(0.01));
  CHECK(plain > ideal * 1.02);
}

TEST_CASE("devices of both sides hold what they hold, and give all of it back") {
  const Question scenario = laid({layouts(R"([{"tensor": 4}, {"data": 4}])"), "partition=[2, 6]"});
  const Program program = lower_plan(make_plan(scenario), 1);
  for (const Channel& channel : program.channels) {
    if (channel.wire < 0) continue;
    const double whole = 16 * kSample;
    const bool upwards = channel.to_rank > channel.from_rank;
    CHECK(channel.bytes.value() == (upwards ? whole : whole / 4));
    CHECK(channel.received->value() == (upwards ? whole / 4 : whole));
  }
  const ScenarioResult result = run_scenario(scenario, true);
  std::vector<double> held(2, 0);
  for (const MemoryChange& change : result.measurement.log.memory) {
    held[static_cast<std::size_t>(change.rank)] += change.bytes;
  }
  CHECK(held == std::vector<double>{0, 0});
}

TEST_CASE("what layouts of stages cannot have is said with the numbers") {
  const auto refused = [](const Overrides& overrides) {
    return mistakes_of(document(kLayers, overrides));
  };
  const std::string good = layouts(R"([{"tensor": 4}, {"tensor": 2, "data": 2}])");
  CHECK(refused({good}).empty());
  CHECK(refused({layouts(R"([{"tensor": 4}, {"tensor": 2}])")}) ==
        "set: /parallel/stage_layouts/1: tensor 2 x data 1 are 2 devices; expected as many as the "
        "first rank has, 4 (tensor 4 x data 1)");
  CHECK(refused({good, "parallel.data=2"}).find("/parallel/data: has no place beside") !=
        std::string::npos);
  CHECK(refused({good, "parallel.pipeline=4"})
            .find("layout of 2 ranks; expected one for each of "
                  "the 4 (parallel.pipeline)") != std::string::npos);
  CHECK(refused({good, "simulate.fold=none"}).find("/simulate/fold: with parallel.stage_layouts") !=
        std::string::npos);
  CHECK(refused({good, "training.micro_batch_size=1"})
            .find("micro-batches of 1 cannot be divided among 2 data devices; expected a divisor "
                  "of 1") != std::string::npos);
  CHECK(refused({good, "training.schedule=dualpipe"}).find("one copy of the model") !=
        std::string::npos);
  CHECK(refused({good, "training.strategy=forward-forward"}).find("cannot be trained") !=
        std::string::npos);
  CHECK(refused({layouts(R"([{"tensor": 3}, {"tensor": 3}])"), "cluster.nodes=6"})
            .find("4096 cannot be divided among 3 tensor devices") != std::string::npos);
  CHECK(refused({"parallel.resharding=broadcast"}).find("expected \"stage_layouts\" beside it") !=
        std::string::npos);
  CHECK(refused({layouts("[]")}).find("expected a list with the layout") != std::string::npos);
}

}  // namespace
}  // namespace interlock::stage_layouts_test
