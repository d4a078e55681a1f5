// Says what a duration table holds, what share of the time it explains, and what it lacks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/spread.h"
#include "base/text.h"
#include "reports/headlines/headlines.h"
#include "reports/kineto/duration_table.h"
#include "reports/terminal/layout.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostReportRows = 48;

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

Grid op_grid(const DurationTable& table) {
  Grid grid;
  grid.columns = {{"Part", "", false}, {"Op", "", false}, {"Times", ""},
                  {"Median", ""},      {"95 %", ""},      {"Span", ""}};
  for (const MeasuredPart& part : table.parts) {
    for (int i = 0; i < kPhases; ++i) {
      const OpSamples& samples = part.phases[static_cast<std::size_t>(i)];
      if (samples.busy.empty()) continue;
      const Spread busy = spread_of(samples.busy), span = spread_of(samples.spans);
      grid.rows.push_back({{clean_utf8(part.name)},
                           {name_of(static_cast<Phase>(i))},
                           {std::to_string(samples.busy.size())},
                           {format(Seconds(busy.p50))},
                           {format(Seconds(busy.p95))},
                           {format(Seconds(span.p50))}});
    }
  }
  return grid;
}

/// Returns the kernel that most of the time outside ops is spent in.
std::string largest_other(const DurationTable& table) {
  const auto other = [](const auto& entry) {
    double time = -entry.second.in_ops;
    for (const double duration : entry.second.durations) time += duration;
    return time;
  };
  const auto most =
      std::max_element(table.kernels.begin(), table.kernels.end(),
                       [&](const auto& a, const auto& b) { return other(a) < other(b); });
  return most == table.kernels.end() ? "" : printable(clean_utf8(most->first), 60);
}

std::vector<Headline> shares(const DurationTable& table) {
  const Seconds all = table.in_ops + table.other_kernels + table.communication + table.copies;
  const auto share = [&](Seconds time) {
    return all > Seconds(0) ? format_percent(time / all) : format_percent(0);
  };
  double bytes = 0;
  for (const auto& [name, samples] : table.messages) {
    for (const double one : samples.bytes) bytes += one;
  }
  const bool other = table.other_kernels > Seconds(0);
  return {{"In ops", share(table.in_ops), "of " + format(all) + " on devices"},
          {"Other kernels", share(table.other_kernels),
           other ? "in no named range, most of it " + largest_other(table) : ""},
          {"Communication", share(table.communication),
           "not used, since it holds waiting; bytes are kept"},
          {"Host copies", share(table.copies), "not used; bytes are kept"},
          {"Bytes", format(Bytes(bytes)), "of messages and copies that say them"}};
}

Grid rank_grid(const DurationTable& table, const PipelineAnswer& answer) {
  Grid grid;
  grid.columns = {{"Rank", "", false}, {"Stages", "", false}};
  for (int part = 0; part < kRankTimes; ++part) {
    std::string name = name_of(static_cast<RankTime>(part));
    std::replace(name.begin(), name.end(), '_', ' ');
    grid.columns.push_back({name, "%"});
  }
  for (std::size_t r = 0; r < answer.ranks.size(); ++r) {
    const RankUse& use = answer.ranks[r];
    const auto number = table.pipeline.ranks[r].rank;
    std::vector<Cell>& row = grid.rows.emplace_back();
    row.push_back({number ? std::to_string(*number) : "file " + std::to_string(r + 1)});
    row.push_back({list_stages(use.stages)});
    for (const Seconds time : use.time) row.push_back({fixed(100 * (time / answer.window), 1)});
  }
  return grid;
}

/// Says what stragglers cost, in lines.
std::vector<Headline> straggler_lines(const StragglerCost& cost) {
  const auto saved = [&](Seconds step, Seconds than) {
    return format_percent((than - step) / than) + " shorter";
  };
  std::vector<Headline> lines = {
      {"Step", format(cost.measured),
       "measured; " + format(cost.replayed) + " when its ops are put together again"},
      {"If ops were even", format(cost.even),
       saved(cost.even, cost.replayed) + ": each takes the median of its stage"},
      {"If stages were equal", format(cost.equal),
       saved(cost.equal, cost.replayed) + ": each also the mean of all stages"}};
  const auto most = std::max_element(cost.stage_gain.begin(), cost.stage_gain.end());
  if (most != cost.stage_gain.end() && *most > cost.even * 1e-3) {
    lines.push_back({"Slowest stage", std::to_string(most - cost.stage_gain.begin()),
                     format(*most) + " of a step, against one as quick as the others"});
  }
  return lines;
}

std::string pipeline_report(const DurationTable& table, const TableStyle& style) {
  std::string why;
  const auto answer = analyse(table.pipeline, why);
  if (!answer) return table.files.size() > 1 ? "\nNot taken for a pipeline: " + why + ".\n" : "";
  std::string text = "\nShares of the time of each rank, idle by what it waits for:\n\n";
  text += lay_out(rank_grid(table, *answer), style) + "\n";
  return text + headline_lines(straggler_lines(answer->cost), style);
}

std::vector<std::string> notes(const DurationTable& table) {
  std::vector<std::string> notes;
  const bool halved = std::any_of(table.parts.begin(), table.parts.end(),
                                  [](const auto& part) { return module_times(part).halved; });
  if (halved) {
    notes.push_back(
        "Backwards were measured whole, so both halves of a module are equal; that matters to "
        "schedules that split them. Ranges \"backward_input ...\" and \"backward_weight ...\" tell "
        "them apart.");
  }
  const auto& recompute = static_cast<std::size_t>(Phase::Recompute);
  if (std::any_of(table.parts.begin(), table.parts.end(),
                  [&](const auto& part) { return !part.phases[recompute].busy.empty(); })) {
    notes.push_back(
        "Recompute is measured, but modules have no time for it: a scenario says it, "
        "\"recompute\": \"full\", and it takes as long as the forward.");
  }
  notes.push_back(
      "Sizes are not in a trace: add \"output\", \"stash\" and \"parameters\" to the "
      "modules, or messages and memory count as nothing.");
  return notes;
}

}  // namespace

std::string duration_report(const DurationTable& table, const TableStyle& style) {
  std::string text = counted(table.parts.size(), "module") + " from " +
                     counted(table.files.size(), "trace") + ", " +
                     counted(static_cast<std::size_t>(table.steps), "step") + "\n\n";
  const Grid ops = op_grid(table);
  if (!ops.rows.empty()) {
    const Grid shown = shorten(ops, kMostReportRows, {});
    text += lay_out(shown, style);
    if (shown.rows.size() < ops.rows.size()) {
      text += "Shown: " + std::to_string(shown.rows.size()) + " of " +
              counted(ops.rows.size(), "row") + "; the table has all.\n";
    }
    text += "\n";
  }
  text += headline_lines(shares(table), style) + pipeline_report(table, style);
  if (table.without_time + table.duplicates > 0) {
    text += "\nLeft out: " + counted(static_cast<std::size_t>(table.without_time), "event") +
            " without a time or a duration, " +
            counted(static_cast<std::size_t>(table.duplicates), "duplicate") + ".\n";
  }
  for (const std::string& note : notes(table)) {
    text += "\n";
    for (const std::string& line :
         wrap(note, static_cast<std::size_t>(std::max(style.width, 60)))) {
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace interlock
