// interlock validate published and fit: what others measured, predicted, and fitted numbers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/exit_code.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/terminal/layout.h"
#include "reports/words/scale.h"
#include "scenarios/sweep/worker_pool.h"
#include "validate/published/accuracy_report.h"
#include "validate/published/error_samples.h"
#include "validate/published/parameter_fit.h"

namespace interlock {
namespace {

std::vector<std::string> paths_of(const PublishedOptions& options) {
  std::vector<std::string> paths;
  const std::vector<std::string> names = published_names();
  for (const std::string& source : options.sources) {
    if (!std::count(names.begin(), names.end(), source)) {
      const std::optional<std::string> meant = nearest(source, names);
      throw Error(
          "--source " + in_quotes(source) + ": unknown; " +
          (meant ? "did you mean " + in_quotes(*meant) + "?" : "expected " + join_choices(names)));
    }
    paths.push_back(published_path(source));
  }
  paths.insert(paths.end(), options.files.begin(), options.files.end());
  if (!paths.empty()) return paths;
  for (const std::string& name : names) paths.push_back(published_path(name));
  return paths;
}

std::vector<MeasurementFile> read_all(const std::vector<std::string>& paths) {
  std::vector<MeasurementFile> files;
  std::string mistakes;
  for (const std::string& path : paths) {
    try {
      files.push_back(read_measurements(path));
    } catch (const Error& error) {
      mistakes += (mistakes.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!mistakes.empty()) throw Error(mistakes);
  return files;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

/// Returns as many processes as were asked for, or as there are processors.
int jobs_of(int asked) { return asked > 0 ? asked : usable_processors(); }

struct WrittenFile {
  const char* option;
  std::string path, text;
};

/// `whole`: no row is missing. Errors are those of all rows.
void write_all(const PublishedOptions& options, const Accuracy& accuracy, bool whole) {
  // All texts are made before the first file is touched.
  std::vector<WrittenFile> outputs;
  if (!options.markdown.empty()) {
    outputs.push_back({"--markdown", options.markdown,
                       accuracy_markdown(accuracy, options.command_line, today())});
  }
  const std::string json = options.json.empty() ? "" : accuracy_json(accuracy);
  if (!options.json.empty() && options.json != "-") {
    outputs.push_back({"--json", options.json, json});
  }
  if (!options.html.empty()) outputs.push_back({"--html", options.html, accuracy_html(accuracy)});
  if (!options.errors.empty() && whole) {
    const Accuracy as_borrower =
        judge(accuracy.files, {jobs_of(options.jobs)}, Efficiencies::Borrowed);
    PublishedErrors errors{.tables = error_tables(accuracy),
                           .borrowed = borrowed_tables(accuracy, as_borrower)};
    errors.widening = widening_of(errors.tables);
    errors.borrowed_widening = widening_of(errors.borrowed);
    outputs.push_back({"--errors", options.errors, errors_json(errors, options.command_line)});
    if (!options.quiet) {
      print(coverage_words(leave_one_out(errors.tables)) + "\nwith borrowed efficiencies:\n" +
            coverage_words(leave_one_out(errors.borrowed)));
    }
  }
  for (const WrittenFile& output : outputs) {
    write_file(output.path, output.text);
    if (!options.quiet) tell("wrote " + output.path);
  }
  if (options.json == "-") print(json);
}

/// Says which targets are missed. Returns whether none is.
bool check_targets(const Accuracy& accuracy) {
  for (const AccuracyLine& line : accuracy.lines) {
    const MeasurementFile& file = accuracy.files[line.file];
    for (const std::string& missed : line.missed) {
      tell("missed: " + file.name + ": " + file.tables[line.table].name + ": " +
           measurand_names()[static_cast<int>(line.what)] + ": " + missed);
    }
  }
  return reaches_targets(accuracy);
}

std::string name_of(const FittedParameter& parameter) {
  return parameter.entry + ": " + parameter.key;
}

/// Returns the parameters that were asked for; all if none was named.
std::vector<FittedParameter> chosen(const FitOptions& options,
                                    const std::vector<MeasurementFile>& files) {
  std::vector<FittedParameter> parameters = fitted_parameters(files);
  std::vector<std::string> names;
  names.reserve(parameters.size());
  for (const FittedParameter& parameter : parameters) names.push_back(name_of(parameter));
  for (const std::string& asked : options.parameters) {
    if (std::find(names.begin(), names.end(), asked) != names.end()) continue;
    throw Error("--parameter " + in_quotes(asked) + ": unknown; expected " + join_choices(names));
  }
  std::erase_if(parameters, [&](const FittedParameter& parameter) {
    const auto& asked = options.parameters;
    return !asked.empty() &&
           std::find(asked.begin(), asked.end(), name_of(parameter)) == asked.end();
  });
  return parameters;
}

Accuracy judged(std::vector<MeasurementFile> files, const PublishedOptions& options) {
  const StopOnInterrupt until_judged;
  Progress line("rows", 0, 0, !options.quiet);
  return judge(std::move(files),
               {.processes = jobs_of(options.jobs),
                .told = [&](std::size_t done, std::size_t of) { line.reach(done, of); },
                .stop = [] { return StopOnInterrupt::asked().load(); }});
}

/// Counts the rows of `accuracy`, and of these the ones that an interrupt left.
struct CountedRows {
  explicit CountedRows(const Accuracy& accuracy) {
    for (const auto& file : accuracy.predictions) {
      for (const auto& table : file) {
        for (const RowPrediction& row : table) left += row.problem == kLeftRow;
        all += table.size();
      }
    }
  }
  std::size_t all = 0, left = 0;
};

}  // namespace

int validate_published(const PublishedOptions& options) {
  for (const auto& [option, path] : {std::pair{"--html", options.html},
                                     {"--json", options.json},
                                     {"--errors", options.errors},
                                     {"--markdown", options.markdown}}) {
    if (!path.empty() && path != "-") check_output(option, path);
  }
  std::vector<MeasurementFile> files = read_all(paths_of(options));
  const auto begin = std::chrono::steady_clock::now();
  const Accuracy accuracy = judged(std::move(files), options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const CountedRows rows(accuracy);
  if (rows.left > 0 && rows.left == rows.all) {
    tell(kNothingWritten);
    return kInterrupted;
  }
  if (!options.quiet && options.json != "-") {
    print(accuracy_table(accuracy, terminal_style(), options.all_rows));
    tell("predicted in " + fixed(took.count(), 1) + " s");
  }
  write_all(options, accuracy, rows.left == 0);
  if (rows.left > 0) {
    tell("interrupted: " + std::to_string(rows.left) + " of " + std::to_string(rows.all) +
         " rows are missing" +
         (options.errors.empty() ? "" : "; --errors takes all, is not written"));
    return kInterrupted;
  }
  return !options.check || check_targets(accuracy) ? kSuccess : kMissed;
}

void validate_fit(const FitOptions& options) {
  if (!options.markdown.empty()) check_output("--markdown", options.markdown);
  check_json(options.json);
  const std::vector<MeasurementFile> files = read_all(paths_of({}));
  const int jobs = jobs_of(options.jobs);
  const std::vector<FittedParameter> parameters = chosen(options, files);
  const std::vector<SpeedRow> rows = speed_rows(files, parameters, jobs);
  std::vector<ParameterFit> fits;
  for (const FittedParameter& parameter : parameters) {
    if (!options.quiet) {
      tell(std::to_string(fits.size() + 1) + " of " + std::to_string(parameters.size()) + ": " +
           name_of(parameter) + " ...");
    }
    fits.push_back(refit(parameter, rows, static_cast<std::size_t>(options.rows), jobs));
  }
  write_json(options.json, fit_json(fits), options.quiet);
  if (!options.quiet && options.json != "-") {
    print(lay_out(fit_grid(fits), terminal_style()) + "\n" + fit_note() + "\n");
  }
  if (options.markdown.empty()) return;
  write_file(options.markdown, fit_markdown(fits, options.command_line));
  if (!options.quiet) tell("wrote " + options.markdown);
}

}  // namespace interlock
