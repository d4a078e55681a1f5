// Parts of a step: each second once, with causes or without, in pages and figures alike.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/time_parts.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "reports/charts/paper_figures.h"
#include "tests/reports/support/markup.h"

namespace interlock::time_parts_test {
namespace {

using Uses = std::array<double, kTimeUses>;

double& at(Uses& time, TimeUse use) { return time[static_cast<std::size_t>(use)]; }
double& at(Bubbles& bubbles, BubbleCause cause) { return bubbles[static_cast<std::size_t>(cause)]; }

/// Forward 0.5, exposed 0.2, bubble 0.3.
Uses half_busy() {
  Uses time{};
  at(time, TimeUse::Forward) = 0.5;
  at(time, TimeUse::Exposed) = 0.2;
  at(time, TimeUse::Bubble) = 0.3;
  return time;
}

double share_of(const std::vector<double>& shares, const std::string& name) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (time_parts()[i].name == name) return shares[i];
  }
  return -1;
}

double sum(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

}  // namespace

TEST_CASE("without causes a step is ops, exposed communication and a bubble") {
  const std::vector<double> shares = part_shares(half_busy(), nullptr, 1);
  CHECK(share_of(shares, "forward") == 0.5);
  CHECK(share_of(shares, "exposed communication") == 0.2);
  CHECK(share_of(shares, "bubble") == 0.3);
  CHECK(sum(shares) == doctest::Approx(1));
}

TEST_CASE("in results that name no exchanges, idle time without a cause is what ops exchange") {
  Bubbles bubbles{};  // of a step of 2 s
  at(bubbles, BubbleCause::Fill) = 0.4;
  at(bubbles, BubbleCause::Gradient) = 0.2;
  at(bubbles, BubbleCause::Message) = 0.1;
  const std::vector<double> shares = part_shares(half_busy(), &bubbles, 2);
  CHECK(share_of(shares, "fill") == doctest::Approx(0.2));
  CHECK(share_of(shares, "waiting for gradients") == doctest::Approx(0.1));
  CHECK(share_of(shares, "messages on their way") == doctest::Approx(0.05));
  INFO("idle 0.5 = 0.2 + 0.1 + 0.05 + what is left");
  CHECK(share_of(shares, "exchanges inside ops") == doctest::Approx(0.15));
  CHECK(share_of(shares, "bubble") == 0);
  CHECK(sum(shares) == doctest::Approx(1));
  at(bubbles, BubbleCause::Exchange) = 0.3;
  CHECK(share_of(part_shares(half_busy(), &bubbles, 2), "exchanges inside ops") ==
        doctest::Approx(0.15));
}

TEST_CASE("waiting that a cut window counts a little too high does not make a step longer") {
  Uses time = half_busy();
  at(time, TimeUse::Exposed) = 0.51;
  at(time, TimeUse::Bubble) = 0;
  const std::vector<double> shares = part_shares(time, nullptr, 1);
  CHECK(share_of(shares, "exposed communication") == doctest::Approx(0.5));
  CHECK(sum(shares) == doctest::Approx(1));
}

TEST_CASE("parts of one colour differ in their hatching, and all have words of their own") {
  std::set<std::string> names;
  std::set<std::pair<std::string, Hatch>> causes;
  int cause_count = 0;
  const std::string idle = time_parts().back().colour;
  for (const TimePart& part : time_parts()) {
    names.insert(part.name);
    if (std::string(part.colour) != idle || std::string(part.name) == "bubble") continue;
    causes.insert({part.colour, part.hatch});
    ++cause_count;
  }
  CHECK(names.size() == time_parts().size());
  CHECK(cause_count == kBubbleCauses - 2);  // messages and exchanges are communication
  CHECK(causes.size() == static_cast<std::size_t>(cause_count));
}

TEST_CASE("the figure of where time goes divides bubbles by cause, with patterns for its legend") {
  ReadResult result{.file = "r.json", .name = "two devices"};
  result.values = {{"step_time_s", 2}, {"busy", 0.5}, {"useful", 0.5}};
  Bubbles bubbles{};
  at(bubbles, BubbleCause::Fill) = 0.7;
  at(bubbles, BubbleCause::Room) = 0.3;
  result.simulated.push_back({.device = 0, .metrics = {.time = half_busy()}, .bubbles = bubbles});
  result.simulated.push_back(
      {.device = 1, .metrics = {.time = half_busy()}});  // of an older program
  const Markup picture = read_markup(bar_chart_svg(breakdown_figure({result})));
  REQUIRE(picture.error == "");
  std::set<std::string> tips, patterns;
  for (const Element& element : picture.elements) {
    if (element.tag == "title") tips.insert(element.text);
    if (element.tag == "pattern") patterns.insert(element.attributes.at("id"));
  }
  for (const char* tip : {"device 0, fill: 0.35", "device 0, waiting for room in a queue: 0.15",
                          "device 1, bubble: 0.3", "device 1, exposed communication: 0.2"}) {
    CAPTURE(tip);
    CHECK(tips.count(tip) == 1);
  }
  CHECK(patterns.size() == 2);
  for (const Element& element : picture.elements) {
    const auto fill = element.attributes.find("fill");
    if (fill == element.attributes.end() || !fill->second.starts_with("url(#")) continue;
    CHECK(patterns.count(fill->second.substr(5, fill->second.size() - 6)) == 1);
  }
}

}  // namespace interlock::time_parts_test
