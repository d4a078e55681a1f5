// Errors by machine, framework and model; other programs' figures beside.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/planner_grid.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

/// Sources that come first, and what they are called.
struct Source {
  const char* file;
  const char* name;
};
constexpr std::array kFirst = {Source{"mlperf", "MLPerf"},
                               Source{"megatron-lm-tests", "tests of Megatron-LM"}};
constexpr const char* kOthers = "other reports";

using Values = std::vector<const JudgedValue*>;
using GroupName = std::tuple<std::size_t, std::string, std::string, std::string>;

const RowPrediction& prediction_of(const Accuracy& accuracy, const JudgedValue& value) {
  return accuracy.predictions[value.file][value.table][value.row];
}

GroupName group_of(const Accuracy& accuracy, const JudgedValue& value) {
  const std::string& file = accuracy.files[value.file].name;
  const auto* first = std::find_if(kFirst.begin(), kFirst.end(),
                                   [&](const Source& source) { return file == source.file; });
  const RowSetup& setup = prediction_of(accuracy, value).setup;
  return {static_cast<std::size_t>(first - kFirst.begin()), setup.device, setup.model,
          setup.framework};
}

bool is_time(Measurand what) {
  return what == Measurand::StepTime || what == Measurand::SamplesPerS ||
         what == Measurand::TokensPerS || what == Measurand::TflopsPerDevice;
}

/// Returns the MFU of what was measured: that of the prediction, at the measured speed.
double measured_share(const JudgedValue& value) {
  const double faster = value.measured / *value.predicted;
  return value.what == Measurand::StepTime ? 1 / faster : faster;
}

std::string share_text(std::vector<double> shares) {
  if (shares.empty()) return kUnknown;
  std::sort(shares.begin(), shares.end());
  const double middle = shares[shares.size() / 2];
  return middle > 0 ? fixed(100 * middle, 0) : kUnknown;
}

/// Number of values, typical error and worst.
void add_errors(std::vector<Cell>& row, const Values& values) {
  std::vector<double> errors;
  for (const JudgedValue* value : values) errors.push_back(value->error());
  const ErrorSummary summary = error_summary(errors);
  const bool any = !errors.empty();
  row.push_back({any ? std::to_string(errors.size()) : kUnknown});
  row.push_back({any ? fixed(100 * summary.median, 1) : kUnknown});
  row.push_back({any ? fixed(100 * summary.most, 0) : kUnknown});
}

/// Spearman's correlation, mean over series of plans of three rows and more.
std::string order_text(const Accuracy& accuracy, const Values& values) {
  using Pair = std::pair<std::vector<double>, std::vector<double>>;
  std::map<std::tuple<std::size_t, std::size_t, std::string, Measurand>, Pair> series;
  for (const JudgedValue* value : values) {
    const MeasuredRow& row = accuracy.files[value->file].tables[value->table].rows[value->row];
    if (row.series.empty()) continue;
    Pair& pair = series[{value->file, value->table, row.series, value->what}];
    pair.first.push_back(value->measured);
    pair.second.push_back(*value->predicted);
  }
  double sum = 0;
  int count = 0;
  for (const auto& [name, pair] : series) {
    if (pair.first.size() < 3) continue;
    const std::optional<double> rho = spearman(pair.first, pair.second);
    if (!rho) continue;
    sum += *rho;
    ++count;
  }
  return count > 0 ? fixed(sum / count, 2) : kUnknown;
}

std::vector<Cell> group_cells(const Accuracy& accuracy, const GroupName& name,
                              const Values& values) {
  const auto& [source, device, model, framework] = name;
  Values speeds, memories;
  std::vector<double> mfu, palm;
  for (const JudgedValue* value : values) {
    (is_memory(value->what) ? memories : speeds).push_back(value);
    const RowValues& predicted = prediction_of(accuracy, *value).values;
    if (!is_time(value->what)) continue;
    mfu.push_back(predicted.mfu * measured_share(*value));
    palm.push_back(predicted.palm_mfu * measured_share(*value));
  }
  std::vector<Cell> row = {{source < kFirst.size() ? kFirst[source].name : kOthers},
                           {device},
                           {model},
                           {framework.empty()       ? "none"
                            : framework == "inline" ? "its own numbers"
                                                    : framework}};
  add_errors(row, speeds);
  row.push_back({order_text(accuracy, speeds)});
  add_errors(row, memories);
  row.push_back({share_text(mfu)});
  row.push_back({share_text(palm)});
  return row;
}

/// A figure that a program says of itself, and the rows of ours that are the same.
struct Rival {
  const char* program;
  const char* figure;
  const char* source;
  const char* rows;  // "file: table"
  Measurand what;
};
constexpr std::array kRivals = {
    Rival{"vTrain", "8.37 % MAPE, up to 8 A100", "arXiv 2312.12391; KAIST, March 2025",
          "vtrain-a100: one node, hidden size 1024", Measurand::StepTime},
    Rival{"vTrain", "8.37 % MAPE, up to 8 A100", "the same",
          "vtrain-a100: one node, hidden size 2048", Measurand::StepTime},
    Rival{"vTrain", "14.73 % MAPE, up to 512 A100", "the same", "vtrain-a100: 64 and 256 devices",
          Measurand::StepTime},
    Rival{"SimuMax", "-11.4 to -0.2 %", "release 1.2, FULL_RESULTS.md, 24 cases",
          "simumax-b200: dense models", Measurand::StepTime},
    Rival{"SimuMax", "-0.5 to -0.2 %", "the same", "simumax-b200: dense models",
          Measurand::PeakMemory},
    Rival{"SimuMax", "-13.5 to +0.1 %", "the same, 12 cases", "simumax-b200: DeepSeek",
          Measurand::StepTime},
    Rival{"SimuMax", "-0.8 to -0.5 %", "the same", "simumax-b200: DeepSeek", Measurand::PeakMemory},
    Rival{"Calculon", "3.65 % MAPE", "DOI 10.1145/3581784.3607102 (recalled)",
          "korthikanti: table 5", Measurand::StepTime}};

const AccuracyLine* line_of(const Accuracy& accuracy, const Rival& rival) {
  for (const AccuracyLine& line : accuracy.lines) {
    const MeasurementFile& file = accuracy.files[line.file];
    const bool same = file.name + ": " + file.tables[line.table].name == rival.rows;
    if (same && line.what == rival.what && line.group.empty()) return &line;
  }
  return nullptr;
}

}  // namespace

Grid planner_grid(const Accuracy& accuracy) {
  std::map<GroupName, Values> groups;
  for (const JudgedValue& value : accuracy.values) {
    if (value.counts) groups[group_of(accuracy, value)].push_back(&value);
  }
  Grid grid{{{"Source", "", false},
             {"Device", "", false},
             {"Model", "", false},
             {"Framework", "", false},
             {"Speeds", ""},
             {"Typical", "%"},
             {"Worst", "%"},
             {"Plans ρ", ""},
             {"Memories", ""},
             {"Typical", "%"},
             {"Worst", "%"},
             {"MFU", "%"},
             {"PaLM's", "%"}},
            {}};
  for (const auto& [name, values] : groups) {
    grid.rows.push_back(group_cells(accuracy, name, values));
  }
  return grid;
}

std::string planner_note() {
  return "Rows that nothing was fitted on, times of passes and speed-ups among the speeds. "
         "Typical: "
         "the median of absolute errors. Plans ρ: Spearman's rank correlation of plans of one "
         "series, the mean over series. MFU: what was measured, the middle row, as Megatron-LM and "
         "torchtitan count it (the whole score matrix, nothing that is computed again); PaLM's "
         "counts an input embedding of its own as if it multiplied.";
}

Grid rival_grid(const Accuracy& accuracy) {
  Grid grid{{{"Program", "", false},
             {"Its own figure", "", false},
             {"Said in", "", false},
             {"Rows here", "", false},
             {"Quantity", "", false},
             {"Rows", ""},
             {"MAPE", "%"},
             {"Least", "%"},
             {"Greatest", "%"}},
            {}};
  for (const Rival& rival : kRivals) {
    const AccuracyLine* line = line_of(accuracy, rival);
    if (line == nullptr) continue;
    double least = kInfinity, greatest = -kInfinity;
    for (const JudgedValue& value : accuracy.values) {
      const bool same = value.file == line->file && value.table == line->table;
      if (!same || value.what != rival.what || !value.counts) continue;
      least = std::min(least, value.error());
      greatest = std::max(greatest, value.error());
    }
    const bool any = line->summary.errors.count > 0;
    grid.rows.push_back({{rival.program},
                         {rival.figure},
                         {rival.source},
                         {rival.rows},
                         {measurand_names()[static_cast<int>(rival.what)]},
                         {std::to_string(line->summary.errors.count)},
                         {any ? fixed(100 * line->summary.errors.mape, 1) : kUnknown},
                         {any ? signed_percent(least) : kUnknown},
                         {any ? signed_percent(greatest) : kUnknown}});
  }
  return grid;
}

std::string rival_note() {
  return "vTrain's figures are over rows of which these are a part. vTrain and SimuMax time "
         "kernels "
         "of the machine that they predict; no row here had that. SimuMax is nearer in the memory "
         "of "
         "dense models; else the two are about as far off. Charon says 3.74 % for training on more "
         "than 10,000 GPUs (arXiv 2605.17164), of runs that are not public.";
}

}  // namespace interlock
