// SVG timeline: a still picture of a few steps, small enough to sit in a paper.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "reports/encode.h"
#include "reports/excerpt.h"
#include "reports/figures.h"
#include "reports/mesh_words.h"
#include "reports/palette.h"
#include "reports/report.h"
#include "reports/scale.h"
#include "reports/svg_text.h"

namespace interlock {
namespace {

constexpr int kSteps = 3;
constexpr int kMostBars = 7500;          // of about 57 bytes
constexpr int kMostLabelledBars = 4000;  // of about 100 bytes
constexpr double kLabelLane = 14;        // least height of a lane with text
constexpr int kMostLanes = 256;
constexpr int kMostMessages = 2000;
constexpr double kMessageLane = 9;
constexpr std::size_t kMostMessageLanes = 32;
constexpr double kWidth = 1200, kLeft = 130, kRight = 20, kTop = 86;
constexpr double kPlot = kWidth - kLeft - kRight;

/// The messages from one rank to another, which have a thin lane below the devices.
struct MessageLane {
  int from = 0, to = 0;
  std::vector<const Transfer*> transfers;
};

struct Picture {
  const ScenarioResult* result;
  Excerpt excerpt;
  int lanes = 1;
  double lane = 28;  // height, gap included
  std::vector<MessageLane> messages = {};
  double bottom = 0;
  std::vector<int> devices = {};  // by rank, as the machine counts

  const Program& program() const { return result->measurement.program; }
  double x(Seconds time) const {
    return kLeft + kPlot * ((time - excerpt.begin) / (excerpt.end - excerpt.begin));
  }
  double y(int rank) const { return kTop + lane * rank; }
  double bar_height() const { return lane > 8 ? lane - 4 : lane * 0.75; }
};

/// A lane for each ordered pair of ranks that sends in the picture; none where they would be too
/// many, or where no message takes time.
std::vector<MessageLane> message_lanes(const Picture& picture) {
  std::map<std::pair<int, int>, MessageLane> lanes;
  int messages = 0;
  for (const Transfer& transfer : picture.result->measurement.log.transfers) {
    const Channel& channel = picture.program().channels[transfer.channel];
    if (transfer.arrival <= picture.excerpt.begin || transfer.start >= picture.excerpt.end ||
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

Picture frame(const ScenarioResult& result) {
  const auto ranks = static_cast<int>(result.measurement.program.ranks.size());
  const int lanes = std::min(ranks, kMostLanes);
  const double lane = std::clamp(720.0 / lanes, 4.0, 28.0);
  const int most = lane >= kLabelLane ? kMostLabelledBars : kMostBars;
  Picture picture{&result, choose_steps(result.measurement, kSteps, most), lanes, lane};
  picture.devices = device_numbers(result.scenario);
  Excerpt& excerpt = picture.excerpt;
  if (excerpt.end <= excerpt.begin) excerpt.end = excerpt.begin + Seconds(1);  // nothing takes time
  picture.messages = message_lanes(picture);
  picture.bottom = picture.y(lanes) + kMessageLane * static_cast<double>(picture.messages.size());
  return picture;
}

std::string heading(const Picture& picture) {
  const std::string& name = picture.result->scenario.name;
  return "<title>" + escape_markup(name) + "</title>\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" +
         text_at(20, 28, name, " font-size=\"18\" font-weight=\"bold\"") +
         text_at(20, 48, subtitle(*picture.result), " fill=\"#555555\"");
}

bool is_shown(const Picture& picture, const Span& span) {
  return span.rank < picture.lanes && span.start < picture.excerpt.end &&
         span.end > picture.excerpt.begin;
}

/// The op letters that occur, each with its colour and meaning.
std::string legend(const Picture& picture) {
  std::string text;
  double x = kLeft;
  for (const OpKind kind : kOpKindsInOrder) {
    const auto& ops = picture.program().ops;
    const bool used =
        std::any_of(ops.begin(), ops.end(), [&](const OpInfo& op) { return op.kind == kind; });
    if (!used) continue;
    const std::string words =
        std::string(1, letter(kind)) + " " + meaning_in(picture.program(), kind);
    text += "<rect" + attribute("x", x) + " y=\"60\" width=\"14\" height=\"14\" fill=\"" +
            swatch(kind).colour + "\"/>\n" + text_at(x + 19, 71.5, words);
    x += 38 + 5.9 * static_cast<double>(words.size());
  }
  return text;
}

std::string lanes(const Picture& picture) {
  std::string text = "<g text-anchor=\"end\">\n";
  const int every = static_cast<int>(std::ceil(kLabelLane / picture.lane));
  for (int rank = 0; rank < picture.lanes; ++rank) {
    const double y = picture.y(rank);
    text += "<rect" + attribute("x", kLeft) + attribute("y", y) + attribute("width", kPlot) +
            attribute("height", picture.bar_height()) + " fill=\"#f0f0f0\"/>\n";
    if (rank % every != 0) continue;
    const auto& stages = picture.result->measurement.metrics.devices[rank].stages;
    std::string label = "device " + std::to_string(picture.devices.at(rank));
    if (stages.size() > 1) label += " (" + list_stages(stages) + ")";
    text += text_at(kLeft - 8, y + picture.bar_height() / 2 + 4, label);
  }
  return text + "</g>\n";
}

std::string bars(const Picture& picture, OpKind kind, bool pale) {
  std::string text;
  for (const Span& span : picture.result->measurement.log.spans) {
    const OpInfo& op = picture.program().ops[span.op];
    if (op.kind != kind || is_pale(op) != pale || !is_shown(picture, span)) continue;
    const double from = picture.x(std::max(span.start, picture.excerpt.begin));
    const double to = picture.x(std::min(span.end, picture.excerpt.end));
    text += "<rect" + attribute("x", from) + attribute("y", picture.y(span.rank)) +
            attribute("width", to - from) + attribute("height", picture.bar_height()) + "/>\n";
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

std::string bar_labels(const Picture& picture, OpKind kind) {
  if (picture.lane < kLabelLane) return "";
  std::string text;
  for (const Span& span : picture.result->measurement.log.spans) {
    if (picture.program().ops[span.op].kind != kind || !is_shown(picture, span)) continue;
    const double from = picture.x(std::max(span.start, picture.excerpt.begin));
    const double to = picture.x(std::min(span.end, picture.excerpt.end));
    const std::string label = bar_label(picture.program(), span, to - from);
    if (label.empty()) continue;
    text += text_at((from + to) / 2, picture.y(span.rank) + picture.bar_height() / 2 + 4, label);
  }
  if (text.empty()) return text;
  return "<g text-anchor=\"middle\" font-size=\"11\" fill=\"" + std::string(swatch(kind).ink) +
         "\">\n" + text + "</g>\n";
}

std::string message_bars(const Picture& picture) {
  std::string words = "<g text-anchor=\"end\" font-size=\"9\" fill=\"#555555\">\n";
  std::string bars = "<g fill=\"#555555\">\n";
  double y = picture.y(picture.lanes);
  for (const MessageLane& lane : picture.messages) {
    words += text_at(kLeft - 8, y + kMessageLane - 1.5,
                     std::to_string(picture.devices.at(lane.from)) + " → " +
                         std::to_string(picture.devices.at(lane.to)));
    for (const Transfer* transfer : lane.transfers) {
      const double from = picture.x(std::max(transfer->start, picture.excerpt.begin));
      const double to = picture.x(std::min(transfer->arrival, picture.excerpt.end));
      bars += "<rect" + attribute("x", from) + attribute("y", y + 2) +
              attribute("width", std::max(to - from, 0.5)) + attribute("height", kMessageLane - 4) +
              "/>\n";
    }
    y += kMessageLane;
  }
  return picture.messages.empty() ? "" : words + "</g>\n" + bars + "</g>\n";
}

std::string axis(const Picture& picture) {
  const Seconds range = picture.excerpt.end - picture.excerpt.begin;
  const Scale scale = scale_of_seconds({range.value()});
  const Ticks marks = ticks(range.value() / scale.size, 10);
  const double y = picture.bottom + 4;
  const auto move_to = [&](double x) {
    return std::string("M") + svg_number(x) + " " + svg_number(y);
  };
  std::string lines = "<path stroke=\"#555555\" fill=\"none\" d=\"";
  std::string labels = "<g text-anchor=\"middle\">\n";
  lines.append(move_to(kLeft)).append("H").append(svg_number(kLeft + kPlot));
  for (const double mark : marks.at) {
    const double x = picture.x(picture.excerpt.begin + Seconds(mark * scale.size));
    lines.append(move_to(x)).append("v5");
    labels += text_at(x, y + 18, fixed(mark, marks.decimals));
  }
  labels += text_at(kLeft + kPlot / 2, y + 36,
                    "time since the measured window began (" + scale.unit + ")");
  return lines + "\"/>\n" + labels + "</g>\n";
}

std::string caption(const Picture& picture) {
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
  return text_at(kLeft, picture.bottom + 62, words, " fill=\"#555555\"");
}

}  // namespace

std::string svg_timeline(const ScenarioResult& result) {
  const Picture picture = frame(result);
  const std::string width = svg_number(kWidth), height = svg_number(picture.bottom + 76);
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                     height + "\" viewBox=\"0 0 " + width + " " + height +
                     "\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\"" +
                     " font-size=\"12\" fill=\"#222222\">\n";
  text += heading(picture);
  text += legend(picture) + lanes(picture);
  for (const OpKind kind : kOpKindsInOrder) {
    text += bars(picture, kind, false) + bars(picture, kind, true);
  }
  for (const OpKind kind : kOpKindsInOrder) text += bar_labels(picture, kind);
  return text + message_bars(picture) + axis(picture) + caption(picture) + "</svg>\n";
}

}  // namespace interlock
