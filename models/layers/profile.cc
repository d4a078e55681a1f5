// Profile: reads measured modules and turns them into work of known duration.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/profile.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "models/layers/model_contract.h"
#include "models/layers/operators.h"

namespace interlock {
namespace {

// Far beyond any module, and small enough that sums over all modules stay exact.
constexpr Seconds kLongest(1e6);
constexpr Bytes kLargest(1e13);

template <class Quantity>
Quantity in_range(Section& reader, std::string_view key, Quantity value, Quantity most) {
  if (value <= most) return value;
  report(reader.diagnostics(), *reader.get(key), "too large; expected at most " + format(most));
  return Quantity(0);
}

Seconds time_at(Section& reader, std::string_view key) {
  return in_range(reader, key, reader.seconds(key), kLongest);
}

Bytes bytes_at(Section& reader, std::string_view key) {
  return in_range(reader, key, reader.bytes(key), kLargest);
}

std::vector<SkipTensor> read_skips(const JsonNode& node, Section& of_module) {
  std::vector<SkipTensor> skips;
  for (const JsonNode& skip : of_module.items_at("skips", node, "wrong list of skips",
                                                 "{\"to\": module, \"bytes\": size}")) {
    Section reader(contract_object(profile_contract(), "model.profile.modules.skips"), skip,
                   of_module.diagnostics());
    reader.require("to", "the number of a module, from 0");
    reader.require("bytes", "a size");
    const Bytes bytes = in_range(reader, "bytes", reader.bytes("bytes", Bytes()), kLargest);
    skips.push_back({.to = reader.count("to", 0), .bytes = bytes});
    reader.finish();
  }
  return skips;
}

ProfileModule read_module(const JsonNode& node, Diagnostics& diagnostics) {
  Section reader(contract_object(profile_contract(), "model.profile.modules"), node, diagnostics);
  ProfileModule module = {.name = reader.text("name", ""),
                          .repeat = reader.count("repeat"),
                          .forward = time_at(reader, "forward"),
                          .backward_input = time_at(reader, "backward_input"),
                          .backward_weight = time_at(reader, "backward_weight"),
                          .update = time_at(reader, "update"),
                          .head = time_at(reader, "head"),
                          .output = bytes_at(reader, "output"),
                          .stash = bytes_at(reader, "stash"),
                          .parameters = bytes_at(reader, "parameters")};
  if (const auto skips = reader.get("skips")) module.skips = read_skips(*skips, reader);
  reader.finish();
  return module;
}

constexpr std::size_t kMostSkips = 10'000;

/// Tensors that skip modules end at one behind the next, and begin at a single module. `places`:
/// the number of the first module of each entry of the list; then that of all.
void check_skips(const JsonNode& list, const std::vector<ProfileModule>& modules,
                 const std::vector<int>& places, Diagnostics& diagnostics) {
  std::size_t count = 0;
  for (const ProfileModule& module : modules) count += module.skips.size();
  if (count > kMostSkips) {
    report(diagnostics, list,
           std::to_string(count) + " skips; expected at most " + std::to_string(kMostSkips));
    return;
  }
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (modules[i].skips.empty()) continue;
    const JsonNode skips = list.item(i).child("skips");
    if (modules[i].repeat > 1) {
      report(diagnostics, skips, "of several modules; expected it where \"repeat\" is 1");
    }
    for (std::size_t k = 0; k < modules[i].skips.size(); ++k) {
      const int to = modules[i].skips[k].to, least = places[i] + 2, most = places.back() - 1;
      if (to >= least && to <= most) continue;
      report(diagnostics, skips.item(k),
             "module " + std::to_string(to) + " is not behind the next one of module " +
                 std::to_string(places[i]) + "; expected " + std::to_string(least) + " to " +
                 std::to_string(most) + " (what the next one reads is \"output\")");
    }
  }
}

/// No time is no work: a profile of a hundred thousand modules should not hold empty kernels.
std::vector<Work> timed(Seconds duration) {
  if (duration == Seconds(0)) return {};
  return {measured_work(duration)};
}

Module make_profile_module(const ProfileModule& measured, const BuildOptions& options) {
  const double count = measured.parameters.value() / element_bytes(options.precision);
  return {.forward = timed(measured.forward),
          .backward_input = timed(measured.backward_input),
          .first_backward_input = timed(measured.backward_input),
          .backward_weight = timed(measured.backward_weight),
          .update = timed(measured.update),
          .parameters = std::llround(count),
          .output = measured.output,
          .stash = measured.stash,
          .head = {.work = timed(measured.head)}};
}

/// Keeps only what the module before hands on; the rest comes back while the backward runs.
void keep_input_only(Module& module, Bytes input) {
  const Bytes kept = std::min(module.stash, input);
  module.remade = module.stash - kept;
  module.workspace += module.remade;
  module.stash = kept;
  module.recompute = module.forward;
}

/// Builds the graph of one slice of a measured micro-batch: its share of the times, wherever it
/// lies in the sequence. A step updates once, however it is cut.
ModelGraph slice_of(std::vector<ProfileModule> modules, const TokenSlice& slice,
                    const BuildOptions& options) {
  const double share = static_cast<double>(slice.length) / slice.of;
  for (ProfileModule& module : modules) {
    for (Seconds ProfileModule::*time : {&ProfileModule::forward, &ProfileModule::backward_input,
                                         &ProfileModule::backward_weight}) {
      (module.*time) = (module.*time) * share;
    }
    module.output = module.output * share;
    module.stash = module.stash * share;
    for (SkipTensor& skip : module.skips) skip.bytes *= share;
  }
  return build_profile(modules, options);
}

std::vector<ContractKey> module_keys() {
  using namespace contract;
  return {
      {"name", text(), "its number", "Name of the module."},
      {"repeat", whole(1, kMostModules), "1", "Number of equal modules in a row."},
      {"forward", time(), "0 s", "Time of the forward."},
      {"backward_input", time(), "0 s", "Time of the backward for the input."},
      {"backward_weight", time(), "0 s", "Time of the backward for the weights."},
      {"update", time(), "0 s", "Time of the optimiser's step."},
      {"head", time(), "0 s",
       "Time of the auxiliary head: forward, loss, and backward to the module's output. A stage "
       "uses that of its last module; the last stage's is ignored."},
      {"output", size(), "0 B",
       "Tensor sent to the next stage; its gradient has the same size. A stage uses that of its "
       "last module."},
      {"stash", size(), "0 B", "What is kept from forward to backward."},
      {"parameters", size(), "0 B", "Weights, in the scenario's precision."},
      {"skips", list(object("model.profile.modules.skips")), "none",
       "Tensors that modules behind the next one read; those between hand them on, and their "
       "gradients back."}};
}

}  // namespace

const std::vector<ContractObject>& profile_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {
      model_object(
          "profile",
          "Measured modules: times and bytes for one micro-batch, so that changing the batch "
          "does not change them.",
          {{"measured", anything(), "", "What `interlock import` made the modules of; not used."},
           {"modules", list(object("model.profile.modules"), 1, kMostModules), "required",
            "The modules in order. A stage adds up its modules, but uses the head and the "
            "output of its last one."}}),
      {.name = "model.profile.modules", .meaning = "One module.", .keys = module_keys()},
      {.name = "model.profile.modules.skips",
       .meaning = "A tensor for a module further down.",
       .keys = {{"to", whole(0, kMostModules), "required",
                 "Number of the module that reads it, from 0."},
                {"bytes", size(), "required", "Its size; its gradient has the same."}}}};
  return objects;
}

std::vector<ProfileModule> read_profile(Section& reader) {
  reader.get("measured");
  const auto node = reader.require("modules", "a list of measured modules");
  if (!node) return {};
  std::vector<ProfileModule> modules;
  std::vector<int> places;
  std::int64_t total = 0;
  for (const JsonNode& module :
       reader.items_at("modules", *node, "wrong list of modules", "objects")) {
    modules.push_back(read_module(module, reader.diagnostics()));
    places.push_back(static_cast<int>(std::min<std::int64_t>(total, kMostModules)));
    total += modules.back().repeat;
  }
  if (total > kMostModules) {
    report(reader.diagnostics(), *node,
           std::to_string(total) + " modules; expected at most " + std::to_string(kMostModules));
    return modules;
  }
  places.push_back(static_cast<int>(total));
  check_skips(*node, modules, places, reader.diagnostics());
  return modules;
}

ModelGraph build_profile(const std::vector<ProfileModule>& modules, const BuildOptions& options) {
  ModelGraph graph;
  const BuildOptions kept = {.precision = options.precision,
                             .recompute = options.recompute,
                             .recompute_layers = options.recompute_layers};
  graph.slice = [=](const TokenSlice& slice) { return slice_of(modules, slice, kept); };
  Bytes before;                   // what the module before makes for the next one: nothing at first
  std::map<int, Bytes> skipping;  // by the number of the module that reads them
  for (const ProfileModule& measured : modules) {
    const Module plain = make_profile_module(measured, options);
    for (int i = 0; i < measured.repeat; ++i) {
      const int place = static_cast<int>(graph.modules.size());
      Module module = plain;
      module.name = measured.name;
      if (module.name.empty()) module.name = "m" + std::to_string(place);
      const BuildOptions own = options_of_layer(options, graph.modules.size());
      if (own.recompute == Recompute::Full) keep_input_only(module, before + skipping[place]);
      skipping.erase(place);
      for (const SkipTensor& skip : measured.skips) skipping[skip.to] += skip.bytes;
      for (const auto& [reader, bytes] : skipping) module.output += bytes;
      before = plain.output;
      graph.modules.push_back(std::move(module));
    }
  }
  return graph;
}

}  // namespace interlock
