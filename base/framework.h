// Framework: what a training framework adds to the model's kernels and the device's rates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/units.h"

namespace interlock {

/// When devices of equal weights reduce their gradients: once for each update, after adding up
/// those of its micro-batches, or after every micro-batch.
enum class GradientReduction { Step, MicroBatch };

/// Gradients of an embedding's table: the rows of a micro-batch's tokens, added to those kept; all
/// rows, most of them zeros; all, which a kernel of its own adds while products add theirs.
enum class TableGradients { Rows, Dense, DenseAdded };

/// Products that keep an empty gradient of each shape of their weights: none; all but those of
/// experts; all.
enum class DummyGradients { None, Dense, All };

/// Parts of a layer whose kernels run as CUDA graphs. Attention: with the norm before it and the
/// sum behind. Router: with its norm, up to the counts of tokens; experts are not in it.
struct CudaGraphs {
  bool attention = false, router = false;
  bool operator==(const CudaGraphs&) const = default;
};

/// Parts of routing that one kernel does where a framework otherwise takes small steps: scores,
/// choices and the loss that balances them; moves of tokens among experts.
struct FusedRouting {
  bool router = false, permutation = false;
  bool operator==(const FusedRouting&) const = default;
};

/// All zeros and ones: nothing is added, every kernel is there when its device is free.
struct Framework {
  std::string name;  // empty: none was named
  /// The host's time to issue one kernel, or one collective. Kernels of a module cannot follow each
  /// other faster; where they take longer the host runs ahead and its time does not show. Example:
  /// ten kernels of 3 us that are issued in 5 us each take 50 us, ten of 8 us take 80 us.
  Seconds kernel_issue, exchange_issue;
  /// Time to issue a kernel of gradients, where another thread issues those; none: as other
  /// kernels.
  std::optional<Seconds> backward_issue = {};
  /// Time to issue the product of each further expert of those that a device holds, or the cast
  /// before it, where products of experts are issued one by one.
  Seconds expert_issue;
  CudaGraphs graphs = {};
  FusedRouting fused_routing = {};
  /// The host waits for each kernel and each collective before it issues the next one, so that its
  /// time adds to theirs: the ten kernels above take 80 us, and 130 us.
  bool blocking_launches = false;
  /// Speed of its matrix products and its attention, over the device's efficiencies.
  double product_speed = 1, attention_speed = 1;
  /// Speed of products that stay in 16 bits where training has 8 or 4; none: as that of all.
  std::optional<double> wide_product_speed = {};
  /// Attention of devices of an architecture that has another speed, likewise.
  std::map<std::string, double> attention_speeds = {};
  /// Speed of products of 16 bits that have an odd size, over others: e.g. of a readout whose
  /// vocabulary nothing pads, so that no row of logits begins where loads of several elements may.
  double odd_product_speed = 1;
  /// Bytes that the loss moves, over those of a loss in one kernel each way.
  double loss_traffic = 1;
  /// Bytes of each logit that the loss keeps from its forward to its backward, and bytes that its
  /// backward makes beside them; none: an element of the training's precision.
  double loss_stash = 4;
  std::optional<double> loss_gradients = {};
  /// Every tensor device holds the whole embedding, and gathers the logits that each makes a part
  /// of.
  bool gathers_vocabulary = false;
  /// Memory that the allocator holds beyond what it has handed out, over that.
  double reserve = 0;
  double held() const { return 1 + reserve; }
  /// Memory that libraries keep on each device beside all tensors, e.g. workspaces of matrix
  /// products: by architecture of the device ("NVIDIA Hopper"); "other": of every other one.
  std::map<std::string, Bytes> library_memory = {};
  /// Memory that they keep beside it where a device holds experts, whose products run in streams of
  /// their own.
  std::map<std::string, Bytes> expert_library_memory = {};
  /// Products that keep an empty gradient of each shape of their weights, in the weights' format.
  DummyGradients dummy_gradients = DummyGradients::None;
  /// Stored scores of attention are made in a buffer of the framework, as large as the most that a
  /// layer of the device makes, which nothing gives back.
  bool keeps_attention_scores_buffer = false;
  /// Memory of a process's context on a device, which no peak has; none: that of kernels which are
  /// loaded as they are used.
  std::optional<Bytes> context_memory = {};
  /// Products in 8 or 4 bits keep their inputs so for the backward, where their weights are
  /// trained.
  bool keeps_narrow = false;
  /// Bytes that the softmax over attention scores moves, over those of one that also scales them.
  double softmax_traffic = 1;
  /// Its kernel takes that many heads of samples at once, and is there for multiples alone: else
  /// scores are cast, scaled and masked by kernels of their own. 0: it is always there.
  double softmax_group = 0;
  /// Routing and moving tokens of experts takes a kernel for each small step.
  bool routes_in_steps = false;
  /// Scores of experts multiply the outputs of their activations, which are kept only where the MLP
  /// is not gated; else the outputs of experts, which are kept.
  bool scores_activations = false;
  /// Recomputation makes the outputs of modules again, too, which no backward reads; else it ends
  /// with what is read last, before the second product of an MLP and the sum behind it.
  bool recomputes_output = true;
  /// Small kernels that each part of a layer, or each whole layer, takes beside its own to run
  /// again.
  int recompute_steps = 0;
  bool fp32_gradients = false;  // weight gradients are kept and exchanged in fp32
  /// Beside them stay those of the training's precision that each backward makes.
  bool keeps_made_gradients = false;
  /// Each update makes copies of gradients in fp32, which stay until the next step begins.
  bool copies_gradients = false;
  /// ZeRO 2 and 3: when gradients are reduced, where the scenario does not say.
  GradientReduction gradient_reduction = GradientReduction::Step;
  /// Passes over the weights' gradients that adding a micro-batch's to those before it takes.
  double gradient_passes = 0;
  TableGradients table_gradients = TableGradients::Rows;
  /// Beside the optimiser's own kernel, at each update: passes over the gradients that a device
  /// holds, and bytes of each parameter that it updates.
  double gradient_sweeps = 0, update_bytes = 0;
  /// Bytes of each parameter that a device updates, for what its optimiser makes anew at each
  /// update: the allocator keeps that memory from one update to the next.
  double update_buffers = 0;
  /// Sums of input gradients over tensor devices run beside the weight gradients of the layer that
  /// they come from.
  bool overlaps_sums = false;
  /// Activations that tensor devices gather, and those whose sums they scatter, are copied once
  /// more, as libraries join and cut tensors along their first dimension alone.
  bool copies_gathered = false;
  /// A device stands until what it sends to a neighbour in the pipeline has left.
  bool waits_for_sends = false;
  /// Each tensor device sends a part of an output that all of them hold, and they gather the parts
  /// that arrive.
  bool divides_messages = false;
  /// The rate of copies, between kernels, of messages to and from buffers of the host that the
  /// network reads and fills; 0: devices send and receive beside their kernels.
  BytesPerSecond message_copies;
  /// Share of the multiprocessors that each collective under way takes, where the device says none.
  double collective_sms = 0;

  bool operator==(const Framework&) const = default;
};

}  // namespace interlock
