// Small trainings: scenarios with their programs, networks and made-up batches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"
#include "validate/cpu/cpu_run.h"

namespace interlock {

/// Everything that a job refers to. Not to be copied once a job was made of it.
struct SmallTraining {
  Plan plan;
  Program program;
  NeuralNetwork network;
  Descent descent = {.optimizer = Optimizer::Sgd, .rate = 0.1};
  std::uint64_t seed = 1;
  int dump_step = -1;
};

/// The settings in which trainings of one model differ.
struct TrainingText {
  std::string model;
  std::string strategy = R"("global")";
  std::string schedule = "";  // "" is the default
  int devices = 2;
  int replicas = 1;       // that share the devices; `more` has no "parallel" if there are several
  int zero_stage = 0;     // of replicas
  int stages = 0;         // of a replica; 0: one for each device, else `more` has no "parallel"
  int samples = 2;        // of a micro-batch
  int micro_batches = 1;  // of a replica
  int steps = 1;
  std::string more_training = "";  // ", \"recompute\": ..."
  std::string more = "";           // further sections
  std::string optimizer = "sgd";
  std::string precision = "fp32";
};

SmallTraining make_training(const TrainingText& text);
Job job_of(const SmallTraining& training);
/// Samples of micro-batch `b` are numbers b * n to b * n + n - 1 of one endless list.
Batch made_up_batch(const NeuralNetwork& network, std::uint64_t seed, int micro_batch);

/// How a training is executed: by one thread in an order that dependencies allow, by a thread for
/// each rank, or by one at a time as the native engine's clock says, where memory is exact.
enum class RunMode { Sequential, Threads, Clock };
Outcome train(const SmallTraining& training, RunMode mode = RunMode::Sequential,
              const CpuOptions& options = {});

/// The peaks of all ranks as the native engine and the tracker of memory see them.
std::vector<double> simulated_peaks(const Program& program);

/// Arrays of a dump by name.
std::map<std::string, std::vector<double>> by_name(const Outcome& outcome);
/// Only those whose names begin with `prefix`, without it.
std::map<std::string, std::vector<double>> part_of(const Outcome& outcome,
                                                   const std::string& prefix);
/// Losses by stage and micro-batch, as of an Outcome.
using Losses = std::vector<std::map<int, double>>;
/// Returns how far the mean loss of `replicas` is off at most, relative to 1 more than that of one
/// copy, all of whose micro-batches hold their samples. Throws: if there are not as many.
double worst_mean_loss(const Losses& all, const Losses& one, int replicas);
/// |a - b| / |b|, over all numbers of an array.
double distance(const std::vector<double>& a, const std::vector<double>& b);

inline const std::string kResidualMlp =
    R"({"kind": "residual-mlp", "input_size": 6, "layers": 3, "hidden_size": 8, "classes": 4})";
inline const std::string kReversible =
    R"({"kind": "residual-mlp", "input_size": 6, "layers": 3, "hidden_size": 8, "classes": 4,
        "reversible": true})";
inline const std::string kTransformer =
    R"({"kind": "transformer", "layers": 2, "hidden_size": 8,
        "attention": "materialised", "attention_heads": 2,
        "vocab_size": 11, "sequence_length": 5, "tied_embeddings": false})";
inline const std::string kResNet =
    R"({"kind": "resnet", "block": "basic", "blocks": [1, 1], "image_size": 6, "base_width": 3,
        "classes": 4, "head": "mlp"})";

}  // namespace interlock
