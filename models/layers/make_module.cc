// Modules made of operators: the sum of their work, what is kept of it and what runs again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/layers/adapters.h"
#include "models/layers/operators.h"

namespace interlock {
namespace {

void append(std::vector<Work>& works, const Work& work, OpRole role,
            KernelPlace place = KernelPlace::Around) {
  if (work.launches == 0) return;
  works.push_back(work);
  works.back().role = role;
  works.back().place = place;
}

/// Returns the update of the module's own parameters.
std::vector<Work> update_of(const Module& module, const BuildOptions& options) {
  std::vector<Work> works =
      update_work(weights_of(module), options.optimizer, options.precision, options.framework);
  std::vector<Work> products;
  if (options.optimizer.kind == Optimizer::Muon) {
    products = orthogonal_work(module.matrices, element_bytes(options.precision));
  } else if (options.optimizer.kind == Optimizer::BasisRotation) {
    products = rotation_work(module.matrices, options.optimizer);
  }
  works.insert(works.end(), products.begin(), products.end());
  return works;
}

/// Adds the weights of `op`.
void append_weights(Module& module, const ModuleFrame& frame, const Operator& op) {
  const Work& learns = op.weight_gradient;
  if (learns.op_class == OpClass::Gemm && learns.launches > 0 && !op.frozen) {
    module.shapes.push_back({learns.shape.m, learns.shape.n, op.expert});
  }
  module.parameters += op.parameters;
  if (op.expert) module.expert_parameters += op.parameters;
  std::vector<WeightMatrix> matrices = op.matrices;
  for (WeightMatrix& matrix : matrices) {
    matrix.hidden = matrix.hidden && frame.layers;
    matrix.expert = op.expert;
  }
  if (op.frozen) {
    const WeightCount frozen(op.parameters, op.linear ? matrices : std::vector<WeightMatrix>());
    module.frozen += frozen;
    if (op.expert) module.frozen_experts += frozen;
  } else {
    module.matrices.insert(module.matrices.end(), matrices.begin(), matrices.end());
  }
}

WeightCount count_of(std::int64_t parameters, std::vector<WeightMatrix> matrices, bool all) {
  if (!all) std::erase_if(matrices, [](const WeightMatrix& one) { return !one.expert; });
  return {parameters, matrices};
}

/// Sets the bytes that the loss and the softmax of attention move in `framework`. Where no host
/// issues kernels, as graphs replay whole steps, products of experts do not come one by one.
void apply_framework(std::vector<Work>& works, const Framework& framework) {
  const bool issues = std::max(framework.kernel_issue, framework.expert_issue) > Seconds();
  for (Work& work : works) {
    if (!issues) work.more_issues = 0;
    if (work.op_class == OpClass::Loss) work.bytes *= framework.loss_traffic;
    if (work.variant == OpVariant::Softmax) work.bytes *= framework.softmax_traffic;
  }
}

/// Returns the bytes that an operator keeps of its input in `framework`.
Bytes stash_of(const Operator& op, const Framework& framework) {
  const bool loss = op.forward.op_class == OpClass::Loss && op.forward.launches > 0;
  if (loss) return op.stash * (framework.loss_stash / Framework().loss_stash);
  const Bytes steps = framework.routes_in_steps ? op.stash_of_steps : Bytes(0);
  return op.stash + steps + (framework.scores_activations ? op.stash_of_scores : Bytes(0));
}

/// Returns the bytes of the gradients of an operator's input and output in `framework`.
Bytes gradients_of(const Operator& op, const BuildOptions& options) {
  const bool loss = op.forward.op_class == OpClass::Loss && op.forward.launches > 0;
  const double element = element_bytes(options.precision);
  return loss ? op.gradients * (options.framework.loss_gradients.value_or(element) / element)
              : op.gradients;
}

/// How often the kernels of a softmax read or write scores of 16 bits; scores in fp32 count twice.
struct SoftmaxPasses {
  double apart, fused;  // by five kernels; by one
};
/// Cast to fp32, scale, mask, softmax, cast back; the gradient of a softmax reads its result, too.
constexpr SoftmaxPasses kSoftmaxForward = {.apart = 3 + 4 + 4 + 4 + 3, .fused = 2};
constexpr SoftmaxPasses kSoftmaxGradient = {.apart = 3 + 6 + 4 + 4 + 3, .fused = 3};

/// Makes `work`, the fused kernel of a softmax, five kernels.
/// Source: FusedScaleMaskSoftmax in megatron/model/fused_softmax.py (NVIDIA/Megatron-LM, 2021).
void take_apart(Work& work, const SoftmaxPasses& passes) {
  work.launches += 4;
  work.bytes *= passes.apart / passes.fused;
}

/// Returns true if `op` is a softmax that the fused kernel of `framework` is not there for.
bool taken_apart(const Operator& op, const Framework& framework) {
  return framework.softmax_group > 0 && std::fmod(op.softmaxes, framework.softmax_group) != 0;
}

/// Returns the forward of `op` in `framework`.
Work forward_work(const Operator& op, const Framework& framework) {
  Work work = op.forward;
  work.replayed = op.replayed;
  work.awaited = op.counts_tokens && framework.routes_in_steps;
  if (framework.routes_in_steps) work.launches += op.forward_steps;
  if (taken_apart(op, framework)) take_apart(work, kSoftmaxForward);
  return work;
}

/// Returns the gradient of its input in `framework`.
Work input_work(const Operator& op, const Framework& framework) {
  Work work = op.input_gradient;
  work.replayed = op.replayed;
  if (framework.routes_in_steps) work.launches += op.backward_steps;
  if (taken_apart(op, framework)) take_apart(work, kSoftmaxGradient);
  return work;
}

/// Returns the product that makes the gradients of weights in `options`. Where it adds to those of
/// earlier micro-batches itself, it reads and writes them in their format; that of a layer's
/// experts, whose rows are few, waits for it.
Work weight_work(const Operator& op, const BuildOptions& options) {
  Work work = op.weight_gradient;
  work.replayed = op.replayed;
  if (!op.expert || !op.linear || options.framework.gradient_passes > 0) return work;
  const double element = element_bytes(options.precision);
  const double main = options.framework.fp32_gradients ? 4 : element;
  work.bytes += Bytes(static_cast<double>(op.parameters) * (2 * main - element));
  return work;
}

/// Lets the gradient of the table of `op` have all rows, see TableGradients: zeros are written
/// before those of its tokens; a table that is another's, too, is added to that one's; a kernel of
/// its own may add it to those kept. Source: embedding_dense_backward_cuda of
/// aten/src/ATen/native/cuda/Embedding.cu (pytorch/pytorch).
void append_table(std::vector<Work>& works, const Operator& op, const BuildOptions& options) {
  const Framework& framework = options.framework;
  const TableGradients gradients = framework.table_gradients;
  if (op.weight_gradient.launches == 0 || op.table == 0) return;
  if (gradients == TableGradients::Rows) return;
  const double element = element_bytes(options.precision);
  const double made = static_cast<double>(op.table) * element;
  const double kept = static_cast<double>(op.parameters) * (framework.fp32_gradients ? 4 : element);
  const auto pass = [&](double bytes) {
    append(works, {.op_class = OpClass::Elementwise, .bytes = Bytes(bytes)}, OpRole::WeightGradient,
           op.place);
  };
  pass(made);
  const bool added = gradients == TableGradients::DenseAdded && framework.gradient_passes == 0;
  if (op.parameters == 0) {
    pass(3 * made);
  } else if (added) {
    pass(made + 2 * kept);
  }
}

/// Adds the gradients that a micro-batch makes of the module's weights to those before it.
void append_addition(Module& module, const BuildOptions& options) {
  const double passes = options.framework.gradient_passes;
  const std::int64_t trained = module.parameters - module.frozen.all;
  if (passes == 0 || trained == 0) return;
  const double element = options.framework.fp32_gradients ? 4 : element_bytes(options.precision);
  append(module.backward_weight,
         {.op_class = OpClass::Elementwise,
          .bytes = Bytes(passes * static_cast<double>(trained) * element)},
         OpRole::WeightGradient);
}

/// Returns the cast to `format` of what a linear layer multiplies, with its transpose for the other
/// products: 16-bit tensors read, two narrow ones written. Those of 4 bits have a scale for the
/// whole tensor, too, so that they are read once before for its largest element. Weights are cast
/// once a step and not counted. Sources: NVIDIA Transformer Engine's recipe for FP8, user guide,
/// "Using FP8"; NVIDIA, Pretraining Large Language Models with NVFP4, arXiv 2509.25149, section 4.
Work cast_of(double elements, NumberFormat format) {
  const double reads = format == NumberFormat::Nvfp4 ? 2 : 1;
  return {.op_class = OpClass::Elementwise,
          .bytes = Bytes((2 * reads + 2 * stored_bytes(format)) * elements)};
}

/// Lets each product of a layer keep its input as it reads it, at `narrow` bytes an element, and
/// others that read that in 16 bits keep it so. Source: _Linear and _LayerNormLinear of
/// transformer_engine/pytorch/module (NVIDIA/TransformerEngine): of a quantised input only what the
/// gradient of the weights reads stays.
std::vector<Operator> keeping_bytes(std::vector<Operator> operators, double element,
                                    double narrow) {
  for (Operator& op : operators) {
    if (op.linear || op.keeps_narrow) op.stash = (op.stash + op.shared_stash) * (narrow / element);
    if (op.output_read == Bytes(0)) continue;
    op.inner_stash += op.output_read;
    op.outputs.clear();  // they are inside
  }
  return operators;
}

/// Lets activations of MLPs keep their input in 8 bits: the forward writes those, the backward
/// reads them in its place. Source: BiasSwiGLUFunction of
/// megatron/core/fusions/fused_bias_swiglu.py (NVIDIA/Megatron-LM), fp8_input_store.
std::vector<Operator> keeping_narrow_activations(std::vector<Operator> operators, double element) {
  for (Operator& op : operators) {
    if (!op.activation) continue;
    const Bytes wide = op.stash;
    op.stash = wide / element;
    op.forward.bytes += op.stash;
    op.input_gradient.bytes -= wide - op.stash;
  }
  return operators;
}

/// Adds the casts of what `op` multiplies, where `precision` asks for some.
void append_casts(std::vector<Work>& works, const Operator& op, Precision precision,
                  bool backward) {
  const auto format = product_format(precision);
  if (!format) return;
  if (op.forward.op_class != OpClass::Gemm || op.parameters == 0 || op.forward.wide) return;
  const ProductShape& shape = op.forward.shape;
  Work cast = cast_of(shape.m * (backward ? shape.n : shape.k) * shape.batch, *format);
  cast.replayed = op.replayed;
  cast.more_issues = op.forward.more_issues;
  append(works, cast, backward ? OpRole::InputGradient : OpRole::Forward, op.place);
}

/// Returns the exchanges of the gradients of an operator's inputs in `framework`.
std::vector<Exchange> input_exchanges(const Operator& op, const Framework& framework) {
  std::vector<Exchange> exchanges = op.input_exchanges;
  const bool waits_for_weights = op.weight_gradient.flops > Flops();
  if (!framework.overlaps_sums || !waits_for_weights) return exchanges;
  for (Exchange& exchange : exchanges) {
    const bool sums = exchange.kind == CollectiveKind::AllReduce ||
                      exchange.kind == CollectiveKind::ReduceScatter;
    const bool among_tensors =
        exchange.axis == MeshAxis::Tensor || exchange.axis == MeshAxis::ExpertTensor;
    if (sums && among_tensors) exchange.overlapped = true;
  }
  return exchanges;
}

/// Returns what a backward computes again by itself: parts of the module.
LayerParts parts_of(const BuildOptions& options) {
  if (options.recompute == Recompute::Selective) return LayerPart::CoreAttention;
  return options.recompute == Recompute::Parts ? options.recompute_parts : LayerParts();
}

/// Returns true if `op` has an inner stash that `part` drops. Selective recomputation leaves fused
/// attention alone, which stores no scores.
bool drops_inner(const Operator& op, LayerPart part, Recompute recompute) {
  const bool fused = stores_no_scores(op.forward);
  return op.parts.has(part) && op.inner_stash > Bytes(0) &&
         !(fused && recompute == Recompute::Selective);
}

/// Returns true if `op` makes no more than its output: a product, whose inputs others make.
bool is_plain_product(const Operator& op) {
  const bool product = op.forward.op_class == OpClass::Gemm && op.parameters > 0 &&
                       op.forward.variant == OpVariant::Plain && op.inner_stash == Bytes(0);
  return product && std::ranges::all_of(op.forward_exchanges, [](const Exchange& one) {
           return one.kind == CollectiveKind::AllReduce ||
                  one.kind == CollectiveKind::ReduceScatter;
         });
}

/// Returns how many of `ops` run again: all, or all up to the last that makes something which the
/// backward reads. Sums at the end keep nothing, and the product before them leads to these alone.
std::size_t repeatable(const std::vector<const Operator*>& ops, const Framework& framework) {
  std::size_t count = ops.size();
  if (framework.recomputes_output) return count;
  const auto keeps = [&](const Operator& op) {
    return op.inner_stash > Bytes(0) || stash_of(op, framework) > Bytes(0);
  };
  while (count > 0 && !keeps(*ops[count - 1])) --count;
  if (count > 0 && is_plain_product(*ops[count - 1])) --count;
  return count;
}

std::vector<const Operator*> places_of(const std::vector<Operator>& ops) {
  std::vector<const Operator*> places;
  for (const Operator& op : ops) places.push_back(&op);
  return places;
}

/// Adds the copies that gathers and scattered sums over tensor devices take in `framework`: what
/// arrives is read and written once more, as is what leaves.
void append_copies(std::vector<Work>& works, const Operator& op,
                   const std::vector<Exchange>& exchanges, const Framework& framework,
                   OpRole role) {
  if (!framework.copies_gathered) return;
  for (const Exchange& one : exchanges) {
    const bool cut =
        one.kind == CollectiveKind::AllGather || one.kind == CollectiveKind::ReduceScatter;
    const bool among_tensors = one.axis == MeshAxis::Tensor || one.axis == MeshAxis::ExpertTensor;
    if (!cut || !among_tensors) continue;
    append(works,
           {.op_class = OpClass::Elementwise,
            .bytes = 2 * one.bytes * static_cast<double>(one.count),
            .launches = one.count,
            .replayed = op.replayed},
           role, op.place);
  }
}

/// Runs `op` forward again, by `share`.
void run_again(Module& module, const Operator& op, const BuildOptions& options, double share = 1) {
  append_casts(module.recompute, op, options.precision, false);
  Work again = forward_work(op, options.framework);
  again.flops *= share;
  again.bytes *= share;
  if (again.counted) *again.counted *= share;
  again.shape.n *= share;
  append(module.recompute, again, OpRole::Forward, op.place);
  append_copies(module.recompute, op, op.forward_exchanges, options.framework, OpRole::Forward);
  append_exchanges(module.recompute_exchanges, op.forward_exchanges);
}

/// Adds what the framework does before it runs a part of a layer again.
void prepare_again(Module& module, const Operator& first, const BuildOptions& options) {
  append(module.recompute,
         {.launches = options.framework.recompute_steps, .replayed = first.replayed},
         OpRole::Forward, first.place);
}

/// Appends the forwards of `part`, if it drops anything; all of them where others keep its output.
/// Each norm runs again by itself.
void run_again(Module& module, const std::vector<Operator>& ops, LayerPart part,
               const BuildOptions& options) {
  std::vector<const Operator*> own;
  bool drops = false, leads = false;
  for (const Operator& op : ops) {
    const bool remade = op.remade.has(part) && op.stash > Bytes(0);
    drops = drops || remade || drops_inner(op, part, options.recompute);
    leads = leads || (remade && !op.parts.has(part));
    if (op.parts.has(part)) own.push_back(&op);
  }
  if (!drops) return;
  const std::size_t count = leads ? own.size() : repeatable(own, options.framework);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || part == LayerPart::Norms) prepare_again(module, *own[i], options);
    run_again(module, *own[i], options);
  }
}

/// Drops what `parts` make again, and has their forwards run again.
void recompute_parts(Module& module, const ModuleFrame& frame, const std::vector<Operator>& ops,
                     const BuildOptions& options) {
  const LayerParts parts = parts_of(options);
  const Bytes before = module.stash;
  for (int i = 0; i < kLayerParts; ++i) {
    if (parts.has(static_cast<LayerPart>(i))) {
      run_again(module, ops, static_cast<LayerPart>(i), options);
    }
  }
  for (const Operator& op : ops) {
    bool input = false, inner = false, runs = false;
    for (int i = 0; i < kLayerParts; ++i) {
      const auto part = static_cast<LayerPart>(i);
      if (!parts.has(part)) continue;
      input = input || op.remade.has(part);
      inner = inner || drops_inner(op, part, options.recompute);
      runs = runs || op.parts.has(part);
    }
    if (input) module.stash -= stash_of(op, options.framework);
    // An activation that runs again makes what scores multiply, too.
    const bool scored = options.framework.scores_activations && op.activation;
    if (runs && !input && scored) module.stash -= op.stash_of_scores;
    if (inner) module.stash -= op.inner_stash;
  }
  if (parts.has(LayerPart::LatentProjections)) {
    module.stash = std::min(before, module.stash + frame.later);
  }
  apply_framework(module.recompute, options.framework);
}

/// Returns the share of an operator's products that Recompute::Alternate runs again, and adds what
/// it keeps of them to `kept`. `product` counts the module's products.
double share_run_again(const Operator& op, const Sharding& sharding, int& product, Bytes& kept) {
  if (stores_no_scores(op.forward) && !op.outputs.empty()) {
    kept += op.inner_stash;
    for (const Bytes output : op.outputs) kept += output;
    return 0;
  }
  Bytes again(0), all(0);
  for (const Bytes output : op.outputs) {
    const bool keeps = ++product % 2 == 1;
    (keeps ? kept : again) += output;
    all += output;
  }
  // Sums over tensor devices are kept, too, so that they are not made again.
  for (const Exchange& exchange : op.forward_exchanges) {
    if (exchange.kind != CollectiveKind::ReduceScatter) continue;
    kept += exchange.bytes / sharding.tensor;
    return 0;
  }
  return all > Bytes(0) ? again / all : 1;
}

/// Keeps the module's input, and the outputs of fused attention and of every second product.
void keep_alternate(Module& module, const ModuleFrame& frame, const std::vector<Operator>& ops,
                    const BuildOptions& options) {
  Bytes kept = frame.input + frame.later;
  int product = 0;
  const std::size_t count = repeatable(places_of(ops), options.framework);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const double share = share_run_again(ops[i], options.sharding, product, kept);
    if (share <= 0 || i >= count) continue;
    if (module.recompute.empty()) prepare_again(module, ops[i], options);
    run_again(module, ops[i], options, share);
  }
  apply_framework(module.recompute, options.framework);
  module.stash = std::min(module.stash, kept);
}

void apply_recompute(Module& module, const ModuleFrame& frame, const std::vector<Operator>& ops,
                     const BuildOptions& options) {
  if (!frame.recomputable) return;
  for (const Operator& op : ops) {
    module.parts |= op.parts;
  }
  const Bytes before = module.stash;
  if (options.recompute == Recompute::Full) {
    const std::size_t count = repeatable(places_of(ops), options.framework);
    if (count > 0) prepare_again(module, ops.front(), options);
    for (std::size_t i = 0; i < count; ++i) run_again(module, ops[i], options);
    apply_framework(module.recompute, options.framework);
    module.stash = std::min(before, frame.input + frame.later);
  } else if (options.recompute == Recompute::Alternate) {
    keep_alternate(module, frame, ops, options);
  } else if (!parts_of(options).empty()) {
    recompute_parts(module, frame, ops, options);
  }
  module.remade = before - module.stash;
  module.workspace += module.remade;  // it comes back while the module's backward runs
}

void append_works(std::vector<Work>& works, const std::vector<Work>& more) {
  works.insert(works.end(), more.begin(), more.end());
}

}  // namespace

WeightCount weights_of(const Module& module) {
  return count_of(module.parameters - module.frozen.all, module.matrices, true);
}

WeightCount expert_weights_of(const Module& module) {
  return count_of(module.expert_parameters - module.frozen_experts.all, module.matrices, false);
}

void share_input(Operator& op) { op.shared_stash = std::exchange(op.stash, Bytes(0)); }

Module make_module(const ModuleFrame& frame, const std::vector<Operator>& given,
                   const BuildOptions& options) {
  const bool adapts = options.adapters.rank > 0;
  std::vector<Operator> operators = adapts ? adapted(given, options) : given;
  const auto format = product_format(options.precision);
  if (format && options.framework.keeps_narrow && !adapts) {
    operators = keeping_bytes(std::move(operators), element_bytes(options.precision),
                              stored_bytes(*format));
  }
  if (options.narrow_activations) {
    operators = keeping_narrow_activations(std::move(operators), element_bytes(options.precision));
  }
  Module module = {.name = frame.name, .output = frame.output};
  for (const Operator& op : operators) {
    append_casts(module.forward, op, options.precision, false);
    append(module.forward, forward_work(op, options.framework), OpRole::Forward, op.place);
    append_copies(module.forward, op, op.forward_exchanges, options.framework, OpRole::Forward);
    append_exchanges(module.forward_exchanges, op.forward_exchanges);
    append_weights(module, frame, op);
    module.stash += stash_of(op, options.framework) + op.inner_stash;
    module.workspace = std::max(module.workspace, gradients_of(op, options) + op.waiting);
    if (op.softmaxes > 0) module.scores = std::max(module.scores, op.inner_stash);
  }
  for (auto op = operators.rbegin(); op != operators.rend(); ++op) {
    append_casts(module.backward_input, *op, options.precision, true);
    append(module.backward_input, input_work(*op, options.framework), OpRole::InputGradient,
           op->place);
    append_copies(module.backward_input, *op, op->input_exchanges, options.framework,
                  OpRole::InputGradient);
    append_exchanges(module.backward_input_exchanges, input_exchanges(*op, options.framework));
    if (op->reads_module_input) {
      append(module.first_backward_input, input_work(*op, options.framework), OpRole::InputGradient,
             op->place);
      append_exchanges(module.first_backward_input_exchanges, op->input_exchanges);
    }
    append(module.backward_weight, weight_work(*op, options), OpRole::WeightGradient, op->place);
    append_table(module.backward_weight, *op, options);
    append_exchanges(module.backward_weight_exchanges, op->weight_exchanges);
  }
  for (auto* works : {&module.forward, &module.backward_input, &module.first_backward_input,
                      &module.backward_weight}) {
    apply_framework(*works, options.framework);
  }
  append_addition(module, options);
  module.update = update_of(module, options);
  apply_recompute(module, frame, operators, options);
  return module;
}

void append_module(Module& module, const Module& more) {
  append_works(module.forward, more.forward);
  append_exchanges(module.forward_exchanges, more.forward_exchanges);
  for (auto list : {&Module::backward_input, &Module::backward_weight, &Module::recompute}) {
    std::vector<Work> works = more.*list;
    append_works(works, module.*list);
    module.*list = std::move(works);
  }
  append_works(module.update, more.update);
  for (auto list : {&Module::backward_input_exchanges, &Module::backward_weight_exchanges,
                    &Module::recompute_exchanges}) {
    append_exchanges(module.*list, more.*list);
  }
  module.parameters += more.parameters;
  module.expert_parameters += more.expert_parameters;
  module.matrices.insert(module.matrices.end(), more.matrices.begin(), more.matrices.end());
  module.shapes.insert(module.shapes.end(), more.shapes.begin(), more.shapes.end());
  module.frozen += more.frozen;
  module.frozen_experts += more.frozen_experts;
  module.stash += more.stash;
  if (more.workspace > module.workspace) module.remade = more.remade;
  module.workspace = std::max(module.workspace, more.workspace);
  module.scores = std::max(module.scores, more.scores);
  module.parts |= more.parts;
  module.context += more.context;
}

void append_exchanges(std::vector<Exchange>& list, const std::vector<Exchange>& more) {
  for (const Exchange& one : more) {
    const auto known = std::find_if(list.begin(), list.end(),
                                    [&](const Exchange& other) { return alike(one, other); });
    if (known == list.end()) {
      list.push_back(one);
    } else {
      known->count += one.count;
    }
  }
}

BuildOptions options_of_layer(const BuildOptions& options, std::size_t layer) {
  BuildOptions own = options;
  if (options.recompute_layers && layer >= static_cast<std::size_t>(*options.recompute_layers)) {
    own.recompute = options.recompute_parts.empty() ? Recompute::None : Recompute::Parts;
  }
  return own;
}

}  // namespace interlock
