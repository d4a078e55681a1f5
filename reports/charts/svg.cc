// SVG timelines: still pictures of a few steps, small enough to sit in a paper.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "reports/charts/svg_text.h"
#include "reports/charts/timeline_panel.h"
#include "reports/headlines/figures.h"
#include "reports/report.h"
#include "reports/words/encode.h"
#include "reports/words/palette.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr double kTop = 86;

/// The element, a title and a subtitle, on white.
std::string open_timeline(const std::string& title, const std::string& words, double bottom) {
  const std::string width = svg_number(kTimelineWidth), height = svg_number(bottom + 76);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"0 0 " + width + " " + height +
         "\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\"" +
         " font-size=\"12\" fill=\"#222222\">\n" + "<title>" + escape_markup(title) + "</title>\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
         text_at(20, 28, title, " font-size=\"18\" font-weight=\"bold\"") +
         text_at(20, 48, words, " fill=\"#555555\"");
}

/// The op letters that occur in any of `panels`, each with its colour and meaning.
std::string legend(const std::vector<TimelinePanel>& panels) {
  std::string text;
  double x = kTimelineLeft;
  for (const OpKind kind : kOpKindsInOrder) {
    const auto user = std::find_if(panels.begin(), panels.end(), [&](const TimelinePanel& panel) {
      const auto& ops = panel.program().ops;
      return std::any_of(ops.begin(), ops.end(), [&](const OpInfo& op) { return op.kind == kind; });
    });
    if (user == panels.end()) continue;
    const std::string words =
        std::string(1, letter(kind)) + " " + meaning_in(user->program(), kind);
    text += "<rect" + attribute("x", x) + " y=\"60\" width=\"14\" height=\"14\" fill=\"" +
            swatch(kind).colour + "\"/>\n" + text_at(x + 19, 71.5, words);
    x += 38 + 5.9 * static_cast<double>(words.size());
  }
  return text;
}

std::string axis(const TimelinePanel& picture) {
  const Seconds range = picture.excerpt.end - picture.excerpt.begin;
  const Scale scale = scale_of_seconds({range.value()});
  const Ticks marks = ticks(range.value() / scale.size, 10);
  const double y = picture.bottom + 4;
  const auto move_to = [&](double x) {
    return std::string("M") + svg_number(x) + " " + svg_number(y);
  };
  std::string lines = "<path stroke=\"#555555\" fill=\"none\" d=\"";
  std::string labels = "<g text-anchor=\"middle\">\n";
  lines.append(move_to(kTimelineLeft))
      .append("H")
      .append(svg_number(kTimelineLeft + kTimelinePlot));
  for (const double mark : marks.at) {
    const double x = picture.x(picture.excerpt.begin + Seconds(mark * scale.size));
    lines.append(move_to(x)).append("v5");
    labels += text_at(x, y + 18, fixed(mark, marks.decimals));
  }
  labels += text_at(kTimelineLeft + kTimelinePlot / 2, y + 36,
                    "time since the measured window began (" + scale.unit + ")");
  return lines + "\"/>\n" + labels + "</g>\n";
}

std::string caption(const TimelinePanel& picture) {
  std::string words = "Shown: " + picture.excerpt.caption + ". Step time " +
                      format(picture.result->measurement.metrics.step_time) + ".";
  if (picture.program().micro_batches > 1) {
    words += " Numbers count micro-batches in a step";
    words += picture.program().slices > 1 ? ", and token slices in each." : ".";
  }
  const auto& ops = picture.program().ops;
  if (std::any_of(ops.begin(), ops.end(), is_pale)) words += " Pale: trains nothing on its device.";
  if (!picture.messages.empty()) words += " Below: messages, from start to arrival.";
  if (picture.lanes < static_cast<int>(picture.program().ranks.size())) {
    words += " The first " + std::to_string(picture.lanes) + " of " +
             std::to_string(picture.program().ranks.size()) + " devices.";
  }
  return text_at(kTimelineLeft, picture.bottom + 62, words, " fill=\"#555555\"");
}

/// As long as two of the longest steps, but no longer than any window or than bars allow.
Seconds common_length(const std::vector<ScenarioResult>& results) {
  Seconds longest, least;
  for (const ScenarioResult& result : results) {
    const Metrics& metrics = result.measurement.metrics;
    const Seconds window = metrics.window_end - metrics.window_begin;
    longest = std::max(longest, metrics.step_time);
    least = &result == &results.front() ? window : std::min(least, window);
  }
  Seconds length = std::min(2 * longest, least);
  const auto bars = [&] {
    int sum = 0;
    for (const auto& result : results) sum += count_bars(window_panel(result, 0, length));
    return sum;
  };
  while (length > Seconds(0) && bars() > kMostLabelledBars) length *= 0.5;
  return length;
}

}  // namespace

std::string svg_timeline(const ScenarioResult& result) {
  const TimelinePanel panel = step_panel(result, kTop);
  return open_timeline(result.scenario.name, subtitle(result), panel.bottom) + legend({panel}) +
         panel_svg(panel) + axis(panel) + caption(panel) + "</svg>\n";
}

std::string svg_timelines(const std::vector<ScenarioResult>& results) {
  if (results.size() == 1) return svg_timeline(results.front());
  constexpr double kTitle = 24, kGap = 10;
  const Seconds length = common_length(results);
  const std::string common = common_name(results);
  std::vector<TimelinePanel> panels;
  std::string text;
  double top = kTop + kTitle;
  for (const ScenarioResult& result : results) {
    panels.push_back(window_panel(result, top, length));
    text += text_at(kTimelineLeft, top - 7,
                    own_name(result.scenario.name, common) + ": step time " +
                        format(result.measurement.metrics.step_time) + ", busy " +
                        format_percent(result.measurement.metrics.busy),
                    " font-weight=\"bold\"") +
            panel_svg(panels.back());
    top = panels.back().bottom + kTitle + kGap;
  }
  const TimelinePanel& last = panels.back();
  const std::string title = common.empty() ? "Timelines" : common;
  return open_timeline(title, "each from the begin of its measured window, all to one scale",
                       last.bottom) +
         legend(panels) + text + axis(last) +
         text_at(kTimelineLeft, last.bottom + 62,
                 "Numbers count micro-batches in a step. Pale: trains nothing on its device.",
                 " fill=\"#555555\"") +
         "</svg>\n";
}

}  // namespace interlock
