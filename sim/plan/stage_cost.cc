// Pricing modules and stages.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "models/equal_modules.h"
#include "sim/plan/layer_layouts.h"

namespace interlock {

namespace {

/// Returns the host's time to issue all of `item`.
Seconds issue_of(const Work& item, const Framework& framework) {
  if (item.replayed) return Seconds(0);
  const bool gradient = item.role == OpRole::InputGradient || item.role == OpRole::WeightGradient;
  const Seconds one =
      gradient ? framework.backward_issue.value_or(framework.kernel_issue) : framework.kernel_issue;
  return item.launches * one + item.more_issues * framework.expert_issue;
}

/// Returns true if `work` is a product in 16 bits of matrices whose rows begin anywhere.
bool is_odd(const Work& work, Precision precision) {
  const bool narrow = product_format(precision).has_value();
  const bool sixteen =
      (narrow && work.wide) || precision == Precision::Bf16 || precision == Precision::Fp16;
  const ProductShape& s = work.shape;
  const auto odd = [](double size) { return std::fmod(size, 2) == 1; };
  return sixteen && work.op_class == OpClass::Gemm && s.k > 0 && (odd(s.m) || odd(s.n) || odd(s.k));
}

/// Returns the time of `work` on the device, under the framework.
KernelTime time_of_kernel(const Work& work, const PriceInputs& inputs) {
  KernelTime time = kernel_time(work, inputs.device, inputs.precision);
  const double speed = inputs.framework.odd_product_speed;
  if (speed < 1 && is_odd(work, inputs.precision)) time.compute = time.compute / speed;
  return time;
}

bool passes(const Exchange& exchange) { return exchange.way != TokenWay::None; }

/// Returns how long tokens are on their way while nothing runs beside them.
Seconds waiting_for_tokens(const OpCost& cost, const std::vector<Exchange>& exchanges,
                           const PriceInputs& inputs) {
  PassageChain chain{.times = cost.placed()};
  WayTimes ways;
  for (const Exchange& exchange : exchanges) {
    if (!passes(exchange)) continue;
    const bool there = exchange.way == TokenWay::There;
    (there ? ways.there : ways.back) = inputs.exchange_time(exchange);
    chain.turns = exchange.count;
  }
  return chain.turns == 0 ? Seconds(0) : time_of(steps_alone(chain), {ways}) - chain.times.total();
}

/// The device's time for kernels, and the host's to issue them.
struct Issued {
  Seconds device, host;
  Seconds late() const { return std::max(Seconds(0), host - device); }
  Seconds ahead() const { return std::max(Seconds(0), device - host); }
};

/// Returns how long the device waits for the host. Until kernels that it awaits have ended
/// (`before`) the host may be ahead by what it was at the end of the layer before, a like one; then
/// it is not. Example: 2 ms of kernels in 3 ms of issuing, awaited, then 5 in 1: the next layer
/// begins 4 ms ahead, so that nothing is late; were the second part issued in 6 ms it would be 1
/// late itself, and the first 1, too.
Seconds late_kernels(const Issued& all, const std::optional<Issued>& before) {
  if (!before) return all.late();
  const Issued after = {all.device - before->device, all.host - before->host};
  return after.late() + std::max(Seconds(0), before->late() - after.ahead());
}

/// Prices `work`. `places`: of a module whose tokens pass to experts beside other kernels.
OpCost price(const std::vector<Work>& work, const PriceInputs& inputs,
             const std::vector<Exchange>& exchanges = {}, bool places = false) {
  OpCost cost;
  Seconds issue(0);
  std::optional<Issued> awaited;  // up to the last kernel that is
  for (const Work& item : work) {
    const KernelTime time = time_of_kernel(item, inputs);
    issue += issue_of(item, inputs.framework);
    const double bound = std::max(time.compute, time.memory).value();
    const double share = bound > 0 ? bound / time.whole().value() : 0;
    const bool computes = time.compute >= time.memory;
    if (places) cost.at[static_cast<std::size_t>(item.place)] += time.whole();
    cost += {.time = time.whole(),
             .flops = item.flops,
             .counted = counted_flops(item),
             .compute_bound = computes ? share : 0,
             .memory_bound = computes ? 0 : share};
    if (item.awaited) awaited = Issued{cost.time, issue};
  }
  Seconds apart(0), beside(0);
  for (const Exchange& exchange : exchanges) {
    CHECK(inputs.exchange_time, "a price for exchanges");
    if (!passes(exchange)) {
      (exchange.overlapped ? beside : apart) += exchange.count * inputs.exchange_time(exchange);
    }
    issue += exchange.count * inputs.framework.exchange_issue;
    cost += {.exchanges = {exchange}};
  }
  cost.waiting = apart + std::max(Seconds(0), beside - cost.time) +
                 waiting_for_tokens(cost, exchanges, inputs);
  const Seconds late =
      inputs.framework.blocking_launches ? issue : late_kernels({cost.whole(), issue}, awaited);
  if (late > Seconds(0)) {
    if (places) cost.at[static_cast<std::size_t>(KernelPlace::Around)] += late;
    cost += {.time = late};
  }
  return cost;
}

Footprint footprint_of(const WeightCount& weights, const PriceInputs& inputs) {
  const Framework& framework = inputs.framework;
  Footprint held = footprint(weights, inputs.optimizer, inputs.precision, framework.fp32_gradients);
  const auto count = static_cast<double>(weights.all);
  held.update_buffers = Bytes(count * framework.update_buffers);
  const double element = element_bytes(inputs.precision);
  if (framework.keeps_made_gradients && element < 4) held.made_gradients = Bytes(count * element);
  if (framework.copies_gradients && element < 4) held.update_copies = Bytes(count * 4);
  return held;
}

/// Returns the bytes of weights that are sent, beyond those that are held.
Bytes more_sent(const WeightCount& weights, const PriceInputs& inputs) {
  return sent_weights(weights, inputs.optimizer, inputs.precision) -
         footprint_of(weights, inputs).weights;
}

/// Returns the precision of an update's products. Muon's have 16 bits where those of layers are
/// narrower; those that turn gradients read fp32.
Precision update_precision(const PriceInputs& inputs) {
  std::vector<Precision> wanted;
  if (inputs.optimizer.kind == Optimizer::BasisRotation)
    wanted = {Precision::Tf32, Precision::Fp32};
  const bool narrow = product_format(inputs.precision).has_value();
  if (inputs.optimizer.kind == Optimizer::Muon && narrow) wanted = {Precision::Bf16};
  const auto found = std::ranges::find_if(
      wanted, [&](Precision precision) { return supports(inputs.device, precision); });
  return found == wanted.end() ? inputs.precision : *found;
}

OpCost price_update(const std::vector<Work>& work, PriceInputs inputs) {
  inputs.precision = update_precision(inputs);
  return price(work, inputs);
}

/// Returns the state that an auxiliary head adds to its stage.
Footprint head_state(const Head& head, const PriceInputs& inputs) {
  Footprint state = footprint_of(head.parameters, inputs);
  if (!head.trainable) state = {.weights = state.weights};
  return state;
}

}  // namespace

Seconds pass_time(Bytes bytes, const PriceInputs& inputs) {
  if (!has_rates(inputs.device)) return Seconds(0);
  const Work pass{.op_class = OpClass::Elementwise, .bytes = bytes};
  return time_of(pass, inputs.device, inputs.precision);
}

OpCost pass_cost(Bytes bytes, const PriceInputs& inputs) {
  if (has_rates(inputs.device)) return price({{.bytes = bytes}}, inputs);
  return price({{.op_class = OpClass::Measured}}, inputs);
}

namespace {

/// Returns the time of the passes over `gradients` at an update; 0 on a device without rates.
Seconds sweep_time(Bytes gradients, const PriceInputs& inputs) {
  const double passes = inputs.framework.gradient_sweeps;
  if (passes == 0 || gradients <= Bytes(0) || !has_rates(inputs.device)) return Seconds(0);
  const Work sweep{.op_class = OpClass::Optimizer, .bytes = passes * gradients};
  return time_of(sweep, inputs.device, inputs.precision);
}

/// Adds the weights of `module` that are not trained.
void add_frozen(const Module& module, const PriceInputs& inputs, StageCost& cost) {
  const auto bytes = [&](const WeightCount& weights) {
    return frozen_weights(weights, inputs.optimizer, inputs.precision);
  };
  cost.frozen = bytes(module.frozen);
  cost.frozen_experts = bytes(module.frozen_experts);
  cost.state.weights += cost.frozen;
  cost.expert_state.weights += cost.frozen_experts;
  if (!module.tied_frozen) return;
  cost.frozen_tied = bytes(module.tied_parameters);
  cost.tied_state = {.weights = cost.frozen_tied};
  cost.more_sent_tied = Bytes(0);
  cost.tied_update = {};
  cost.tied_sweeps = Seconds(0);
}

StageCost price_module(const Module& module, PriceInputs inputs) {
  if (module.wide) inputs.optimizer.weights.reset();  // they are stored in 16 bits
  StageCost cost;
  const bool places = std::ranges::any_of(module.forward_exchanges, passes);
  const auto priced = [&](const std::vector<Work>& work, const std::vector<Exchange>& exchanges) {
    return price(work, inputs, exchanges, places);
  };
  cost.forward = priced(module.forward, module.forward_exchanges);
  cost.backward_input = priced(module.backward_input, module.backward_input_exchanges);
  cost.first_backward_input =
      priced(module.first_backward_input, module.first_backward_input_exchanges);
  cost.backward_weight = priced(module.backward_weight, module.backward_weight_exchanges);
  cost.recompute = priced(module.recompute, module.recompute_exchanges);
  cost.update = price_update(module.update, inputs);
  cost.head = price(module.head.work, inputs, module.head.exchanges);
  cost.head_update = price_update(module.head.update, inputs);
  cost.output = module.output;
  cost.stash = module.stash;
  cost.carried = module.carried;
  cost.workspace = module.workspace;
  cost.relaid = module.relaid;
  cost.remade = module.remade;
  cost.head_memory = module.head.memory;
  cost.gradient_addition = pass_time(3 * module.output, inputs);
  cost.tied_to = module.tied_to;
  cost.layout = module.layout;
  const WeightCount tied(module.tied_parameters, module.tied_matrices);
  cost.state = footprint_of(weights_of(module), inputs);
  cost.expert_state = footprint_of(expert_weights_of(module), inputs);
  cost.tied_state = footprint_of(tied, inputs);
  cost.tied_update =
      price_update(update_work(tied, inputs.optimizer, inputs.precision, inputs.framework), inputs);
  cost.sweeps = sweep_time(cost.state.gradients, inputs);
  cost.tied_sweeps = sweep_time(cost.tied_state.gradients, inputs);
  cost.more_sent = more_sent(weights_of(module), inputs);
  cost.more_sent_experts = more_sent(expert_weights_of(module), inputs);
  cost.more_sent_tied = more_sent(tied, inputs);
  add_frozen(module, inputs, cost);
  if (module.context.layers > 0) {
    cost.context = {cost.forward, cost.backward_input, cost.recompute, module.context};
  }
  cost.readout =
      Bytes(static_cast<double>(module.head.parameters) * element_bytes(inputs.precision));
  return cost;
}

/// Adds the ops and the memory of `module` to the stage; output and head are those of the last.
void append(StageCost& stage, const StageCost& module) {
  stage.forward += module.forward;
  stage.backward_input += module.backward_input;
  stage.backward_weight += module.backward_weight;
  stage.recompute += module.recompute;
  stage.update += module.update;
  stage.sweeps += module.sweeps;
  const Bytes carried = std::max(stage.carried, module.carried);
  stage.stash += module.stash + carried - stage.carried;
  stage.carried = carried;
  stage.workspace = std::max({stage.workspace, module.workspace, module.relaid});
  stage.state += module.state;
  stage.expert_state += module.expert_state;
  stage.more_sent += module.more_sent;
  stage.more_sent_experts += module.more_sent_experts;
  stage.frozen += module.frozen;
  stage.frozen_experts += module.frozen_experts;
  if (module.context.bytes.layers > 0) {
    stage.context.forward += module.context.forward;
    stage.context.backward_input += module.context.backward_input;
    stage.context.recompute += module.context.recompute;
    stage.context.bytes += module.context.bytes;
  }
  ++stage.modules;
  stage.layout = module.layout;
  stage.output = module.output;
  stage.deferrable = module.deferrable;
  stage.deferred = module.deferred;
  stage.gradient_addition = module.gradient_addition;
}

/// Returns the cost of a module that only goes forward.
StageCost forward_only(const StageCost& module) {
  StageCost cost;
  cost.forward = module.forward;
  cost.output = module.output;
  cost.workspace = std::max(module.workspace, module.relaid);
  cost.state.weights = module.state.weights;
  cost.expert_state.weights = module.expert_state.weights;
  cost.tied_to = module.tied_to;
  cost.layout = module.layout;
  cost.tied_state.weights = module.tied_state.weights;
  cost.more_sent = module.more_sent;
  cost.more_sent_experts = module.more_sent_experts;
  cost.more_sent_tied = module.more_sent_tied;
  return cost;
}

/// Returns the last `count` of modules [first, last), or as many as there are.
LinkCost link_cost(const std::vector<StageCost>& modules, int first, int last, int count) {
  LinkCost link;
  const int lowest = std::max(first, last - count);
  for (int module = lowest; module < last; ++module) {
    link.backward_input += modules[module].backward_input;
    link.backward_weight += modules[module].backward_weight;
    link.recompute += modules[module].recompute;
  }
  link.first_backward_input = modules[lowest].first_backward_input;
  return link;
}

}  // namespace

const std::vector<StageCost>& as_run(const std::vector<StageCost>& modules,
                                     const Strategy& strategy, std::vector<StageCost>& changed) {
  if (strategy.kind == StrategyKind::Inference) {
    std::transform(modules.begin(), modules.end(), std::back_inserter(changed), forward_only);
    return changed;
  }
  if (strategy.kind != StrategyKind::ForwardForward) return modules;
  changed = modules;
  for (StageCost& module : changed) {
    for (OpCost* cost : {&module.forward, &module.backward_weight, &module.recompute}) {
      *cost += OpCost(*cost);
    }
    if (strategy.module_gradients) {
      module.backward_input -= module.first_backward_input;
      module.backward_input += OpCost(module.backward_input);
      if (&module != &changed.back()) module.stash += module.output;
      module.workspace = 2 * module.workspace;
    } else {
      module.backward_input = {};
    }
    module.first_backward_input = {};
    module.output = 2 * module.output;
    module.stash = 2 * module.stash;
    module.carried = 2 * module.carried;
  }
  return changed;
}

void append_module(StageCost& stage, const StageCost& module, int first_module) {
  append(stage, module);
  if (first_module <= module.tied_to) return;
  stage.state += module.tied_state;
  stage.more_sent += module.more_sent_tied;
  stage.frozen += module.frozen_tied;
  stage.update += module.tied_update;
  stage.sweeps += module.tied_sweeps;
}

std::optional<Bytes> deferrable_bytes(const ModelGraph& graph, Precision precision) {
  const std::size_t count = graph.modules.size();
  if (count < 2) return std::nullopt;
  const ProductShape* product = nullptr;
  for (const Work& work : graph.modules[count - 1].backward_weight) {
    if (work.op_class != OpClass::Gemm) continue;
    if (product != nullptr || work.shape.batch != 1) return std::nullopt;
    product = &work.shape;
  }
  if (product == nullptr || product->k == 0) return std::nullopt;
  const Bytes logits(product->k * product->n * element_bytes(precision));
  const Module &readout = graph.modules[count - 1], &before = graph.modules[count - 2];
  const bool laid_anew = readout.relaid > Bytes(0);  // from one form to the other: both
  return (laid_anew ? readout.relaid - before.output : before.output) + logits;
}

std::vector<StageCost> price_modules(const ModelGraph& graph, const PriceInputs& inputs) {
  std::vector<StageCost> costs;
  costs.reserve(graph.modules.size());
  for (const Module& module : graph.modules) {
    const Module* before = costs.empty() ? nullptr : &module - 1;
    const bool again = before != nullptr && equal_work(*before, module);
    costs.push_back(again ? StageCost(costs.back()) : price_module(module, inputs));
    costs.back().head_state = head_state(module.head, inputs);
  }
  if (const auto bytes = deferrable_bytes(graph, inputs.precision)) {
    costs.back().deferrable = costs.back().backward_weight;
    costs.back().deferred = *bytes;
  }
  return costs;
}

std::vector<StageCost> price_stages(const std::vector<StageCost>& priced,
                                    const Partition& partition, const Strategy& strategy,
                                    const std::vector<StageRole>& roles) {
  std::vector<StageCost> changed;
  const std::vector<StageCost>& modules = as_run(priced, strategy, changed);
  const int stages = static_cast<int>(roles.size());
  CHECK(partition.stages() == parts_of(strategy, stages), "the partition has other parts");
  std::vector<StageCost> costs(stages);
  for (int stage = 0; stage < stages; ++stage) {
    StageCost& cost = costs[stage];
    cost.modules = 0;
    const int first = partition.boundaries[stage];
    int last = partition.boundaries[stage + 1];
    for (int module = first; module < last; ++module) append_module(cost, modules[module], first);
    cost.first_backward_input = modules[first].first_backward_input;
    if (roles[stage].runs_next_part) {
      // The block is this part and the one above it; the boundary is this part's output.
      StageCost block = cost;
      const int end = partition.boundaries[stage + 2];
      for (int module = last; module < end; ++module) {
        append_module(block, modules[module], first);
        block.next_forward += modules[module].forward;
      }
      block.forward = cost.forward;
      block.output = cost.output;
      block.layout = cost.layout;
      cost = block;
      last = end;
    }
    if (!roles[stage].traversals.empty() && roles[stage].traversals.back().partial) {
      cost.link = link_cost(modules, first, last, strategy.linked_modules);
    }
    if (roles[stage].head) {
      const StageCost& top = modules[last - 1];
      cost.head = top.head;
      cost.head_update = top.head_update;
      cost.head_memory = top.head_memory;
      cost.state += top.head_state;
      cost.readout = top.readout;
    }
    cost.parts = parts_by_layout(modules, first, last, roles[stage].head);
  }
  return costs;
}

void apply_stash_mode(StashMode mode, std::vector<StageCost>& stages) {
  if (mode == StashMode::Kept) return;
  Bytes input(0);
  for (StageCost& stage : stages) {
    // The activations of the second forward live as long as one backward.
    stage.recompute += stage.forward;
    stage.workspace += stage.stash;
    // Nothing is computed back from a loss, so the last stage holds its input.
    const bool holds = mode == StashMode::Replayed || &stage == &stages.back();
    stage.stash = holds ? input : Bytes(0);
    input = stage.output;
    if (mode == StashMode::Rebuilt) stage.returned = stage.output;
  }
}

OpCost traversal_cost(const StageCost& stage, const Strategy& strategy,
                      const Traversal& traversal) {
  const auto back_through = [&](const auto& modules) {
    OpCost cost = modules.backward_input;
    const bool skips = !traversal.to_previous && strategy.skip_unneeded_input_gradients;
    if (skips) cost -= modules.first_backward_input;
    if (traversal.weights) cost += modules.backward_weight;
    return cost;
  };
  return traversal.partial ? back_through(stage.link) : back_through(stage);
}

const OpCost& recompute_cost(const StageCost& stage, const Traversal& traversal) {
  return traversal.partial ? stage.link.recompute : stage.recompute;
}

}  // namespace interlock
