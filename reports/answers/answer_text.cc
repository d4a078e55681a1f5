// The answers of interlock explain as a terminal shows them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "reports/answers/answer_report.h"
#include "reports/headlines/explanation_headlines.h"
#include "reports/terminal/layout.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostLines = 12;  // of parts and of the path
constexpr std::size_t kMostDevicesListed = 16;
constexpr std::size_t kMostRoom = 4;  // changes that make room
constexpr double kLeastGain = 5e-4;   // of a step
constexpr double kSpare = 0.2;        // of the memory: more is no concern

/// Words, seconds and shares of a step, longest first.
template <class T>
std::string time_list(const std::string& head, const std::vector<T>& list, const Answers& answers,
                      const TableStyle& style) {
  const double step = answers.baseline.result.measurement.metrics.step_time.value();
  if (list.empty() || step <= 0) return "";
  const Scale scale = scale_of_seconds({step});
  Grid grid{{{head, "", false}, {"Time", scale.unit}, {"Share", "%"}}, {}};
  double rest = 0;
  std::size_t left = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double share = list[i].seconds / step;
    if (i >= kMostLines || share < kLeastShare) {
      rest += list[i].seconds;
      ++left;
      continue;
    }
    grid.rows.push_back({{words_of(list[i], answers)},
                         {scaled(list[i].seconds, scale)},
                         {fixed(100 * share, 1), std::min(1.0, share)}});
  }
  if (rest >= kLeastShare * step) {
    grid.rows.push_back({{std::to_string(left) + " more"},
                         {scaled(rest, scale)},
                         {fixed(100 * rest / step, 1), std::min(1.0, rest / step)}});
  }
  return lay_out(grid, style) + "\n";
}

std::string device_lines(const Answers& answers, const TableStyle& style) {
  const ScenarioResult& result = answers.baseline.result;
  const Metrics& metrics = result.measurement.metrics;
  const std::vector<int> keep = {metrics.limiting_device, fullest_device(metrics).rank};
  std::string text = lay_out(shorten(device_grid(result), kMostDevicesListed, keep), style) + "\n";
  const Grid waiting = idle_grid(result);
  if (waiting.columns.size() > 1) {
    text += paragraph("Idle, in shares of a step:", Ink::Faint, style);
    text += lay_out(shorten(waiting, kMostDevicesListed, keep), style) + "\n";
  }
  return text;
}

std::string memory_words(const TriedChange& tried) {
  return format(tried.peak_memory) +
         (tried.fits ? ""
          : tried.peak_memory > tried.memory_capacity && tried.memory_capacity > Bytes(0)
              ? ", does not fit"
              : ", hosts too small");
}

/// ", energy -12.0%": what a step takes besides, over what it took.
std::string costs_words(const TriedChange& tried) {
  const auto words = [](const char* name, const std::optional<double>& ratio) {
    if (!ratio) return std::string();
    const double percent = 100 * (*ratio - 1);
    return std::string(", ") + name + (percent > 0 ? " +" : " ") + fixed(percent, 1) + "%";
  };
  return words("energy", tried.energy) + words("cost", tried.cost);
}

const char* kind_words(Change::Kind kind) {
  switch (kind) {
    case Change::Kind::Machine:
      return "machine";
    case Change::Kind::Plan:
      return "plan";
    case Change::Kind::Training:
      return "training";
  }
  return "";
}

/// Returns two lines for each change: what it brings, and what to type.
std::string change_lines(const std::vector<const TriedChange*>& list, const Answers& answers,
                         const TableStyle& style) {
  const double step = answers.baseline.result.measurement.metrics.step_time.value();
  std::vector<double> times = {step};
  for (const TriedChange* tried : list) times.push_back(tried->step_time.value());
  const Scale scale = scale_of_seconds(times);
  std::string text;
  for (const TriedChange* tried : list) {
    const double share = step > 0 ? tried->gain.value() / step : 0;
    const std::string gain = (share > 0 ? "+" : "") + fixed(100 * share, 1) + "%";
    text += paint(pad(gain, 8, true), tried->gain > Seconds(0) ? Ink::Strong : Ink::Plain, style);
    text += pad(scaled(tried->step_time.value(), scale) + " " + scale.unit, 12, true) + "  ";
    text += tried->change.words;
    text += paint(" [" + std::string(kind_words(tried->change.kind)) + "]", Ink::Faint, style);
    if (tried->work != 1) {
      text += " for " + fixed(tried->work, 2) + " of the samples";
    }
    text += "\n" + std::string(22, ' ');
    text += paint(memory_words(*tried), tried->fits ? Ink::Faint : Ink::Alarm, style);
    text +=
        paint(costs_words(*tried) + ";  " + set_options(tried->change), Ink::Faint, style) + "\n";
  }
  return text;
}

std::string gains(const Answers& answers, const TableStyle& style, bool all) {
  const double step = answers.baseline.result.measurement.metrics.step_time.value();
  std::vector<const TriedChange*> shown;
  for (const TriedChange& tried : answers.changes) {
    if (all || tried.gain.value() > kLeastGain * step) shown.push_back(&tried);
  }
  std::string text = paragraph("One step better, simulated again", Ink::Strong, style);
  text += paint("   saves        step", Ink::Faint, style) + "\n";
  if (shown.empty()) text += "Nothing that was tried makes the step shorter.\n";
  text += change_lines(shown, answers, style);
  if (answers.untried > 0) {
    text += paragraph("Interrupted: " + std::to_string(answers.untried) + " were not tried.",
                      Ink::Alarm, style);
  }
  const std::size_t left = answers.changes.size() - shown.size();
  if (left > 0) {
    text += paragraph(
        std::to_string(left) + " other changes save less than 0.05%, or lose; --all shows them.",
        Ink::Faint, style);
  }
  return text;
}

/// Changes that lower the peak of the fullest device, the most room first.
std::string room(const Answers& answers, const TableStyle& style) {
  const Metrics& metrics = answers.baseline.result.measurement.metrics;
  if (!metrics.memory_capacity || metrics.devices.empty()) return "";
  const Bytes peak = fullest_device(metrics).peak_memory, capacity = *metrics.memory_capacity;
  if (metrics.fits_in_memory && peak < capacity * (1 - kSpare)) return "";
  std::vector<const TriedChange*> makes;
  for (const TriedChange& tried : answers.changes) {
    const Bytes spare = tried.memory_capacity - tried.peak_memory;
    const bool roomier = spare > capacity - peak;
    if (roomier && (tried.fits || !metrics.fits_in_memory)) makes.push_back(&tried);
  }
  std::stable_sort(makes.begin(), makes.end(), [](const TriedChange* a, const TriedChange* b) {
    if (a->fits != b->fits) return a->fits;
    return a->memory_capacity - a->peak_memory > b->memory_capacity - b->peak_memory;
  });
  if (makes.size() > kMostRoom) makes.resize(kMostRoom);
  std::string text = "\n" + paragraph("What makes room: the fullest device has " + format(peak) +
                                          " of " + format(capacity),
                                      Ink::Strong, style);
  if (makes.empty()) return text + "Nothing that was tried.\n";
  return text + change_lines(makes, answers, style);
}

}  // namespace

std::string answers_text(const Answers& answers, const TableStyle& style, bool all) {
  const ScenarioResult& result = answers.baseline.result;
  const Metrics& metrics = result.measurement.metrics;
  std::string text = paragraph(result.plan.question.name, Ink::Strong, style);
  text += paragraph(subtitle(result), Ink::Faint, style) + "\n";
  text += headline_lines({{"Step time", format(metrics.step_time), ""},
                          {"Limited by", limit_sentence(answers), ""}},
                         style) +
          "\n";
  text += time_list("A step, as the busiest device spends it", answers.baseline.limits.parts,
                    answers, style);
  text += time_list("Along the critical path", answers.baseline.limits.path, answers, style);
  const std::vector<std::string> notes = unexplained(answers);
  for (const std::string& line : notes) text += paragraph(line, Ink::Faint, style);
  if (!notes.empty()) text += "\n";
  if (!metrics.devices.empty()) text += device_lines(answers, style);
  return text + gains(answers, style, all) + room(answers, style);
}

}  // namespace interlock
