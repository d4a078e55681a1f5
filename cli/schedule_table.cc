// interlock schedule --table: docs/schedules.md, every family measured and its formulas beside it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/parser/commands.h"
#include "reports/charts/line_chart.h"
#include "reports/words/scale.h"
#include "scenarios/simulate/schedule_survey.h"

namespace interlock {
namespace {

constexpr SurveySize kSize = {.devices = 8, .micro_batches = 32};

std::string number(double value, int decimals) {
  std::string text = fixed(value, decimals);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string percent(double share) { return fixed(std::abs(share) * 100, 2) + " %"; }

std::string evaluated(const Formula& formula, std::string (*format_value)(double)) {
  if (formula.value == nullptr) return "–";
  const std::string value = format_value(formula.value({kSize.devices, kSize.micro_batches}));
  const bool plain = formula.text.find_first_of("pm") == std::string_view::npos;
  return plain ? value : std::string(formula.text) + " = " + value;
}

std::string count(double value) { return number(value, 2); }

std::string table_row(const SurveyRow& row, double traffic_of_1f1b) {
  const SurveyOption* option = row.option;
  const bool inputs = (option && option->inputs) || row.entry->stash != StashMode::Kept;
  const char* unit = !inputs ? "" : row.stash == 1 ? " input" : " inputs";
  const std::string name = "`" + row.entry->name + "`" +
                           (option ? ", " + std::string(option->words) : "") +
                           (row.entry->global() ? "" : " (local)");
  const Formula& bubble = option ? option->bubble : row.entry->bubble;
  const Formula& stash = option ? option->stashed : row.entry->stashed;
  // Weights have another size than activations, whatever the batch.
  const bool weights = row.entry->layout == StageLayout::Ring;
  const std::string traffic = weights ? "weights" : count(row.traffic / traffic_of_1f1b);
  return "| " + name + " | " + percent(row.bubble) + " | " + evaluated(bubble, percent) + " | " +
         count(row.stash) + unit + " | " + evaluated(stash, count) + " | " + traffic + " | " +
         count(row.weight_copies) + " |\n";
}

/// A message of the picture, in forwards of a device's share.
constexpr double kSlowTransfer = 0.25;
/// More idle than this is left out of the picture.
constexpr double kMostBubble = 0.5;

/// Points nearer to each other than this, in micro-batches and per cent, share a name.
constexpr double kSamePlace = 0.01;

ChartPoint map_point(const SurveyRow& row) {
  ChartPoint point{.x = row.stash, .y = 100 * row.bubble, .name = row.entry->name};
  point.tip = row.entry->name + ": stash " + count(row.stash) + ", bubble " + percent(row.bubble);
  return point;
}

constexpr const char* kTableHead = R"(# Schedules

This page is what `interlock schedule --table --svg docs/schedules.svg` prints and draws; a test
compares them. `interlock schedule SCENARIO` draws any of them, `interlock schedule --list` says
what each does.

![Bubble against stash of every schedule, messages free and slow](schedules.svg)

A dot is a schedule at the size below. An arrow leads from it to where messages of a quarter of the
forward of a device's share take it: schedules that send more, or have less ahead, rise further.
Local schedules hand on activations alone and wait for nothing.

## Measured, and by formula

p = 8 devices, m = 32 micro-batches, and F = I = W = 1 for a device's share of the model, whether
that is one stage or several; transfers and updates take no time. Simulated in the steady state, as
every scenario is.

- **Bubble**: idle share of the devices.
- **Stash**: the most that any device keeps of forwards whose weight gradients are not made yet, in
  micro-batches of its share; where forwards are run again, the inputs of its stage. Of
  reversible stages only the last keeps one: a loss tells nothing of it. Its backward comes next.
- **Traffic**: bytes on links in a step, over those of 1f1b: activations and their gradients, almost
  alone.
- **Weights**: kept on all devices, over those of the model: copies of it, and older versions.

| schedule | bubble | formula | stash | formula | traffic | weights |
| --- | --- | --- | --- | --- | --- | --- |
)";

constexpr const char* kOptionsHead = R"(
The same for options of schedules: a vocabulary on all devices, whose parts are so small here that
they take no time and their messages show; inputs from which everything is computed again before its
gradient comes (R = F), kept in micro-batches of inputs; stash that leaves for hosts, whose links
are free and do not count as traffic.

| schedule, option | bubble | formula | stash | formula | traffic | weights |
| --- | --- | --- | --- | --- | --- | --- |
)";

constexpr const char* kOptionKeys = R"(
| schedule, option | keys of `training` | source |
| --- | --- | --- |
)";

constexpr const char* kNotes = R"(
`chimera` has no formula, since (p - 2) / (2m + p - 2) is for F = B, not for B = I + W = 2F; `auto`
and `file` have no order of their own.

On links of `weipipe` there are weights and no activations: in a step each device sends the weights
of m(2 - 1/p) + 2p - 4 chunks of a p-th of the model, and m + p - 1 times the gradients of one (the
middle one of an odd number of devices once less). Beside its own chunk it holds four of weights
that pass by, and three of gradients.
Its bubble is (2p - 3) / (3m + 2p - 3) for m = p > 2. Weights that take w from device to device, and
gradients that take g, each at most half of a forward, make a step w + 2g longer.

`helixpipe` has a layer a device here, half of whose time is attention, a sixth before it, a third
behind. Its messages take twice the bytes: the residual, and what attention reads or makes. Of f
folds it waits for up to f times as long, and never for less than ((p - 2)f + 1) times what comes
before attention in a layer and once what follows, or the other way round.

## What each does

| schedule | training | order | source |
| --- | --- | --- | --- |
)";

}  // namespace

std::string schedule_table() {
  const std::vector<SurveyRow> rows = survey_schedules(kSize);
  const auto usual = std::find_if(rows.begin(), rows.end(),
                                  [](const SurveyRow& row) { return row.entry->name == "1f1b"; });
  CHECK(usual != rows.end(), "1f1b takes every size");
  std::string text = kTableHead;
  for (const SurveyRow& row : rows) text += table_row(row, usual->traffic);
  text += kOptionsHead;
  for (const SurveyRow& row : survey_options(kSize)) text += table_row(row, usual->traffic);
  text += kOptionKeys;
  for (const SurveyOption& option : survey_options()) {
    text += "| `" + std::string(option.schedule) + "`, " + option.words + " | `" + option.keys +
            "` | " + option.source + " |\n";
  }
  text += kNotes;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    text += "| `" + entry.name + "` | " + name_of(entry.trains) + " | " + entry.summary + " | " +
            entry.source + " |\n";
  }
  return text;
}

std::string schedule_map() {
  SurveySize slow = kSize;
  slow.transfer = kSlowTransfer;
  const std::vector<SurveyRow> free = survey_schedules(kSize), sent = survey_schedules(slow);
  ChartPanel panel{.x_label = "stash (micro-batches of a device's share)",
                   .y_label = "bubble (%)",
                   .curves = {{}, {}},
                   .dots = Dots::Drawn,
                   .x_marks = {1, 2, 4, 8, 16, 32},
                   .arrows = true};
  ChartPanel flushing = panel, others = panel;
  flushing.y_label += ", schedules that flush";
  others.y_label += ", without a flush";
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i].bubble > kMostBubble) continue;
    ChartPanel& of = free[i].entry->flushes ? flushing : others;
    const ChartPoint from = map_point(free[i]);
    ChartPoint to = map_point(sent[i]);
    of.guides.push_back({from, to});
    of.curves[0].push_back(from);
    const auto same =
        std::find_if(of.curves[1].begin(), of.curves[1].end(), [&](const ChartPoint& point) {
          return std::abs(point.x - to.x) < kSamePlace && std::abs(point.y - to.y) < kSamePlace;
        });
    if (same != of.curves[1].end()) {
      same->tip += "\n" + to.tip;
      same->word =
          same->name + " +" + std::to_string(std::count(begin(same->tip), end(same->tip), '\n'));
    } else {
      to.word = to.name;
      of.curves[1].push_back(to);
    }
  }
  return line_chart_svg(
      {.title = "Bubble against memory",
       .subtitle = "8 devices, 32 micro-batches, F = I = W",
       .names = {"messages take no time", "a message takes a quarter of a forward"},
       .panels = {flushing, others},
       .unjoined = {true, true},
       .notes = {"naive and naive-split, which leave more than half idle, are left out"}});
}

}  // namespace interlock
