// Sweeps in pages: cells and points are the result JSON's figures, and nothing breaks out.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/page/page_sections.h"
#include "reports/report.h"
#include "tests/reports/support/handmade.h"

namespace interlock::page_sweep_test {
namespace {

using Json = nlohmann::json;

std::string between(const std::string& text, const std::string& open, const std::string& close,
                    std::size_t from = 0) {
  const std::size_t begin = text.find(open, from);
  if (begin == std::string::npos) return "";
  const std::size_t end = text.find(close, begin + open.size());
  return text.substr(begin + open.size(), end - begin - open.size());
}

std::vector<std::string> split(const std::string& text, const std::string& open,
                               const std::string& close) {
  std::vector<std::string> parts;
  for (std::size_t at = text.find(open); at != text.npos; at = text.find(open, at + 1)) {
    parts.push_back(between(text, open, close, at));
  }
  return parts;
}

std::size_t count(const std::string& text, const std::string& part) {
  return split(text, part, "").size();
}

/// Text without its markup.
std::string plain(const std::string& markup) {
  std::string text;
  bool inside = false;
  for (const char c : "<td" + markup) {
    if (c == '<' || c == '>') {
      inside = c == '<';
    } else if (!inside) {
      text += c;
    }
  }
  return text;
}

/// Cells of the table of `measure`, row by row, with their markup.
std::vector<std::vector<std::string>> heat_of(const std::string& page, const std::string& measure) {
  const std::string part = between(page, "data-name=\"" + measure + "\"", "</table>");
  std::vector<std::vector<std::string>> rows;
  for (const std::string& row : split(between(part, "<tbody>", "</tbody>"), "<tr>", "</tr>")) {
    rows.push_back(split(row, "<td", "</td>"));
  }
  return rows;
}

/// Checks that `cell` shows `value`, as far as its decimals go.
void check_shown(const std::string& cell, double value) {
  const std::string text = plain(cell);
  const std::string digits = text.substr(text.find_first_of("0123456789"));
  const std::size_t point = digits.find('.');
  const auto decimals = point == digits.npos ? 0 : static_cast<int>(digits.size() - point) - 1;
  INFO(text << " for " << value);
  CHECK(std::abs(std::stod(digits) - value) <= 0.5001 * std::pow(10, -decimals));
}

std::vector<ScenarioResult> swept(const std::string& sweep) {
  const std::string text = R"({"name": "four", "model": {"kind": "profile", "modules": [{
      "repeat": 4, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
      "output": "4 MiB", "stash": "300 MiB"}]},
    "cluster": {"kind": "uniform", "devices": 4, "memory": "2 GiB",
      "link": {"bandwidth": "10 GB/s"}},
    "training": {"strategy": "global", "schedule": "gpipe", "micro_batches": 4},
    "sweep": )" + sweep + "}";
  std::vector<ScenarioResult> results;
  for (const Question& scenario : load_questions(parse_json(text, "four.json"))) {
    results.push_back(run_scenario(scenario, true));
  }
  return results;
}

}  // namespace

TEST_CASE("tables of a sweep show every result's figures as the result JSON has them") {
  const std::vector<ScenarioResult> results =
      swept(R"({"training.schedule": ["gpipe", "1f1b"], "training.micro_batches": [8, 2, 4]})");
  const std::string page = html_report(results);
  const Json all = Json::parse(result_json(results));
  const std::vector<std::string> columns = {"2", "4", "8"};  // numbers ascend
  const std::string head = between(page, "data-name=\"busy (%)\"", "</thead>");
  CHECK(split(head, "<th scope=\"col\">", "</th>") == columns);
  CHECK(split(between(page, "data-name=\"busy (%)\"", "</table>"), "<th scope=\"row\">", "</th>") ==
        std::vector<std::string>{"gpipe", "1f1b"});
  const auto step = heat_of(page, "step time (ms)"), busy = heat_of(page, "busy (%)"),
             rate = heat_of(page, "throughput (micro-batches/s)");
  REQUIRE(busy.size() == 2);
  for (std::size_t r = 0; r < 6; ++r) {
    const Json& result = all[r];
    const std::size_t row = result["sweep"]["training.schedule"] == "gpipe" ? 0 : 1;
    const int batches = result["sweep"]["training.micro_batches"].get<int>();
    const std::size_t column = batches == 2 ? 0 : batches == 4 ? 1 : 2;
    check_shown(step[row].at(column), 1e3 * result["step_time_s"].get<double>());
    check_shown(rate[row].at(column), batches / result["step_time_s"].get<double>());
    check_shown(busy[row].at(column), 100 * result["utilisation"]["busy"].get<double>());
    const std::string& cell = busy[row][column];
    CHECK((cell.find("class=\"fails\"") != cell.npos) == !result["fits_in_memory"].get<bool>());
    CHECK(cell.find("href=\"#scenario-" + std::to_string(r) + "\"") != cell.npos);
  }
  INFO("GPipe keeps all 8 x 300 MiB on every device, which has 2 GiB; 1F1B at most 4");
  CHECK(busy[0][2].find("title=\"Does not fit: device ") != std::string::npos);
}

TEST_CASE("the best cell of a table is the best of those that fit") {
  const std::string page = html_report(
      swept(R"({"training.schedule": ["gpipe", "1f1b"], "training.micro_batches": [8, 2, 4]})"));
  for (const char* name : {"step time (ms)", "busy (%)"}) {
    const std::string measure = name;
    CAPTURE(measure);
    double best = 0;
    std::vector<double> starred;
    for (const auto& row : heat_of(page, measure)) {
      for (const std::string& cell : row) {
        const std::string text = plain(cell);
        if (cell.find("fails") != cell.npos) continue;
        const double value = std::stod(text.substr(text.find_first_of("0123456789")));
        const bool less = measure == "step time (ms)";
        if (best == 0 || (less ? value < best : value > best)) best = value;
        if (text.find("★") != text.npos) starred.push_back(value);
      }
    }
    CHECK(starred == std::vector<double>{best});
  }
}

TEST_CASE("curves have a point for each result, which leads to its section") {
  const std::string page = html_report(swept(R"({"training.micro_batches": [8, 2, 4]})"));
  const std::string busy = between(page, "data-name=\"busy (%)\"", "</figure>");
  CHECK(busy.find("busy (%) along micro batches") != std::string::npos);
  CHECK(busy.find("<table") == std::string::npos);  // there is one path
  CHECK(count(busy, "class=\"curve\"") == 1);
  for (const char* section : {"#scenario-0", "#scenario-1", "#scenario-2"}) {
    CHECK(count(busy, section) == 1);
  }
}

TEST_CASE("results that no sweep made have no curves, and two of them no picture") {
  const ScenarioResult one = two_devices();
  CHECK(html_report({one}).find("id=\"sweep\"") == std::string::npos);
  CHECK(html_report({one, one}).find("id=\"sweep\"") == std::string::npos);
  const std::string three = html_report({one, one, one});
  const std::string trade_offs = between(three, "data-words=\"Throughput against\">", "</figure>");
  // Memory comes first: sections are marked by its front.
  CHECK(trade_offs.find("data-name=\"memory (GiB)\"") == trade_offs.find("data-name="));
  CHECK(three.find("The sweep") == std::string::npos);
}

TEST_CASE("a path of which only some results have a value is no axis") {
  std::vector<ScenarioResult> results(3, two_devices());
  results[0].plan.question.swept = {{"a.x", "1", 1}, {"b", "2", 2}};
  results[1].plan.question.swept = {{"a.x", "3", 3}};
  results[2].plan.question.swept = {{"a.x", "2", 2}, {"b", "2", 2}};
  const std::string page = html_report(results);
  CHECK(page.find("<table class=\"heat\"") == std::string::npos);
  CHECK(page.find("busy (%) along x") != std::string::npos);
}

TEST_CASE("what a sweep is called and what it sets cannot break out of the page") {
  const std::string evil = "</script><script>alert(1)</script><!--\"'&<img onerror=x>\xff";
  std::vector<ScenarioResult> results(3, two_devices());
  for (std::size_t r = 0; r < results.size(); ++r) {
    results[r].plan.question.name = evil + " | " + std::to_string(r);
    results[r].plan.question.swept = {{evil, evil + std::to_string(r), std::nullopt}};
  }
  const std::string page = html_report(results);
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("<!--") == std::string::npos);
}

TEST_CASE("a sweep of 1,000 results is small beside the page") {
  std::vector<ScenarioResult> results(1000, two_devices());
  for (int r = 0; r < 1000; ++r) {
    ScenarioResult& result = results[static_cast<std::size_t>(r)];
    result.plan.question.name =
        "sweep | x=" + std::to_string(r / 40) + " | y=" + std::to_string(r % 40);
    result.plan.question.swept = {{"x", std::to_string(r / 40), r / 40},
                                  {"y", std::to_string(r % 40), r % 40}};
  }
  const std::string page = html_report(results);
  const std::size_t begin = page.find("<div id=\"sweep\">");
  const std::size_t size = page.find("same-scale", begin) - begin;
  INFO(size << " bytes");
  CHECK(size < 1'000'000);
  CHECK(heat_of(page, "busy (%)").size() == 25);
  const std::string trade_offs = page.substr(page.find("data-words=\"Throughput against\">"));
  CHECK(count(trade_offs, "data-name=") == 1);
  CHECK(trade_offs.find("data-name=\"memory (GiB)\"") != std::string::npos);
  CHECK(page.find("The first 12 of 25 curves") != std::string::npos);
  CHECK(page.find("href=\"#scenario-" + std::to_string(kMostDrawn - 1) + "\"") != page.npos);
  CHECK(page.find("href=\"#scenario-" + std::to_string(kMostDrawn) + "\"") == page.npos);
}

TEST_CASE("no two scripts of a page give a name to different things") {
  const std::string page = html_report({two_devices()});
  std::map<std::string, int> names;
  for (const std::string word : {"\nfunction ", "\nasync function ", "\nconst ", "\nlet "}) {
    for (std::size_t at = page.find(word); at != page.npos; at = page.find(word, at + 1)) {
      const std::size_t begin = at + word.size();
      ++names[page.substr(begin, page.find_first_of(" (=;", begin) - begin)];
    }
  }
  CHECK(names.size() > 50);
  for (const auto& name : names) {
    INFO(name.first);
    CHECK(name.second == 1);
  }
}

}  // namespace interlock::page_sweep_test
