// Questions of the page: read, put to an engine, and told as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "cli/studio/studio_answers.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/console/sizing_options.h"
#include "reports/answers/answer_report.h"
#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/page/scenario_markup.h"
#include "reports/page/sizing_page.h"
#include "reports/page/studio_page.h"
#include "reports/report.h"
#include "reports/result/scenario_json.h"
#include "reports/result/value_json.h"
#include "reports/traces/trace_events.h"
#include "scenarios/contract/open_names.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/explain/change.h"
#include "scenarios/sweep/told_failure.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstScenario = "/quickstart/pairwise.json";

std::string text_at(const JsonValue& question, std::string_view key) {
  const JsonValue* value = question.find(key);
  return holds_text(value) ? value->text : "";
}

std::vector<std::string> texts_at(const JsonValue& question, std::string_view key) {
  std::vector<std::string> texts;
  const JsonValue* value = question.find(key);
  if (value == nullptr) return texts;
  for (const JsonValue& item : value->items) texts.push_back(item.text);
  return texts;
}

using FileFound = std::function<void(const JsonNode& text, const std::string& path)>;

/// Tells each text below `node` that is the path of a file, as readers of scenarios look for it.
void find_files(const JsonNode& node, const FileFound& found) {
  const JsonValue& value = *node.value;
  for (std::size_t i = 0; i < value.items.size(); ++i) find_files(node.item(i), found);
  for (const JsonMember& member : value.members) {
    if (member.first != "name" && member.first != "$schema") {
      find_files(node.child(member.first), found);
    }
  }
  if (value.kind != JsonValue::Kind::String || value.text.empty()) return;
  const bool stands_in_file = value.line != 0 && value.file;
  const fs::path folder = stands_in_file ? fs::path(*value.file).parent_path() : fs::path();
  std::error_code failed;
  if (!fs::is_regular_file(folder / value.text, failed)) return;
  found(node, fs::weakly_canonical(folder / value.text, failed).string());
}

/// Throws: Error for each file that `document` names and that was not opened.
void check_files(const OpenedScenario& opened, const JsonValue& document) {
  Diagnostics diagnostics;
  find_files({&document, ""}, [&](const JsonNode& node, const std::string& path) {
    if (opened.files.count(path) == 0) {
      report(diagnostics, node,
             in_quotes(node.value->text) +
                 " is a file, and the studio reads none but those of the scenario that it was "
                 "started with; expected a name, an object, or interlock studio with a scenario "
                 "that names this file");
    }
  });
  diagnostics.throw_if_any();
}

JsonValue read_document(const OpenedScenario& opened, const JsonValue& question) {
  JsonValue document = parse_json(text_at(question, "text"), opened.file);
  apply_overrides(document, texts_at(question, "settings"));
  check_files(opened, document);
  return document;
}

/// A quantity or a number that the page has a slider for: the first of `paths` that there is.
struct Dial {
  const char* name;
  std::vector<const char*> paths;
  bool between_nodes = false;  // says nothing of a single node
};

const std::vector<Dial>& dials() {
  static const std::vector<Dial> all = {
      {"Bandwidth inside a node", {"cluster.link.bandwidth", "cluster.port.bandwidth"}},
      {"Latency inside a node", {"cluster.link.latency", "cluster.port.latency"}},
      {"Bandwidth between nodes",
       {"cluster.cards.bandwidth", "cluster.network.link.bandwidth", "cluster.network.bandwidth"},
       true},
      {"Latency between nodes", {"cluster.cards.latency", "cluster.network.delay"}, true},
      {"Memory of a device", {"cluster.memory", "cluster.device.memory"}},
  };
  return all;
}

JsonValue dials_json(const JsonValue& opened, bool one_node) {
  JsonValue list = json_list({});
  for (const Dial& dial : dials()) {
    if (dial.between_nodes && one_node) continue;
    for (const char* path : dial.paths) {
      const JsonValue* value = value_at(opened, path);
      if (!holds_text(value)) continue;
      list.items.push_back(json_object(
          {{"name", json_text(dial.name)}, {"path", json_text(path)}, {"value", *value}}));
      break;
    }
  }
  return list;
}

/// Numbers of the scenario, those included that it does not write.
JsonValue counts_json(const Question& question) {
  const TraceWorkload* const trace = question.trace();
  const int micro_batches =
      trace != nullptr ? trace->steps.micro_batches : question.training().micro_batches;
  JsonValue counts = json_object({{"training.micro_batches", json_number(micro_batches)},
                                  {"cluster.devices", json_number(question.layout.mesh.devices())},
                                  {"parallel.pipeline", json_number(question.layout.ranks())}});
  if (trace != nullptr) return counts;
  const Training& training = question.training();
  if (const std::optional<double>& samples = training.graph.samples_per_micro_batch) {
    counts.members.push_back(
        {"training.global_batch_size", json_number(*samples * training.micro_batches)});
  }
  const Strategy& strategy = training.strategy;
  const bool has_n = strategy.n_of_losses.empty() && !strategy.sought;
  if (strategy.kind == StrategyKind::Interlocking && has_n) {
    counts.members.push_back({"training.strategy.n_wise", json_number(strategy.n_wise)});
    const int modules = question.layout.stages / strategy.module_stages;
    counts.members.push_back({"stages", json_number(modules)});
  }
  return counts;
}

/// Returns the row of a result in the table of those that are compared: heads, and cells in words.
JsonValue row_json(const ScenarioResult& result) {
  const Grid grid = comparison_grid({result});
  JsonValue cells = json_list({});
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    const Column& column = grid.columns[i];
    cells.items.push_back(json_object({{"head", json_text(column.head)},
                                       {"unit", json_text(column.unit)},
                                       {"text", json_text(grid.rows[0][i].text)}}));
  }
  return cells;
}

JsonValue simulated(const JsonValue& document) {
  const std::vector<Question> questions = load_questions(document);
  const Question& question = questions.front();
  const ScenarioResult result = run_scenario(question, true);
  const ScenarioMarkup markup = scenario_markup(result, {.spans = 200'000, .id = "live-"});
  std::vector<std::string> notes;
  if (!question.trace()) notes = question.training().graph.notes;
  if (questions.size() > 1) {
    notes.push_back("This scenario has a sweep of " + std::to_string(questions.size()) +
                    "; shown is its first: " + question.name + ".");
  }
  return json_object(
      {{"name", json_text(question.name)},
       {"origin", json_text(markup.origin)},
       {"headlines", json_text(markup.headlines)},
       {"tables", json_text(markup.tables)},
       {"excerpt", json_text(markup.excerpt)},
       {"data", json_text(markup.data)},
       {"notes", json_texts(notes)},
       {"row", row_json(result)},
       {"step_time_s", json_number(result.measurement.metrics.step_time.value())},
       {"counts", counts_json(question)},
       {"dials", dials_json(with_files_open(*question.document), nodes(question.cluster) == 1)}});
}

/// Returns a function that says how far an engine is.
auto progress_to(const LineSink& say) {
  return [&say](std::size_t done, std::size_t of) {
    say("{\"done\": " + std::to_string(done) + ", \"of\": " + std::to_string(of) + "}");
  };
}

JsonValue explained(const JsonValue& document, const LineSink& say) {
  const Answers answers = answer(document, usable_processors(), progress_to(say));
  return json_object(
      {{"limit", json_text(limit_sentence(answers))}, {"json", json_text(answers_json(answers))}});
}

JsonValue searched(const JsonValue& document, const LineSink& say) {
  JsonValue alone = document;
  set_json(alone, "sweep", JsonValue{}, "sweep");
  const SearchResult result = search_plans(alone, usable_processors(), progress_to(say));
  JsonValue texts = json_list({});
  for (const FoundPlan& plan : result.plans) {
    texts.items.push_back(json_text(scenario_file(plan.document, "")));
  }
  return json_object({{"json", json_text(search_json(result))},
                      {"texts", std::move(texts)},
                      {"chart", json_text(line_chart_html(search_front(result)))}});
}

JsonValue planned(const OpenedScenario& opened, const JsonValue& question, const LineSink& say) {
  PlanOptions options;
  const JsonValue* asked = question.find("options");
  if (asked == nullptr) throw Error("expected options");
  check_files(opened, *asked);
  options.model = text_at(*asked, "model");
  options.machines = texts_at(*asked, "machines");
  options.devices = text_at(*asked, "devices");
  options.tokens = text_at(*asked, "tokens");
  options.samples = text_at(*asked, "samples");
  SizingListener listener;
  const auto told = progress_to(say);
  listener.told = [&](const SizingProgress& at) {
    const double of = static_cast<double>(std::max<std::size_t>(at.of, 1));
    const double row = static_cast<double>(at.row) + static_cast<double>(at.done) / of;
    told(static_cast<std::size_t>(100 * row), 100 * std::max<std::size_t>(at.rows, 1));
  };
  const Sizing sizing = size_up(sizing_question(options), usable_processors(), listener);
  JsonValue texts = json_list({});
  for (const SizedPlan& row : sizing.rows) {
    texts.items.push_back(
        json_text(row.plan && row.fits ? scenario_file(row.plan->document, "") : ""));
  }
  return json_object({{"recommendation", json_texts(recommendation(sizing))},
                      {"page", json_text(sizing_markup(sizing, true))},
                      {"texts", std::move(texts)}});
}

/// Returns a file of the scenario of `document`, as the option --`what` writes it.
JsonValue written(const JsonValue& document, const std::string& what) {
  const ScenarioResult result = run_scenario(load_questions(document).front(), true);
  std::string text;
  if (what == "report") {
    text = html_report({result});
  } else if (what == "svg") {
    text = svg_timeline(result);
  } else if (what == "trace") {
    trace_events(result)([&](std::string_view piece) { text += piece; });
  } else if (what == "result") {
    text = result_json(result);
  } else {
    throw Error(in_quotes(what) + " is no file; expected report, svg, trace or result");
  }
  return json_object({{"file", json_text(text)}});
}

JsonValue answer_to(const OpenedScenario& opened, const JsonValue& question, const LineSink& say) {
  const std::string ask = text_at(question, "ask");
  if (ask == "plan") return planned(opened, question, say);
  const JsonValue document = read_document(opened, question);
  const std::string folder = fs::path(opened.file).parent_path().string();
  if (ask == "edit") {
    return json_object({{"text", json_text(scenario_file(document, folder))}});
  }
  if (ask == "simulate") return simulated(document);
  if (ask == "explain") return explained(document, say);
  if (ask == "search") return searched(document, say);
  if (ask == "write") return written(document, text_at(question, "what"));
  throw Error(in_quotes(ask) +
              " cannot be asked; expected edit, simulate, explain, search, plan "
              "or write");
}

void say_mistakes(const LineSink& say, const std::string& text) {
  say(json_line(json_object({{"mistakes", json_text(text)}})));
}

}  // namespace

OpenedScenario opened_text(const std::string& file, const std::string& text) {
  OpenedScenario opened{.file = file, .text = text};
  try {
    const JsonValue document = parse_json(text, file);
    find_files({&document, ""},
               [&](const JsonNode&, const std::string& path) { opened.files.insert(path); });
  } catch (const Error&) {
    // The page shows the mistake where it is.
  }
  return opened;
}

OpenedScenario open_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  if (path.empty()) {
    return opened_text("scenario.json", read_file(data_folder("scenarios") + kFirstScenario));
  }
  if (overrides.empty() && path != "-") return opened_text(path, read_file(path));
  const std::string folder = fs::path(path).parent_path().string();
  return opened_text(path, scenario_file(read_scenario_document(path, overrides), folder));
}

void answer_studio(const OpenedScenario& opened, const std::string& question, const LineSink& say) {
  try {
    const JsonValue asked = parse_json(question, "question");
    say(json_line(json_object({{"answer", answer_to(opened, asked, say)}})));
  } catch (const std::exception& failure) {
    const ToldFailure told = told_failure(failure);
    if (!told.ours) return say_mistakes(say, told.words);
    say(json_line(json_object({{"bug", json_text(told.words)}})));
  }
}

}  // namespace interlock
