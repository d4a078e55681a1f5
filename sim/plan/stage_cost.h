// StageCost: seconds and bytes of one stage for one micro-batch; where models meet hardware.
// SPDX-License-Identifier: Apache-2.0
//
// Every module is priced once, alone; a stage is a sum of modules that uses the head, and sends the
// output, of its last one.
//
// Example: the first 13 modules of gpt2-medium on 8 tensor devices of a DGX A100, one sample in
// bf16: a forward of 974 us of kernels (42.3 Gflop) that waits 964 us for 25 all-reduces of 2 MiB;
// an output of 2 MiB, a stash of 165 MB, weights of 53 MB.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "base/exchange.h"
#include "hardware/devices/device.h"
#include "models/layers/model_graph.h"
#include "sim/plan/cost_parts.h"
#include "sim/plan/partition.h"
#include "sim/plan/passages.h"
#include "sim/plan/schedules/catalogue.h"
#include "sim/plan/schedules/strategy.h"

namespace interlock {

/// The casts that a device of a stage makes of what passes to and from other ranks: of its part of
/// what it sends, and of all parts of what it reads, once gathered.
struct MessageCasts {
  OpCost output, output_read;      // its own output; that of the stage before
  OpCost gradient, gradient_read;  // for the stage before; of its own output
};

/// Durations, flops and bytes of a module or a stage, one micro-batch.
struct StageCost {
  OpCost forward, backward_input, backward_weight, recompute, update;
  OpCost first_backward_input;  // the part of backward_input that only the stage's input needs
  OpCost next_forward;          // of the part above, where a strategy runs it twice
  LinkCost link;                // of the modules that the stage above trains too
  OpCost head, head_update;     // zero where the stage runs no head
  OpCost deferrable;            // of backward_weight: the last module's, if one product makes it
  Seconds gradient_addition;    // adding one output gradient to another (sum and mean)
  Bytes output, stash, workspace, head_memory;
  Bytes deferred;        // what `deferrable` reads
  Bytes carried;         // of a stage's stash, and beside a module's: see Module
  Bytes remade;          // of a module's workspace: what its recompute brings back
  Bytes relaid;          // of a module: see Module
  Bytes returned;        // of the output, with its gradient: where stages are reversible
  Footprint state;       // weights, gradients, optimiser states; a stage's include its head's
  Footprint head_state;  // of a module's head
  // State of layers that experts divide, part of `state`. Another group of devices holds a copy.
  Footprint expert_state;
  int tied_to = 0;       // number of a module that shares weights with this one
  Footprint tied_state;  // of these weights, held where that module is not
  OpCost tied_update;
  // Beside an update, over the gradients that are held: not divided as the optimiser's states are.
  Seconds sweeps, tied_sweeps;
  Bytes readout;                         // weights of the head, sent where heads are stale copies
  Bytes whole_weights, whole_gradients;  // before states are divided, see DataParallel
  // Weights go to other devices in another format: bytes beyond `state`, and those of experts.
  Bytes more_sent, more_sent_experts, more_sent_tied;
  // Weights that are not trained, part of `state` and of the others.
  Bytes frozen, frozen_experts, frozen_tied;
  // How gradients are reduced, see DataParallel: whether the stage adds up all of them first;
  // whether it reduces those of every backward, of several for each update.
  bool adds_up_whole_gradients = true, reduces_each_backward = false;
  Bytes host_stash;                    // of the stash: waits in the host's memory, see Offload
  Bytes host_gradients, host_weights;  // to and from the host at an update, see Offload
  Bytes host_optimizer;                // states that the host keeps
  Bytes outer_buffer;                  // outer gradients on their way, see OuterSteps
  std::optional<Bytes> sent_output, sent_gradient;  // its output and the gradient of that, if cast
  MessageCasts casts;                               // see add_message_casts
  VocabularyCost vocabulary;                        // of its rank
  ContextCost context;                              // of a slice
  int modules = 1, layout = 0;  // layout: a stage has that of its last one, see layer_layouts.h
  std::vector<StageCost> parts = {};  // states, updates, weights by layout, if there are several
  std::vector<int> places = {};       // of a part: its modules' numbers in the stage, from 0 on
  /// Returns the bytes that come back from the stage above.
  Bytes output_gradient() const { return output + returned; }
};

/// The inputs that price a module.
struct PriceInputs {
  Device device;
  Precision precision = Precision::Bf16;
  OptimizerRule optimizer = {};
  Framework framework = {};
  /// How long one of the exchange takes (not all of its count), for a typical group.
  std::function<Seconds(const Exchange&)> exchange_time = {};
};

/// Returns the time of an elementwise kernel that reads and writes `bytes`; 0 on a device without
/// rates.
Seconds pass_time(Bytes bytes, const PriceInputs& inputs);

/// Returns the cost of such a kernel that the host issues by itself, as it does a module's.
OpCost pass_cost(Bytes bytes, const PriceInputs& inputs);

/// Returns the bytes that the weight gradients of the last module read, if one product makes them:
/// the module's input and the gradient of its logits. Nothing if there is no such product.
std::optional<Bytes> deferrable_bytes(const ModelGraph& graph, Precision precision);

/// Returns the price of each module alone, with its head.
std::vector<StageCost> price_modules(const ModelGraph& graph, const PriceInputs& inputs);

/// Appends `module` to a stage from `first_module` on; shared weights count once in a stage.
void append_module(StageCost& stage, const StageCost& module, int first_module);

/// Returns modules as `strategy` runs them; in `changed` if that is another way. Forward-forward
/// takes each through a positive and a negative pass and makes weight gradients of both from a loss
/// of its own, so that nothing goes further back than its weights; or than its first operator, for
/// which its output, which the loss is made of, stays. The last one's loss keeps what it reads.
const std::vector<StageCost>& as_run(const std::vector<StageCost>& modules,
                                     const Strategy& strategy, std::vector<StageCost>& changed);

/// Returns the cost of every stage under a strategy. REQUIRES: partition.stages() ==
/// parts_of(strategy, n) for n = roles.size().
std::vector<StageCost> price_stages(const std::vector<StageCost>& modules,
                                    const Partition& partition, const Strategy& strategy,
                                    const std::vector<StageRole>& roles);

/// Changes the costs of stages, in order, whose forwards keep something else than all of the stash.
void apply_stash_mode(StashMode mode, std::vector<StageCost>& stages);

/// Returns the op I (weights false) or B (weights true) of one traversal.
OpCost traversal_cost(const StageCost& stage, const Strategy& strategy, const Traversal& traversal);

/// Returns the cost of the recompute with which a traversal begins.
const OpCost& recompute_cost(const StageCost& stage, const Traversal& traversal);

}  // namespace interlock
