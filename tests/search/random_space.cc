// Draws spaces, and lists their plans.
// SPDX-License-Identifier: Apache-2.0
#include "tests/search/random_space.h"

#include <nlohmann/json.hpp>

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
T one_of(const std::vector<T>& values, Random& random) {
  return values[static_cast<std::size_t>(random.integer(0, static_cast<int>(values.size()) - 1))];
}

Json model(Random& random) {
  const int heads = one_of<int>({4, 8}, random);
  Json model = {{"kind", "transformer"},
                {"layers", random.integer(4, 8)},
                {"hidden_size", 64 * heads},
                {"attention_heads", heads},
                {"ffn_hidden_size", 256 * heads},
                {"vocab_size", 4096},
                {"sequence_length", one_of<int>({128, 512, 1024}, random)},
                {"tied_embeddings", random.integer(0, 1) == 1}};
  if (random.integer(0, 2) > 0) return model;
  model["experts"] = 4;
  model["experts_per_token"] = 2;
  model["expert_ffn_hidden_size"] = 64 * heads;
  model["shared_experts"] = random.integer(0, 1);
  return model;
}

Json cluster(Random& random) {
  Json machine = {{"kind", "machine"}, {"name", "random"}};
  const int devices = one_of<int>({2, 4, 8}, random), per_node = one_of<int>({1, 2, 4}, random);
  machine["device"] = {
      {"name", "small"},
      {"memory", std::to_string(random.integer(150, 900)) + " MB"},
      {"memory_bandwidth", "400 GB/s"},
      {"launch_overhead", "2 us"},
      {"peak", {{"fp32", "10 TFLOP/s"}, {"bf16", "80 TFLOP/s"}, {"fp8", "130 TFLOP/s"}}},
      {"efficiency", {{"gemm", {{"compute", 0.7}, {"memory", 0.8}}}}}};
  if (random.integer(0, 1) == 1) {
    machine["device"]["power"] = {{"busy", "300 W"}, {"idle", "60 W"}};
  }
  if (random.integer(0, 1) == 1) machine["device"]["collective_sms"] = 0.1;
  machine["devices_per_node"] = per_node;
  machine["nodes"] = std::max(1, devices / per_node);
  machine["port"] = {{"latency", "2 us"},
                     {"bandwidth", std::to_string(random.integer(20, 300)) + " GB/s"}};
  machine["cards"] = {{"per_node", random.integer(0, 1) == 1 ? 1 : per_node},
                      {"latency", "4 us"},
                      {"bandwidth", std::to_string(random.integer(2, 40)) + " GB/s"}};
  if (random.integer(0, 1) == 1) machine["price"] = "2.00 USD/h";
  machine["host"] = {{"latency", "5 us"}, {"bandwidth", "25 GB/s"}, {"memory", "4 GB"}};
  return machine;
}

/// Makes the later half of the nodes another machine: faster, with more memory, and hungrier.
Json mixed(Json machine) {
  Json other = machine;
  const int nodes = machine["nodes"].get<int>();
  machine["nodes"] = nodes - nodes / 2;
  other["nodes"] = nodes / 2;
  other["name"] = "larger";
  other["device"]["name"] = "large";
  if (machine["device"].contains("power")) {
    other["device"]["power"] = {{"busy", "700 W"}, {"idle", "90 W"}};
  }
  other["device"]["memory"] = "1000 MB";
  other["device"]["memory_bandwidth"] = "700 GB/s";
  other["device"]["peak"] = {
      {"fp32", "15 TFLOP/s"}, {"bf16", "150 TFLOP/s"}, {"fp8", "280 TFLOP/s"}};
  return {{"machines", {machine, other}}};
}

int devices_of(const Json& space) {
  const Json& cluster = space["cluster"];
  int devices = 0;
  for (const Json& machine :
       cluster.contains("machines") ? cluster["machines"] : Json::array({cluster})) {
    devices += machine["nodes"].get<int>() * machine["devices_per_node"].get<int>();
  }
  return devices;
}

int most_of_node(const Json& space) {
  const Json& cluster = space["cluster"];
  if (!cluster.contains("machines")) return cluster["devices_per_node"].get<int>();
  return std::max(cluster["machines"][0]["devices_per_node"].get<int>(),
                  cluster["machines"][1]["devices_per_node"].get<int>());
}

struct Values {
  int tensor = 1, pipeline = 1, context = 1, expert = 1, expert_tensor = 1, zero = 0, size = 1;
  Json again = "none";
  Json schedule = nullptr;
  int chunks = 1;
  Json options = Json::object();  // by path of keys, as a JSON pointer
};

/// Returns the plan that PlanSpace makes of these values, by other means.
Json plan_of(Json space, const Values& values) {
  Json& parallel = space["parallel"];
  parallel["tensor"] = values.tensor;
  parallel["pipeline"] = values.pipeline;
  parallel["data"] = devices_of(space) / values.tensor / values.pipeline / values.context;
  parallel["context"] = values.context;
  if (values.expert > 1) parallel["expert"] = values.expert;
  if (values.expert_tensor != values.tensor) parallel["expert_tensor"] = values.expert_tensor;
  parallel["zero_stage"] = values.zero;
  if (values.chunks > 1) parallel["stages"] = values.chunks * values.pipeline;
  Json& training = space["training"];
  training["micro_batch_size"] = values.size;
  training["recompute"] = values.again;
  if (!values.schedule.is_null()) training["schedule"] = values.schedule;
  if (values.schedule == "interleaved" && values.chunks > 1) {
    training["schedule"] = {{"kind", "interleaved"}, {"chunks", values.chunks}};
  }
  for (const auto& [path, value] : values.options.items()) space[Json::json_pointer(path)] = value;
  space.erase("search");
  return space;
}

JsonValue document_of(const Json& json) { return parse_json(json.dump(), "plan.json"); }

/// Returns the ways to share experts: degrees, and the devices that divide each expert.
std::vector<std::pair<int, int>> expert_degrees(const Json& space, int tensor, int pipeline) {
  std::vector<std::pair<int, int>> all;
  if (!space["model"].contains("experts")) return {{1, tensor}};
  const int devices = devices_of(space) / pipeline;
  const bool folds = tensor > 1 && space["parallel"].value("sequence_parallel", true);
  for (const int expert : {1, 2, 4}) {
    if (devices / tensor % expert == 0) all.emplace_back(expert, tensor);
    if (folds && devices % expert == 0) all.emplace_back(expert, 1);
  }
  return all;
}

std::vector<int> chunks_of(const std::string& schedule) {
  if (schedule == "interleaved") return {2};
  if (schedule == "zb-v" || schedule == "v-half" || schedule == "dualpipe-v" ||
      schedule == "bitpipe")
    return {2};
  return {1};
}

}  // namespace

namespace {

/// Makes a search vary one option beside the degrees, or leaves all to what is usual.
void add_options(Json& search, Random& random) {
  switch (random.integer(0, 6)) {
    case 0:
      search["overlap_weights"] = {false, true};
      return;
    case 1:
      search["shard"] = {1, 2};
      return;
    case 2:
      search["expert_overlap"] = {"none", "shared_experts", "micro_batches"};
      return;
    case 3:
      search["offload"] = {{{"optimizer", 1}}, {{"activations", 0.5}}};
      return;
    case 4:
      search["gradient_reduction"] = {"step", "micro_batch"};
      return;
    case 5:
      search["precision"] = {"bf16", "fp8", "fp16"};  // without rates: no plan of it
      return;
    default:
      search["overlap_gradients"] = {false, true};
  }
}

}  // namespace

std::string random_space(int seed, bool lists) {
  Random random(static_cast<std::uint64_t>(seed), 7);
  Json space = {{"model", model(random)}, {"cluster", cluster(random)}};
  space["parallel"] = {{"sequence_parallel", random.integer(0, 1) == 1},
                       {"overlap_gradients", random.integer(0, 1) == 1}};
  if (lists && seed % 4 == 1) space["parallel"].erase("sequence_parallel");
  const std::string strategy = one_of<std::string>({"global", "global", "global", "local"}, random);
  space["training"] = {{"strategy", strategy},
                       {"global_batch_size", one_of<int>({8, 16}, random)},
                       {"optimizer", "adam"},
                       {"steps", 2}};
  space["search"] = {{"worth", one_of<double>({0, 0.01, 0.05}, random)}};
  const bool divides = space["cluster"]["nodes"].get<int>() > 1;
  if (divides && seed % 3 == 2) space["cluster"] = mixed(space["cluster"]);
  if (!lists) return space.dump();
  Json& search = space["search"];
  search["tensor"] = {1, 2};
  search["pipeline"] = {1, 2, 4};
  search["context"] = random.integer(0, 2) == 0 ? Json{1, 2} : Json{1};
  search["context_layout"] = "ring";
  search["micro_batch_size"] = random.integer(0, 1) == 1 ? Json{1, 2} : Json{1, 4};
  search["zero_stage"] = {0, random.integer(1, 3)};
  const Json parts = {{"modules", {"layernorm"}}};
  search["recompute"] = random.integer(0, 1) == 1 ? Json{"none", parts} : Json{"none", "full"};
  add_options(search, random);
  search["partition"] = seed % 2 == 0 ? Json{"balanced", "uniform"} : Json{"balanced"};
  if (strategy == "global") {
    search["schedule"] = random.integer(0, 1) == 1 ? Json{"1f1b", "interleaved", "zb-v"}
                                                   : Json{"gpipe", "1f1b", "zb-h1"};
    search["chunks"] = random.integer(0, 1) == 1 ? Json{2} : Json{2, 3};
  }
  return space.dump();
}

JsonValue random_plan(const std::string& text, Random& random) {
  const Json space = Json::parse(text);
  const int devices = devices_of(space);
  std::vector<int> divisors;
  for (int divisor = 1; divisor <= devices; ++divisor) {
    if (devices % divisor == 0) divisors.push_back(divisor);
  }
  int tensor = one_of(divisors, random);
  int pipeline = one_of(divisors, random);
  while (devices % (tensor * pipeline) != 0) pipeline /= 2;
  const bool global = space["training"]["strategy"] == "global";
  const std::vector<std::string> orders = {"gpipe",         "1f1b",   "eager-1f1b",  "interleaved",
                                           "zb-h1",         "zb-h2",  "zb-v",        "v-half",
                                           "breadth-first", "hanayo", "dualpipe-v",  "chimera",
                                           "bitpipe",       "naive",  "naive-split", "weipipe"};
  const Json order = global ? Json(one_of(orders, random)) : Json(nullptr);
  const std::string name = global ? order.get<std::string>() : "";
  const bool ring = name == "weipipe";  // of all devices, one a rank
  if (ring) std::tie(tensor, pipeline) = std::pair(1, devices);
  const int chunks = name == "interleaved" || name == "breadth-first" || name == "hanayo"
                         ? random.integer(1, 2) * (name == "hanayo" ? 2 : 1)
                         : chunks_of(name).front();
  const int zero = ring ? 0 : random.integer(0, 3), size = one_of<int>({1, 1, 2, 4}, random);
  const Json modules = {{"modules", {"layernorm", "mlp"}}};
  const bool dense = !space["model"].contains("experts");
  const Json again =
      one_of<Json>({"none", "selective", "full", dense ? modules : Json("full")}, random);
  const int context = devices / (tensor * pipeline) % 2 == 0 ? one_of<int>({1, 1, 2}, random) : 1;
  const auto [expert, parts] = one_of(expert_degrees(space, tensor, pipeline), random);
  Json plan = plan_of(space, {.tensor = tensor,
                              .pipeline = pipeline,
                              .context = context,
                              .expert = expert,
                              .expert_tensor = parts,
                              .zero = zero,
                              .size = size,
                              .again = again,
                              .schedule = order,
                              .chunks = chunks});
  const bool pairs = name == "1f1b" ? pipeline == 1 : name == "dualpipe-v" || chunks == 2;
  if (expert > 1 && random.integer(0, 2) > 0) {
    const bool takes_turns = pairs && name != "breadth-first" && name != "hanayo";
    plan["parallel"]["expert_overlap"] = takes_turns ? "micro_batches" : "shared_experts";
    if (random.integer(0, 1) == 0) plan["parallel"]["expert_dispatch"] = "deepep";
  }
  const int replicas = devices / (tensor * pipeline);
  if (zero > 0 && replicas % 2 == 0 && random.integer(0, 3) == 0) plan["parallel"]["shard"] = 2;
  if (zero > 0 && zero < 3 && random.integer(0, 1) == 0) plan["parallel"]["overlap_weights"] = true;
  if (random.integer(0, 5) == 0) plan["training"]["offload"] = {{"optimizer", 1}};
  if (random.integer(0, 5) == 0) plan["training"]["offload"] = {{"activations", 0.5}};
  if (zero > 1 && random.integer(0, 2) == 0) {
    plan["parallel"]["gradient_reduction"] = "micro_batch";
  }
  return document_of(plan);
}

namespace {

/// Appends the plans of all orders of a layout.
void append_orders(const Json& space, Values values, std::vector<JsonValue>& plans) {
  const Json& search = space["search"];
  const auto append = [&] {
    for (const Json& partition : search["partition"]) {
      Json plan = plan_of(space, values);
      plan["partition"] = partition;
      plans.push_back(document_of(plan));
    }
  };
  if (!search.contains("schedule")) return append();
  for (const std::string order : search["schedule"]) {
    values.schedule = order;
    const bool loops = values.pipeline > 1 && order == "interleaved";
    for (const int chunks : loops ? search["chunks"].get<std::vector<int>>() : chunks_of(order)) {
      values.chunks = values.pipeline == 1 && order == "interleaved" ? 1 : chunks;
      append();
    }
  }
}

/// Returns the options of `values` in every combination that means anything to it.
std::vector<Json> options_of(const Json& space, const Values& values) {
  const Json &search = space["search"], &parallel = space["parallel"];
  std::vector<Json> all = {Json::object()};
  const auto vary = [&](const std::string& path, const Json& list) {
    std::vector<Json> more;
    for (const Json& one : all) {
      for (const Json& value : list) {
        more.push_back(one);
        if (!value.is_null()) more.back()[path] = value;
      }
    }
    all = more;
  };
  const auto asked = [&](const char* key, const Json& usual) { return search.value(key, usual); };
  const int devices = devices_of(space);
  const int replicas = devices / values.tensor / values.pipeline;
  if (values.tensor > 1 && !parallel.contains("sequence_parallel")) {
    vary("/parallel/sequence_parallel", Json{true});
  }
  if (values.zero > 0) {
    const int of_node = most_of_node(space) / values.tensor;
    const bool fewer = values.zero == 3 && of_node > 1 && of_node < replicas;
    vary("/parallel/shard",
         asked("shard", fewer && replicas % of_node == 0 ? Json{nullptr, of_node} : Json{nullptr}));
  }
  if (values.zero >= 2) {
    const bool flat = values.pipeline == 1;
    vary("/parallel/gradient_reduction",
         asked("gradient_reduction", flat ? Json{nullptr, "micro_batch"} : Json{nullptr}));
  }
  const bool copies = replicas > 1 || values.tensor > values.expert * values.expert_tensor;
  if (copies && search.contains("overlap_gradients")) {
    vary("/parallel/overlap_gradients", search["overlap_gradients"]);
  }
  if (values.zero == 1 || values.zero == 2) {
    vary("/parallel/overlap_weights", asked("overlap_weights", Json{true}));
  }
  if (values.expert > 1) {
    const bool shares = space["model"].value("shared_experts", 0) > 0;
    const Json usual = {shares ? "shared_experts" : "none", "micro_batches"};
    vary("/parallel/expert_overlap", asked("expert_overlap", usual));
  }
  if (search.contains("offload")) vary("/training/offload", search["offload"]);
  if (search.contains("precision")) vary("/training/precision", search["precision"]);
  const Json& cluster = space["cluster"];
  if (cluster.contains("machines") && values.pipeline * values.tensor * values.context > 1) {
    const Json& machines = cluster["machines"];
    vary("/cluster/machines", {machines, Json{machines[1], machines[0]}});
  }
  return all;
}

/// Appends the plans of all settings of a mesh.
void append_settings(const Json& space, Values values, std::vector<JsonValue>& plans) {
  const Json& search = space["search"];
  for (const int zero : search["zero_stage"]) {
    for (const int size : search["micro_batch_size"]) {
      for (const Json& again : search["recompute"]) {
        values.zero = zero;
        values.size = size;
        values.again = again;
        for (const Json& options : options_of(space, values)) {
          values.options = options;
          append_orders(space, values, plans);
        }
      }
    }
  }
}

}  // namespace

std::vector<JsonValue> all_plans(const std::string& text) {
  const Json space = Json::parse(text);
  const Json& search = space["search"];
  std::vector<JsonValue> plans;
  for (const int tensor : search["tensor"]) {
    for (const int pipeline : search["pipeline"]) {
      for (const int context : search["context"]) {
        if (devices_of(space) % (tensor * pipeline * context) != 0) continue;
        for (const auto& [expert, parts] : expert_degrees(space, tensor, pipeline)) {
          append_settings(space,
                          {.tensor = tensor,
                           .pipeline = pipeline,
                           .context = context,
                           .expert = expert,
                           .expert_tensor = parts},
                          plans);
        }
      }
    }
  }
  return plans;
}

}  // namespace interlock
