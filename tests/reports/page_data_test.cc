// PageData: what the scripts of the page add up is what ran, with messages and collectives.
// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "reports/page/page_columns.h"
#include "reports/report.h"
#include "sim/causes/causes.h"
#include "tests/reports/support/page_reader.h"

namespace interlock::page_data_test {
namespace {

using Json = nlohmann::json;

const char* const kPairwise = R"({
  "model": {"kind": "profile", "modules": [{"repeat": 8, "forward": "1 ms",
    "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.5 ms", "output": "1 MiB",
    "stash": "4 MiB", "parameters": "16 MiB"}]},
  "cluster": {"kind": "uniform", "devices": 4, "memory": "80 GiB",
    "link": {"bandwidth": "10 GB/s", "latency": "3 us"}},
  "training": {"strategy": {"kind": "interlocking", "n_wise": 2}, "micro_batches": 4,
    "steps": 3}})";

const char* const kDataParallel = R"({
  "model": "gpt2-xl", "cluster": {"machine": "dgx-a100-80g", "devices": 8},
  "parallel": {"pipeline": 4, "data": 2, "zero_stage": 1}, "simulate": {"fold": "none"},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 32,
    "micro_batches": 8, "steps": 2}})";

ScenarioResult run_of(const std::string& text) {
  return run_scenario(load_questions(parse_json(text, "test.json")).at(0), true);
}

PageScenario page_of(const ScenarioResult& result) {
  return scenarios_of_page(html_report({result})).at(0);
}

/// Lane and entry of what each entry of lane `own` waited for, see PlaceColumns.
std::vector<std::pair<int, int>> causes_of(const PageScenario& page, const Json& json, int own) {
  const auto lanes = page.column<int>(json["cause_lane"]);
  const auto steps = page.column<int>(json["cause_step"]);
  std::map<int, int> last;
  std::vector<std::pair<int, int>> causes;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const int entry = lanes[i] == own ? static_cast<int>(i) - steps[i] : last[lanes[i]] += steps[i];
    causes.emplace_back(lanes[i], lanes[i] < 0 ? -1 : entry);
  }
  return causes;
}

/// Ends, or arrivals, of the entries of all lanes.
std::vector<std::vector<double>> ends_of(const PageScenario& page) {
  std::vector<std::vector<double>> ends;
  for (const Json& rank : page.json["ranks"]) {
    std::vector<double> starts = page.span_starts(rank["spans"]);
    const auto ops = page.column<int>(rank["spans"]["op"]);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      starts[i] += page.json["ops"][ops[i]]["duration"].get<double>();
    }
    ends.push_back(std::move(starts));
  }
  for (const char* kind : {"wires", "groups"}) {
    for (const Json& lane : page.json[kind]) {
      const auto gaps = page.column<float>(lane["gap"]),
                 busy = page.column<float>(lane["occupied"]);
      const std::vector<float> latency = lane.contains("latency")
                                             ? page.column<float>(lane["latency"])
                                             : std::vector<float>(gaps.size());
      double now = page.json["range"][0];
      std::vector<double>& all = ends.emplace_back();
      for (std::size_t i = 0; i < gaps.size(); ++i) {
        all.push_back((now += gaps[i]) + busy[i] + latency[i]);
      }
    }
  }
  return ends;
}

TEST_CASE("starts that the page adds up are those of the run, to a ten-millionth of a step") {
  for (const char* text : {kPairwise, kDataParallel}) {
    const ScenarioResult result = run_of(text);
    const PageScenario page = page_of(result);
    std::vector<std::vector<double>> expected(page.json["ranks"].size());
    for (const Span& span : result.measurement.log.spans) {
      expected[span.rank].push_back(span.start.value());
    }
    const double allowed = 1e-7 * result.measurement.metrics.step_time.value();
    for (std::size_t r = 0; r < expected.size(); ++r) {
      const auto starts = page.span_starts(page.json["ranks"][r]["spans"]);
      REQUIRE(starts.size() == expected[r].size());
      for (std::size_t i = 0; i < starts.size(); ++i) {
        CHECK(std::abs(starts[i] - expected[r][i]) <= allowed);
      }
    }
  }
}

TEST_CASE("every op begins when what the page says it waited for is over") {
  for (const char* text : {kPairwise, kDataParallel}) {
    const ScenarioResult result = run_of(text);
    const PageScenario page = page_of(result);
    const auto ends = ends_of(page);
    const double allowed = 1e-6 * result.measurement.metrics.step_time.value();
    std::size_t others = 0;
    for (std::size_t r = 0; r < page.json["ranks"].size(); ++r) {
      const Json& spans = page.json["ranks"][r]["spans"];
      const auto starts = page.span_starts(spans);
      const auto causes = causes_of(page, spans, static_cast<int>(r));
      REQUIRE(causes.size() == starts.size());
      for (std::size_t i = 0; i < starts.size(); ++i) {
        const int lane = causes[i].first, entry = causes[i].second;
        INFO("op " << i << " of rank " << r << " begins at " << starts[i] << " s");
        if (lane < 0) {
          CHECK(starts[i] <= allowed);  // with the run
          continue;
        }
        INFO("after entry " << entry << " of lane " << lane);
        CHECK(std::abs(ends.at(lane).at(entry) - starts[i]) <= allowed);
        others += lane != static_cast<int>(r);
      }
    }
    CHECK(others > 0);
  }
}

TEST_CASE("the ops at the ends of each message are those of its stages and micro-batch") {
  const PageScenario page = page_of(run_of(kPairwise));
  REQUIRE(!page.json["wires"].empty());
  for (const Json& wire : page.json["wires"]) {
    const auto made = page.counters(wire["made"]), used = page.counters(wire["used"]);
    const auto batches = page.counters(wire["micro_batch"]);
    const auto what = page.column<int>(wire["what"]);
    for (const auto& [side, entries, stage] : {std::tuple{"from", made, 0}, {"to", used, 1}}) {
      const Json& spans = page.json["ranks"][wire[side].get<std::size_t>()]["spans"];
      const auto ops = page.column<int>(spans["op"]);
      const auto of_op = page.counters(spans["micro_batch"]);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i] < 0) continue;
        const Json& op = page.json["ops"][ops.at(entries[i])];
        CHECK(op["stage"] == page.json["channels"][what[i]][stage]);
        CHECK(of_op.at(entries[i]) == batches[i]);
      }
    }
    CHECK(std::count(made.begin(), made.end(), -1) == 0);
  }
}

TEST_CASE("the critical path of the page ends with the last op of the measured window") {
  const ScenarioResult result = run_of(kPairwise);
  const PageScenario page = page_of(result);
  const auto [lane, entry] = page.json["path_end"].get<std::pair<std::size_t, std::size_t>>();
  const double end = ends_of(page).at(lane).at(entry);
  CHECK(end == doctest::Approx(result.measurement.metrics.window_end.value()).epsilon(1e-9));
}

TEST_CASE("levels of memory have what the allocator reserves, beside each device's capacity") {
  JsonValue document = parse_json(kPairwise, "test.json");
  set_json(document, "training.framework.reserve", json_number(0.25), "set");
  const ScenarioResult result = run_scenario(load_questions(document).at(0), true);
  const PageScenario page = page_of(result);
  for (const DeviceMetrics& device : result.measurement.metrics.devices) {
    const Json& rank = page.json["ranks"][device.rank];
    CHECK(rank["capacity"] == device.memory_capacity->value());
    const Json& memory = rank["memory"];
    double level = 0;
    for (const Json& bytes : memory["at_begin"]) level += bytes.get<double>();
    double peak = level;
    const auto gaps = page.column<float>(memory["gap"]);
    const auto kinds = page.column<std::uint16_t>(memory["kind"]);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (gaps[i] > 0) peak = std::max(peak, level);
      level += memory["pairs"][kinds[i]][1].get<double>();
    }
    CHECK(std::max(peak, level) == doctest::Approx(device.peak_memory.value()).epsilon(1e-9));
  }
}

TEST_CASE("columns lie end to end, plane by plane; counters become differences") {
  PageColumns columns;
  CHECK(columns.add(std::vector<std::uint8_t>{1, 2, 3}) == ColumnPlace{0, 3});
  CHECK(columns.add(std::vector<double>{}) == ColumnPlace{3, 0});
  CHECK(columns.add(std::vector<float>{1, 2, 3}) == ColumnPlace{3, 3});
  CHECK(columns.add(std::vector<double>{1}) == ColumnPlace{15, 1});
  CHECK(differences({5, 6, 7, 3}) == std::vector<std::int32_t>{5, 1, 1, -4});
  CHECK(coarse(1e-60) > 0);
  CHECK(coarse(1.2345678) == doctest::Approx(1.2345678).epsilon(1.0 / 2048));
}

}  // namespace
}  // namespace interlock::page_data_test
