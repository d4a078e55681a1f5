// The terminal's grid: goldens of small steps, and what closed forms say of their columns.
// SPDX-License-Identifier: Apache-2.0
#include "reports/terminal/terminal_grid.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/reports/support/golden.h"

namespace interlock::terminal_grid_test {
namespace {

/// `devices` stages of 1 ms an op each under `schedule`, its third step and those around it.
ScenarioResult step_of(const std::string& schedule, int devices, int micro_batches) {
  const std::string text = R"({
    "model": {"kind": "profile", "modules": [{"repeat": )" +
                           std::to_string(2 * devices) +
                           R"(, "forward": "0.5 ms", "backward_input": "0.5 ms",
      "backward_weight": "0.5 ms", "stash": "1 MiB"}]},
    "cluster": {"kind": "uniform", "devices": )" +
                           std::to_string(devices) +
                           R"(, "memory": "80 GiB", "link": {"bandwidth": "1000 PB/s"}},
    "training": {"strategy": "global", "schedule": ")" +
                           schedule + R"(", "micro_batches": )" + std::to_string(micro_batches) +
                           R"(, "steps": 3}})";
  return run_scenario(load_questions(parse_json(text, "grid.json")).front(), true);
}

/// The rows of the first ten devices at most, without their labels and bars.
std::vector<std::string> rows_of(const std::string& grid, int devices) {
  std::vector<std::string> rows;
  std::istringstream lines(grid);
  for (std::string line; static_cast<int>(rows.size()) < devices && std::getline(lines, line);) {
    const std::string row = line.substr(std::string("device 0  ").size());
    rows.push_back(row.substr(0, row.find("  ")));
  }
  return rows;
}

constexpr GridStyle kAscii = {.unicode = false, .width = 100};

TEST_CASE("a step of 1F1B is drawn in ASCII and in Unicode") {
  const ScenarioResult result = step_of("1f1b", 4, 6);
  check_golden("grid_1f1b_ascii.txt", terminal_grid(result, kAscii));
  check_golden("grid_1f1b_unicode.txt", terminal_grid(result, {.width = 100}));
  check_golden("grid_1f1b_colour.txt", terminal_grid(result, {.colour = true, .width = 100}));
}

TEST_CASE("a step that others overlap is drawn whole, and they as shade") {
  check_golden("grid_zb_h2.txt", terminal_grid(step_of("zb-h2", 3, 5), kAscii));
}

TEST_CASE("a schedule without a flush is drawn in its steady state") {
  check_golden("grid_pipedream.txt", terminal_grid(step_of("pipedream", 3, 4), kAscii));
}

TEST_CASE("idle columns are those of the closed form: (p - 1)(F + B) of (m + p - 1)(F + B)") {
  for (const int p : {2, 3, 4}) {
    for (const int m : {4, 7}) {
      for (const std::string schedule : {"1f1b", "gpipe"}) {
        INFO(schedule << ", p = " << p << ", m = " << m);
        const auto rows = rows_of(terminal_grid(step_of(schedule, p, m), kAscii), p);
        for (const std::string& row : rows) {
          const auto idle = std::count(row.begin(), row.end(), '.');
          INFO(row);
          CHECK(idle * (m + p - 1) == static_cast<int>(row.size()) * (p - 1));
        }
      }
    }
  }
}

TEST_CASE("bars of utilisation are those of the closed form, as long as the window lets them be") {
  // GPipe with p = 4, m = 6: busy m / (m + p - 1) = 66.7 %.
  const ScenarioResult result = step_of("gpipe", 4, 6);
  const std::string wide = terminal_grid(result, {.width = 100});
  CHECK(wide.find("  ███████···  67%\n") != std::string::npos);
  CHECK(wide.find("█ busy") != std::string::npos);
  CHECK(terminal_grid(result, kAscii).find("  #######...  67%\n") != std::string::npos);
  const std::string narrow = terminal_grid(result, {.unicode = false, .width = 44});
  CHECK(narrow.find('#') == std::string::npos);
  CHECK(narrow.find("    67%\n") != std::string::npos);
}

TEST_CASE("a legend tells a turn on an old input from a forward that is run again") {
  ScenarioResult result = step_of("gpipe", 2, 2);
  OpInfo& op = result.measurement.program.ops[result.measurement.log.spans.front().op];
  op.kind = OpKind::R;
  CHECK(terminal_grid(result, kAscii).find("R recompute   ") != std::string::npos);
  op.replay = true;
  CHECK(terminal_grid(result, kAscii).find("R replay of an old input   ") != std::string::npos);
}

TEST_CASE("a grid that is too narrow for equal columns keeps its width and every device") {
  const ScenarioResult result = step_of("interleaved", 4, 16);
  for (const int width : {40, 60, 80, 120}) {
    std::istringstream lines(terminal_grid(result, {.unicode = false, .width = width}));
    int devices = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("device")) continue;
      ++devices;
      CHECK(static_cast<int>(line.size()) <= width);
    }
    CHECK(devices == 4);
  }
}

TEST_CASE("the figures of a schedule: 1F1B keeps p micro-batches, GPipe all") {
  CHECK(most_held(step_of("1f1b", 4, 6)).front() == 4);
  CHECK(most_held(step_of("gpipe", 4, 6)).front() == 6);
  // Two stages a device: p + (p - 1)/2 of its share are 2p + p - 1 of one stage.
  CHECK(most_held(step_of("interleaved", 4, 8)).front() == 11);
  const auto headlines = schedule_headlines(step_of("1f1b", 4, 6));
  REQUIRE(headlines.size() == 4);
  CHECK(headlines[0].value == "27.0 ms");  // (6 + 3) x 3 ms
  CHECK(headlines[1].value == "33.3%");    // 3 / 9
  CHECK(headlines[2].value == "4 micro-batches");
  CHECK(headlines[3].value == "8.00 MiB");  // 4 x 2 modules x 1 MiB
}

}  // namespace
}  // namespace interlock::terminal_grid_test
