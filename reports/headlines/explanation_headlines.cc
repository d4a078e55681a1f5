// Explanations in words: shares of a step, largest first.
// SPDX-License-Identifier: Apache-2.0
#include "reports/headlines/explanation_headlines.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "reports/words/palette.h"
#include "reports/words/scale.h"
#include "reports/words/time_parts.h"
#include "sim/measure/explained.h"

namespace interlock {
namespace {

using Share = std::pair<std::string, double>;  // its words, and seconds

/// "forward 40.0%, messages 2.1%" of `whole` seconds; what rounds to nothing is left out.
std::string list_shares(std::vector<Share> shares, double whole) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [words, seconds] : shares) {
    if (!(seconds > 0.0005 * whole)) continue;
    text += (text.empty() ? "" : ", ") + words + " " + format_percent(seconds / whole);
  }
  return text;
}

/// Causes that some device has.
std::vector<BubbleCause> causes_of(const Explanation& explanation) {
  std::vector<BubbleCause> causes;
  for (int i = 0; i < kBubbleCauses; ++i) {
    const bool there = std::any_of(
        explanation.devices.begin(), explanation.devices.end(),
        [&](const Bubbles& bubbles) { return bubbles[static_cast<std::size_t>(i)] > 0; });
    if (there) causes.push_back(static_cast<BubbleCause>(i));
  }
  return causes;
}

/// Returns whether idle time with `cause` is bubble, not communication and not overhead.
bool of_pipeline(BubbleCause cause) {
  return cause != BubbleCause::Message && cause != BubbleCause::Exchange &&
         cause != BubbleCause::Unknown;
}

}  // namespace

std::vector<Headline> explanation_headlines(const ScenarioResult& result) {
  const Measurement& measurement = result.measurement;
  const auto& explanation = measurement.metrics.explanation;
  if (!explanation && measurement.metrics.tasks > kMostTasksExplained) {
    const auto number = [](std::int64_t tasks) {
      return format_number(static_cast<double>(tasks));
    };
    return {{"Critical path", "not followed",
             "the run has " + number(measurement.metrics.tasks) + " tasks, more than " +
                 number(kMostTasksExplained) + "; fewer training.steps make it shorter"}};
  }
  if (!explanation) return {};
  const PathUse& path = explanation->path;
  std::vector<Share> shares;
  double whole = path.messages + path.collectives + path.unknown;
  for (const OpKind kind : kOpKindsInOrder) {
    const double seconds = path.ops[static_cast<std::size_t>(kind)];
    shares.emplace_back(meaning_in(measurement.program, kind), seconds);
    whole += seconds;
  }
  shares.emplace_back("messages", path.messages);
  shares.emplace_back("collectives", path.collectives);
  shares.emplace_back("between ops", path.unknown);
  if (whole <= 0) return {};
  return {{"Critical path", format(Seconds(whole)), list_shares(shares, whole)}};
}

Headline idle_headline(const Metrics& metrics) {
  const double step = metrics.step_time.value();
  const auto mean = [&](const auto& of_device) {
    double sum = 0;
    for (std::size_t i = 0; i < metrics.devices.size(); ++i) sum += of_device(i);
    return sum / static_cast<double>(metrics.devices.size());
  };
  double bubble = 0;
  std::vector<Share> causes, others;
  if (metrics.explanation) {
    for (const BubbleCause cause : causes_of(*metrics.explanation)) {
      const double seconds = mean([&](std::size_t i) {
        return metrics.explanation->devices[i][static_cast<std::size_t>(cause)];
      });
      if (of_pipeline(cause)) bubble += seconds;
      (of_pipeline(cause) ? causes : others).emplace_back(words_of(cause), seconds);
    }
  } else {
    const auto seconds = [&](TimeUse use) {
      return step * mean([&](std::size_t i) {
               return metrics.devices[i].time[static_cast<std::size_t>(use)];
             });
    };
    bubble = seconds(TimeUse::Bubble);
    others = {{"exposed communication", seconds(TimeUse::Exposed)}};
  }
  std::string words = list_shares({{"bubble", bubble}}, step);
  const std::string why = list_shares(causes, step), rest = list_shares(others, step);
  if (!why.empty()) words += " (" + why + ")";
  if (!words.empty() && !rest.empty()) words += ", ";
  words += rest;
  return {"Idle", format_percent(1 - metrics.busy),
          "of a step" + (words.empty() ? "" : ": " + words)};
}

Grid idle_grid(const ScenarioResult& result) {
  const Metrics& metrics = result.measurement.metrics;
  if (!metrics.explanation || metrics.step_time <= Seconds(0)) return {};
  const std::vector<BubbleCause> causes = causes_of(*metrics.explanation);
  Grid grid{{{"Device", ""}}, {}};
  for (const BubbleCause cause : causes) grid.columns.push_back({words_of(cause), "%"});
  const std::vector<int> numbers = device_numbers(result.plan);
  for (std::size_t r = 0; r < metrics.explanation->devices.size(); ++r) {
    std::vector<Cell> row = {{std::to_string(numbers.at(r))}};
    for (const BubbleCause cause : causes) {
      const double seconds = metrics.explanation->devices[r][static_cast<std::size_t>(cause)];
      const double share = seconds / metrics.step_time.value();
      row.push_back({fixed(100 * share, 1)});
    }
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

}  // namespace interlock
