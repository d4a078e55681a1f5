// Reads "jobs": the scenario of each, and where it lies.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/jobs/jobs_question.h"
#include "scenarios/jobs/placement.h"
#include "scenarios/load/loader.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

/// Reads "placement"; packed if it is not written.
PlacementRule read_rule(Section& job, Diagnostics& diagnostics) {
  using Kind = PlacementRule::Kind;
  const auto node = job.get("placement");
  if (!node || node->value->kind != JsonValue::Kind::Object) {
    return {static_cast<Kind>(job.choice("placement"))};
  }
  Section section(contract_object("jobs.placement"), *node, diagnostics);
  PlacementRule rule;
  const auto read = [&](const char* key, Kind kind) {
    const auto list = section.get(key);
    if (!list) return false;
    rule.kind = kind;
    for (const JsonNode& item :
         section.items_at(key, *list, std::string("wrong list of ") + key, "number")) {
      if (const auto number = section.count_at(key, item)) rule.numbers.push_back(*number);
    }
    return true;
  };
  const bool on_nodes = read("nodes", Kind::Nodes), on_devices = read("devices", Kind::Devices);
  section.finish();
  if (on_nodes == on_devices) {
    report(diagnostics, *node,
           on_nodes
               ? "given by \"nodes\" and by \"devices\"; expected one of the two"
               : "says no place; expected \"nodes\" or \"devices\", or \"packed\" or \"spread\"");
  }
  return rule;
}

/// Returns the document of a job, with what it sets; nothing after a diagnostic.
std::optional<JsonValue> document_of(Section& job, Diagnostics& diagnostics) {
  const auto scenario = job.require("scenario", "the path of a scenario, or an object");
  const auto set = job.get("set");
  if (!scenario) return std::nullopt;
  try {
    JsonValue document = scenario->value->kind == JsonValue::Kind::String
                             ? read_json_file(resolved_path(*scenario->value))
                             : *scenario->value;
    if (!set) return document;
    if (set->value->kind != JsonValue::Kind::Object) {
      report(
          diagnostics, *set,
          "wrong settings; expected an object from paths to values, got " + described(*set->value));
      return std::nullopt;
    }
    for (const JsonMember& one : set->value->members) {
      set_key(document, one.first, one.second, in_quotes(one.first));
    }
    return document;
  } catch (const Error& error) {
    report(diagnostics, *scenario, error.what());
    return std::nullopt;
  }
}

/// Says why `question` cannot run beside others; or "".
std::string problem_of(const Question& question) {
  if (question.trace()) return "a recorded run has its own devices; expected a training";
  if (question.run || question.swarm) {
    return "a job is judged by its steps; expected no \"run\" and no \"swarm\"";
  }
  if (question.variation) {
    return "steps of jobs are alike, and links are those of the cluster; expected no \"variation\"";
  }
  if (question.layout.data_parallel.outer.any()) {
    return "steps of jobs are alike; expected no \"outer\" steps";
  }
  return "";
}

/// Names the first figure in which two machines of one name differ; or "".
std::string differing_figure(const Machine& a, const Machine& b) {
  if (a.device.peak != b.device.peak) return "peak rates of devices";
  if (a.device.memory != b.device.memory) return "memory of devices";
  if (a.device.memory_bandwidth != b.device.memory_bandwidth) return "memory bandwidth of devices";
  if (a.port_bandwidth != b.port_bandwidth || a.port_latency != b.port_latency) return "ports";
  if (a.card_bandwidth != b.card_bandwidth || a.card_latency != b.card_latency ||
      a.cards_per_node != b.cards_per_node) {
    return "network cards";
  }
  if (a.pair_bandwidth != b.pair_bandwidth) return "links of pairs";
  return a.host_memory != b.host_memory ? "memory of hosts" : "";
}

/// Says how the machine of a job differs from that of the cluster; or "".
std::string machine_problem(const Cluster& own, const Cluster& shared) {
  const Machine &one = own.machines.front(), &other = shared.machines.front();
  const auto words = [](const Machine& machine) {
    return in_quotes(machine.name) + " (" + machine.device.name + ", " +
           std::to_string(machine.devices_per_node) + " a node)";
  };
  const bool nodes_alike = own.mesh || one.devices_per_node == other.devices_per_node;
  const bool alike = !is_mixed(own) && own.mesh == shared.mesh && one.name == other.name &&
                     one.device.name == other.device.name && nodes_alike;
  const std::string figure = own.mesh ? "" : differing_figure(one, other);
  if (alike && !figure.empty()) {
    return "has a machine with other " + figure + " than that of the shared cluster, " +
           words(other) + "; expected the same machine, as \"cluster\" beside \"jobs\" has it";
  }
  if (alike) return "";
  return "is made for " + (is_mixed(own) ? "a mixed cluster" : words(one)) +
         "; expected the machine of the shared cluster, " + words(other);
}

/// A job that was read, and is not placed yet.
struct ReadJob {
  Question question;
  UnplacedJob place;
  Seconds start;
};

/// Reads the scenario of a job by itself, and tells its mistakes as they are.
std::optional<Question> read_scenario(const JsonNode& node, JsonValue document, KnownParts& known,
                                      Diagnostics& diagnostics) {
  if (document.kind == JsonValue::Kind::Object && document.find("sweep") != nullptr) {
    report(diagnostics, node,
           "a job is one scenario; expected no \"sweep\" in it: \"set\": "
           "{\"sweep\": null} leaves it out");
    return std::nullopt;
  }
  const JsonValue* simulate = document.find("simulate");
  for (const char* key : {"engine", "fold", "skip_periods"}) {
    if (simulate == nullptr || simulate->find(key) == nullptr) continue;
    report(diagnostics, node,
           "jobs run together, every device of them, on the native engine; expected no "
           "\"simulate." +
               std::string(key) + "\" in the scenario of a job");
    return std::nullopt;
  }
  Diagnostics own;
  auto kept = std::make_shared<const JsonValue>(std::move(document));
  Question question = load_question(*kept, known, own);
  question.document = std::move(kept);
  diagnostics.add_new(own);
  if (!own.empty()) return std::nullopt;
  if (const std::string problem = problem_of(question); !problem.empty()) {
    report(diagnostics, node, problem);
    return std::nullopt;
  }
  return question;
}

std::optional<ReadJob> read_job(const JsonNode& node, const Cluster& cluster, KnownParts& known,
                                Diagnostics& diagnostics) {
  Section section(contract_object("jobs"), node, diagnostics);
  const Mistakes mistakes(diagnostics);
  const auto name = section.get("name");
  const std::string written = section.text("name", "");
  const PlacementRule rule = read_rule(section, diagnostics);
  const Seconds start = section.seconds("start");
  std::optional<JsonValue> document = document_of(section, diagnostics);
  section.finish();
  if (!document || !mistakes.none()) return std::nullopt;
  auto question = read_scenario(node, std::move(*document), known, diagnostics);
  if (!question) return std::nullopt;
  if (name) question->name = written;
  const std::string problem = machine_problem(question->cluster, cluster);
  if (!problem.empty()) {
    report(diagnostics, node, "job " + in_quotes(question->name) + " " + problem);
    return std::nullopt;
  }
  const JsonNode place = node.value->find("placement") ? node.child("placement") : node;
  const int devices = question->layout.mesh.devices();
  return ReadJob{*question, {question->name, devices, rule, place}, start};
}

/// Moves `question` to devices of the shared cluster. What its framework adds to devices stays.
void move_to(const Cluster& cluster, std::vector<int> devices, Question& question) {
  const double sms = question.cluster.machines.front().device.collective_sms;
  question.cluster = cluster;
  question.cluster.machines.front().device.collective_sms = sms;
  question.layout.mesh.placed = std::move(devices);
  question.simulation.engine = EngineKind::Native;
  question.simulation.unfolded.reset();
  if (question.layout.rank_layouts.empty()) {
    question.simulation.unfolded = Unfolded{true, true, true, true};
  }
}

void check_names(const JsonNode& list, std::vector<ReadJob>& jobs, Diagnostics& diagnostics) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (jobs[i].question.name != jobs[j].question.name) continue;
      report(diagnostics, list.item(j),
             "two jobs have the name " + in_quotes(jobs[j].question.name) +
                 "; expected a \"name\" of its own for each");
      return;
    }
  }
}

void read_jobs(const JsonNode& list, KnownParts& known, JobsQuestion& question,
               Diagnostics& diagnostics) {
  const Cluster& cluster = question.cluster;
  std::vector<ReadJob> jobs;
  const Mistakes mistakes(diagnostics);
  for (std::size_t j = 0; j < list.value->items.size(); ++j) {
    if (auto job = read_job(list.item(j), cluster, known, diagnostics)) {
      jobs.push_back(std::move(*job));
    }
  }
  if (!mistakes.none()) return;
  check_names(list, jobs, diagnostics);
  std::vector<UnplacedJob> places;
  places.reserve(jobs.size());
  for (const ReadJob& job : jobs) places.push_back(job.place);
  std::vector<std::vector<int>> devices = place_jobs(cluster, places, diagnostics);
  if (!mistakes.none()) return;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    move_to(cluster, std::move(devices[j]), jobs[j].question);
    question.jobs.push_back(std::move(jobs[j].question));
    question.starts.push_back(jobs[j].start);
  }
}

/// Reads "simulate", of which the engine alone means something for several jobs.
EngineKind read_engine(const JsonNode& node, Diagnostics& diagnostics) {
  const SimulationSettings settings = read_simulate(node, diagnostics);
  if (node.value->kind != JsonValue::Kind::Object) return settings.engine;
  for (const JsonMember& member : node.value->members) {
    if (member.first == "engine") continue;
    report(diagnostics, node.child(member.first),
           "means nothing for several jobs, whose devices are all simulated; expected \"engine\" "
           "alone");
  }
  return settings.engine;
}

JobsQuestion load_one_of(const JsonValue& value, KnownParts& known, Diagnostics& diagnostics) {
  const JsonNode document = {&value, ""};
  JobsQuestion question{.name = "", .file = value.file ? *value.file : ""};
  Section section(contract_object(""), document, diagnostics);
  section.get("$schema");
  section.get("sweep");
  question.name = section.text("name", default_name(value));
  for (const char* key : {"model", "parallel", "partition", "training", "variation", "run", "goal",
                          "swarm", "quality", "workload", "search"}) {
    if (const auto node = section.get(key)) {
      report(
          diagnostics, *node,
          "each of the jobs says that itself; expected no " + in_quotes(key) + " beside \"jobs\"");
    }
  }
  if (const auto node = section.get("simulate")) question.engine = read_engine(*node, diagnostics);
  const auto list = section.get("jobs");
  const auto node = section.require("cluster", "a machine's name, a path, or an object");
  const std::vector<JsonNode> items =
      section.items_at("jobs", *list, "wrong list of jobs", "objects with a \"scenario\"");
  section.finish();
  if (!node || items.empty()) return question;
  const Mistakes mistakes(diagnostics);
  question.cluster = known.cluster(*node, diagnostics);
  if (!mistakes.none()) return question;
  if (is_mixed(question.cluster)) {
    report(diagnostics, *node, "several jobs share a cluster of one machine; got several machines");
    return question;
  }
  read_jobs(*list, known, question, diagnostics);
  return question;
}

}  // namespace

bool holds_jobs(const JsonValue& document) {
  return document.kind == JsonValue::Kind::Object && document.find("jobs") != nullptr;
}

std::vector<JobsQuestion> load_jobs(const JsonValue& document) {
  Diagnostics diagnostics;
  const SweepPlan plan(document, kMostAtOnce, diagnostics);
  std::vector<JobsQuestion> questions;
  KnownParts known;
  for (std::size_t i = 0; i < plan.size() && diagnostics.empty(); ++i) {
    SweepPoint point = plan.point(i, diagnostics);
    if (!diagnostics.empty()) break;
    Diagnostics own;
    questions.push_back(load_one_of(point.document, known, own));
    questions.back().document = std::make_shared<const JsonValue>(std::move(point.document));
    questions.back().swept = std::move(point.swept);
    diagnostics.add_new(own);
  }
  diagnostics.throw_if_any();
  return questions;
}

}  // namespace interlock
