// Draws the lanes of a timeline.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/timeline_panel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reports/charts/svg_text.h"
#include "reports/headlines/figures.h"
#include "reports/words/mesh_words.h"
#include "reports/words/palette.h"

namespace interlock {
namespace {

constexpr int kSteps = 3;
constexpr int kMostTimelineBars = 7500;  // of about 57 bytes
constexpr double kLabelLane = 14;        // least height of a lane with text
constexpr int kMostLanes = 256;
constexpr int kMostMessages = 2000;
constexpr double kMessageLane = 9;
constexpr std::size_t kMostMessageLanes = 32;

/// A lane for each ordered pair of ranks that sends in the picture; none where they would be too
/// many, or where no message takes time.
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

/// The lanes of `result`, nothing else.
TimelinePanel lanes_of(const ScenarioResult& result, double top) {
  const auto ranks = static_cast<int>(result.measurement.program.ranks.size());
  TimelinePanel panel{.result = &result, .top = top, .lanes = std::min(ranks, kMostLanes)};
  panel.lane = std::clamp(720.0 / panel.lanes, 4.0, 28.0);
  panel.bottom = panel.y(panel.lanes);
  panel.devices = device_numbers(result.scenario);
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
    text += "<rect" + attribute("x", kTimelineLeft) + attribute("y", y) +
            attribute("width", kTimelinePlot) + attribute("height", panel.bar_height()) +
            " fill=\"#f0f0f0\"/>\n";
    if (rank % every != 0) continue;
    const auto& stages = panel.result->measurement.metrics.devices[rank].stages;
    std::string label = "device " + std::to_string(panel.devices.at(rank));
    if (stages.size() > 1) label += " (" + list_stages(stages) + ")";
    text += text_at(kTimelineLeft - 8, y + panel.bar_height() / 2 + 4, label);
  }
  return text + "</g>\n";
}

std::string bars(const TimelinePanel& panel, OpKind kind, bool pale) {
  std::string text;
  for (const Span& span : panel.result->measurement.log.spans) {
    const OpInfo& op = panel.program().ops[span.op];
    if (op.kind != kind || is_pale(op) != pale || !is_shown(panel, span)) continue;
    const double from = panel.x(std::max(span.start, panel.excerpt.begin));
    const double to = panel.x(std::min(span.end, panel.excerpt.end));
    text += "<rect" + attribute("x", from) + attribute("y", panel.y(span.rank)) +
            attribute("width", to - from) + attribute("height", panel.bar_height()) + "/>\n";
  }
  if (text.empty()) return text;
  return "<g fill=\"" + std::string(swatch(kind).colour) + "\"" +
         (pale ? " fill-opacity=\"0.5\"" : "") + " stroke=\"#ffffff\" stroke-width=\"0.5\">\n" +
         text + "</g>\n";
}

/// "F3", or "2F3" where the rank has several stages, or only the letter, or nothing: what fits
/// into `width`. Micro-batches count from 0 in each step, token slices in each of them ("F3.1").
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
  return "<g text-anchor=\"middle\" font-size=\"11\" fill=\"" + std::string(swatch(kind).ink) +
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

}  // namespace

TimelinePanel step_panel(const ScenarioResult& result, double top) {
  TimelinePanel panel = lanes_of(result, top);
  const int most = panel.lane >= kLabelLane ? kMostLabelledBars : kMostTimelineBars;
  panel.excerpt = choose_steps(result.measurement, kSteps, most);
  Excerpt& excerpt = panel.excerpt;
  if (excerpt.end <= excerpt.begin) excerpt.end = excerpt.begin + Seconds(1);  // nothing takes time
  panel.messages = message_lanes(panel);
  panel.bottom += kMessageLane * static_cast<double>(panel.messages.size());
  return panel;
}

TimelinePanel window_panel(const ScenarioResult& result, double top, Seconds length) {
  TimelinePanel panel = lanes_of(result, top);
  panel.excerpt.begin = result.measurement.metrics.window_begin;
  panel.excerpt.end = panel.excerpt.begin + (length > Seconds(0) ? length : Seconds(1));
  return panel;
}

int count_bars(const TimelinePanel& panel) {
  int bars = 0;
  for (const Span& span : panel.result->measurement.log.spans) bars += is_shown(panel, span);
  return bars;
}

std::string panel_svg(const TimelinePanel& panel) {
  std::string text = lanes(panel);
  for (const OpKind kind : kOpKindsInOrder) {
    text += bars(panel, kind, false) + bars(panel, kind, true);
  }
  for (const OpKind kind : kOpKindsInOrder) text += bar_labels(panel, kind);
  return text + message_bars(panel);
}

}  // namespace interlock
