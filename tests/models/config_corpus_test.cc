// Configurations that people have: each is built, and has the weights that were published.
// SPDX-License-Identifier: Apache-2.0
//
// tests/models/configs/ holds them, with one table, origins.json: where each configuration was
// found (repository, commit, path) and where its count was, which is another place. `parameters` is
// that count; `beside` is what it has that is no weight of the model, or is none of ours (scales of
// 8-bit blocks, masks, second copies of a table), and `beside_is` says what; `rounding` is half of
// the last place of a count that was published rounded. `active` is what a token uses, but for
// `active_beside` that the source leaves out (tables, layers for later tokens, what reads images).
// Fields that shape
// no model (token numbers, epsilons, bases of positions) are left out of the files, or those of
// their class.
#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "models/model_file.h"
#include "tests/models/built.h"

namespace interlock::config_corpus_test {
namespace {

using Count = std::int64_t;

struct Origin {
  std::string name, path;
  double parameters = 0, beside = 0, rounding = 0;
  double active = 0, active_beside = 0, active_rounding = 0;
};

std::string folder() { return data_folder("tests/models/configs"); }

double number_at(const JsonValue& entry, std::string_view key) {
  const JsonValue* value = entry.find(key);
  return value != nullptr ? value->number : 0;
}

std::vector<Origin> origins() {
  std::vector<Origin> all;
  for (const JsonValue& entry : read_json_file(folder() + "/origins.json").items) {
    all.push_back({.name = entry.find("name")->text,
                   .path = folder() + "/" + entry.find("file")->text,
                   .parameters = number_at(entry, "parameters"),
                   .beside = number_at(entry, "beside"),
                   .rounding = number_at(entry, "rounding"),
                   .active = number_at(entry, "active"),
                   .active_beside = number_at(entry, "active_beside"),
                   .active_rounding = number_at(entry, "active_rounding")});
  }
  return all;
}

/// The graph of a configuration; of no modules if something is wrong, which is reported.
ModelGraph graph_of(const Origin& origin) {
  const std::string text = R"({"base": ")" + origin.path + R"(", "sequence_length": 1024})";
  const JsonValue value = parse_json(text, "corpus.json");
  Diagnostics diagnostics;
  ModelGraph graph = build_model({&value, "/model"}, {}, diagnostics);
  for (const std::string& message : diagnostics.messages()) FAIL_CHECK(message);
  return graph;
}

TEST_CASE("the corpus has forty configurations and more, each with two sources") {
  const JsonValue table = read_json_file(folder() + "/origins.json");
  CHECK(table.items.size() >= 40);
  for (const JsonValue& entry : table.items) {
    CAPTURE(entry.find("name")->text);
    const std::string& config = entry.find("config")->text;
    const std::string& count = entry.find("count")->text;
    CHECK(config.size() > 20);
    CHECK(count.size() > 20);
    CHECK(config != count);
    CHECK((entry.find("beside") != nullptr) == (entry.find("beside_is") != nullptr));
    CHECK((entry.find("rounding") != nullptr) != entry.find("exact")->boolean);
  }
}

TEST_CASE("every configuration has the weights that were published") {
  for (const Origin& origin : origins()) {
    const auto count = static_cast<double>(parameters_of(graph_of(origin)));
    INFO(origin.name << ": built " << static_cast<Count>(count) << " + "
                     << static_cast<Count>(origin.beside) << " beside, published "
                     << static_cast<Count>(origin.parameters));
    CHECK(std::abs(count + origin.beside - origin.parameters) <= origin.rounding);
  }
}

/// The share of its experts that a token uses, by the names that classes have for both numbers.
double share_of_experts(const Origin& origin) {
  const JsonValue whole = read_json_file(origin.path);
  const JsonValue* inner = whole.find("text_config");
  const JsonValue& config = inner != nullptr ? *inner : whole;
  double experts = 0;
  for (const char* name : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    experts = std::max(experts, number_at(config, name));
  }
  REQUIRE(experts > 0);
  return number_at(config, "num_experts_per_tok") / experts;
}

TEST_CASE("a token uses as many weights of a mixture as was published") {
  int mixtures = 0;
  for (const Origin& origin : origins()) {
    if (origin.active == 0) continue;
    ++mixtures;
    const ModelGraph graph = graph_of(origin);
    double experts = 0;
    for (const Module& module : graph.modules) {
      experts += static_cast<double>(module.expert_parameters);
    }
    const double idle = experts * (1 - share_of_experts(origin));
    const double used = static_cast<double>(parameters_of(graph)) - idle - origin.active_beside;
    INFO(origin.name << ": a token uses " << used << ", published " << origin.active);
    CHECK(std::abs(used - origin.active) <= origin.active_rounding);
  }
  CHECK(mixtures >= 12);
}

/// The weights that no part that reads images has: models of the zoo read text.
Count of_text(const ModelGraph& graph) {
  Count total = parameters_of(graph);
  for (const Module& module : graph.modules) {
    if (module.name.starts_with("encoder.") || module.name == "connector") {
      total -= module.parameters;
    }
  }
  return total;
}

TEST_CASE("models of the zoo have the weights of the configurations of their names") {
  int shared = 0;
  for (const Origin& origin : origins()) {
    const std::vector<std::string> names = zoo_names();
    if (std::ranges::find(names, origin.name) == names.end()) continue;
    if (origin.name == "deepseek-v3") continue;  // the zoo's has no layer for later tokens
    ++shared;
    CAPTURE(origin.name);
    CHECK(parameters_of(zoo(origin.name)) == of_text(graph_of(origin)));
  }
  CHECK(shared >= 15);
}

TEST_CASE("a token's experts lie in as many groups as the configuration says") {
  // Groups of experts, and of a token, that the way to the experts knows; by DeepEP, which sends a
  // token once to each node.
  const auto groups = [](const std::string& more) {
    BuildOptions options;
    options.sharding.expert = 8;
    options.sharding.expert_dispatch = ExpertDispatch::DeepEp;
    const ModelGraph graph = built(R"({"base": {"model_type": "deepseek_v3",
        "num_hidden_layers": 4, )" + more +
                                       R"(}, "sequence_length": 128})",
                                   options);
    std::pair<int, int> found;
    for (const Module& module : graph.modules) {
      for (const Exchange& exchange : module.forward_exchanges) {
        const TokenRouting& routing = exchange.routing;
        if (routing.experts > 0) found = {routing.groups, routing.groups_per_token};
      }
    }
    return found;
  };
  CHECK(groups(R"("n_group": 8, "topk_group": 4, "topk_method": "noaux_tc")") == std::pair(8, 4));
  CHECK(groups(R"("n_group": 4, "topk_group": 2)") == std::pair(4, 2));
  CHECK(groups(R"("n_group": 8, "topk_group": 4, "topk_method": "greedy")") == std::pair(1, 1));
  CHECK(groups(R"("n_group": 1, "topk_group": 1)") == std::pair(1, 1));
}

}  // namespace
}  // namespace interlock::config_corpus_test
