// The tables for planners: rows gathered by device, framework and model; rivals' rows found.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/planner_grid.h"

#include <doctest/doctest.h>

namespace interlock::planner_grid_test {
namespace {

MeasurementFile file_of(const std::string& name, std::vector<MeasuredRow> rows) {
  MeasuredTable table{.name = "dense models"};
  table.rows = std::move(rows);
  MeasurementFile file{.name = name};
  file.tables.push_back(std::move(table));
  return file;
}

RowPrediction predicted(double step, double mfu, const std::string& device) {
  return {.values = {.step_time = step, .peak_memory = 90, .mfu = mfu, .palm_mfu = 2 * mfu},
          .setup = {device, "nemo", "dense"}};
}

std::vector<std::string> texts(const std::vector<Cell>& cells) {
  std::vector<std::string> texts;
  for (const Cell& cell : cells) texts.push_back(cell.text);
  return texts;
}

TEST_CASE("results of MLPerf come first, a line for each device, framework and model") {
  const std::vector<MeasuredRow> rows = {
      {.id = "a", .series = "s", .measured = {{Measurand::StepTime, 1}}},
      {.id = "b", .series = "s", .measured = {{Measurand::StepTime, 2}}},
      {.id = "c", .series = "s", .measured = {{Measurand::StepTime, 4}}},
      {.id = "d", .fitted = "a rate", .measured = {{Measurand::StepTime, 1}}}};
  const std::vector<MeasuredRow> memory = {{.id = "e", .measured = {{Measurand::PeakMemory, 100}}}};
  const Accuracy accuracy = judge({file_of("lab", memory), file_of("mlperf", rows)},
                                  {{{predicted(1, 0.4, "A100")}},
                                   {{predicted(1.1, 0.4, "H100"), predicted(1.6, 0.5, "H100"),
                                     predicted(5, 0.3, "H100"), predicted(9, 0.9, "H100")}}});
  const Grid grid = planner_grid(accuracy);
  REQUIRE(grid.rows.size() == 2);
  INFO("errors 10, 20 and 25 %; measured MFU 0.44, 0.4 and 0.375; the fitted row does not count");
  using Texts = std::vector<std::string>;
  const std::string none = "–";
  CHECK(texts(grid.rows[0]) == Texts{"MLPerf", "H100", "dense", "nemo", "3", "20.0", "25", "1.00",
                                     none, none, none, "40", "80"});
  CHECK(texts(grid.rows[1]) == Texts{"other reports", "A100", "dense", "nemo", none, none, none,
                                     none, "1", "10.0", "10", none, none});
}

TEST_CASE("a program's own figure stands beside the errors on the rows that it is about") {
  const std::vector<MeasuredRow> rows = {{.id = "a", .measured = {{Measurand::StepTime, 1}}},
                                         {.id = "b", .measured = {{Measurand::StepTime, 1}}}};
  const Grid grid = rival_grid(judge({file_of("simumax-b200", rows)},
                                     {{{predicted(0.9, 0, "B200"), predicted(1.2, 0, "B200")}}}));
  REQUIRE(grid.rows.size() == 1);
  CHECK(texts(grid.rows[0]) == std::vector<std::string>{"SimuMax", "-11.4 to -0.2 %",
                                                        "release 1.2, FULL_RESULTS.md, 24 cases",
                                                        "simumax-b200: dense models", "step_time_s",
                                                        "2", "15.0", "-10.0", "+20.0"});
}

}  // namespace
}  // namespace interlock::planner_grid_test
