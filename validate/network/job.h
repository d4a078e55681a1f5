// Job: what executors of real work train, and what comes out of it.
// SPDX-License-Identifier: Apache-2.0
//
// The program says when a stage does what; the job says on what numbers. The loss of a micro-batch
// is its mean over rows; an update uses the mean over the micro-batches since the last one, of all
// replicas.
//
// Example: three modules on two stages, the first of which has two: first_module is {0, 2, 3}. Two
// replicas of it make a program of four stages; micro-batch 5 of the second is batch 11 of the job.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/plan/schedules/catalogue.h"
#include "sim/plan/schedules/strategy.h"
#include "sim/program/program.h"
#include "validate/network/network.h"

namespace interlock {

/// One micro-batch. Inputs are tokens, or features of every row.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::vector<float> features;
  std::vector<std::int32_t> targets;  // one for each row that a loss reads; below 0: none
};

/// Gradient descent. Adam is AdamW: decay is apart from the gradient and spares what does not
/// decay.
struct Descent {
  Optimizer optimizer = Optimizer::SgdMomentum;
  double rate = 0.1, momentum = 0.9, decay = 0;  // decay of Sgd and SgdMomentum is L2
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

/// Factors of one update.
struct StepFactors {
  double mean = 1;                          // of gradients: one over how many were added up
  double correction1 = 1, correction2 = 1;  // of Adam: 1 - beta^step
};

struct Job {
  const Program& program;
  const NeuralNetwork& network;
  /// (stages of the model + 1) Stage s has the modules [first_module[s], first_module[s + 1]).
  std::vector<int> first_module;
  Strategy strategy;
  std::vector<StageRole> roles;  // (stages of all replicas)
  /// (modules) The part of each that is not kept, but computed again before its backward; empty:
  /// nothing is.
  std::vector<Recompute> recompute = {};
  LayerParts recompute_parts = {};  // of modules of which parts are
  /// The part of a forward that its backward finds. Replayed: the stage's input, or nothing where
  /// that is the batch itself, which is asked for again; Rebuilt: the output, which comes back, and
  /// the input of the last stage, or the batch.
  StashMode stash = StashMode::Kept;
  Precision precision = Precision::Fp32;
  Descent descent;
  std::uint64_t seed = 1;
  std::function<Batch(int number)> batch;  // see batch_number(); from several threads at once
  int dump_step = -1;                      // step whose numbers Outcome::dump shall have
};

/// The modules [first, end) of a stage.
struct ModuleRange {
  int first = 0, end = 0;
};
ModuleRange modules_of(const Job& job, int stage);
/// Returns the number in the job of a micro-batch that a stage's replica counts: replicas take
/// turns, so that theirs of one number are neighbours.
int batch_number(const Program& program, int stage, int micro_batch);

/// Returns whether replicas divide the states of the optimiser, and the update, among themselves.
bool divides_updates(const Program& program);

/// A named array as numpy knows it, row-major.
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// The most bytes that tensors of a device held at once, and their classes then.
struct HeldMemory {
  std::int64_t peak = 0, allocated_peak = 0, reach = 0;
  std::array<std::int64_t, kMemoryClasses> at_peak{};
};

struct Outcome {
  /// By the model's stage whose loss it is: number of the batch -> mean.
  std::vector<std::map<int, double>> losses;
  /// Terms of the loss of a chain of independent stages, likewise; see denoising.h.
  std::vector<std::map<int, double>> chain_terms;
  std::vector<HeldMemory> memory;  // by rank
  /// The numbers of dump_step: "inputs", "targets", "weights/NAME", "gradients/NAME",
  /// "updated/NAME"; see UpdateOfStep.
  std::vector<NamedArray> dump;
};

/// Returns an outcome that has "inputs" and "targets" of dump_step, if there is such a step.
Outcome empty_outcome(const Job& job);
/// Losses of a stage by micro-batch of its replica, and its terms of the loss of a chain.
struct StageLosses {
  std::map<int, double> own, chain_terms;
};

/// Adds what a stage came to: its losses, and its dump. Replicas that
/// divide updates have zeros where others have updated.
void add_results(const Job& job, int stage, const StageLosses& losses,
                 const std::vector<NamedArray>& dump, Outcome& outcome);

/// An update's place among those of its step. A dump of several has the weights before the first,
/// the mean of the gradients of all, and the weights after the last.
struct UpdateOfStep {
  int earlier = 0, updates = 1;
  bool is_first() const { return earlier == 0; }
};
UpdateOfStep update_of_step(const Program& program, int micro_batch);

/// Returns the array `what`/NAME of `dump`; adds it, of zeros, on its first use.
NamedArray& dumped_array(std::vector<NamedArray>& dump, const std::string& what,
                         const Parameter& parameter);

/// Returns the message for a loss that is not a number: it names module and step.
std::string loss_problem(const Job& job, int stage, int micro_batch);

/// Returns why `job` cannot be trained; empty if it can. See why_not_executable() for programs.
std::string why_not_trainable(const Job& job);

}  // namespace interlock
