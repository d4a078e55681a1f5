// The bubble rates of Zero Bubble's Table 5, from the pass times of its Table 6.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "tests/validate/support/laid_trial.h"
#include "tests/validate/support/pipeline_rules.h"

namespace interlock::zero_bubble_table_test {
namespace {

struct Row {
  std::string model;
  int stages = 0, micro_batches = 0, chunks = 0;
  double forward = 0, backward_input = 0, backward_weight = 0, transfer = 0;  // seconds
  std::map<std::string, double> bubble;                                       // by schedule
};

std::vector<Row> read_rows() {
  const JsonValue file = read_json_file(data_folder("validate/published") + "/zero_bubble.json");
  std::vector<Row> rows;
  for (const JsonValue& item : file.find("rows")->items) {
    const auto number = [&](const char* key) { return item.find(key)->number; };
    Row row{.model = item.find("model")->text,
            .stages = static_cast<int>(number("stages")),
            .micro_batches = static_cast<int>(number("micro_batches")),
            .chunks = static_cast<int>(number("chunks")),
            .forward = number("forward_ms") * 1e-3,
            .backward_input = number("backward_input_ms") * 1e-3,
            .backward_weight = number("backward_weight_ms") * 1e-3,
            .transfer = number("transfer_ms") * 1e-3};
    for (const auto& [name, rate] : item.find("bubble")->members) row.bubble[name] = rate.number;
    rows.push_back(row);
  }
  return rows;
}

int chunks_of(const Row& row, const std::string& schedule) {
  return schedule == "interleaved" ? row.chunks : 1;
}

/// The longest time, of any rank, from its first begin to its last end, as simulated.
double simulated_cost(const Row& row, const std::string& schedule) {
  const int chunks = chunks_of(row, schedule);
  const LaidCase laid{.schedule = schedule,
                      .ranks = row.stages,
                      .chunks = chunks,
                      .micro_batches = row.micro_batches,
                      .times = {Seconds(row.forward / chunks), Seconds(row.backward_input / chunks),
                                Seconds(row.backward_weight / chunks)}};
  Trial trial = laid_trial(laid);
  trial.latency = Seconds(row.transfer);
  trial.steps = 1;
  const Traced traced = trace(trial);
  std::vector<double> begin(row.stages, INFINITY), end(row.stages, 0);
  for (const Span& span : traced.log.spans) {
    const OpInfo& op = traced.program.ops[span.op];
    if (op.kind == OpKind::U) continue;
    const int rank = rank_of(laid, op.stage);
    begin[rank] = std::min(begin[rank], span.start.value());
    end[rank] = std::max(end[rank], span.end.value());
  }
  double longest = 0;
  for (int rank = 0; rank < row.stages; ++rank) {
    longest = std::max(longest, end[rank] - begin[rank]);
  }
  return longest;
}

double ruled_cost(const Row& row, const std::string& schedule) {
  const int chunks = chunks_of(row, schedule);
  return run_pipeline({.rule = schedule,
                       .ranks = row.stages,
                       .chunks = chunks,
                       .micro_batches = row.micro_batches,
                       .forward = row.forward / chunks,
                       .backward_input = row.backward_input / chunks,
                       .backward_weight = row.backward_weight / chunks,
                       .transfer = row.transfer})
      .longest_rank;
}

double bubble(const Row& row, double cost) {
  return 1 - row.micro_batches * (row.forward + row.backward_input + row.backward_weight) / cost;
}

TEST_CASE("every bubble rate of Zero Bubble's Table 5 follows from its Table 6") {
  const std::vector<Row> rows = read_rows();
  REQUIRE(rows.size() == 12);
  std::string table;
  std::map<std::string, double> worst;
  for (const Row& row : rows) {
    for (const std::string schedule : {"1f1b", "interleaved", "zb-h1", "zb-h2"}) {
      const double printed = row.bubble.at(schedule), cost = simulated_cost(row, schedule);
      const double simulated = bubble(row, cost), ruled = bubble(row, ruled_cost(row, schedule));
      char line[200];
      std::snprintf(line, sizeof line, "%s, p = %d, m = %d, %-11s: printed %.4f, simulated %.6f\n",
                    row.model.c_str(), row.stages, row.micro_batches, schedule.c_str(), printed,
                    simulated);
      table += line;
      INFO(line << "rules as an event list " << ruled << "; bubble = 1 - m (F + B + W) / cost");
      CHECK(std::abs(simulated - ruled) < 1e-9);
      worst[schedule] = std::max(worst[schedule], std::abs(simulated - printed));
      constexpr double kPrinted = 0.5e-4 + 1e-9;  // four decimals
      if (schedule != "interleaved") {
        CHECK(std::abs(simulated - printed) <= kPrinted);
        continue;
      }
      CHECK(std::abs(simulated - printed) <= 4e-3);
      // Seen, not foretold: the authors expose p transfers fewer, in every row.
      const double fewer = bubble(row, cost - row.stages * row.transfer);
      CHECK(std::abs(fewer - printed) <= kPrinted);
      worst["interleaved less p transfers"] =
          std::max(worst["interleaved less p transfers"], std::abs(fewer - printed));
    }
  }
  for (const auto& [schedule, error] : worst) {
    table += "worst of " + schedule + ": " + std::to_string(error) + "\n";
  }
  MESSAGE(table);
}

/// The bubble rate of the order that is found where a rank holds `held` micro-batches.
double found_bubble(const Row& row, int held) {
  Trial trial;
  trial.stages = equal_stages(row.stages, {Seconds(row.forward), Seconds(row.backward_input),
                                           Seconds(row.backward_weight)});
  for (TrialStage& stage : trial.stages) stage.stash = Bytes(1);
  trial.strategy = "\"global\"";
  trial.latency = Seconds(row.transfer);
  trial.micro_batches = row.micro_batches;
  trial.schedule =
      R"({"kind": "auto", "evaluations": 150, "memory": ")" + std::to_string(held) + " B\"}";
  return bubble(row, step_time(trial));
}

TEST_CASE("what is found is as good as Zero Bubble's automatic schedules, ZB-1p and ZB-2p") {
  // The authors give back most of a micro-batch's memory with its input half. Here all of it is
  // kept until the weight half, so that with 2p micro-batches the last rank could not put off the
  // weight halves that ZB-2p puts off: its rates are met with 4p.
  std::string table;
  for (const Row& row : read_rows()) {
    if (row.stages != 8) continue;
    const double once = found_bubble(row, row.stages), twice = found_bubble(row, 2 * row.stages);
    const double ample = found_bubble(row, 4 * row.stages);
    char line[200];
    std::snprintf(line, sizeof line,
                  "%s, p = %d, m = %d: found with p %.4f, 2p %.4f, 4p %.4f; ZB-1p %.4f, ZB-2p "
                  "%.4f\n",
                  row.model.c_str(), row.stages, row.micro_batches, once, twice, ample,
                  row.bubble.at("ZB-1p"), row.bubble.at("ZB-2p"));
    table += line;
    INFO(line);
    CHECK(once <= row.bubble.at("ZB-1p") + 0.002);
    CHECK(twice <= row.bubble.at("zb-h2") + 0.5e-4);
    CHECK(ample <= row.bubble.at("ZB-2p") + 0.002);
  }
  MESSAGE(table);
}

}  // namespace
}  // namespace interlock::zero_bubble_table_test
