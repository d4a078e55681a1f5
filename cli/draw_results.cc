// interlock report: still pictures of results, written earlier or simulated now.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "cli/console/convert_svg.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "reports/charts/paper_figures.h"
#include "reports/page/results_page.h"
#include "reports/report.h"
#include "reports/result/value_json.h"
#include "reports/sweeps/stored_results.h"
#include "scenarios/contract/set_key.h"

namespace interlock {
namespace {

void check_figure(const std::string& whole) {
  const std::vector<std::string>& known = figure_names();
  const std::string figure = whole.substr(0, whole.find(':'));
  if (figure != whole && figure != "sweep" && figure != "table") {
    throw Error("--figure " + whole + ": only sweep and table take measures; expected " + figure);
  }
  if (std::find(known.begin(), known.end(), figure) != known.end()) return;
  const std::optional<std::string> meant = nearest(figure, known);
  throw Error(
      "--figure " + figure + ": unknown figure; " +
      (meant ? "did you mean " + in_quotes(*meant) + "?" : "expected " + join_choices(known)));
}

/// Returns the pixels of a width on paper: "3.3in", "84mm", "480".
double pixels_of(const std::string& width) {
  constexpr double kInch = 96, kLeast = 240, kMost = 4000;
  static const std::map<std::string, double> units = {
      {"", 1},           {"px", 1}, {"in", kInch}, {"cm", kInch / 2.54}, {"mm", kInch / 25.4},
      {"pt", kInch / 72}};
  double number = 0;
  const char* const end = width.data() + width.size();
  const auto [rest, failed] = std::from_chars(width.data(), end, number);
  const auto unit = units.find(std::string(rest, end));
  const double pixels = failed == std::errc{} && unit != units.end() ? number * unit->second : 0;
  if (pixels >= kLeast && pixels <= kMost) return pixels;
  throw Error("--width " + in_quotes(width) +
              ": expected 240 to 4000 pixels, or as much in in, cm, mm or pt, such as 3.3in");
}

PictureStyle style_of(const ReportOptions& options) {
  return {.title = options.title,
          .width = options.width.empty() ? 0 : pixels_of(options.width),
          .grey = options.grey};
}

/// Tables and pages have no picture of their own to be drawn in another way.
void refuse_style(const ReportOptions& options) {
  const char* const option = !options.title.empty()   ? "--title"
                             : !options.width.empty() ? "--width"
                             : options.grey           ? "--grey"
                                                      : nullptr;
  if (option == nullptr) return;
  throw Error(std::string(option) + " is of pictures, and figure " + options.figure +
              " is none; expected another figure, or no " + option);
}

bool is_scenario(const JsonValue& document) {
  return document.kind == JsonValue::Kind::Object && !document.find("format") &&
         (document.find("model") || document.find("training"));  // a sweep may have the other
}

/// Reads the files; simulates scenarios among them, to the results that simulate would have
/// written.
std::vector<JsonValue> read_documents(const ReportOptions& options) {
  std::vector<JsonValue> documents;
  bool simulates = false;
  for (const std::string& path : options.results) {
    if (is_database(path)) {
      for (JsonValue& result : stored_results(path)) documents.push_back(std::move(result));
      continue;
    }
    JsonValue document = read_json_file(path);
    if (is_scenario(document)) {
      simulates = true;
      apply_overrides(document, options.overrides);
      const std::vector<Question> questions = load_questions(document);
      std::vector<ScenarioResult> results;
      Progress line("scenarios", questions.size(), 0, !options.quiet);
      for (const Question& question : questions) {
        results.push_back(run_scenario(question, false));
        line.advance("");
      }
      document = parse_json(result_json(results), path);
    }
    documents.push_back(std::move(document));
  }
  if (!simulates && !options.overrides.empty()) {
    throw Error("--set " + options.overrides.front() +
                ": these are results, which stay as they are; expected a scenario among the files");
  }
  return documents;
}

/// Returns the run behind `result`, simulated once more. Throws: Error if it is not the same run.
ScenarioResult simulated_again(const ReadResult& result) {
  const std::string who = result.file + ": " + result.name + ": ";
  if (!result.scenario) {
    throw Error(who +
                "has no scenario, so its timeline cannot be simulated again; expected a "
                "result that this version of interlock wrote");
  }
  ScenarioResult again = run_scenario(load_questions(*result.scenario).front(), true);
  const double step = again.measurement.metrics.step_time.value();
  const double told = result.known("step_time_s");
  constexpr double kRounding = 1e-9;
  if (std::abs(step - told) > kRounding * std::max(step, told)) {
    throw Error(who + "simulated again, a step takes " + format(Seconds(step)) +
                ", and the file says " + format(Seconds(told)) +
                "; its scenario or the program has changed since: write the result again");
  }
  return again;
}

std::string timeline(const ResultFiles& files, const PictureStyle& style) {
  check_results("timeline", files);
  if (files.results.size() > kMostPanels) {
    throw Error("figure timeline draws at most " + std::to_string(kMostPanels) +
                " results, and there are " + std::to_string(files.results.size()) +
                "; expected fewer");
  }
  std::vector<ScenarioResult> runs;
  for (const ReadResult& result : files.results) runs.push_back(simulated_again(result));
  return svg_timelines(runs, style);
}

std::string summary_json(const ReportOptions& options, const ResultFiles& files) {
  const std::size_t count = files.results.size() + files.curves.size();
  return json_file(json_object({{"format", json_text("interlock-written/1")},
                                {"wrote", json_texts({options.out})},
                                {"figure", json_text(options.figure)},
                                {"results", json_number(static_cast<double>(count))}}));
}

/// Says what was written, as JSON or in a line.
void finish(const ReportOptions& options, const ResultFiles& files) {
  write_json(options.json, summary_json(options, files), options.quiet);
  if (options.quiet || options.json == "-") return;
  const std::size_t count = files.results.size() + files.curves.size();
  print("wrote " + options.out + ": " + options.figure + " of " + std::to_string(count) +
        (count == 1 ? " result\n" : " results\n"));
}

/// An HTML page, which no program has to convert.
void write_page(const ReportOptions& options) {
  if (!options.out.ends_with(".html")) {
    throw Error("--out " + options.out + ": a page is HTML; expected a name that ends with .html");
  }
  check_output("--out", options.out);
  const ResultFiles files = read_result_files(read_documents(options));
  if (files.results.empty()) {
    throw Error(
        "figure page shows results of interlock simulate --json or of interlock sweep, and these "
        "are curves of interlock train; expected interlock train --report FILE.html");
  }
  write_file(options.out, results_html(files.results));
  finish(options, files);
}

/// Markdown or LaTeX, into a file or to standard output.
void write_table(const ReportOptions& options) {
  const bool prints = options.out == "-", latex = options.out.ends_with(".tex");
  if (!prints && !latex && !options.out.ends_with(".md")) {
    throw Error("--out " + options.out + ": a table is Markdown or LaTeX; expected a name that " +
                "ends with .md or .tex, or - for standard output");
  }
  if (!prints) check_output("--out", options.out);
  const ResultFiles files = read_result_files(read_documents(options));
  const std::size_t colon = options.figure.find(':');
  const std::string measures = colon == std::string::npos ? "" : options.figure.substr(colon + 1);
  check_results(options.figure, files);
  const std::string table =
      table_figure(files.results, measures, latex ? TableForm::Latex : TableForm::Markdown);
  if (!prints) {
    write_file(options.out, table);
    return finish(options, files);
  }
  print(table);
  write_json(options.json, summary_json(options, files), options.quiet);
}

}  // namespace

void report(const ReportOptions& options) {
  check_figure(options.figure);
  check_json(options.json);
  if (options.json == "-" && options.out == "-") {
    throw Error("--json and --out both name standard output; expected a file for one");
  }
  const bool page = options.figure == "page";
  if (page || options.figure.starts_with("table")) {
    refuse_style(options);
    return page ? write_page(options) : write_table(options);
  }
  const PictureStyle style = style_of(options);
  const PictureFormat format = picture_format("--out", options.out);
  check_output("--out", options.out);
  const ResultFiles files = read_result_files(read_documents(options));
  const std::string svg = options.figure == "timeline" ? timeline(files, style)
                                                       : figure_svg(options.figure, files, style);
  write_file(options.out, converted(svg, format));
  finish(options, files);
}

}  // namespace interlock
