// Scenario: one what-if question, complete and checked.
// SPDX-License-Identifier: Apache-2.0
//
// A document (scenario file plus --set overrides) is read strictly: every mistake is reported with
// file, line and path, all together. A Scenario that exists is complete: defaults are filled in and
// its parts fit each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "hardware/collectives/resharding.h"
#include "hardware/networks/cluster.h"
#include "models/layers/model_graph.h"
#include "scenarios/load/goal.h"
#include "scenarios/load/run_conditions.h"
#include "scenarios/load/swarm_conditions.h"
#include "scenarios/load/trace_workload.h"
#include "scenarios/load/variation_conditions.h"
#include "sim/engines/engines.h"
#include "sim/plan/data_parallel.h"
#include "sim/plan/mesh.h"
#include "sim/plan/offload.h"
#include "sim/plan/partition.h"
#include "sim/plan/schedules/catalogue.h"
#include "sim/plan/schedules/strategy.h"

namespace interlock {

/// A micro-batch of a step whose micro-batches differ in size.
struct BatchPart {
  int samples = 1;
  std::shared_ptr<const ModelGraph> graph;  // of so many samples
  std::vector<TokenSlice> slices;           // in order
};

/// How one pipeline rank divides its stages, where not all do it alike.
struct RankLayout {
  int tensor = 1;
  int data = 1;                             // divides the samples of a micro-batch
  std::shared_ptr<const ModelGraph> graph;  // of one of its devices
  int devices() const { return tensor * data; }
};

/// What a document says of the model: of what `graph` is built, and executable networks are.
struct ModelText {
  JsonValue model;                // a name, a path or an object
  std::optional<JsonValue> head;  // the strategy's
};

/// A value that a sweep gave a scenario.
struct SweptValue {
  std::string path, label;
  std::optional<double> number;  // if it is one
};

struct Scenario {
  std::string name;
  std::string file;
  std::shared_ptr<const JsonValue> document;  // of this one alone, "sweep" carried out
  std::vector<SweptValue> swept;              // by it
  ModelGraph graph;
  std::shared_ptr<const ModelText> model_text;
  std::string model_name;
  Cluster cluster;
  int ranks = 1;  // parallel.pipeline
  Mesh mesh;
  Sharding sharding;
  DataParallel data_parallel;
  /// By pipeline rank; empty: all alike. `graph` is then the undivided model, and `mesh` has the
  /// devices of a rank as tensor ranks.
  std::vector<RankLayout> rank_layouts;
  ReshardingChoice resharding;
  int copies = 1;                  // of the model, where a schedule keeps several
  std::vector<int> rank_of_stage;  // (stages of all copies)
  Partition partition;
  Strategy strategy;
  SchedulePolicy schedule;
  int micro_batches = 1;           // M
  std::vector<TokenSlice> slices;  // of each micro-batch, in order; empty: it is whole
  std::vector<BatchPart> parts;    // the micro-batches, where they differ in size; else empty
  Precision precision = Precision::Bf16;
  Optimizer optimizer = Optimizer::SgdMomentum;
  Framework framework;
  Recompute recompute = Recompute::None;
  Offload offload;
  int steps = 8;
  EngineKind engine = EngineKind::Auto;
  int seed = 1;
  bool skip_periods = true;        // of micro-batches, where that is exact
  bool memory_contention = false;  // of kernels with communication
  /// Dimensions of which every coordinate is simulated; nothing: as few as are exact.
  std::optional<Unfolded> unfolded;
  std::optional<VariationConditions> variation;
  std::optional<RunConditions> run;
  std::optional<SwarmConditions> swarm;
  std::optional<Goal> goal;
  /// In place of model, training and all that follows from them; else none.
  std::shared_ptr<const TraceWorkload> workload;
};

/// Reads `path`, or standard input for "-", and applies `overrides` ("path=VALUE").
JsonValue read_scenario_document(const std::string& path,
                                 const std::vector<std::string>& overrides);

/// The scenarios a document stands for: one, or the product of its "sweep".
/// Throws: Error with every mistake of the document.
std::vector<Scenario> load_scenarios(const JsonValue& document);

}  // namespace interlock
