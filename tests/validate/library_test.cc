// The library of the interlocking paper's authors, measured running, against our simulation of it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdio>
#include <map>

#include "base/file.h"
#include "tests/validate/support/trial.h"

namespace interlock {
namespace {

struct Row {
  std::string mode;
  int stages = 0, n_wise = 2;
  double head = 0, period = 0;  // units
};

std::vector<Row> read_rows() {
  const JsonValue file =
      read_json_file(data_folder("validate/published") + "/interlocking_library_emulated.json");
  std::vector<Row> rows;
  for (const JsonValue& item : file.find("rows")->items) {
    Row row{.mode = item.find("mode")->text,
            .stages = static_cast<int>(item.find("stages")->number),
            .head = item.find("head_units")->number,
            .period = item.find("period_units")->number};
    if (const JsonValue* n = item.find("n_wise")) row.n_wise = static_cast<int>(n->number);
    rows.push_back(row);
  }
  return rows;
}

/// The row's mode as the library ran it.
Trial trial_of(const Row& row) {
  Trial trial;
  trial.stages = equal_stages(
      row.stages, {Seconds(0.01), Seconds(0.01), Seconds(0.01), Seconds(0.01 * row.head)});
  if (row.mode == "naive") {
    trial.strategy = "\"global\"";
    trial.schedule = "\"naive\"";
    return trial;
  }
  trial.strategy = row.mode == "local" ? "\"local\"" : n_wise(row.n_wise, true);
  trial.schedule = rendezvous(row.mode == "list" ? "list" : "eager");
  return trial;
}

std::string line_of(const Row& row, double simulated) {
  char line[128];
  std::snprintf(line, sizeof line,
                "%-9s K = %d  N = %d  a = %.1f  measured %6.2f  simulated %6.2f  %+5.1f%%\n",
                row.mode.c_str(), row.stages, row.n_wise, row.head, row.period, simulated,
                100 * (simulated / row.period - 1));
  return line;
}

TEST_CASE("every period of the authors' library is predicted within 4%") {
  const std::vector<Row> rows = read_rows();
  REQUIRE(rows.size() == 28);
  std::string table;
  for (const char* engine : {"native", "simgrid"}) {
    table += std::string(engine) + ", in units of 10 ms\n";
    for (const Row& row : rows) {
      Trial trial = trial_of(row);
      trial.engine = engine;
      const double simulated = step_time(trial) / 0.01;
      table += line_of(row, simulated);
      INFO(line_of(row, simulated));
      CHECK(simulated == doctest::Approx(row.period).epsilon(0.04));
      // Threads and queues only cost time: nothing was measured faster than the simulation.
      CHECK(simulated <= row.period * (1 + 1e-9));
    }
  }
  MESSAGE(table);
}

TEST_CASE("the authors' modes keep their order: local, pairs, no pipelining, lists") {
  std::map<std::string, double> period;
  for (const Row& row : read_rows()) {
    if (row.stages == 6 && row.head == 0.5) {
      period[row.mode + std::to_string(row.n_wise)] = step_time(trial_of(row));
    }
  }
  REQUIRE(period.size() == 5);
  CHECK(period["local2"] < period["pairwise2"]);
  CHECK(period["pairwise2"] < period["naive2"]);
  CHECK(period["naive2"] < period["list2"]);
  CHECK(period["list2"] < period["list3"]);
}

}  // namespace
}  // namespace interlock
