// Profile: reads measured modules and turns them into work of known duration.
// SPDX-License-Identifier: Apache-2.0
#include "models/profile.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "models/operators.h"
#include "models/required_count.h"

namespace interlock {
namespace {

// Far beyond any module, and small enough that sums over all modules stay exact.
constexpr Seconds kLongest(1e6);
constexpr Bytes kLargest(1e13);

template <class Quantity>
Quantity in_range(ObjectReader& reader, std::string_view key, Quantity value, Quantity most) {
  if (value <= most) return value;
  report(reader.diagnostics(), *reader.get(key), "too large; expected at most " + format(most));
  return Quantity(0);
}

Seconds time_at(ObjectReader& reader, std::string_view key) {
  return in_range(reader, key, reader.seconds(key, Seconds(0)), kLongest);
}

Bytes bytes_at(ObjectReader& reader, std::string_view key) {
  return in_range(reader, key, reader.bytes(key, Bytes(0)), kLargest);
}

ProfileModule read_module(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  ProfileModule module = {.name = reader.text("name", ""),
                          .repeat = reader.count("repeat", 1, 1, kMostModules),
                          .forward = time_at(reader, "forward"),
                          .backward_input = time_at(reader, "backward_input"),
                          .backward_weight = time_at(reader, "backward_weight"),
                          .update = time_at(reader, "update"),
                          .head = time_at(reader, "head"),
                          .output = bytes_at(reader, "output"),
                          .stash = bytes_at(reader, "stash"),
                          .parameters = bytes_at(reader, "parameters")};
  reader.finish();
  return module;
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
  module.workspace += module.stash - kept;
  module.stash = kept;
  module.recompute = module.forward;
}

/// What a slice takes of a measured micro-batch: its share, wherever it lies in the sequence. A
/// step updates once, whatever it is cut into.
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
  }
  return build_profile(modules, options);
}

}  // namespace

std::vector<ProfileModule> read_profile(ObjectReader& reader) {
  reader.get("measured");
  const auto node = reader.require("modules", "a list of measured modules");
  if (!node) return {};
  const JsonValue& list = *node->value;
  if (list.kind != JsonValue::Kind::Array || list.items.empty()) {
    report(reader.diagnostics(), *node, "no modules; expected a list of at least one object");
    return {};
  }
  std::vector<ProfileModule> modules;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    modules.push_back(read_module(node->item(i), reader.diagnostics()));
    total += modules.back().repeat;
  }
  if (total > kMostModules) {
    report(reader.diagnostics(), *node,
           std::to_string(total) + " modules; expected at most " + std::to_string(kMostModules));
  }
  return modules;
}

ModelGraph build_profile(const std::vector<ProfileModule>& modules, const BuildOptions& options) {
  ModelGraph graph;
  const BuildOptions kept = {.precision = options.precision,
                             .recompute = options.recompute,
                             .recompute_layers = options.recompute_layers};
  graph.slice = [=](const TokenSlice& slice) { return slice_of(modules, slice, kept); };
  Bytes input;  // nothing comes before the first module
  for (const ProfileModule& measured : modules) {
    const Module plain = make_profile_module(measured, options);
    for (int i = 0; i < measured.repeat; ++i) {
      Module module = plain;
      module.name = measured.name;
      if (module.name.empty()) module.name = "m" + std::to_string(graph.modules.size());
      const BuildOptions own = options_of_layer(options, graph.modules.size());
      if (own.recompute == Recompute::Full) keep_input_only(module, input);
      input = plain.output;
      graph.modules.push_back(std::move(module));
    }
  }
  return graph;
}

}  // namespace interlock
