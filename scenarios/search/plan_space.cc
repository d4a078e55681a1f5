// Lists the plans of a space.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/plan_space.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "hardware/networks/cluster_reader.h"
#include "hardware/networks/node_share.h"
#include "models/build_model.h"
#include "models/layers/model_graph.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/load/question.h"
#include "scenarios/search/space_checks.h"
#include "scenarios/search/space_cuts.h"
#include "scenarios/search/usual_values.h"
#include "sim/plan/schedules/catalogue.h"

namespace interlock {
namespace {

constexpr std::size_t kMostLayouts = 200'000;
constexpr std::size_t kMostMachines = 4;  // of a cluster, to be tried in every order

std::vector<JsonValue> text_values(const std::vector<std::string>& texts) {
  std::vector<JsonValue> values;
  std::transform(texts.begin(), texts.end(), std::back_inserter(values), json_text);
  return values;
}

JsonValue number_value(int number) {
  return {.kind = JsonValue::Kind::Number, .number = static_cast<double>(number)};
}

const JsonValue* value_at(const JsonValue& document, std::initializer_list<const char*> path) {
  const JsonValue* value = &document;
  for (const char* key : path) {
    if (value == nullptr || value->kind != JsonValue::Kind::Object) return nullptr;
    value = value->find(key);
  }
  return value;
}

int count_at(const JsonValue& document, std::initializer_list<const char*> path) {
  const JsonValue* value = value_at(document, path);
  const bool counts = value != nullptr && value->kind == JsonValue::Kind::Number;
  return counts ? std::max(1, static_cast<int>(value->number)) : 1;
}

}  // namespace

std::string kind_of(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::String) return value.text;
  const JsonValue* kind = value_at(value, {"kind"});
  return kind != nullptr ? kind->text : "";
}

namespace {

std::vector<int> divisors(int number, int most) {
  std::vector<int> found;
  for (int divisor = 1; divisor <= std::min(number, most); ++divisor) {
    if (number % divisor == 0) found.push_back(divisor);
  }
  return found;
}

template <class T>
std::vector<T> or_usual(const std::vector<T>& asked, std::vector<T> usual) {
  return asked.empty() ? std::move(usual) : asked;
}

LayerParts parts_of(const ModelGraph& graph) {
  LayerParts known;
  for (const Module& module : graph.modules) known |= module.parts;
  return known;
}

Bytes stash_of(const ModelGraph& graph) {
  return std::accumulate(graph.modules.begin(), graph.modules.end(), Bytes(0),
                         [](Bytes sum, const Module& module) { return sum + module.stash; });
}

/// Returns whether attention keeps so little for its backward that dropping it makes no room.
bool fuses_attention(const JsonNode& model, const ModelGraph& graph) {
  constexpr double kMost = 0.15;  // of what a forward keeps
  Diagnostics diagnostics;
  const ModelGraph without = build_model(model, {.recompute = Recompute::Selective}, diagnostics);
  return diagnostics.empty() && stash_of(without) > (1 - kMost) * stash_of(graph);
}

/// Returns whether devices of `cluster`, written at `node`, may take a part of each node.
bool may_share_nodes(const JsonNode& node, const Cluster& cluster) {
  const bool named = holds_text(node.value) || holds_text(node.value->find("machine"));
  return named && !is_mixed(cluster) && node.value->find("devices_per_node") == nullptr &&
         std::holds_alternative<IdealSwitch>(cluster.network);
}

}  // namespace

PlanSpace::PlanSpace(JsonValue document, SearchRequest request)
    : document_(std::move(document)), request_(std::move(request)) {
  const std::string file = document_.file ? *document_.file : "";
  // No plan is to say how it was searched for.
  std::erase_if(document_.members, [](const JsonMember& member) {
    return member.first == "search" || member.first == "sweep";
  });
  refuse_sections(document_, file);
  refuse_auto(request_, file);
  const JsonNode root = {&document_, ""};
  for (const char* key : {"model", "cluster", "training"}) {
    if (document_.find(key) == nullptr) throw Error(file + ": missing key \"" + key + "\"");
  }
  Diagnostics diagnostics;
  const Cluster cluster = read_cluster(root.child("cluster"), diagnostics);
  const ModelGraph graph = build_model(root.child("model"), {}, diagnostics);
  diagnostics.throw_if_any();
  require_known(request_, cluster, file);
  refuse_reserve(request_, cluster, file);
  refuse_unknown(document_);
  modules_ = static_cast<int>(graph.modules.size());
  has_tokens_ = graph.tokens_per_sample.has_value();
  const Machine& largest = *std::max_element(
      cluster.machines.begin(), cluster.machines.end(),
      [](const Machine& a, const Machine& b) { return a.devices_per_node < b.devices_per_node; });
  devices_of_document_ = cluster.devices;
  shares_nodes_ = may_share_nodes(root.child("cluster"), cluster);
  nodes_ = nodes(cluster);
  devices_per_node_ = cluster.mesh ? cluster.devices : largest.devices_per_node;
  const JsonValue* batch = value_at(document_, {"training", "global_batch_size"});
  if (batch == nullptr || batch->kind != JsonValue::Kind::Number) {
    throw Error(file +
                ": /training/global_batch_size: plans are compared for one batch; expected a "
                "number of samples");
  }
  batch_ = count_at(document_, {"training", "global_batch_size"});
  read_images();
  read_machine_orders();
  if (has_tokens_) read_sequences(*graph.tokens_per_sample);
  experts_ = graph.experts;
  shared_experts_ = parts_of(graph).has(LayerPart::SharedExperts);
  const auto has_host = [](const Machine& machine) { return machine.host_memory > Bytes(0); };
  has_hosts_ = std::all_of(cluster.machines.begin(), cluster.machines.end(), has_host);
  const JsonValue* strategy = value_at(document_, {"training", "strategy"});
  const auto strategies =
      or_usual(request_.strategies, {strategy != nullptr ? *strategy : json_text("global")});
  const bool fused = fuses_attention(root.child("model"), graph);
  const auto recompute = or_usual(request_.recompute, usual_recompute(graph, fused));
  const std::vector<int> sizes = or_usual(request_.devices, {devices_of_document_});
  const SpaceSize size = {devices_per_node_, modules_, sizes, has_tokens_, experts_ > 0, contexts_};
  for (int cut = 0; !add_all_layouts(sizes, strategies, recompute); ++cut) {
    bool any = false;
    const std::string words = cut_space(cut, size, request_, any);
    if (words.empty()) refuse_space(file, kMostLayouts);
    if (any) left_out_ += (left_out_.empty() ? "" : ", ") + words;
  }
}

bool PlanSpace::add_all_layouts(const std::vector<int>& sizes,
                                const std::vector<JsonValue>& strategies,
                                const std::vector<JsonValue>& recompute) {
  layouts_.clear();
  for (const int devices : sizes) {
    for (const JsonValue& one : strategies) {
      const JsonValue* const n = value_at(one, {"n_wise"});
      if (n != nullptr && n->kind == JsonValue::Kind::String) {
        throw Error((document_.file ? *document_.file : "") +
                    ": /training/strategy/n_wise: a search compares trainings that are written "
                    "out; expected numbers, or several strategies under \"search\"");
      }
      for (const JsonValue& again : recompute) {
        add_layouts(devices, one, again);
        if (layouts_.size() > kMostLayouts) return false;
      }
    }
  }
  return true;
}

/// Returns what forwards may keep: everything, or less of it in steps. Among modules these are the
/// cheap ones, with attention's inner tensors where no kernel fuses them, and then also the MLP.
std::vector<JsonValue> PlanSpace::usual_recompute(const ModelGraph& graph, bool fused) const {
  if (!has_tokens_) return text_values({"none", "full"});
  const LayerParts known = parts_of(graph);
  std::vector<std::string> names;
  const auto add = [&](LayerPart part) {
    if (known.has(part)) names.push_back(layer_part_names()[static_cast<std::size_t>(part)]);
  };
  std::vector<JsonValue> usual =
      text_values(fused ? std::vector<std::string>{"none", "full"}
                        : std::vector<std::string>{"none", "selective", "full"});
  const auto propose = [&] {
    if (!names.empty()) usual.push_back(json_object({{"modules", json_texts(names)}}));
  };
  for (const LayerPart cheap :
       {LayerPart::Norms, LayerPart::LatentProjections, LayerPart::ExpertActivation}) {
    add(cheap);
  }
  if (!fused) add(LayerPart::CoreAttention);
  propose();
  if (experts_ > 0 || !known.has(LayerPart::Mlp)) return usual;
  add(LayerPart::Mlp);
  propose();
  return usual;
}

void PlanSpace::read_images() {
  const JsonValue* spatial = value_at(document_, {"parallel", "spatial"});
  if (spatial != nullptr && spatial->kind == JsonValue::Kind::Number) {
    parts_of_images_ = count_at(document_, {"parallel", "spatial"});
  } else if (spatial != nullptr) {
    for (const JsonValue& part : spatial->items) {
      parts_of_images_ *= std::max(1, static_cast<int>(part.number));
    }
  }
}

/// Takes the orders of the machines of a mixed cluster, of which the first hold the first stages,
/// unless a network says where each of them is.
void PlanSpace::read_machine_orders() {
  const JsonValue* machines = value_at(document_, {"cluster", "machines"});
  if (machines == nullptr || value_at(document_, {"cluster", "network"}) != nullptr) return;
  const std::vector<JsonValue>& items = machines->items;
  if (items.size() < 2 || items.size() > kMostMachines) return;
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) {
    std::vector<JsonValue> other;
    other.reserve(order.size());
    for (const std::size_t place : order) other.push_back(items[place]);
    machine_orders_.push_back(json_list(std::move(other)));
  }
}

/// Returns the orders of machines that are asked for.
std::vector<JsonValue> PlanSpace::machine_orders() const {
  const auto asked = request_.options.find(kMachines);
  const bool all =
      asked == request_.options.end() ||
      std::ranges::any_of(asked->second, [](const JsonValue& one) { return one.text == "all"; });
  return all ? machine_orders_ : std::vector{JsonValue{}};
}

/// Takes the ways to divide sequences of `tokens` tokens, that of the document among them.
void PlanSpace::read_sequences(double tokens) {
  tokens_ = static_cast<int>(tokens);
  contexts_ = divisors(static_cast<int>(tokens), static_cast<int>(tokens) / kTokensOfContext);
  for (const int own : {1, count_at(document_, {"parallel", "context"})}) {
    if (std::find(contexts_.begin(), contexts_.end(), own) == contexts_.end()) {
      contexts_.push_back(own);
    }
  }
  const JsonValue* parallel = value_at(document_, {"parallel", "sequence_parallel"});
  const JsonValue* tensors = value_at(document_, {"parallel", "tensor_layout"});
  const bool line = tensors == nullptr || tensors->text == "1d";
  sequence_parallel_ = parallel != nullptr ? parallel->boolean : line;
}

/// Returns the numbers of context devices of `divided` that may turn heads in a hybrid: those that
/// divide them, are fewer, and fit in a node.
std::vector<int> PlanSpace::turnings_of(const PlanLayout& divided) const {
  std::vector<int> found;
  for (int turning = 2; turning <= devices_per_node_ / divided.tensor; ++turning) {
    if (turning < divided.context && divided.context % turning == 0) found.push_back(turning);
  }
  return found;
}

/// Returns the ways to divide `devices` devices, as layouts without other settings.
std::vector<PlanLayout> PlanSpace::degrees(int devices) const {
  std::vector<PlanLayout> found;
  const int widest = has_tokens_ ? devices_per_node_ : 1;
  for (const int tensor : or_usual(request_.tensor, divisors(devices, widest))) {
    for (const int context : or_usual(request_.context, contexts_)) {
      PlanLayout divided = {.devices = devices, .tensor = tensor, .context = context};
      if (context == 1) {
        append_pipelines(divided, found);
        continue;
      }
      const bool leaves_node = tensor * context > devices_per_node_;
      const std::vector<JsonValue> usual = leaves_node
                                               ? text_values({"ring", "all_to_all", "hybrid"})
                                               : text_values({"ring", "all_to_all"});
      for (const JsonValue& layout : or_usual(request_.context_layouts, usual)) {
        divided.context_layout = layout;
        const bool hybrid = layout.text == "hybrid";
        for (const int turning : hybrid ? turnings_of(divided) : std::vector<int>{0}) {
          divided.context_all_to_all = turning;
          append_pipelines(divided, found);
        }
      }
    }
  }
  return found;
}

/// Divides what `divided` leaves among pipeline ranks and replicas.
void PlanSpace::append_pipelines(const PlanLayout& divided, std::vector<PlanLayout>& found) const {
  const int parts = divided.tensor * divided.context * parts_of_images_;
  const int rest = divided.devices / parts;
  for (const int pipeline : or_usual(request_.pipeline, divisors(rest, modules_))) {
    PlanLayout layout = divided;
    layout.pipeline = pipeline;
    layout.data = rest / pipeline;
    const std::vector<int>& asked = request_.data;
    const bool other = std::find(asked.begin(), asked.end(), layout.data) == asked.end();
    if (!asked.empty() && other) continue;
    if (parts * pipeline * layout.data == layout.devices) append_experts(layout, found);
  }
}

/// Shares the experts among the devices of a pipeline rank.
void PlanSpace::append_experts(const PlanLayout& divided, std::vector<PlanLayout>& found) const {
  const int devices = divided.devices / divided.pipeline, tensor = divided.tensor;
  std::vector<int> usual = {tensor};
  if (experts_ > 0 && tensor > 1 && sequence_parallel_) usual.push_back(1);
  for (const int parts : or_usual(request_.expert_tensor, usual)) {
    const int room = devices % parts == 0 ? devices / parts : 1;
    const int most = experts_ > 0 ? std::gcd(room, experts_) : 1;
    for (const int expert : or_usual(request_.expert, divisors(most, most))) {
      PlanLayout layout = divided;
      layout.expert = expert;
      layout.expert_tensor = parts;
      found.push_back(layout);
    }
  }
}

/// Returns whether some device has weights that another one has, too.
bool PlanSpace::has_copies(const PlanLayout& layout) const {
  const int replicas = layout.data * layout.context * parts_of_images_;
  return replicas > 1 || layout.tensor > layout.expert * layout.expert_tensor;
}

/// Returns whether the document has the key `path`, of a section.
bool PlanSpace::is_written(const std::string& path) const {
  const std::size_t dot = path.find('.');
  const std::string section = path.substr(0, dot), key = path.substr(dot + 1);
  return value_at(document_, {section.c_str(), key.c_str()}) != nullptr;
}

bool PlanSpace::can_offload() const {
  return has_hosts_ && !is_written(kOffload) && request_.options.count(kOffload) == 0;
}

PlanSpace PlanSpace::with_offload(const std::vector<std::size_t>& layouts,
                                  const std::vector<JsonValue>& offloads) const {
  PlanSpace space = *this;
  space.layouts_.clear();
  for (const std::size_t layout : layouts) {
    for (const JsonValue& offload : offloads) {
      space.layouts_.push_back(layouts_[layout]);
      space.layouts_.back().options.push_back({kOffload, offload});
    }
  }
  return space;
}

/// Returns whether an option means anything to `layout`.
bool PlanSpace::applies(const std::string& path, const PlanLayout& layout) const {
  const bool zero = layout.zero_stage > 0;
  if (path == "parallel.sequence_parallel") return has_tokens_ && layout.tensor > 1;
  if (path == "parallel.shard") return zero;
  if (path == "parallel.gradient_reduction") return layout.zero_stage >= 2;
  if (path == "parallel.overlap_gradients") return has_copies(layout);
  if (path == kMachines) return layout.pipeline * layout.tensor * layout.context > 1;
  if (path == "parallel.overlap_weights") return zero && layout.zero_stage < 3;
  return path != "parallel.expert_overlap" || layout.expert > 1;
}

/// Returns the values of an option that the request does not name; null: as the document has it.
std::vector<JsonValue> PlanSpace::usual_options(const std::string& path,
                                                const PlanLayout& layout) const {
  const JsonValue own;
  if (path == "parallel.sequence_parallel") {
    const bool divides = tokens_ % (layout.tensor * layout.context) == 0;
    return {sequence_parallel_ && divides ? json_boolean(true) : own};
  }
  if (path == "parallel.overlap_weights") return {json_boolean(true)};
  if (path == "parallel.shard") {
    const int of_node = devices_per_node_ / layout.tensor;
    const int replicas = layout.data * layout.context * parts_of_images_;
    const bool fewer = layout.zero_stage == 3 && of_node > 1 && of_node < replicas;
    if (fewer && replicas % of_node == 0) return {own, number_value(of_node)};
  }
  // Without a pipeline the sums of micro-batches are all that an exchange for each of them costs,
  // and whole gradients take most of what ZeRO leaves.
  const bool flat = layout.pipeline == 1;
  if (path == "parallel.gradient_reduction" && (flat || request_.check_use)) {
    return {own, json_text("micro_batch")};
  }
  if (path == "parallel.expert_overlap") {
    return text_values({shared_experts_ ? "shared_experts" : "none", "micro_batches"});
  }
  return {own};
}

/// Returns `layout` with every combination of the options that mean anything to it.
std::vector<PlanLayout> PlanSpace::with_options(const PlanLayout& layout) const {
  std::vector<PlanLayout> found = {layout};
  for (const SearchOption& option : kSearchOptions) {
    const std::string path = option.path;
    if (!applies(path, layout)) continue;
    const auto asked = request_.options.find(path);
    const bool orders = path == kMachines, named = asked != request_.options.end();
    if (!orders && !named && is_written(path)) continue;
    const std::vector<JsonValue> values = orders  ? machine_orders()
                                          : named ? asked->second
                                                  : usual_options(path, layout);
    std::vector<PlanLayout> more;
    for (const PlanLayout& one : found) {
      for (const JsonValue& value : values) {
        more.push_back(one);
        if (value.kind != JsonValue::Kind::Null) more.back().options.push_back({path, value});
      }
    }
    found = std::move(more);
  }
  return found;
}

void PlanSpace::add_layouts(int devices, const JsonValue& strategy, const JsonValue& recompute) {
  for (PlanLayout layout : degrees(devices)) {
    layout.strategy = strategy;
    layout.recompute = recompute;
    const auto usual = has_copies(layout) ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0};
    for (const int zero : or_usual(request_.zero_stages, usual)) {
      layout.zero_stage = zero;
      for (PlanLayout& one : with_options(layout)) {
        for (const int size : micro_batch_sizes(layout.data)) {
          one.micro_batch_size = size;
          layouts_.push_back(one);
        }
      }
    }
    if (layouts_.size() > kMostLayouts) return;
  }
}

std::optional<std::size_t> PlanSpace::with_less_zero(std::size_t layout) const {
  PlanLayout less = layouts_[layout];
  --less.zero_stage;
  const auto same_degrees = [&](const PlanLayout& other) {
    return std::tie(other.devices, other.tensor, other.pipeline, other.data, other.context,
                    other.expert, other.expert_tensor) ==
           std::tie(less.devices, less.tensor, less.pipeline, less.data, less.context, less.expert,
                    less.expert_tensor);
  };
  // Layouts of the same degrees follow each other.
  for (std::size_t i = layout; i-- > 0 && same_degrees(layouts_[i]);) {
    if (layouts_[i] == less) return i;
  }
  return std::nullopt;
}

std::vector<int> PlanSpace::micro_batch_sizes(int data) const {
  if (data < 1 || batch_ % data != 0) return {};
  const int replica = batch_ / data;
  std::vector<int> sizes = or_usual(request_.micro_batch_sizes, usual_micro_batches(replica));
  std::erase_if(sizes, [&](int size) { return replica % size != 0; });
  return sizes;
}

/// Returns the numbers of stages that each of `ranks` ranks may have under `schedule`.
std::vector<int> PlanSpace::chunks_of(const JsonValue& schedule, int ranks) const {
  const ScheduleEntry* entry = find_schedule(kind_of(schedule));
  if (entry != nullptr && has_v(entry->layout)) return {entry->chunks};
  if (entry == nullptr || entry->layout != StageLayout::Loop || ranks == 1) return {1};
  const bool object = schedule.kind == JsonValue::Kind::Object;
  const JsonValue* own = object ? schedule.find("chunks") : nullptr;
  if (own != nullptr) return {std::max(1, static_cast<int>(own->number))};
  return or_usual(request_.chunks, usual_chunks(modules_, ranks));
}

std::vector<WorkOrder> PlanSpace::orders(const PlanLayout& layout) const {
  std::vector<JsonValue> usual = {JsonValue{}};
  if (kind_of(layout.strategy) == "global") {
    usual = layout.pipeline > 1 ? text_values({"1f1b", "interleaved", "zb-h1", "zb-v"})
                                : text_values({"1f1b"});
  }
  std::vector<WorkOrder> orders;
  for (const JsonValue& schedule : or_usual(request_.schedules, usual)) {
    for (const int count : chunks_of(schedule, layout.pipeline)) {
      if (std::int64_t{count} * layout.pipeline > modules_) continue;
      // Least work of the busiest stage is not least work of a rank of several stages.
      const std::vector<JsonValue> usual_cuts =
          count > 1 ? text_values({"balanced", "uniform"}) : text_values({"balanced"});
      for (const JsonValue& partition : or_usual(request_.partitions, usual_cuts)) {
        orders.push_back({schedule, count, partition});
      }
    }
  }
  return orders;
}

namespace {

/// Returns the schedule of `order`, which says how many stages a rank has where it is not usual.
JsonValue schedule_setting(const WorkOrder& order) {
  const ScheduleEntry* entry = find_schedule(kind_of(order.schedule));
  const bool usual = entry == nullptr || order.chunks == 1 || order.chunks == entry->chunks;
  if (usual) return order.schedule;
  const bool named = order.schedule.kind == JsonValue::Kind::String;
  JsonValue schedule = named ? json_object({{"kind", order.schedule}}) : order.schedule;
  set_key(schedule, "chunks", number_value(order.chunks), "search");
  return schedule;
}

}  // namespace

/// Appends what is 1 for most models, and need not be said there.
void PlanSpace::append_mesh_settings(const PlanLayout& layout,
                                     std::vector<Setting>& settings) const {
  const auto set = [&](const char* key, int value, bool usual) {
    const bool written = value_at(document_, {"parallel", key}) != nullptr;
    if (usual && !written) return;
    settings.push_back({std::string("parallel.") + key, number_value(value)});
  };
  set("context", layout.context, layout.context == 1);
  const JsonValue* const written = value_at(document_, {"parallel", "context_layout"});
  if (layout.context_layout.kind != JsonValue::Kind::Null) {
    settings.push_back({"parallel.context_layout", layout.context_layout});
  } else if (written != nullptr && written->text == "hybrid") {
    settings.push_back({"parallel.context_layout", JsonValue()});  // removes it
  }
  if (layout.context_all_to_all > 0) {
    set("context_all_to_all", layout.context_all_to_all, false);
  } else if (value_at(document_, {"parallel", "context_all_to_all"}) != nullptr) {
    settings.push_back({"parallel.context_all_to_all", JsonValue()});
  }
  set("expert", layout.expert, layout.expert == 1);
  set("expert_tensor", layout.expert_tensor, layout.expert_tensor == layout.tensor);
}

std::vector<Setting> PlanSpace::settings(const PlanLayout& layout, const WorkOrder& order) const {
  const JsonValue none;
  std::vector<Setting> settings;
  if (layout.devices != devices_of_document_) {
    settings.push_back({"cluster.devices", number_value(layout.devices)});
    const int share = share_of_node(devices_per_node_, layout.devices);
    if (shares_nodes_ && share < devices_per_node_ && layout.devices <= nodes_ * share) {
      settings.push_back({"cluster.devices_per_node", number_value(share)});
    }
  }
  settings.push_back({"parallel.tensor", number_value(layout.tensor)});
  settings.push_back({"parallel.pipeline", number_value(layout.pipeline)});
  settings.push_back({"parallel.data", number_value(layout.data)});
  append_mesh_settings(layout, settings);
  settings.push_back({"parallel.zero_stage", number_value(layout.zero_stage)});
  if (layout.zero_stage == 0 && value_at(document_, {"parallel", "shard"}) != nullptr) {
    settings.push_back({"parallel.shard", none});
  }
  settings.insert(settings.end(), layout.options.begin(), layout.options.end());
  if (value_at(document_, {"parallel", "placement"}) != nullptr) {
    settings.push_back({"parallel.placement", none});
  }
  if (order.chunks > 1) {
    settings.push_back({"parallel.stages", number_value(order.chunks * layout.pipeline)});
  } else if (value_at(document_, {"parallel", "stages"}) != nullptr) {
    settings.push_back({"parallel.stages", none});
  }
  if (value_at(document_, {"training", "micro_batches"}) != nullptr) {
    settings.push_back({"training.micro_batches", none});
  }
  settings.push_back({"training.micro_batch_size", number_value(layout.micro_batch_size)});
  settings.push_back({"training.recompute", layout.recompute});
  settings.push_back({"training.strategy", layout.strategy});
  settings.push_back({"training.schedule", schedule_setting(order)});
  const ScheduleEntry* const entry = find_schedule(kind_of(order.schedule));
  const bool cuts = entry != nullptr && entry->layout == StageLayout::Helix;  // the model, itself
  settings.push_back({"partition", cuts ? none : order.partition});
  return settings;
}

JsonValue PlanSpace::document_of(const PlanLayout& layout, const WorkOrder& order) const {
  JsonValue document = document_;
  const std::string origin = "search";
  for (const Setting& setting : settings(layout, order)) {
    // Two objects would be merged.
    if (setting.value.kind == JsonValue::Kind::Object) set_json(document, setting.path, {}, origin);
    set_key(document, setting.path, setting.value, origin);
  }
  return document;
}

}  // namespace interlock
