// Training and TraceWorkload: the two kinds of work that a question may ask about.
// SPDX-License-Identifier: Apache-2.0
//
// Example: "global_batch_size": 64 and "micro_batch_size": 2 make a Training of 32 micro-batches;
// "workload": {"chakra": "traces/rank.%d.et"} makes a TraceWorkload.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/work.h"
#include "models/layers/model_graph.h"
#include "sim/plan/offload.h"
#include "sim/plan/schedules/catalogue.h"
#include "sim/plan/schedules/strategy.h"
#include "sim/plan/stage_recompute.h"
#include "sim/workloads/execution_trace.h"

namespace interlock {

/// How sequences are cut, as training.schedule.slices says.
struct SliceRule {
  enum class Kind { Balanced, Equal, EqualTime, Explicit };
  Kind kind = Kind::Balanced;
  int count = 128;           // slices, or as many as balancing may make
  std::vector<int> lengths;  // tokens; Explicit
};

/// How the micro-batches of a step are shared out among replicas, see
/// training.replica_micro_batches.
struct ReplicaBatches {
  enum class Kind { Equal, BySpeed, Explicit };
  Kind kind = Kind::Equal;
  int all = 1;              // micro-batches of all replicas; where they are not equal
  std::vector<int> counts;  // by replica; Explicit
};

/// The texts of a document that describe the model; its graph and executable networks are built of
/// them.
struct ModelText {
  JsonValue model;                // a name, a path or an object
  std::optional<JsonValue> head;  // the strategy's
};

/// A model and its training: "model" and "training".
struct Training {
  ModelGraph graph;
  std::shared_ptr<const ModelText> model_text;
  Strategy strategy;
  SchedulePolicy schedule;
  std::optional<SliceRule> slices;  // where the schedule cuts sequences
  int micro_batches = 1;            // M; of the replica that has most, as far as is known
  ReplicaBatches replica_batches;
  bool balances_batch = false;  // the size of a micro-batch is to be chosen; `graph` has one sample
  Precision precision = Precision::Bf16;
  OptimizerRule optimizer;
  Framework framework;
  Adapters adapters;
  int frozen_modules = 0;
  Recompute recompute = Recompute::None;
  LayerParts recompute_parts;
  bool narrow_activations = false;
  WideLayers wide_layers;
  StageRecompute stage_recompute;
  Offload offload;
  int steps = 8;  // that are measured
};

/// A run that another program wrote down, in place of a model and its training: "workload".
struct TraceWorkload {
  std::string files;                       // "traces/rank.%d.et"
  std::shared_ptr<const Program> program;  // on the cluster of its scenario
  TraceSteps steps;                        // of another tool: one
  /// Nothing: of computations without a duration nothing is known.
  std::optional<Precision> precision;
  TraceNotes notes;
};

}  // namespace interlock
