// Sets the spans of a step in columns of characters.
// SPDX-License-Identifier: Apache-2.0
#include "reports/terminal/terminal_grid.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "reports/terminal/layout.h"
#include "reports/words/palette.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr int kMostGridRows = 256;
constexpr int kNarrowest = 20;        // columns of a plot
constexpr int kBar = 10, kShare = 5;  // columns of a bar of utilisation, and of its number
constexpr int kCellGap = 2;           // before it
constexpr int kWidestUnit = 8;        // columns of the unit of time, however much room there is

/// One character of a row: nothing, an op's label or the rest of the op, or a part of another step.
struct Mark {
  std::string text;
  const OpInfo* op = nullptr;
  bool shade = false;
};

/// The part of a run that is drawn: a stretch of time in whole ticks, and the micro-batches that
/// are numbered from 0.
struct View {
  const ScenarioResult* result;
  GridStyle style;
  std::int64_t begin = 0, end = 1;
  int first_batch = 0, end_batch = 0;
  bool shades = false;  // ops outside those micro-batches
  int label_width = 0, columns = 1;
  int bar = 0;  // columns of bars of utilisation; 0: only their numbers
  bool shows_busy = true;
  std::vector<const Span*> spans = {};
  std::vector<int> devices = {};  // by rank, as the machine counts

  const Program& program() const { return result->measurement.program; }
  std::int64_t ticks(Seconds time) const {
    return std::llround(time.value() * program().ticks_per_second);
  }
  bool is_shaded(const Span& span) const {
    return shades && (span.micro_batch < first_batch || span.micro_batch >= end_batch);
  }
  int rows() const { return std::min(static_cast<int>(program().ranks.size()), kMostGridRows); }
};

bool takes_time(const Span& span) { return span.end > span.start; }

/// A step of the measured window, from its first op to its last.
void view_step(View& view) {
  const Metrics& metrics = view.result->measurement.metrics;
  const int micro_batches = view.program().micro_batches;
  view.first_batch = metrics.fill_steps * micro_batches;
  view.end_batch = view.first_batch + micro_batches;
  view.shades = true;
  bool any = false;
  for (const Span& span : view.result->measurement.log.spans) {
    if (view.is_shaded(span) || !takes_time(span)) continue;
    const std::int64_t start = view.ticks(span.start), end = view.ticks(span.end);
    view.begin = any ? std::min(view.begin, start) : start;
    view.end = any ? std::max(view.end, end) : end;
    any = true;
  }
}

/// Steps of the steady state, enough that a micro-batch could pass all stages and come back.
void view_steady_state(View& view) {
  const Metrics& metrics = view.result->measurement.metrics;
  const Program& program = view.program();
  const int passing = (2 * program.stages + program.micro_batches - 1) / program.micro_batches;
  const int steps = std::clamp(passing, 1, metrics.measured_steps);
  view.begin = view.ticks(metrics.window_begin);
  view.end = view.ticks(metrics.window_begin + metrics.step_time * steps);
}

/// The spans of the view, and outside of steps the number of the first micro-batch.
void find_spans(View& view) {
  int first = -1;
  for (const Span& span : view.result->measurement.log.spans) {
    const bool inside = view.ticks(span.start) < view.end && view.ticks(span.end) > view.begin;
    if (!inside || !takes_time(span) || span.rank >= view.rows()) continue;
    view.spans.push_back(&span);
    if (first < 0 || span.micro_batch < first) first = span.micro_batch;
  }
  if (!view.shades) view.first_batch = std::max(first, 0);
}

std::string label_of(const View& view, const Span& span) {
  const Program& program = view.program();
  const OpInfo& op = program.ops[span.op];
  const bool several = program.ranks[span.rank].stages.size() > 1;
  return (several ? std::to_string(model_stage(program, op.stage)) : "") + letter(op.kind) +
         std::to_string(span.micro_batch - view.first_batch);
}

/// Columns for each of the equal units that all times are multiples of: as many as the longest
/// label needs in the shortest time, fewer if there is no room; 0 if there is not even room for
/// one.
int columns_of_unit(const View& view, std::int64_t unit, int room) {
  const std::int64_t units = (view.end - view.begin) / unit;
  if (units > room) return 0;
  int wanted = 1;
  for (const Span* span : view.spans) {
    if (view.is_shaded(*span)) continue;
    const std::int64_t has =
        std::max<std::int64_t>(1, (view.ticks(span->end) - view.ticks(span->start)) / unit);
    const auto needs = static_cast<std::int64_t>(label_of(view, *span).size());
    wanted = std::max<int>(wanted, static_cast<int>((needs + has - 1) / has));
  }
  return static_cast<int>(std::min<std::int64_t>({wanted, kWidestUnit, room / units}));
}

void choose_columns(View& view, int room) {
  std::int64_t unit = view.end - view.begin;
  for (const Span* span : view.spans) {
    if (view.is_shaded(*span)) continue;
    unit = std::gcd(unit, std::max(view.ticks(span->start), view.begin) - view.begin);
    unit = std::gcd(unit, std::min(view.ticks(span->end), view.end) - view.begin);
  }
  const int each = columns_of_unit(view, unit, room);
  view.columns = each > 0 ? each * static_cast<int>((view.end - view.begin) / unit) : room;
}

std::string row_label(const View& view, int rank) {
  const std::vector<int>& stages = view.result->measurement.metrics.devices.at(rank).stages;
  const std::string name = "device " + std::to_string(view.devices.at(rank));
  return stages.size() > 1 ? name + " (" + list_stages(stages) + ")" : name;
}

View make_view(const ScenarioResult& result, const GridStyle& style) {
  View view{&result, style};
  view.devices = device_numbers(result.plan);
  if (result.plan.schedule.kind->parts_steps()) {
    view_step(view);
  } else {
    view_steady_state(view);
  }
  view.end = std::max(view.end, view.begin + 1);
  find_spans(view);
  for (int rank = 0; rank < view.rows(); ++rank) {
    const auto width = static_cast<int>(row_label(view, rank).size());
    view.label_width = std::max(view.label_width, width + 2);
  }
  int room = style.width - view.label_width - kCellGap - kShare;
  view.bar = room - kBar >= 2 * kNarrowest ? kBar : 0;
  view.shows_busy = room >= kNarrowest;
  if (!view.shows_busy) room += kCellGap + kShare;
  choose_columns(view, std::max(kNarrowest, room - view.bar));
  return view;
}

/// Returns the column whose middle is the first at or after `time`.
int column_of(const View& view, std::int64_t time) {
  const double share =
      static_cast<double>(time - view.begin) / static_cast<double>(view.end - view.begin);
  return std::clamp(static_cast<int>(std::ceil(share * view.columns - 0.5)), 0, view.columns);
}

/// Shortens "2F3" to "F3", then to "F", until it fits into `columns`.
std::string fitting(std::string label, int columns) {
  const auto fits = [&] { return static_cast<int>(label.size()) <= columns; };
  if (!fits()) label.erase(0, label.find_first_not_of("0123456789"));
  if (!fits()) label.resize(1);
  return label;
}

/// Returns the rows of marks. (rows, columns)
std::vector<std::vector<Mark>> marks_of(const View& view) {
  const bool unicode = view.style.unicode;
  const std::string rest = unicode ? "─" : "-", shade = unicode ? "░" : "~";
  std::vector<std::vector<Mark>> rows(view.rows(), std::vector<Mark>(view.columns));
  for (const Span* span : view.spans) {
    const int from = column_of(view, view.ticks(span->start));
    const int to = column_of(view, view.ticks(span->end));
    const OpInfo& op = view.program().ops[span->op];
    const std::string label = fitting(label_of(view, *span), to - from);
    for (int column = from; column < to; ++column) {
      const std::size_t i = column - from;
      Mark& mark = rows[span->rank][column];
      mark = {i < label.size() ? std::string(1, label[i]) : rest, &op, view.is_shaded(*span)};
      if (mark.shade) mark.text = shade;
    }
  }
  return rows;
}

/// "#rrggbb" as one of the terminal's 6 x 6 x 6 colours.
std::string colour_number(const char* colour) {
  const long rgb = std::strtol(colour + 1, nullptr, 16);
  const auto level = [rgb](int shift) { return ((rgb >> shift & 255) * 5 + 127) / 255; };
  return std::to_string(16 + 36 * level(16) + 6 * level(8) + level(0));
}

std::string escape_of(const Mark& mark) {
  if (!mark.op || mark.shade) return "\x1b[2m";
  const Swatch look = swatch(mark.op->kind);
  return "\x1b[48;5;" + colour_number(look.colour) + ";38;5;" + colour_number(look.ink) + "m";
}

std::string row_text(const View& view, const std::vector<Mark>& marks) {
  std::string text, escape;
  for (const Mark& mark : marks) {
    if (view.style.colour && escape_of(mark) != escape) {
      if (!escape.empty()) text += "\x1b[0m";
      escape = escape_of(mark);
      text += escape;
    }
    text += mark.op ? mark.text : view.style.unicode ? "·" : ".";
  }
  return text + (escape.empty() ? "" : "\x1b[0m");
}

/// "███████··· 70%": the share of a step in which a device executes anything.
std::string busy_bar(const View& view, int rank) {
  if (!view.shows_busy) return "";
  const double busy = view.result->measurement.metrics.devices.at(rank).busy;
  const int filled = static_cast<int>(std::lround(std::clamp(busy, 0.0, 1.0) * view.bar));
  std::string text(kCellGap, ' ');
  for (int i = 0; i < view.bar; ++i) {
    if (i < filled) {
      text += view.style.unicode ? "█" : "#";
    } else {
      text += view.style.unicode ? "·" : ".";
    }
  }
  return text + pad(fixed(100 * busy, 0) + "%", kShare, true);
}

std::string axis(const View& view) {
  const double range = static_cast<double>(view.end - view.begin) / view.program().ticks_per_second;
  const Scale scale = scale_of_seconds({range});
  const Ticks marks = ticks(range / scale.size, std::max(1, view.columns / 12));
  std::string line;
  for (const double mark : marks.at) {
    const auto column = static_cast<std::size_t>(mark * scale.size / range * view.columns);
    if (column >= static_cast<std::size_t>(view.columns)) break;
    if (line.size() < column) line.append(column - line.size(), ' ');
    line += "|" + fixed(mark, marks.decimals) + (mark == 0 ? " " + scale.unit : "");
  }
  return std::string(view.label_width, ' ') + line + "\n";
}

std::string legend(const View& view) {
  std::string text;
  bool shaded = false;
  for (const OpKind kind : kOpKindsInOrder) {
    const auto drawn = [&](const Span* span) {
      return view.program().ops[span->op].kind == kind && !view.is_shaded(*span);
    };
    if (!std::any_of(view.spans.begin(), view.spans.end(), drawn)) continue;
    text += std::string(1, letter(kind)) + " " + meaning_in(view.program(), kind) + "   ";
  }
  for (const Span* span : view.spans) shaded = shaded || view.is_shaded(*span);
  text += std::string(view.style.unicode ? "·" : ".") + " idle";
  if (view.bar > 0) text += view.style.unicode ? "   █ busy" : "   # busy";
  if (view.bar == 0 && view.shows_busy) text += "   % busy";
  if (shaded) text += std::string(view.style.unicode ? "   ░" : "   ~") + " other steps";
  std::string lines;
  for (const std::string& line : wrap(text, std::max(view.style.width, 60))) lines += line + "\n";
  return lines;
}

}  // namespace

std::string terminal_grid(const ScenarioResult& result, const GridStyle& style) {
  const View view = make_view(result, style);
  const auto rows = marks_of(view);
  std::string text;
  for (int rank = 0; rank < view.rows(); ++rank) {
    text += pad(row_label(view, rank), view.label_width) + row_text(view, rows[rank]) +
            busy_bar(view, rank) + "\n";
  }
  text += axis(view);
  if (view.rows() < static_cast<int>(view.program().ranks.size())) {
    text += "The first " + std::to_string(view.rows()) + " of " +
            std::to_string(view.program().ranks.size()) + " devices.\n";
  }
  return text + legend(view);
}

}  // namespace interlock
