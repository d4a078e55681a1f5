// Question: one what-if question, typed and checked.
// SPDX-License-Identifier: Apache-2.0
//
// A document (scenario file plus --set overrides) is read strictly: every mistake is reported with
// file, line and path, all together. A Question that exists is complete: defaults are filled in and
// its parts fit each other. It says what was asked. What is chosen for it (where the model is cut,
// which order "auto" stands for, which devices others stand for) is in its Plan.
//
// A question has few parts: the work (a training, or a run that another program recorded), the
// cluster, the layout of the work over its devices, the settings of the simulation, and the
// conditions of a run over days.
//
// Example: "partition": "balanced" is the rule {Balanced} of `layout`; that 24 layers on 4 ranks
// become stages of 7, 6, 6 and 5 is said by the plan alone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json/json.h"
#include "hardware/collectives/resharding.h"
#include "hardware/networks/cluster.h"
#include "scenarios/load/goal.h"
#include "scenarios/load/kinds_of_work.h"
#include "scenarios/load/run_conditions.h"
#include "scenarios/load/variation_conditions.h"
#include "sim/engines/engines.h"
#include "sim/plan/data_parallel.h"
#include "sim/plan/layer_layouts.h"
#include "sim/plan/mesh.h"

namespace interlock {

/// How the model is cut into stages, as "partition" says.
struct PartitionRule {
  enum class Kind { Balanced, Uniform, Explicit, Auto };
  Kind kind = Kind::Balanced;
  std::vector<int> modules;  // of each stage; Explicit
};

/// How one pipeline rank divides its stages, where not all do it alike.
struct RankLayout {
  int tensor = 1;
  int data = 1;                             // divides the samples of a micro-batch
  std::shared_ptr<const ModelGraph> graph;  // of one of its devices
  int devices() const { return tensor * data; }
};

/// How the work is cut into stages and divided among devices: "parallel" and "partition". Of a
/// recorded run only the ranks and stages are known.
struct Layout {
  Mesh mesh;
  Sharding sharding;
  DataParallel data_parallel;
  /// By pipeline rank; empty: all alike. The training's graph is then the undivided model, and
  /// `mesh` has the devices of a rank as tensor ranks.
  std::vector<RankLayout> rank_layouts;
  ReshardingChoice resharding;
  std::vector<LayerDegrees> layer_layouts;  // by Module::layout; empty: all layers as `mesh` says
  std::vector<int> layout_of_module;        // where layers have layouts; else empty
  int stages = 1;                           // of one copy of the model
  std::vector<int> placement;               // rank of each stage; empty: by what stages cost
  bool lays_freely = false;  // a search chooses the ranks, and begins with `placement`
  PartitionRule partition;
  /// Share of the multiprocessors that carries tokens to experts; nothing: what DeepEP takes where
  /// they pass by it, else as other collectives.
  std::optional<double> token_sms;

  int ranks() const { return mesh.degree(Dimension::Pipeline); }
  /// Returns the meshes of layers by their layouts; `mesh` alone if all have one.
  std::vector<Mesh> layers() const {
    return meshes_of_layers(mesh, layer_layouts, data_parallel.zero_stage > 0);
  }
};

/// How a step is simulated: "simulate".
struct SimulationSettings {
  EngineKind engine = EngineKind::Auto;
  int seed = 1;
  bool skip_periods = true;        // of micro-batches, where that is exact
  bool memory_contention = false;  // of kernels with communication
  /// Dimensions of which every coordinate is simulated; nothing: as few as are exact.
  std::optional<Unfolded> unfolded;
  bool folds_nearly = false;  // links may be shared unevenly: as busy as the busiest of their class
};

/// A value that a sweep gave a scenario.
struct SweptValue {
  std::string path, label;
  std::optional<double> number;  // if it is one
};

struct KnownPrices;  // scenarios/plan/known_prices.h

struct Question {
  std::string name;
  std::string file;
  std::shared_ptr<const JsonValue> document;  // of this one alone, "sweep" carried out
  std::vector<SweptValue> swept;              // by it

  std::variant<Training, TraceWorkload> workload;
  Cluster cluster;
  Layout layout;
  SimulationSettings simulation;
  std::optional<VariationConditions> variation;
  std::optional<RunConditions> run;
  std::optional<SwarmConditions> swarm;
  std::optional<Goal> goal;
  std::shared_ptr<KnownPrices> known_prices;  // shared with questions that a search asks; or null

  /// REQUIRES: the workload is no recorded run.
  const Training& training() const& { return std::get<Training>(workload); }
  Training& training() & { return std::get<Training>(workload); }
  /// Returns it by value, so that no reference dangles.
  Training training() && { return std::get<Training>(std::move(workload)); }
  /// Returns the recorded run; null if the workload is a training.
  const TraceWorkload* trace() const { return std::get_if<TraceWorkload>(&workload); }
};

/// Returns the name of the model, or the path of the traces.
const std::string& workload_name(const Question& question);
/// Returns the precision of computations; of a recorded run that does not say it, bf16.
Precision precision_of(const Question& question);

/// Reads `path`, or standard input for "-", and applies `overrides` ("path=VALUE").
JsonValue read_scenario_document(const std::string& path,
                                 const std::vector<std::string>& overrides);

/// Says why the vocabulary of `graph` cannot be divided among the ranks of `layout`, as "...;
/// expected ..."; empty if it can, see also the schedule's.
std::string vocabulary_problem(const Layout& layout, const Training& training,
                               const ModelGraph& graph);

/// Throws: Error if `document` asks about several jobs, which one scenario cannot.
void refuse_jobs(const JsonValue& document);

/// Returns the scenarios of a document: one, or the product of its "sweep". Throws: Error with
/// every mistake of the document.
std::vector<Question> load_questions(const JsonValue& document);

}  // namespace interlock
