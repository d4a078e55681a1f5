// Bulk-synchronous execution against sums over phases, and against futures.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/random.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::bulk_synchronous_test {
namespace {

/// Milliseconds of each stage's forward and backward halves; messages of 1 MB.
struct Stages {
  std::vector<double> forward, backward;
  std::string bandwidth = "1 GB/s";  // a message takes 1 ms
};

std::string ms(double value) { return "\"" + std::to_string(value) + " ms\""; }

double step_time(const Stages& stages, const std::string& schedule, int micro_batches,
                 const std::string& execution, const std::string& strategy = "global") {
  std::string modules;
  for (std::size_t s = 0; s < stages.forward.size(); ++s) {
    modules += (s == 0 ? "" : ", ") + ("{\"forward\": " + ms(stages.forward[s])) +
               ", \"backward_input\": " + ms(stages.backward[s] / 2) +
               ", \"backward_weight\": " + ms(stages.backward[s] / 2) + ", \"output\": \"1 MB\"}";
  }
  const std::string text =
      R"({"model": {"kind": "profile", "modules": [)" + modules +
      R"(]}, "cluster": {"kind": "uniform", "devices": )" + std::to_string(stages.forward.size()) +
      R"(, "memory": "80 GiB", "link": {"bandwidth": ")" + stages.bandwidth +
      R"("}}, "training": {"strategy": )" +
      (strategy.front() == '{' ? strategy : '"' + strategy + '"') +
      R"(, "steps": 4, "micro_batches": )" + std::to_string(micro_batches) +
      R"(, "schedule": {"kind": ")" + schedule + R"(", "execution": ")" + execution + "\"}}}";
  const std::vector<Question> all = load_questions(document(text));
  REQUIRE(all.size() == 1);
  return run_scenario(all.front(), false).measurement.metrics.step_time.value();
}

/// GPipe: m + p - 1 rows of forwards, in row d those of stages s with 0 <= d - s < m, and as many
/// of backwards, counted from the other end. A row with a message to send takes that time too.
double gpipe_rows(const Stages& stages, int m, double message_ms) {
  const int p = static_cast<int>(stages.forward.size());
  double sum = 0;
  for (int row = 0; row < m + p - 1; ++row) {
    double forward = 0, backward = 0;
    bool sends_up = false, sends_down = false;
    for (int s = 0; s < p; ++s) {
      const bool forwards = 0 <= row - s && row - s < m;
      const bool backwards = 0 <= row - (p - 1 - s) && row - (p - 1 - s) < m;
      if (forwards) forward = std::max(forward, stages.forward[s]);
      if (backwards) backward = std::max(backward, stages.backward[s]);
      sends_up = sends_up || (forwards && s + 1 < p);
      sends_down = sends_down || (backwards && s > 0);
    }
    // The message of the slowest sender may leave before the slowest op of the row is done.
    sum += forward + backward + (sends_up + sends_down) * message_ms;
  }
  return sum * 1e-3;
}

TEST_CASE("a bulk-synchronous GPipe takes the sum of its rows: slowest op and message") {
  for (const int p : {1, 2, 3, 5}) {
    for (const int m : {1, 2, 4, 7}) {
      // Equal stages: every sender is as slow as the slowest.
      Stages stages = {std::vector<double>(p, 3), std::vector<double>(p, 8)};
      CAPTURE(p);
      CAPTURE(m);
      CHECK(step_time(stages, "gpipe", m, "bulk_synchronous") ==
            doctest::Approx(gpipe_rows(stages, m, 1)));
      stages.bandwidth = "1000000000 GB/s";
      for (int s = 0; s < p; ++s) {
        stages.forward[s] = 1 + (s * 7) % 5;
        stages.backward[s] = 2 + (s * 3) % 4;
      }
      CHECK(step_time(stages, "gpipe", m, "bulk_synchronous") ==
            doctest::Approx(gpipe_rows(stages, m, 0)));
    }
  }
}

TEST_CASE("futures take no longer than phases, whatever stages take") {
  Random random(11, 0);
  int shorter = 0, cases = 0;
  for (int turn = 0; turn < 40; ++turn) {
    const int p = random.integer(1, 5);
    const int m = random.integer(1, 8);
    Stages stages;
    for (int s = 0; s < p; ++s) {
      stages.forward.push_back(random.integer(1, 9));
      stages.backward.push_back(2 * random.integer(1, 9));
    }
    for (const auto& [name, kind] : {std::pair("gpipe", "global"),
                                     {"1f1b", "global"},
                                     {"naive", "global"},
                                     {"eager", "local"},
                                     {"eager", R"({"kind": "interlocking", "gradient": "sum"})"}}) {
      const std::string schedule = name, strategy = kind;
      const double futures = step_time(stages, schedule, m, "futures", strategy);
      const double phases = step_time(stages, schedule, m, "bulk_synchronous", strategy);
      INFO(p << " stages, " << m << " micro-batches, " << schedule << ": futures " << futures
             << ", phases " << phases << " s");
      CHECK(futures <= phases * (1 + 1e-9));
      shorter += futures < phases * (1 - 1e-9) ? 1 : 0;
      ++cases;
    }
  }
  MESSAGE(shorter << " of " << cases << " are shorter with futures");
  CHECK(shorter > cases / 2);
}

TEST_CASE("what is serial takes as long either way") {
  for (const int p : {1, 2, 4}) {
    Stages stages;
    for (int s = 0; s < p; ++s) {
      stages.forward.push_back(2 + s);
      stages.backward.push_back(10 - 2 * s);
    }
    CAPTURE(p);
    CHECK(step_time(stages, "gpipe", 1, "bulk_synchronous") ==
          doctest::Approx(step_time(stages, "gpipe", 1, "futures")));
    CHECK(step_time(stages, "naive", 3, "bulk_synchronous") ==
          doctest::Approx(step_time(stages, "naive", 3, "futures")));
  }
}

TEST_CASE("what has no phases is refused") {
  const auto refused = [](const std::string& schedule) {
    return mistakes({"training.micro_batches=4", "training.schedule=" + schedule});
  };
  CHECK(refused(R"({"kind": "gpipe", "execution": "bulk_synchronous"})").empty());
  CHECK(refused(R"({"kind": "gpipe", "execution": "bulk_synchronous", "queue": "rendezvous"})")
            .find("expected queues with room") != std::string::npos);
  CHECK(refused(R"({"kind": "auto", "execution": "bulk_synchronous"})")
            .find("\"auto\" has none; expected \"futures\"") != std::string::npos);
  const Question chooses =
      loaded({"parallel.pipeline=2", "parallel.stages=4", "training.micro_batches=4",
              R"(training.schedule={"kind": "gpipe", "execution": "bulk_synchronous"})"});
  CHECK_THROWS_WITH_AS(lower_plan(make_plan(chooses), 1),
                       doctest::Contains("a rank that chooses its order has no phases"), Error);
}

}  // namespace
}  // namespace interlock::bulk_synchronous_test
