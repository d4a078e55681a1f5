// The parts of the scenario loader, one for each subject; question.cc puts them together.
// SPDX-License-Identifier: Apache-2.0
//
// Reading has two phases. First every section is read alone, so that a mistake in one hides none
// in another. Then the sections are fitted together: stages to modules and devices, the schedule
// to the strategy. A part whose section was wrong is left out of the second phase.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/load/known_parts.h"
#include "scenarios/load/parallel_keys.h"
#include "scenarios/load/question.h"

namespace interlock {

/// Reads "simulate", which every scenario may have; check_quality() checks "quality", which changes
/// no result.
SimulationSettings read_simulate(const JsonNode& node, Diagnostics& diagnostics);
void check_quality(const JsonNode& node, Diagnostics& diagnostics);

/// Returns the scenario of a document with a "workload". REQUIRES: it has one.
Question load_workload(const JsonNode& document, Diagnostics& diagnostics);

/// Tells whether diagnostics were added since it was made.
class Mistakes {
 public:
  explicit Mistakes(const Diagnostics& diagnostics)
      : diagnostics_(&diagnostics), before_(diagnostics.messages().size()) {}
  /// Returns whether no mistake was added. A full list cannot grow; it counts as a mistake.
  bool none() const { return diagnostics_->messages().size() == before_ && !diagnostics_->full(); }

 private:
  const Diagnostics* diagnostics_;
  std::size_t before_;
};

/// training.strategy as written.
struct StrategyKeys {
  Strategy strategy;
  std::optional<bool> all_heads;  // nothing: the schedule decides
  std::optional<JsonNode> head;
  std::optional<JsonNode> reach;  // "n_wise"
  JsonNode node;
  bool valid = false;
};
StrategyKeys read_strategy(const JsonNode& node, Diagnostics& diagnostics);
/// Steps between broadcasts if `head` is {"weights": {"stale_every": S}}; else 0. Reports nothing:
/// the model's builder checks the head.
int read_readout_every(const JsonNode& head);

/// training.schedule.slices as written.
struct SliceKeys {
  SliceRule rule;
  std::optional<JsonNode> node;
};
/// Returns the least divisor of `tokens` from `count` on. REQUIRES: 1 <= count <= tokens.
int least_divisor(int tokens, int count);
SliceKeys read_slices(const std::optional<JsonNode>& schedule, Diagnostics& diagnostics);
/// Reports settings that do not go with even slices, or with ranks that trade attention.
void check_even_slices(Section& section, const SchedulePolicy& policy);

/// "training" as written, its numbers of samples and micro-batches fitted together.
struct TrainingKeys {
  StrategyKeys strategy;
  std::optional<JsonNode> schedule;
  SliceKeys slices;
  std::optional<int> global_batch_size;
  int micro_batch_size = 1;    // while it is to be chosen
  bool samples_known = false;  // the batch says how many samples a micro-batch has
  bool batch_valid = true;
  std::optional<int> recompute_layers;  // the number of first layers
  std::optional<JsonNode> offload_node;
  Training asked;  // its graph, strategy, schedule and slices follow
  JsonNode node;
  JsonNode precision_node;  // of training itself where it is not written
};
/// Reads "training". `data`: replicas that share the global batch.
TrainingKeys read_training(const JsonNode& node, int data, KnownParts& known,
                           Diagnostics& diagnostics);

/// Reads training.recompute and training.offload; reports where model or machine cannot do them.
void read_recompute(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics);
void read_offload(const JsonNode& node, TrainingKeys& training, Diagnostics& diagnostics);
void check_contention(const Question& question, const std::optional<Cluster>& cluster,
                      const JsonNode& document, Diagnostics& diagnostics);
void check_memory(const TrainingKeys& training, const std::optional<ModelGraph>& graph,
                  const std::optional<Cluster>& cluster, bool cuts_sequences,
                  Diagnostics& diagnostics);

/// Returns training.schedule with every default filled in. REQUIRES: training.strategy is valid.
SchedulePolicy read_schedule(const TrainingKeys& training, Diagnostics& diagnostics);
/// Returns the path that `value` names: one in a scenario file starts at that file, one given as an
/// override where the user stands.
std::string resolved_path(const JsonValue& value);
/// Returns whether training.schedule is an object with a "file" or an "order".
bool writes_order(const TrainingKeys& training);
/// Fills in what training.schedule.file, or its "order", says. REQUIRES: a training.schedule.
void read_written_order(const TrainingKeys& training, SchedulePolicy& policy,
                        Diagnostics& diagnostics);
/// Finds what is wrong in training.schedule whatever the strategy is.
void check_schedule_keys(const JsonNode& schedule, Diagnostics& diagnostics);

/// Reports where sequences of `graph` cannot be cut as written, under a schedule that cuts them.
void check_slices(const TrainingKeys& keys, const Training& training, const ModelGraph& graph,
                  Diagnostics& diagnostics);

/// "partition" as written.
struct PartitionKeys {
  PartitionRule rule;
  bool valid = true;
};
PartitionKeys read_partition(const std::optional<JsonNode>& node, Diagnostics& diagnostics);
/// The sizes that a partition must fit.
struct PartitionSize {
  int modules = 1, parts = 1, ranks = 1;
  bool lays_ranks = false;  // stages are laid over ranks by their cost
};
void check_partition(const PartitionKeys& keys, const JsonNode& node, const PartitionSize& size,
                     Diagnostics& diagnostics);

/// The numbers of micro-batches that a schedule can run in a step: least, least + step and so on.
/// Example: 1F1B {1, 1}; interleaved over four ranks {4, 4}; DualPipe-V over two {4, 1}.
struct RunnableCounts {
  int least = 0, step = 1;
  std::string problem;  // why it can run none; empty: it can
};
RunnableCounts runnable_counts(const Question& question);
/// Reports what keeps replicas from having numbers of micro-batches of their own.
void check_shares(const Question& question, const JsonNode& document, Diagnostics& diagnostics);

/// Says in one sentence if the run of `question` would be absurdly long, or its order of work.
/// `slices`: of a micro-batch, at most.
void check_size(const Question& question, int stages, int slices, const JsonNode& place,
                Diagnostics& diagnostics);

/// Reports every setting under "run", or "swarm", that contradicts the rest of `question`, which is
/// complete, and what is wrong in "search" whatever the rest is.
void check_run(const Question& question, const JsonNode& run, Diagnostics& diagnostics);
void check_swarm(const Question& question, const JsonNode& swarm, Diagnostics& diagnostics);
void check_search(const JsonNode& search, Diagnostics& diagnostics);

/// Reads a document without "sweep", with parts that are `known` from others.
Question load_question(const JsonValue& value, KnownParts& known, Diagnostics& diagnostics);

/// Returns the name of a scenario that has none: its file's, without folders and ending.
std::string default_name(const JsonValue& document);

}  // namespace interlock
