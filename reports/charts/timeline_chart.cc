// Timeline charts: still pictures of a few steps, small enough to sit in a paper.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "reports/charts/picture_style.h"
#include "reports/charts/svg_text.h"
#include "reports/headlines/headlines.h"
#include "reports/report.h"
#include "reports/words/encode.h"
#include "reports/words/excerpt.h"
#include "reports/words/palette.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr double kTimelineWidth = 1200, kTimelineLeft = 130, kTimelineRight = 20;
constexpr const char* kDoesNotFit = "does not fit in memory";

/// The messages from one rank to another, which have a thin lane below the devices.
struct MessageLane {
  int from = 0, to = 0;
  std::vector<const Transfer*> transfers;
};

struct TimelinePanel {
  const ScenarioResult* result = nullptr;
  Excerpt excerpt;
  double top = 0, bottom = 0;  // of the lanes in the picture
  int lanes = 1;
  double lane = 28;  // height, gap included
  std::vector<MessageLane> messages = {};
  std::vector<int> devices = {};  // by rank, as the machine counts
  PictureStyle style = {};

  double width() const { return style.width > 0 ? style.width : kTimelineWidth; }
  double plot() const { return width() - kTimelineLeft - kTimelineRight; }

  const Program& program() const { return result->measurement.program; }
  double x(Seconds time) const {
    return kTimelineLeft + plot() * ((time - excerpt.begin) / (excerpt.end - excerpt.begin));
  }
  double y(int rank) const { return top + lane * rank; }
  double bar_height() const { return lane > 8 ? lane - 4 : lane * 0.75; }
};

constexpr int kSteps = 3;
constexpr int kMostTimelineBars = 7500;  // of about 57 bytes
constexpr int kMostLabelledBars = 4000;  // of about 100 bytes
constexpr double kLabelLane = 14;        // least height of a lane with text
constexpr int kMostLanes = 256;
constexpr int kMostMessages = 2000;
constexpr double kMessageLane = 9;
constexpr std::size_t kMostMessageLanes = 32;

/// Returns a lane for each ordered pair of ranks that sends in the picture; none where they would
/// be too many, or where no message takes time.
std::vector<MessageLane> message_lanes(const TimelinePanel& panel) {
  std::map<std::pair<int, int>, MessageLane> lanes;
  int messages = 0;
  for (const Transfer& transfer : panel.result->measurement.log.transfers) {
    const Channel& channel = panel.program().channels[transfer.channel];
    if (transfer.arrival <= panel.excerpt.begin || transfer.start >= panel.excerpt.end ||
        transfer.arrival <= transfer.start) {
      continue;
    }
    MessageLane& lane = lanes[{channel.from_rank, channel.to_rank}];
    lane.transfers.push_back(&transfer);
    ++messages;
  }
  std::vector<MessageLane> found;
  if (messages > kMostMessages || lanes.size() > kMostMessageLanes) return found;
  for (auto& [pair, lane] : lanes) {
    found.push_back({pair.first, pair.second, std::move(lane.transfers)});
  }
  return found;
}

/// Returns a panel with the lanes of `result`, still empty.
TimelinePanel lanes_of(const ScenarioResult& result, double top, const PictureStyle& style) {
  const auto ranks = static_cast<int>(result.measurement.program.ranks.size());
  TimelinePanel panel{.result = &result, .top = top, .lanes = std::min(ranks, kMostLanes)};
  panel.style = style;
  panel.lane = std::clamp(720.0 / panel.lanes, 4.0, 28.0);
  panel.bottom = panel.y(panel.lanes);
  panel.devices = device_numbers(result.plan);
  return panel;
}

bool is_shown(const TimelinePanel& panel, const Span& span) {
  return span.rank < panel.lanes && span.start < panel.excerpt.end &&
         span.end > panel.excerpt.begin;
}

std::string lanes(const TimelinePanel& panel) {
  std::string text = "<g text-anchor=\"end\">\n";
  const int every = static_cast<int>(std::ceil(kLabelLane / panel.lane));
  for (int rank = 0; rank < panel.lanes; ++rank) {
    const double y = panel.y(rank);
    text +=
        "<rect" + attribute("x", kTimelineLeft) + attribute("y", y) +
        attribute("width", panel.plot()) + attribute("height", panel.bar_height()) +
        (panel.style.grey ? " fill=\"#ffffff\" stroke=\"#cccccc\"/>\n" : " fill=\"#f0f0f0\"/>\n");
    if (rank % every != 0) continue;
    const auto& stages = panel.result->measurement.metrics.devices[rank].stages;
    std::string label = "device " + std::to_string(panel.devices.at(rank));
    if (stages.size() > 1) label += " (" + list_stages(stages) + ")";
    text += text_at(kTimelineLeft - 8, y + panel.bar_height() / 2 + 4, label);
  }
  return text + "</g>\n";
}

/// Returns the paint of ops in a grey figure. Hatching is light, as letters stand on it.
Paint op_paint(OpKind kind) {
  switch (kind) {
    case OpKind::F:
      return {"#4d4d4d"};
    case OpKind::B:
      return {"#b3b3b3"};
    case OpKind::I:
      return {"#d9d9d9"};
    case OpKind::W:
      return {"#ffffff"};
    case OpKind::R:
      return {"#ffffff", Hatch::Rising};
    case OpKind::H:
      return {"#ffffff", Hatch::Dots};
    case OpKind::U:
      return {"#808080", Hatch::Crossed};
    case OpKind::S:
      return {"#ffffff", Hatch::Falling};
    case OpKind::T:
      return {"#ffffff", Hatch::Level};
    case OpKind::E:
      return {"#ffffff", Hatch::Upright};
    case OpKind::G:
      return {"#d9d9d9", Hatch::Crossed};
  }
  return {"#ffffff"};
}

std::string pattern_id(OpKind kind) { return std::string("op-") + letter(kind); }

std::string fill_of(OpKind kind, const PictureStyle& style) {
  if (!style.grey) return swatch(kind).colour;
  const Paint paint = op_paint(kind);
  return paint.hatch == Hatch::None ? paint.colour : "url(#" + pattern_id(kind) + ")";
}

std::string ink_of(OpKind kind, const PictureStyle& style) {
  if (!style.grey) return swatch(kind).ink;
  return kind == OpKind::F ? "#ffffff" : "#000000";
}

std::string patterns(const PictureStyle& style) {
  if (!style.grey) return "";
  std::string text;
  for (const OpKind kind : kOpKindsInOrder) {
    const Paint paint = op_paint(kind);
    if (paint.hatch != Hatch::None) text += pattern_svg(pattern_id(kind), paint);
  }
  return "<defs>\n" + text + "</defs>\n";
}

std::string bars(const TimelinePanel& panel, OpKind kind, bool pale) {
  constexpr double kThin = 3;  // a border would leave little of it
  std::string thin, wide;
  for (const Span& span : panel.result->measurement.log.spans) {
    const OpInfo& op = panel.program().ops[span.op];
    if (op.kind != kind || is_pale(op) != pale || !is_shown(panel, span)) continue;
    const double from = panel.x(std::max(span.start, panel.excerpt.begin));
    const double to = panel.x(std::min(span.end, panel.excerpt.end));
    (to - from < kThin ? thin : wide) +=
        "<rect" + attribute("x", from) + attribute("y", panel.y(span.rank)) +
        attribute("width", to - from) + attribute("height", panel.bar_height()) + "/>\n";
  }
  const std::string paint =
      "<g fill=\"" + fill_of(kind, panel.style) + "\"" + (pale ? " fill-opacity=\"0.5\"" : "");
  const char* const border = panel.style.grey ? "#333333" : "#ffffff";
  const std::string bordered = std::string(" stroke=\"") + border + "\" stroke-width=\"0.5\">\n";
  return (thin.empty() ? "" : paint + ">\n" + thin + "</g>\n") +
         (wide.empty() ? "" : paint + bordered + wide + "</g>\n");
}

/// Returns the words of a bar of `width`: "F3", or "2F3" where the rank has several stages, or the
/// letter alone, or nothing. Micro-batches count from 0 in each step, token slices in each of them
/// ("F3.1").
std::string bar_label(const Program& program, const Span& span, double width) {
  const OpInfo& op = program.ops[span.op];
  const bool several = program.ranks[span.rank].stages.size() > 1;
  const std::string sign(1, letter(op.kind));
  const SliceNumber number = slice_number(program, span.micro_batch % program.micro_batches);
  std::string whole = (several ? std::to_string(model_stage(program, op.stage)) : "") + sign +
                      std::to_string(number.micro_batch);
  if (program.slices > 1) whole += "." + std::to_string(number.slice);
  const auto fits = [&](const std::string& label) {
    return 4 + 6.5 * static_cast<double>(label.size()) <= width;
  };
  if (fits(whole)) return whole;
  return fits(sign) ? sign : "";
}

std::string bar_labels(const TimelinePanel& panel, OpKind kind) {
  if (panel.lane < kLabelLane) return "";
  std::string text;
  for (const Span& span : panel.result->measurement.log.spans) {
    if (panel.program().ops[span.op].kind != kind || !is_shown(panel, span)) continue;
    const double from = panel.x(std::max(span.start, panel.excerpt.begin));
    const double to = panel.x(std::min(span.end, panel.excerpt.end));
    const std::string label = bar_label(panel.program(), span, to - from);
    if (label.empty()) continue;
    text += text_at((from + to) / 2, panel.y(span.rank) + panel.bar_height() / 2 + 4, label);
  }
  if (text.empty()) return text;
  return "<g text-anchor=\"middle\" font-size=\"11\" fill=\"" + ink_of(kind, panel.style) +
         "\">\n" + text + "</g>\n";
}

std::string message_bars(const TimelinePanel& panel) {
  std::string words = "<g text-anchor=\"end\" font-size=\"9\" fill=\"#555555\">\n";
  std::string bars = "<g fill=\"#555555\">\n";
  double y = panel.y(panel.lanes);
  for (const MessageLane& lane : panel.messages) {
    words += text_at(kTimelineLeft - 8, y + kMessageLane - 1.5,
                     std::to_string(panel.devices.at(lane.from)) + " → " +
                         std::to_string(panel.devices.at(lane.to)));
    for (const Transfer* transfer : lane.transfers) {
      const double from = panel.x(std::max(transfer->start, panel.excerpt.begin));
      const double to = panel.x(std::min(transfer->arrival, panel.excerpt.end));
      bars += "<rect" + attribute("x", from) + attribute("y", y + 2) +
              attribute("width", std::max(to - from, 0.5)) + attribute("height", kMessageLane - 4) +
              "/>\n";
    }
    y += kMessageLane;
  }
  return panel.messages.empty() ? "" : words + "</g>\n" + bars + "</g>\n";
}

/// Returns a few steps of `result` from the measured window, lanes from `top` downwards.
TimelinePanel step_panel(const ScenarioResult& result, double top, const PictureStyle& style) {
  TimelinePanel panel = lanes_of(result, top, style);
  const int most = panel.lane >= kLabelLane ? kMostLabelledBars : kMostTimelineBars;
  panel.excerpt = choose_steps(result.measurement, kSteps, most);
  Excerpt& excerpt = panel.excerpt;
  if (excerpt.end <= excerpt.begin) excerpt.end = excerpt.begin + Seconds(1);  // nothing takes time
  panel.messages = message_lanes(panel);
  panel.bottom += kMessageLane * static_cast<double>(panel.messages.size());
  return panel;
}

/// Returns the first `length` of the measured window, without messages.
TimelinePanel window_panel(const ScenarioResult& result, double top, Seconds length,
                           const PictureStyle& style) {
  TimelinePanel panel = lanes_of(result, top, style);
  panel.excerpt.begin = result.measurement.metrics.window_begin;
  panel.excerpt.end = panel.excerpt.begin + (length > Seconds(0) ? length : Seconds(1));
  return panel;
}

/// Counts the ops that it shows.
int count_bars(const TimelinePanel& panel) {
  int bars = 0;
  for (const Span& span : panel.result->measurement.log.spans) bars += is_shown(panel, span);
  return bars;
}

/// Draws names of devices, bars, their labels, and messages.
std::string panel_svg(const TimelinePanel& panel) {
  std::string text = lanes(panel);
  for (const OpKind kind : kOpKindsInOrder) {
    text += bars(panel, kind, false) + bars(panel, kind, true);
  }
  for (const OpKind kind : kOpKindsInOrder) text += bar_labels(panel, kind);
  return text + message_bars(panel);
}

constexpr double kTop = 86;

/// The words and the legend at the top of a picture.
struct TimelineTop {
  Heading heading;
  std::string legend = {};
  double extra = 0;  // height beyond that of a line of each
};

/// Returns the start of the SVG: the element, heading and legend, on white.
std::string open_timeline(const TimelineTop& top, const PictureStyle& style, double bottom) {
  const std::string width = svg_number(style.width > 0 ? style.width : kTimelineWidth);
  const std::string height = svg_number(bottom);
  std::string title;
  for (const std::string& line : top.heading.title) title += (title.empty() ? "" : " ") + line;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"0 0 " + width + " " + height +
         "\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\"" +
         " font-size=\"12\" fill=\"#222222\">\n" + "<title>" + escape_markup(title) + "</title>\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + patterns(style) +
         heading_svg(top.heading) + top.legend;
}

bool uses(const ScenarioResult* result, OpKind kind) {
  const auto& ops = result->measurement.program.ops;
  return std::any_of(ops.begin(), ops.end(), [&](const OpInfo& op) { return op.kind == kind; });
}

/// Adds a legend of the op letters that occur in any of `results`.
void add_legend(const std::vector<const ScenarioResult*>& results, const PictureStyle& style,
                TimelineTop& top) {
  constexpr double kLegendRow = 20, kLegendSign = 38, kLegendLetter = 5.9;
  double x = kTimelineLeft, y = 60 + top.extra;
  for (const OpKind kind : kOpKindsInOrder) {
    const auto user = std::find_if(results.begin(), results.end(),
                                   [&](const auto* result) { return uses(result, kind); });
    if (user == results.end()) continue;
    const std::string words =
        std::string(1, letter(kind)) + " " + meaning_in((*user)->measurement.program, kind);
    const double wide = kLegendSign + kLegendLetter * static_cast<double>(words.size());
    if (style.width > 0 && x > kTimelineLeft && x + wide > style.width) {
      x = kTimelineLeft;
      y += kLegendRow;
      top.extra += kLegendRow;
    }
    top.legend += "<rect" + attribute("x", x) + attribute("y", y) +
                  " width=\"14\" height=\"14\" fill=\"" + fill_of(kind, style) +
                  (style.grey ? "\" stroke=\"#333333\" stroke-width=\"0.5\"/>\n" : "\"/>\n") +
                  text_at(x + 19, y + 11.5, words);
    x += wide;
  }
}

std::string axis(const TimelinePanel& picture) {
  const Seconds range = picture.excerpt.end - picture.excerpt.begin;
  const Scale scale = scale_of_seconds({range.value()});
  const Ticks marks = ticks(range.value() / scale.size, picture.plot() < 400 ? 5 : 10);
  const double y = picture.bottom + 4;
  const auto move_to = [&](double x) {
    return std::string("M") + svg_number(x) + " " + svg_number(y);
  };
  std::string lines = "<path stroke=\"#555555\" fill=\"none\" d=\"";
  std::string labels = "<g text-anchor=\"middle\">\n";
  lines.append(move_to(kTimelineLeft))
      .append("H")
      .append(svg_number(kTimelineLeft + picture.plot()));
  for (const double mark : marks.at) {
    const double x = picture.x(picture.excerpt.begin + Seconds(mark * scale.size));
    lines.append(move_to(x)).append("v5");
    labels += text_at(x, y + 18, fixed(mark, marks.decimals));
  }
  labels += text_at(kTimelineLeft + picture.plot() / 2, y + 36,
                    (picture.plot() < 400 ? "time (" : "time since the measured window began (") +
                        scale.unit + ")");
  return lines + "\"/>\n" + labels + "</g>\n";
}

/// Signs of bars that need words below a picture.
struct BarSigns {
  bool numbers = false, slices = false, pale = false;
};

/// Adds those that `panel` draws.
void add_signs(const TimelinePanel& panel, BarSigns& signs) {
  const Program& program = panel.program();
  const bool labelled = panel.lane >= kLabelLane && program.micro_batches > 1;
  for (const Span& span : panel.result->measurement.log.spans) {
    if (!is_shown(panel, span)) continue;
    signs.pale = signs.pale || is_pale(program.ops[span.op]);
    if (!labelled || signs.numbers) continue;
    const double from = panel.x(std::max(span.start, panel.excerpt.begin));
    const double to = panel.x(std::min(span.end, panel.excerpt.end));
    signs.numbers = bar_label(program, span, to - from).size() > 1;  // else a letter alone
    signs.slices = signs.slices || (signs.numbers && program.slices > 1);
  }
}

std::string sign_words(const BarSigns& signs) {
  std::string words;
  if (signs.numbers) {
    words += " Numbers count micro-batches in a step";
    words += signs.slices ? ", and token slices in each." : ".";
  }
  if (signs.pale) words += " Pale: trains nothing on its device.";
  return words;
}

std::string caption(const TimelinePanel& picture) {
  std::string words = "Shown: " + picture.excerpt.caption + ". Step time " +
                      format(picture.result->measurement.metrics.step_time) + ".";
  BarSigns signs;
  add_signs(picture, signs);
  words += sign_words(signs);
  if (!picture.messages.empty()) words += " Below: messages, from start to arrival.";
  if (picture.lanes < static_cast<int>(picture.program().ranks.size())) {
    words += " The first " + std::to_string(picture.lanes) + " of " +
             std::to_string(picture.program().ranks.size()) + " devices.";
  }
  return words;
}

/// The words below a picture, in lines.
struct TimelineFoot {
  std::string svg;
  double bottom = 0;  // of the picture
};
TimelineFoot foot_of(const TimelinePanel& picture, const std::string& words) {
  const double room = picture.style.width > 0 ? picture.plot() : 0;
  const std::vector<std::string> lines = in_lines(words, room, 12);
  return {lines_at(kTimelineLeft, picture.bottom + 62, lines),
          picture.bottom + 76 + kTextLine * static_cast<double>(lines.size() - 1)};
}

/// Returns the length of two of the longest steps, but no more than any window or the number of
/// bars allows.
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
    for (const auto& result : results) sum += count_bars(window_panel(result, 0, length, {}));
    return sum;
  };
  while (length > Seconds(0) && bars() > kMostLabelledBars) length *= 0.5;
  return length;
}

TimelineTop top_of(const std::string& title, const std::string& words, const PictureStyle& style) {
  TimelineTop top{heading_of(title, words, style)};
  top.extra = top.heading.extra;
  return top;
}

/// Returns the words above one of several timelines, in lines.
std::vector<std::string> panel_title(const ScenarioResult& result, const std::string& common,
                                     const PictureStyle& style) {
  const Metrics& metrics = result.measurement.metrics;
  const std::string words = own_name(result.plan.question.name, common) + ": step time " +
                            format(metrics.step_time) + ", busy " + format_percent(metrics.busy) +
                            (metrics.fits_in_memory ? "" : std::string(", ") + kDoesNotFit);
  constexpr double kBold = 13.5;  // as wide as letters of this size
  return in_lines(words, style.width > 0 ? style.width - 40 : 0, kBold);
}

std::string one_timeline(const ScenarioResult& result, const PictureStyle& style) {
  const bool fits = result.measurement.metrics.fits_in_memory;
  TimelineTop top = top_of(result.plan.question.name,
                           subtitle(result) + (fits ? "" : std::string("; ") + kDoesNotFit), style);
  add_legend({&result}, style, top);
  const TimelinePanel panel = step_panel(result, kTop + top.extra, style);
  const TimelineFoot foot = foot_of(panel, caption(panel));
  return open_timeline(top, style, foot.bottom) + panel_svg(panel) + axis(panel) + foot.svg +
         "</svg>\n";
}

}  // namespace

std::string svg_timeline(const ScenarioResult& result) { return one_timeline(result, {}); }

std::string svg_timelines(const std::vector<ScenarioResult>& results, const PictureStyle& style) {
  if (results.size() == 1) return one_timeline(results.front(), style);
  constexpr double kTitle = 24, kGap = 10;
  const Seconds length = common_length(results);
  const std::string common = common_name(results);
  TimelineTop top = top_of(common.empty() ? "Timelines" : common,
                           "each from the start of its measured window, all to one scale", style);
  std::vector<const ScenarioResult*> all;
  all.reserve(results.size());
  for (const ScenarioResult& result : results) all.push_back(&result);
  add_legend(all, style, top);
  std::vector<TimelinePanel> panels;
  std::string text;
  double y = kTop + top.extra + kTitle;
  for (const ScenarioResult& result : results) {
    const std::vector<std::string> words = panel_title(result, common, style);
    y += kTextLine * static_cast<double>(words.size() - 1);
    panels.push_back(window_panel(result, y, length, style));
    const bool red = !result.measurement.metrics.fits_in_memory && !style.grey;
    for (std::size_t i = 0; i < words.size(); ++i) {
      text += text_at(style.width > 0 ? 20 : kTimelineLeft,
                      y - 7 - kTextLine * static_cast<double>(words.size() - 1 - i), words[i],
                      red ? " font-weight=\"bold\" fill=\"#b3261e\"" : " font-weight=\"bold\"");
    }
    text += panel_svg(panels.back());
    y = panels.back().bottom + kTitle + kGap;
  }
  BarSigns signs;
  for (const TimelinePanel& panel : panels) add_signs(panel, signs);
  const std::string words = sign_words(signs);
  const TimelineFoot foot = foot_of(panels.back(), words.substr(words.empty() ? 0 : 1));
  return open_timeline(top, style, foot.bottom) + text + axis(panels.back()) + foot.svg +
         "</svg>\n";
}

}  // namespace interlock
