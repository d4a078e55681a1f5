// Reads "variation": stragglers, jitter, slow links and devices of several speeds; fits it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/variation_conditions.h"

namespace interlock {
namespace {

constexpr double kMostSpread = 1e6;  // a message of its own says what a distribution can have
constexpr std::size_t kLargestLengths = std::size_t{64} << 20;  // bytes of a file

double read_slowdown(Section& section) {
  section.require("slowdown", "how many times longer, e.g. 1.5");
  return section.written_number("slowdown").value_or(1);
}

Straggler read_straggler(const JsonNode& node, Diagnostics& diagnostics) {
  Straggler straggler;
  Section section(contract_object("variation.stragglers"), node, diagnostics);
  const auto rank = section.written_count("rank"), device = section.written_count("device");
  if (section.get("rank").has_value() == section.get("device").has_value() &&
      node.value->kind == JsonValue::Kind::Object) {
    report(diagnostics, node,
           "expected who is slow: a pipeline \"rank\" with all its devices, or one \"device\" of "
           "the machine");
  }
  straggler.devices = {rank ? SlowDevices::Of::Rank : SlowDevices::Of::Device,
                       rank.value_or(device.value_or(0)), read_slowdown(section)};
  straggler.first_step = section.written_count("from_step");
  straggler.last_step = section.written_count("to_step");
  if (straggler.last_step && *straggler.last_step < straggler.first_step.value_or(1)) {
    report(diagnostics, *section.get("to_step"),
           "ends before step " + std::to_string(*straggler.first_step) +
               ", at which it begins; expected \"to_step\" not below \"from_step\"");
  }
  section.finish();
  return straggler;
}

SlowWay read_slow_way(const JsonNode& node, Diagnostics& diagnostics) {
  SlowWay way;
  Section section(contract_object("variation.slow_links"), node, diagnostics);
  const auto end_at = [&](std::string_view key) {
    section.require(key, "the number of a device");
    return section.count(key, 0);
  };
  way.from = end_at("from");
  way.to = end_at("to");
  way.slowdown = read_slowdown(section);
  if (section.get("from") && section.get("to") && way.from == way.to) {
    report(diagnostics, node, "a device needs no link to itself; expected two devices");
  }
  section.finish();
  return way;
}

Jitter read_jitter(std::string_view path, const JsonNode& node, Diagnostics& diagnostics) {
  Jitter jitter;
  Section section(contract_object(path), node, diagnostics);
  jitter.shape = static_cast<JitterShape>(section.choice("distribution"));
  jitter.scope = static_cast<JitterScope>(section.choice("per"));
  if (const auto spread = section.require("spread", "standard deviation over mean, e.g. 0.05")) {
    const double most = most_spread(jitter.shape);
    const auto read = read_number(*spread, 0, kMostSpread, diagnostics);
    if (read && *read > most) {
      report(diagnostics, *spread,
             "times of a " +
                 contract_names(path, "distribution")[static_cast<std::size_t>(jitter.shape)] +
                 " distribution spread by at most " + format_number(most) +
                 " times their mean; expected a number from 0 to that, got " +
                 format_number(*read));
    } else {
      jitter.spread = read.value_or(0);
    }
  }
  section.finish();
  return jitter;
}

/// Returns the lengths of a file, a number a line.
std::vector<double> read_lengths_file(const std::string& path) {
  refuse_pipe(path);
  std::istringstream lines(read_file(path, kLargestLengths));
  std::vector<double> lengths;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    int length = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length);
    if (error != std::errc() || end != line.data() + line.size() || length < 1) {
      throw Error(path + ":" + std::to_string(number) +
                  ": expected a whole number of tokens from 1, got " + in_quotes(line));
    }
    lengths.push_back(length);
  }
  if (lengths.empty()) throw Error(path + ": no lengths; expected a number of tokens a line");
  return lengths;
}

DocumentLengths read_documents(const JsonNode& node, Diagnostics& diagnostics) {
  DocumentLengths documents;
  Section section(contract_object("variation.documents"), node, diagnostics);
  const auto lengths = section.get("lengths"), mean = section.get("mean");
  if (lengths.has_value() == mean.has_value() && node.value->kind == JsonValue::Kind::Object) {
    report(diagnostics, node,
           "expected how long documents are: \"lengths\", a list or a file, or the \"mean\" of a "
           "log-normal distribution");
  }
  if (lengths && lengths->value->kind == JsonValue::Kind::String) {
    try {
      documents.known = read_lengths_file(resolved_path(*lengths->value));
    } catch (const Error& error) {
      report(diagnostics, *lengths, error.what());
    }
  } else if (lengths) {
    for (const JsonNode& item : section.items_at("lengths", *lengths, "wrong lengths", "numbers")) {
      documents.known.push_back(section.number_at("lengths", item).value_or(1));
    }
  }
  documents.mean = section.written_number("mean").value_or(1);
  documents.spread = section.number("spread");
  if (const auto spread = section.get("spread"); spread && lengths) {
    report(diagnostics, *spread, "lengths are given; expected it with \"mean\"");
  }
  section.finish();
  return documents;
}

template <class Item, class Read>
std::vector<Item> read_list(const JsonNode& node, const char* expected, Diagnostics& diagnostics,
                            const Read& read) {
  std::vector<Item> items;
  if (node.value->kind != JsonValue::Kind::Array) {
    report(diagnostics, node, std::string("expected a list, e.g. ") + expected);
    return items;
  }
  for (std::size_t i = 0; i < node.value->items.size(); ++i) items.push_back(read(node.item(i)));
  return items;
}

}  // namespace

std::optional<VariationConditions> read_variation(const std::optional<JsonNode>& node,
                                                  Diagnostics& diagnostics) {
  if (!node) return std::nullopt;
  VariationConditions variation;
  const Mistakes mistakes(diagnostics);
  Section section(contract_object("variation"), *node, diagnostics);
  if (const auto list = section.get("stragglers")) {
    variation.stragglers = read_list<Straggler>(
        *list, "[{\"rank\": 2, \"slowdown\": 1.5}]", diagnostics,
        [&](const JsonNode& item) { return read_straggler(item, diagnostics); });
  }
  const auto jitter = section.get("jitter"), link_jitter = section.get("link_jitter");
  if (jitter) variation.jitter = read_jitter("variation.jitter", *jitter, diagnostics);
  if (link_jitter) {
    variation.link_jitter = read_jitter("variation.link_jitter", *link_jitter, diagnostics);
  }
  if (const auto list = section.get("slow_links")) {
    variation.slow_links =
        read_list<SlowWay>(*list, "[{\"from\": 0, \"to\": 1, \"slowdown\": 4}]", diagnostics,
                           [&](const JsonNode& item) { return read_slow_way(item, diagnostics); });
  }
  if (const auto list = section.get("speeds")) {
    variation.speeds = read_list<double>(
        *list, "[1, 1, 0.5, 1]", diagnostics,
        [&](const JsonNode& item) { return section.number_at("speeds", item).value_or(1); });
  }
  const auto documents = section.get("documents");
  if (documents) variation.documents = read_documents(*documents, diagnostics);
  variation.seeds = section.count("seeds");
  if (const auto seeds = section.get("seeds"); seeds && !jitter && !link_jitter && !documents) {
    report(diagnostics, *seeds,
           "nothing varies at random, so all seeds are alike; expected \"jitter\", "
           "\"link_jitter\" or \"documents\" beside it");
  }
  section.finish();
  return mistakes.none() ? std::optional(variation) : std::nullopt;
}

namespace {

/// Reports a number beyond the last: "there is no rank 4; expected 0 to 3".
void check_number(const char* what, int number, int count, const JsonNode& node,
                  Diagnostics& diagnostics) {
  if (number < count) return;
  report(diagnostics, node,
         std::string("there is no ") + what + " " + std::to_string(number) + "; expected 0 to " +
             std::to_string(count - 1));
}

void check_straggler(const Straggler& straggler, const Question& question, const JsonNode& node,
                     Diagnostics& diagnostics) {
  const int number = straggler.devices.number;
  if (straggler.devices.of == SlowDevices::Of::Rank) {
    check_number("rank", number, question.layout.ranks(), node.child("rank"), diagnostics);
  } else {
    check_number("device", number, question.layout.mesh.devices(), node.child("device"),
                 diagnostics);
  }
  const auto check_step = [&](const char* key, const std::optional<int>& step) {
    if (!step || *step <= question.training().steps) return;
    report(diagnostics, node.child(key),
           "step " + std::to_string(*step) + " is not measured; expected 1 to the " +
               std::to_string(question.training().steps) + " of training.steps");
  };
  check_step("from_step", straggler.first_step);
  check_step("to_step", straggler.last_step);
}

/// Refuses ranks with layouts of their own, where one simulated rank stands for several devices.
void check_single_devices(const ParallelKeys& parallel, const VariationConditions& variation,
                          const JsonNode& node, Diagnostics& diagnostics) {
  const std::vector<RankLayout>& layouts = parallel.stage_layouts;
  const bool several = !layouts.empty() && layouts.front().devices() > 1;
  const bool single =
      std::any_of(variation.stragglers.begin(), variation.stragglers.end(),
                  [](const Straggler& s) { return s.devices.of == SlowDevices::Of::Device; });
  if (!several || !(variation.random() || single)) return;
  report(diagnostics, node,
         "under \"stage_layouts\" the devices of a rank are simulated as one; expected no jitter, "
         "no documents, and stragglers that are a \"rank\"");
}

}  // namespace

bool VariationConditions::varies() const {
  return random() || std::any_of(stragglers.begin(), stragglers.end(),
                                 [](const Straggler& s) { return !s.always(); });
}

void check_variation(const Question& question, const ParallelKeys& parallel,
                     const std::optional<Cluster>& cluster, const JsonNode& document,
                     Diagnostics& diagnostics) {
  if (!question.variation) return;
  const VariationConditions& variation = *question.variation;
  const JsonNode node = document.child("variation");
  for (std::size_t i = 0; i < variation.stragglers.size(); ++i) {
    check_straggler(variation.stragglers[i], question, node.child("stragglers").item(i),
                    diagnostics);
  }
  for (std::size_t i = 0; cluster && i < variation.slow_links.size(); ++i) {
    const JsonNode way = node.child("slow_links").item(i);
    const SlowWay& slow = variation.slow_links[i];
    check_number("device", slow.from, cluster->devices, way.child("from"), diagnostics);
    check_number("device", slow.to, cluster->devices, way.child("to"), diagnostics);
  }
  const int speeds = static_cast<int>(variation.speeds.size());
  if (speeds > 0 && speeds != question.layout.ranks()) {
    report(diagnostics, node.child("speeds"),
           "has the speeds of " + std::to_string(speeds) + " ranks; expected one for each of the " +
               std::to_string(question.layout.ranks()) + " pipeline ranks");
  }
  check_single_devices(parallel, variation, node, diagnostics);
}

ModelGraph with_documents(ModelGraph graph, const Question& question, const JsonNode& document,
                          Diagnostics& diagnostics) {
  if (!question.variation || !question.variation->documents) return graph;
  const JsonNode node = document.child("variation").child("documents");
  if (!graph.packed) {
    report(diagnostics, node,
           "no kernel of the model takes less for short documents; expected a model of text with "
           "\"attention\": \"fused\" and no \"selection\"");
  } else if (question.training().slices) {
    report(diagnostics, node, "token slices are of whole samples; expected a schedule without");
  } else {
    return packed_graph(graph, draws_of(question, graph).mean(question.simulation.seed));
  }
  return graph;
}

DocumentDraws draws_of(const Question& question, const ModelGraph& graph) {
  return {*question.variation->documents, static_cast<int>(*graph.tokens_per_sample),
          static_cast<int>(*graph.samples_per_micro_batch)};
}

Cluster with_slow_links(Cluster cluster, const std::optional<VariationConditions>& variation) {
  if (!variation) return cluster;
  for (const SlowWay& way : variation->slow_links) {
    slow_link(cluster, way.from, way.to, way.slowdown);
  }
  return cluster;
}

std::vector<SlowDevices> VariationConditions::always_slow() const {
  std::vector<SlowDevices> slow;
  for (const Straggler& straggler : stragglers) {
    if (straggler.always()) slow.push_back(straggler.devices);
  }
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    if (speeds[rank] == 1) continue;
    slow.push_back({SlowDevices::Of::Rank, static_cast<int>(rank), 1 / speeds[rank]});
  }
  return slow;
}

}  // namespace interlock
