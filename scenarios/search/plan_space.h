// PlanSpace: the plans that a search may choose from.
// SPDX-License-Identifier: Apache-2.0
//
// A plan is a layout (how the work is divided) with an order of work. Plans are proposed
// generously: what the loader refuses is counted, and no plan.
//
// Example: gpt2-medium with 16 samples a step on a DGX A100 has 400 layouts. One is {tensor 2,
// pipeline 2, data 2, zero_stage 0, micro_batch_size 1}; one of its eight orders is "interleaved"
// with two chunks. settings() of both: parallel.tensor=2, parallel.pipeline=2, ...,
// parallel.stages=4, training.schedule="interleaved".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "models/layers/model_graph.h"
#include "scenarios/search/search_request.h"

namespace interlock {

/// A key of a scenario, by its dotted path, and what it is set to; null removes it.
struct Setting {
  std::string path;
  JsonValue value;
  bool operator==(const Setting&) const = default;
};

/// Degrees and sizes, whatever the order of work.
struct PlanLayout {
  int devices = 1, tensor = 1, pipeline = 1, data = 1, context = 1;
  int expert = 1, expert_tensor = 1;
  int zero_stage = 0, micro_batch_size = 1;
  JsonValue strategy, recompute;
  JsonValue context_layout;      // null: that of the document
  int context_all_to_all = 0;    // of a hybrid
  std::vector<Setting> options;  // beside these, of kSearchOptions
  std::vector<int> tensors;      // of each pipeline rank, where they differ; else empty
  bool operator==(const PlanLayout&) const = default;
};

/// How the stages of a layout are cut and laid, and the order of their work.
struct WorkOrder {
  JsonValue schedule;  // null: the usual one of the strategy
  int chunks = 1;      // stages of each pipeline rank
  JsonValue partition;
};

/// Returns the name that a strategy or schedule is, or the "kind" that it has; empty if neither.
std::string kind_of(const JsonValue& value);

/// Tokens that a device keeps at least, if a search is to divide sequences by itself: an assumption
/// of ours, as below it attention is too small to hide what it exchanges.
inline constexpr int kTokensOfContext = 4096;

class PlanSpace {
 public:
  /// Takes `document`, and the usual values where `request` has none: all devices; every way to
  /// divide them in which tensor ranks lie in one node, sequences are cut in parts of
  /// kTokensOfContext or more, and experts are shared by any number of devices, each whole or
  /// divided like all else; micro-batches of a power of two; none, selective (of attention that is
  /// not fused) and full recomputation, and of modules; every stage of ZeRO; the document's
  /// strategy, under global training with 1F1B, interleaved (those of 2 to 8 stages a rank that
  /// make the longest shorter), ZB-H1 and ZB-V; a balanced partition, and a uniform one where ranks
  /// have several stages; the machines of a mixed cluster in every order; the options of
  /// usual_options(). Throws: Error if model or cluster of `document` are wrong, or it cannot be
  /// searched.
  PlanSpace(JsonValue document, SearchRequest request);

  const std::vector<PlanLayout>& layouts() const { return layouts_; }
  /// Returns the number of the layout before `layout` that differs from it in its ZeRO stage alone,
  /// which is one less; nothing if there is none.
  std::optional<std::size_t> with_less_zero(std::size_t layout) const;
  /// Returns the values that were left out, as there were too many layouts; empty: none.
  const std::string& left_out() const { return left_out_; }
  int batch() const { return batch_; }  // samples of a step
  /// Returns whether hosts have memory that neither scenario nor request says how to use.
  bool can_offload() const;
  /// Returns the space of the plans of `layouts` of this one, each with one of `offloads`.
  PlanSpace with_offload(const std::vector<std::size_t>& layouts,
                         const std::vector<JsonValue>& offloads) const;
  std::vector<WorkOrder> orders(const PlanLayout& layout) const;
  std::vector<Setting> settings(const PlanLayout& layout, const WorkOrder& order) const;
  /// Returns the scenario of a plan.
  JsonValue document_of(const PlanLayout& layout, const WorkOrder& order) const;

 private:
  void read_images();
  void read_sequences(double tokens);
  std::vector<int> turnings_of(const PlanLayout& divided) const;
  std::vector<PlanLayout> degrees(int devices) const;
  void append_pipelines(const PlanLayout& divided, std::vector<PlanLayout>& found) const;
  void append_experts(const PlanLayout& divided, std::vector<PlanLayout>& found) const;
  bool has_copies(const PlanLayout& layout) const;
  std::vector<JsonValue> usual_recompute(const ModelGraph& graph, bool fused) const;
  void read_machine_orders();
  std::vector<JsonValue> machine_orders() const;
  std::vector<JsonValue> usual_options(const std::string& path, const PlanLayout& layout) const;
  bool is_written(const std::string& path) const;
  bool applies(const std::string& path, const PlanLayout& layout) const;
  std::vector<PlanLayout> with_options(const PlanLayout& layout) const;
  void append_mesh_settings(const PlanLayout& layout, std::vector<Setting>& settings) const;
  bool add_all_layouts(const std::vector<int>& sizes, const std::vector<JsonValue>& strategies,
                       const std::vector<JsonValue>& recompute);
  void add_layouts(int devices, const JsonValue& strategy, const JsonValue& recompute);
  std::vector<int> micro_batch_sizes(int data) const;
  std::vector<int> chunks_of(const JsonValue& schedule, int ranks) const;

  JsonValue document_;
  SearchRequest request_;
  int modules_ = 1, devices_per_node_ = 1, batch_ = 1;
  int parts_of_images_ = 1;
  std::vector<int> contexts_ = {1};  // the usual ones
  int experts_ = 0;                  // of a layer
  bool has_tokens_ = false, sequence_parallel_ = false;
  bool shared_experts_ = false, has_hosts_ = false;
  int tokens_ = 1;                                         // of a sample
  std::vector<JsonValue> machine_orders_ = {JsonValue{}};  // null: that of the document
  int devices_of_document_ = 1, nodes_ = 1;
  bool shares_nodes_ = false;  // fewer devices may take equal parts of nodes
  std::vector<PlanLayout> layouts_;
  std::string left_out_;
};

}  // namespace interlock
