// interlock search: the plans worth having, and the best one as a scenario.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/console/inputs.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "hardware/networks/cluster_reader.h"
#include "hardware/networks/node_share.h"
#include "reports/answers/search_report.h"
#include "reports/exports/exports.h"
#include "reports/result/scenario_json.h"
#include "scenarios/search/space_checks.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

JsonValue document_of(const CommandOptions& files) {
  refuse_chosen(files.overrides);
  JsonValue document = read_scenario_document(files.inputs.front(), files.overrides);
  refuse_jobs(document);
  if (document.find("sweep") == nullptr) return document;
  throw Error(files.inputs.front() +
              ": /sweep: a search chooses plans itself; expected none: --set sweep=null");
}

/// Says how the cluster of `document`, a named machine, could be nodes that are alike, if they are
/// not: nothing folds then, and a search takes long. Empty: they are.
std::string equal_nodes_words(const JsonValue& document) {
  const JsonValue* written = document.find("cluster");
  if (written == nullptr || !holds_text(written->find("machine"))) return "";
  Diagnostics diagnostics;
  const Cluster cluster = read_cluster(JsonNode{&document, ""}.child("cluster"), diagnostics);
  if (!diagnostics.empty() || is_mixed(cluster) ||
      !std::holds_alternative<IdealSwitch>(cluster.network)) {
    return "";
  }
  const int all = cluster.machines.front().devices_per_node;
  const int share = share_of_node(all, cluster.devices);
  if (share == all) return "";
  return "note: " + std::to_string(cluster.devices) + " devices fill no whole nodes of " +
         std::to_string(all) + ", which makes a search slow; equal parts of nodes: --set " +
         "cluster.devices_per_node=" + std::to_string(share) +
         " --set cluster.nodes=" + std::to_string(cluster.devices / share);
}

/// Returns what `document` asks for; with --to among plans that the program can be told alone.
SearchRequest request_for(const SearchOptions& options, const JsonValue& document) {
  SearchRequest request = request_of(document);
  if (options.to.empty()) return request;
  request.check_use = [to = options.to](const Plan& plan) { exported(to, plan); };
  return request;
}

/// Writes the best plan as a scenario, or for the program that was asked for.
void write_best(const SearchOptions& options, const FoundPlan& best) {
  const bool quiet = options.command.quiet;
  if (options.to.empty()) {
    const std::string folder = std::filesystem::path(options.out).parent_path().string();
    write_file(options.out, scenario_file(best.document, folder));
    if (!quiet) tell("wrote " + options.out + "; interlock simulate " + options.out);
    return;
  }
  const ExportedFile file = exported(options.to, make_plan(load_questions(best.document).front()));
  write_file(options.out, file.text);
  if (quiet) return;
  for (const std::string& left : file.left_out) tell("left out: " + left);
  tell("wrote " + options.out);
}

/// Returns ", 39 looked at, 3 simulated"; "" before the first look.
std::string words_of_known(const SearchCounts& counts) {
  if (counts.looked_at == 0) return "";
  return ", " + std::to_string(counts.looked_at) + " looked at, " + std::to_string(counts.judged) +
         " simulated";
}

/// Searches, with a line of progress. Returns nothing if an interrupt came before the first look.
std::optional<SearchResult> search_aloud(const SearchOptions& options) {
  const JsonValue document = document_of(options.command);
  SearchRequest request = request_for(options, document);
  if (!options.command.quiet) {
    if (const std::string words = equal_nodes_words(document); !words.empty()) tell(words);
  }
  const int processes = options.jobs > 0 ? options.jobs : usable_processors();
  const StopOnInterrupt until_found;
  Progress line("layouts and plans", 0, 0, !options.command.quiet, Rest::Unknown);
  std::string note;
  request.counted = [&](const SearchCounts& counts) {
    note = words_of_known(counts);
    if (StopOnInterrupt::asked()) throw StopSearch{};
  };
  try {
    return search_plans(document, request, processes, [&](std::size_t done, std::size_t of) {
      line.reach(done, of, done < of ? note : ", now variants of the best");
      if (StopOnInterrupt::asked()) throw StopSearch{};
    });
  } catch (const StopSearch&) {
    return std::nullopt;
  }
}

[[noreturn]] void refuse_to_write(const SearchOptions& options, const SearchCounts& counts) {
  if (counts.useless == 0) {
    std::string words = no_plan_words(counts);
    words.front() = 'n';
    throw Error("--out " + options.out + ": " + words + ", and nothing is written");
  }
  throw Error("--to " + options.to + ": no plan that it can be told is within the limits; of " +
              std::to_string(counts.useless) + " others the first: " + counts.useless_because);
}

}  // namespace

bool search(const SearchOptions& options) {
  const CommandOptions& files = options.command;
  check_outputs(files);
  if (!options.out.empty()) check_output("--out", options.out);
  if (!options.to.empty() && options.out.empty()) {
    throw Error("--to " + options.to + ": the plan goes to no file; expected --out FILE");
  }
  const std::optional<SearchResult> result = search_aloud(options);
  if (!result) {
    tell(kNothingWritten);
    return false;
  }
  if (!files.quiet) tell_notes({result->scenario});
  if (!files.quiet && files.json != "-") print(search_text(*result, terminal_style()));
  if (!options.out.empty() && result->plans.empty()) refuse_to_write(options, result->counts);
  write_json(files.json, search_json(*result), files.quiet);
  if (!options.out.empty()) write_best(options, result->plans.front());
  if (result->cut_off) {
    tell("interrupted: the best plan is not proven; the same command begins anew");
  } else if (result->stopped) {
    tell("interrupted: plans that are worth having may be missing");
  }
  return !result->stopped;
}

}  // namespace interlock
