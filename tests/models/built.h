// Models built from JSON text, and sums over what was built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "models/build_model.h"
#include "models/layers/model_graph.h"

namespace interlock {

/// The graph of the model in `text`, which must have no mistake.
inline ModelGraph built(const std::string& text, const BuildOptions& options = {}) {
  const JsonValue value = parse_json(text, "test.json");
  Diagnostics diagnostics;
  ModelGraph graph = build_model({&value, "/model"}, options, diagnostics);
  INFO(text);
  for (const std::string& message : diagnostics.messages()) FAIL(message);
  return graph;
}

inline ModelGraph zoo(const std::string& name, const BuildOptions& options = {}) {
  return built('"' + name + '"', options);
}

/// The graph of `text` with the strategy's head `head`.
inline ModelGraph built_with_head(const std::string& text, const std::string& head,
                                  BuildOptions options = {}) {
  const JsonValue value = parse_json(head, "head.json");
  options.head = JsonNode{&value, "/head"};
  return built(text, options);
}

inline Flops flops_of(const std::vector<Work>& works) {
  Flops total;
  for (const Work& work : works) total += work.flops;
  return total;
}

/// Returns the flops that the convention behind MFU counts.
inline Flops counted_of(const std::vector<Work>& works) {
  Flops total;
  for (const Work& work : works) total += counted_flops(work);
  return total;
}

inline Bytes bytes_of(const std::vector<Work>& works) {
  Bytes total;
  for (const Work& work : works) total += work.bytes;
  return total;
}

inline std::int64_t parameters_of(const ModelGraph& graph) {
  std::int64_t total = 0;
  for (const Module& module : graph.modules) total += module.parameters;
  return total;
}

/// Multiply-adds of the forward, as they are counted.
inline double products_of(const ModelGraph& graph) {
  Flops total;
  for (const Module& module : graph.modules) total += counted_of(module.forward);
  return total.value() / 2;
}

}  // namespace interlock
