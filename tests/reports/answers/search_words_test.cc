// Words of a search on plans that it did not look at.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/terminal/layout.h"

namespace interlock::search_words_test {
namespace {

using Json = nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

SearchResult empty_result() {
  SearchResult result;
  result.name = "none";
  result.counts = {.layouts = 40, .plans = 2000};
  return result;
}

TEST_CASE("a search without a plan says whether all plans were looked at") {
  SearchResult result = empty_result();
  const TableStyle style = {.width = 300};
  CHECK(has(search_text(result, style), "No plan is within the limits."));
  Json json = Json::parse(search_json(result));
  CHECK(json["proven"] == true);
  CHECK(json["left_out"] == nullptr);
  CHECK(json["counts"]["unproven"] == 0);

  result.counts.left = result.counts.left_better = 1200;
  result.counts.left_out = "ZeRO 2";
  const std::string text = search_text(result, style);
  CHECK(has(text,
            "No plan that was looked at is within the limits; 1200 may be, and cost too much to "
            "look at: fewer values under \"search\" reach them."));
  CHECK(has(text, "1,200"));
  CHECK(has(text, "as they cost too much; some may be within the limits"));
  json = Json::parse(search_json(result));
  CHECK(json["proven"] == false);
  CHECK(json["left_out"] == "ZeRO 2");
  CHECK(json["counts"]["unproven"] == 1200);
  CHECK(json["counts"]["not_looked_at"] == 1200);
}

TEST_CASE("plans that were not looked at are called better only if they may be") {
  SearchResult result = empty_result();
  result.plans.push_back({.estimate = {.values = {1, 1, 0, 0}, .step_time = 1}});
  result.counts.left = 30;
  const TableStyle style = {.width = 300};
  const std::string front = search_text(result, style);
  CHECK(has(front, "none is better than the best, but some may be worth having"));
  CHECK(!has(front, "may be better than plan 1"));
  CHECK(Json::parse(search_json(result))["proven"] == true);
  result.counts.left_better = 10;
  result.counts.large_better = 2;
  const std::string unsure = search_text(result, style);
  CHECK(has(unsure, "10 may be better than the best by their bounds"));
  CHECK(has(unsure, "12 plans may be better than plan 1, and cost too much to simulate."));
  CHECK(Json::parse(search_json(result))["proven"] == false);
}

TEST_CASE("a search says of each plan whose devices stand for others nearly that they do") {
  SearchResult result = empty_result();
  const FoundPlan plan = {.estimate = {.values = {1, 1, 0, 0}, .step_time = 1}};
  result.plans = {plan, plan};
  const TableStyle style = {.width = 300};
  const std::string words = "devices stand for others nearly, not exactly";
  CHECK(!has(search_text(result, style), words));
  CHECK(!has(search_json(result), "folded_nearly"));
  result.plans[1].estimate.nearly = true;
  CHECK(!has(search_text(result, style), words));  // the best is exact
  const Json plans = Json::parse(search_json(result))["plans"];
  CHECK(!plans[0].contains("folded_nearly"));
  CHECK(plans[1].value("folded_nearly", false));
  result.plans[0].estimate.nearly = true;
  CHECK(has(search_text(result, style), words));
}

TEST_CASE("a search of local training says that one stage trains globally, and what several do") {
  SearchResult result = empty_result();
  FoundPlan one = {.layout = {.devices = 12}, .estimate = {.values = {1, 1, 0, 0}, .step_time = 1}};
  one.layout.strategy = json_text("local");
  FoundPlan two = one;
  two.layout.pipeline = 2;
  two.estimate.values[0] = two.estimate.step_time = 1.5;
  const TableStyle style = {.width = 400};
  result.plans = {one};
  CHECK(has(search_text(result, style),
            "Its one stage has one loss, so that local training is global training in replicas; "
            "--set 'search.pipeline=[2, 3, 4, 6, 12]' finds the best of several stages."));
  result.plans = {one, two};
  const std::string words = one_stage_words(result);
  CHECK(has(words, "The best of several stages: tensor 1, pipeline 2"));
  CHECK(has(words, "(+50.0% time"));
  CHECK(Json::parse(search_json(result))["one_stage"] == words);
  result.plans = {two, one};
  CHECK(one_stage_words(result).empty());
  CHECK(Json::parse(search_json(result))["one_stage"] == nullptr);
  one.layout.strategy = json_text("global");
  result.plans = {one};
  CHECK(one_stage_words(result).empty());
}

TEST_CASE("a row of plan that does not fit says so of all plans, or of those looked at") {
  Sizing sizing;
  sizing.question.machines = {{"dgx-h100", ""}};
  SizedPlan row = {.left_out = "ZeRO 2"};
  row.plan = FoundPlan{.estimate = {.peak_memory = 9e9, .memory_capacity = 8e9}};
  row.memory_limit = Bytes(7e9);
  CHECK(has(row_words(row), "with the leanest plan: tensor 1"));
  row.proven = false;
  CHECK(has(row_words(row),
            "with the leanest plan of those looked at; others cost too much: tensor 1"));
  sizing.rows = {row};
  const Json json = Json::parse(sizing_json(sizing))["rows"][0];
  CHECK(json["proven"] == false);
  CHECK(json["left_out"] == "ZeRO 2");
}

/// A row that takes `days` and costs `hours`, of a machine whose steps are typically `typical` off.
SizedPlan row_of(std::size_t machine, double days, double hours, double typical) {
  SizedPlan row = {.machine = machine, .devices = 8, .fits = true};
  row.plan = FoundPlan{.estimate = {.step_time = 2}};
  row.time = Seconds(days * 86400);
  row.device_hours = hours;
  row.confidence.range = TimeRange{.low = Seconds(1.8),
                                   .high = Seconds(2.5),
                                   .basis = "published runs (X): 12 rows of 2 tables",
                                   .typical = typical};
  return row;
}

TEST_CASE("plan tells a near tie where the next best lacks less than the typical error") {
  Sizing sizing;
  sizing.question.machines = {{"dgx-h100", ""}, {"vr200-nvl72", ""}, {"gaudi3-oam", ""}};
  sizing.question.aims.time = Seconds(30 * 86400);
  sizing.rows = {row_of(0, 20, 1000, 0.02), row_of(1, 10, 1050, 0.06), row_of(2, 10, 1200, 0.3)};
  sizing.rows[1].borrowed = BorrowedEfficiency{"gb200", "alike"};
  sizing.rows[2].confidence.range->of_others = true;
  sizing.ranking = {0, 1, 2};
  INFO("the second costs 5 % more: 1 - 1 / 1.05 is 4.8 %, and 6 % are typical");
  std::vector<std::string> sentences = recommendation(sizing);
  REQUIRE(sentences.size() == 3);
  CHECK(sentences.back() ==
        "A near tie: with steps 4.8% shorter than predicted the next best would be first, and the "
        "typical error on published rows is 6.0%, so the order may be the other way round.");
  Json json = Json::parse(sizing_json(sizing));
  CHECK(json["near_tie"]["share"].get<double>() == doctest::Approx(1 - 1 / 1.05));
  CHECK(json["near_tie"]["typical_error"] == 0.06);
  CHECK(json["rows"][0]["efficiencies_of"] == "its own");
  CHECK(json["rows"][1]["efficiencies_of"] == "gb200");
  CHECK(json["rows"][1]["range"]["high_s"] == 2.5);
  const std::vector<std::string> notes = sizing_notes(sizing);
  const auto told = [&](const std::string& note) {
    return std::count(notes.begin(), notes.end(), note) == 1;
  };
  const std::string took =
      " Steps took 0.90 to 1.25 times as long as predicted in 80% of published runs (X): 12 rows "
      "of 2 tables.";
  CHECK(told("Measured: dgx-h100." + took));
  CHECK(told("Borrowed: vr200-nvl72, with the efficiencies of gb200, as it states none." + took));
  CHECK(told("Hardly measured: gaudi3-oam." + took));
  INFO("of two sizes of one machine the error between two runs counts");
  sizing.rows[1].machine = 0;
  CHECK(recommendation(sizing).size() == 2);
  sizing.rows[0].confidence.range->between = 0.05;
  sentences = recommendation(sizing);
  REQUIRE(sentences.size() == 3);
  CHECK(sentences.back() ==
        "A near tie: with steps 4.8% shorter than predicted the next best would be first, and "
        "predictions of two runs of one published table typically err by 5.0% from each other, so "
        "the order may be the other way round.");
  sizing.rows[1].machine = 1;
  sizing.rows[1].confidence.range->typical = 0.04;
  CHECK(recommendation(sizing).size() == 2);
  CHECK(Json::parse(sizing_json(sizing))["near_tie"] == nullptr);
}

TEST_CASE("plan says that a range goes beyond what was asked for, and whose does not") {
  Sizing sizing;
  sizing.question.machines = {{"dgx-h100", ""}};
  sizing.question.aims.time = Seconds(30 * 86400);
  SizedPlan small = row_of(0, 28, 1000, 0.02), large = row_of(0, 14, 1200, 0.02);
  large.devices = 16;
  sizing.rows = {small, large};
  sizing.ranking = {0, 1};
  std::vector<std::string> sentences = recommendation(sizing);
  CHECK(has(sentences[0], ": the cheapest within 30.0 d."));
  CHECK(sentences[1] ==
        "Its range reaches 35.0 d, beyond 30.0 d: the cheapest whose whole range is within is 16 "
        "devices of dgx-h100, 14.0 d (at most 17.5 d), 1.20 k GPU-hours (+20.0%).");
  CHECK(Json::parse(sizing_json(sizing))["rows"][0]["range_within"] == false);
  CHECK(Json::parse(sizing_json(sizing))["rows"][1]["range_within"] == true);
  sizing.rows = {small};
  sizing.ranking = {0};
  sentences = recommendation(sizing);
  CHECK(has(sentences[1], "beyond 30.0 d: no size has a range that is wholly within."));
  sizing.rows = {small, large, {.devices = 63, .problem = "no way"}};
  sizing.ranking = {1, 0};
  sizing.safer = true;
  sentences = recommendation(sizing);
  CHECK(has(sentences[0], ": the cheapest whose whole range is within 30.0 d."));
  CHECK(sentences[1] == "No plan, see below: dgx-h100 x 63.");
  CHECK(has(sentences[2], "(-16.7%); its range reaches 35.0 d."));
  CHECK(sentences.size() == 3);
}

TEST_CASE("an interrupted plan judges the sizes that were searched") {
  Sizing sizing;
  sizing.stopped = true;
  sizing.question.machines = {{"dgx-h100", ""}};
  sizing.question.devices = {8, 16, 32};
  sizing.rows = {row_of(0, 60, 1000, 0.02), row_of(0, 50, 1100, 0.02), {.devices = 32}};
  sizing.ranking = {1, 0};
  const auto first = [&] { return recommendation(sizing).front(); };
  sizing.question.aims.time = Seconds(45 * 86400);
  CHECK(has(first(), ": no size is within 45.0 d; this one is the quickest, +11.1% over"));
  sizing.rows[2].searched = false;
  CHECK(has(first(),
            ": no size of those searched, 1 of 3 not searched, is within 45.0 d; this one "
            "is the quickest, +11.1% over the time."));
  sizing.question.aims.time = Seconds(55 * 86400);
  CHECK(has(first(), ": the cheapest within 55.0 d of those searched, 1 of 3 not searched."));
  sizing.question.aims.time.reset();
  CHECK(has(first(), ": time x cost is least of those searched, 1 of 3 not searched."));
  sizing.ranking = {0};
  CHECK(has(first(), ": the only size that fits of those searched, 1 of 3 not searched."));
  sizing.ranking.clear();
  CHECK(has(first(), "No size of those searched, 1 of 3 not searched, has a plan that fits"));
  for (SizedPlan& row : sizing.rows) row.searched = false;
  CHECK(first() == "No size was searched to its end.");
}

TEST_CASE("plan asks for every price that it lacks") {
  Sizing sizing;
  sizing.question.machines = {{"dgx-h100", ""}, {"dgx-b200", ""}, {"gaudi3-oam", ""}};
  sizing.rows = {row_of(0, 20, 1000, 0.02), row_of(1, 10, 1050, 0.06), row_of(2, 10, 1200, 0.3)};
  sizing.rows[1].cost = Money{5, "USD"};
  sizing.ranking = {2, 0, 1};
  const auto told = [&](const std::string& note) {
    const std::vector<std::string> notes = sizing_notes(sizing);
    return std::count(notes.begin(), notes.end(), note) == 1;
  };
  CHECK(
      told("GPU-hours are the cost, as prices are unknown: --price 'dgx-h100=2.50 USD/h' --price "
           "'gaudi3-oam=2.50 USD/h'."));
  sizing.rows[2].cost = Money{5, "USD"};
  CHECK(told("GPU-hours are the cost, as a price is unknown: --price 'dgx-h100=2.50 USD/h'."));
}

TEST_CASE("a memory limit that nothing comes near is called the user's") {
  SearchResult result = empty_result();
  result.counts
      .lost[static_cast<std::size_t>(Grade::LayoutBound)][static_cast<std::size_t>(Loss::Memory)] =
      2000;
  const TableStyle style = {.width = 300};
  CHECK(has(search_text(result, style), "None comes near the memory that there is: more devices"));
  result.request.limits.memory = Bytes(1e9);
  CHECK(has(search_text(result, style),
            "None comes near the 954 MiB of a device that search.limits.memory allows: a wider "
            "limit, more devices, or offload, may."));
}

TEST_CASE("what lies on hosts is told in words") {
  FoundPlan plan;
  const auto words = [&](const std::string& offload) {
    plan.layout.options = {{"training.offload", parse_json(offload, "")}};
    return option_words(plan.layout);
  };
  CHECK(words(R"({"activations": 1, "optimizer": 1})") == "activations and optimizer on the host");
  CHECK(words(R"({"activations": 0.5})") == "50% of activations on the host");
}

TEST_CASE("search says that the next best may be the faster one within the typical error") {
  SearchResult result = empty_result();
  result.plans.push_back({.estimate = {.values = {100, 1, 0, 0}, .step_time = 100}});
  result.plans.push_back({.estimate = {.values = {103, 1, 0, 0}, .step_time = 103}});
  result.plans.back().worth_having = false;
  const TableStyle style = {.width = 300};
  CHECK(!has(search_text(result, style), "the other way round"));
  result.confidence.range =
      TimeRange{.low = Seconds(90), .high = Seconds(120), .typical = 0.02, .between = 0.05};
  CHECK(has(search_text(result, style),
            "The first takes 3.0% longer, and predictions of two runs of one published table "
            "typically err by 5.0% from each other, so the order may be the other way round."));
  CHECK(Json::parse(search_json(result))["range"]["low_s"] == 90);
  result.confidence.range->between = 0.02;
  CHECK(!has(search_text(result, style), "the other way round"));
}

TEST_CASE("sizes that take a part of each node are told together") {
  Sizing sizing;
  sizing.question.machines = {{"gb300-nvl72", ""}};
  sizing.rows = {{.devices = 72},
                 {.devices = 96, .share = 48, .of_node = 72},
                 {.devices = 128, .share = 64, .of_node = 72},
                 {.devices = 256, .share = 64, .of_node = 72}};
  const Json json = Json::parse(sizing_json(sizing));
  CHECK(json["rows"][0]["devices_per_node"] == nullptr);
  CHECK(json["rows"][3]["devices_per_node"] == 64);
  const std::vector<std::string> notes = sizing_notes(sizing);
  const auto told = [&](const std::string& note) {
    return std::count(notes.begin(), notes.end(), note) == 1;
  };
  CHECK(
      told("48 of the 72 devices of each node are used, as no whole nodes are filled: "
           "gb300-nvl72 x 96."));
  CHECK(
      told("64 of the 72 devices of each node are used, as no whole nodes are filled: "
           "gb300-nvl72 x 128, gb300-nvl72 x 256."));
}

}  // namespace
}  // namespace interlock::search_words_test
