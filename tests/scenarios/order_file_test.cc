// Orders read from files through scenarios, beside a longest path over the cells of the text alone.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::order_file_test {
namespace {

/// A cell as its text says: one op, or two that run together.
struct Cell {
  int stage = 0, micro_batch = 0;
  char letter = 'F';
};

std::vector<std::vector<std::vector<Cell>>> cells_of(const std::string& text) {
  std::vector<std::vector<std::vector<Cell>>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto& row = rows.emplace_back();
    std::istringstream cells(line);
    for (std::string word; std::getline(cells, word, ',');) {
      Cell a, b;
      if (std::sscanf(word.c_str(), "(%d%c%d;%d%c%d)", &a.stage, &a.letter, &a.micro_batch,
                      &b.stage, &b.letter, &b.micro_batch) == 6) {
        row.push_back({a, b});
      } else if (std::sscanf(word.c_str(), "%d%c%d", &a.stage, &a.letter, &a.micro_batch) == 3) {
        row.push_back({a});
      }
    }
  }
  return rows;
}

/// When the last cell ends if F, input half and weight half take 1 each and a B `whole`; no
/// transfers. A cell begins when its rank is free and what all its ops need is done.
int longest_path(const std::vector<std::vector<std::vector<Cell>>>& rows, int last_stage,
                 int whole) {
  std::map<std::tuple<int, char, int>, int> done;  // 'F' or 'B', the gradient of the input
  std::vector<std::size_t> next(rows.size(), 0);
  std::vector<int> free(rows.size(), 0);
  int end = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      if (next[rank] == rows[rank].size()) continue;
      int start = free[rank];
      bool ready = true;
      const auto need = [&](int stage, char letter, int micro_batch) {
        const auto found = done.find({stage, letter, micro_batch});
        ready = ready && found != done.end();
        if (ready) start = std::max(start, found->second);
      };
      for (const Cell& op : rows[rank][next[rank]]) {
        if (op.letter == 'F' && op.stage > 0) need(op.stage - 1, 'F', op.micro_batch);
        const bool backward = op.letter == 'B' || op.letter == 'I';
        if (backward) need(op.stage, 'F', op.micro_batch);
        if (backward && op.stage < last_stage) need(op.stage + 1, 'B', op.micro_batch);
      }
      if (!ready) continue;
      const auto& cell = rows[rank][next[rank]++];
      for (const Cell& op : cell) start += op.letter == 'B' ? whole : 1;
      for (const Cell& op : cell) {
        if (op.letter != 'W')
          done[{op.stage, op.letter == 'F' ? 'F' : 'B', op.micro_batch}] = start;
      }
      free[rank] = start;
      end = std::max(end, start);
      moved = true;
    }
  }
  for (std::size_t rank = 0; rank < rows.size(); ++rank) REQUIRE(next[rank] == rows[rank].size());
  return end;
}

ScenarioResult run_file(const std::string& path, int ranks, int stages, int micro_batches) {
  return run_scenario(
      loaded({"model.modules.0.repeat=" + std::to_string(stages),
              "cluster.devices=" + std::to_string(ranks), "cluster.link.bandwidth=1000 PB/s",
              "training.micro_batches=" + std::to_string(micro_batches), "training.steps=1",
              R"(training.schedule={"file": ")" + path + "\"}"}),
      false);
}

TEST_CASE("PyTorch's DualPipeV file, as it stands, takes what its cells take") {
  const std::string path = SIM_DATA_FOLDER "/pytorch_dualpipev_4rank_10mb.csv";
  const int expected = longest_path(cells_of(read_file(path)), 7, 2);
  INFO("longest path over the cells, B = 2: " << expected << " ms");
  const Metrics metrics = run_file(path, 4, 8, 10).measurement.metrics;
  CHECK(metrics.makespan.value() == doctest::Approx(expected * 1e-3).epsilon(1e-12));
}

TEST_CASE("PyTorch's interleaved zero bubble file, where B is a half, takes what its cells take") {
  const std::string path = SIM_DATA_FOLDER "/pytorch_zb1p_2rank_2stagep_compute.csv";
  const int expected = longest_path(cells_of(read_file(path)), 3, 1);
  INFO("longest path over the cells, B = 1: " << expected << " ms");
  const Metrics metrics = run_file(path, 2, 4, 8).measurement.metrics;
  CHECK(metrics.makespan.value() == doctest::Approx(expected * 1e-3).epsilon(1e-12));
}

TEST_CASE("a file fixes ranks, stages and placement, also of two copies") {
  const std::string path = "order_file_test.csv";
  write_file(path, "0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n");
  const Overrides overrides = {R"(training.schedule={"file": ")" + path + "\"}",
                               "training.micro_batches=2"};
  const Plan plan = make_plan(loaded(overrides));
  CHECK(plan.question.layout.ranks() == 2);
  CHECK(plan.copies == 2);
  CHECK(plan.rank_of_stage == std::vector{0, 1, 1, 0});
  CHECK(plan.partition.stages() == 2);
  // Two modules a stage, so F = 2 and B = 4 ms: F, F, B, B on both ranks without a gap.
  const Metrics metrics = simulate_plan(plan, Keep::Nothing).measurement.metrics;
  CHECK(metrics.step_time.value() == doctest::Approx(12e-3).epsilon(1e-12));
  std::remove(path.c_str());
}

std::string refusal(const std::string& schedule) {
  try {
    loaded({"training.schedule=" + schedule, "training.micro_batches=2"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("rows in the scenario are an order, as a file with these rows is") {
  const Overrides overrides = {
      R"(training.schedule={"order": ["0F0,1F1,1B1,0B0", "0F1,1F0,1B0,0B1"]})",
      "training.micro_batches=2"};
  const Plan plan = make_plan(loaded(overrides));
  CHECK(plan.rank_of_stage == std::vector{0, 1, 1, 0});
  const Metrics metrics = simulate_plan(plan, Keep::Nothing).measurement.metrics;
  CHECK(metrics.step_time.value() == doctest::Approx(12e-3).epsilon(1e-12));
  CHECK(refusal(R"({"order": ["0F0,0B0", "1F0"]})").find("order:2: ") != std::string::npos);
  CHECK(refusal(R"({"order": ["0F0", 1]})").find("/order/1: ") != std::string::npos);
  CHECK(refusal(R"({"order": ["0F0,0B0"], "file": "a"})").find("a second order") !=
        std::string::npos);
  CHECK(refusal(R"({"kind": "1f1b", "order": ["0F0,0B0"]})").find("expected no \"order\"") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::order_file_test
