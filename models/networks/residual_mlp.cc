// ResidualMlp: reads fully connected residual networks and writes out their operators.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/residual_mlp.h"

#include "models/layers/model_contract.h"

namespace interlock {
namespace {

/// Numbers of a micro-batch that every device computes with.
struct Sizes {
  double element = 1;  // bytes
  double samples = 1;
  double hidden = 1;  // elements
  double ffn = 1;     // elements
  Bytes boundary() const { return Bytes(hidden * element); }
};

Sizes sizes_of(const ResidualMlp& mlp, const BuildOptions& options) {
  const double samples = options.micro_batch_size;
  return {.element = element_bytes(options.precision),
          .samples = samples,
          .hidden = samples * mlp.hidden_size,
          .ffn = samples * mlp.ffn_hidden_size};
}

Operator norm_of(const ResidualMlp& mlp, const Sizes& z) {
  return normalisation(z.hidden, std::int64_t{2} * mlp.hidden_size, z.element);
}

Module input_module(const ResidualMlp& mlp, const Sizes& z, const BuildOptions& options) {
  std::vector<Operator> operators = {
      linear({z.samples, mlp.input_size, mlp.hidden_size}, z.element)};
  operators.front().reads_module_input = true;
  return make_module({.name = "input",
                      .input = Bytes(z.samples * mlp.input_size * z.element),
                      .output = z.boundary()},
                     operators, options);
}

Module block(const ResidualMlp& mlp, const Sizes& z, const BuildOptions& options) {
  std::vector<Operator> operators = {
      norm_of(mlp, z), linear({z.samples, mlp.hidden_size, mlp.ffn_hidden_size}, z.element),
      elementwise(
          {.forward = 2 * z.ffn, .backward = 3 * z.ffn, .stash = z.ffn, .gradients = 2 * z.ffn},
          z.element),
      linear({z.samples, mlp.ffn_hidden_size, mlp.hidden_size}, z.element),
      residual(z.hidden, z.element)};
  // Below the norm only the module before is waiting: for its gradient and the residual's.
  operators.front().reads_module_input = true;
  operators.back().reads_module_input = true;
  wait_beside(operators, 0, operators.size() - 2, z.boundary());
  return make_module({.input = z.boundary(), .output = z.boundary()}, operators, options);
}

/// One of the two branches, over half of the width, and its sum. Its norm reads a half of a tensor
/// that is kept whole.
std::vector<Operator> coupling(const ResidualMlp& mlp, const Sizes& z) {
  const double half = z.hidden / 2;
  const int width = mlp.hidden_size / 2;
  std::vector<Operator> operators = {
      normalisation(half, std::int64_t{2} * width, z.element),
      linear({z.samples, width, mlp.ffn_hidden_size}, z.element),
      elementwise(
          {.forward = 2 * z.ffn, .backward = 3 * z.ffn, .stash = z.ffn, .gradients = 2 * z.ffn},
          z.element),
      linear({z.samples, mlp.ffn_hidden_size, width}, z.element),
      elementwise({.forward = 5 * half,
                   .backward = 5 * half,
                   .gradients = 2 * z.hidden + half,
                   .variant = OpVariant::Add},
                  z.element)};
  operators.front().stash = z.boundary();
  // The gradients of both halves go round the branch; its last product reads one of them.
  wait_beside(operators, 0, operators.size() - 2, z.boundary());
  wait_beside(operators, operators.size() - 2, operators.size() - 1, Bytes(half * z.element));
  return operators;
}

Module reversible_block(const ResidualMlp& mlp, const Sizes& z, const BuildOptions& options) {
  std::vector<Operator> operators = coupling(mlp, z);
  operators.front().reads_module_input = true;
  operators.back().reads_module_input = true;
  for (const Operator& op : coupling(mlp, z)) operators.push_back(op);
  return make_module({.input = z.boundary(), .output = z.boundary()}, operators, options);
}

HeadSite site_of(const ResidualMlp& mlp, const Sizes& z) {
  return {.kind = SiteKind::Vector,
          .samples = z.samples,
          .width = mlp.hidden_size,
          .classes = mlp.classes};
}

Module readout_module(const ResidualMlp& mlp, const Sizes& z, const BuildOptions& options) {
  std::vector<Operator> operators = {norm_of(mlp, z)};
  operators.front().reads_module_input = true;
  for (const Operator& op : readout(site_of(mlp, z), true, z.element)) operators.push_back(op);
  return make_module({.name = "readout", .input = z.boundary(), .recomputable = false}, operators,
                     options);
}

}  // namespace

const std::vector<ContractObject>& residual_mlp_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {model_object(
      "residual-mlp",
      "Fully connected blocks, each added to its input: layer norm, linear, GELU, linear. "
      "Modules: input, each block, readout.",
      {{"input_size", whole(1, kMostWidth), "required", "Numbers of a sample."},
       {"layers", whole(1, kMostModules - 2), "required", "Residual blocks."},
       {"hidden_size", whole(1, kMostWidth), "required", "Width between blocks."},
       {"ffn_hidden_size", whole(1, 10 * kMostWidth), "4 x `hidden_size`",
        "Width inside a block, or inside each of the two branches of a reversible one."},
       {"classes", whole(1, kMostWidth), "required", "Outputs."},
       {"reversible", boolean(), "false",
        "Blocks couple two halves of `hidden_size`, so that their input can be computed from "
        "their output (RevNet, arXiv 1707.04585): y1 = x1 + F(x2), y2 = x2 + G(y1)."},
       head_key("linear")})};
  return objects;
}

ResidualMlp read_residual_mlp(Section& reader) {
  ResidualMlp mlp;
  mlp.input_size = reader.required_count("input_size", "numbers of a sample");
  mlp.layers = reader.required_count("layers", "a number of blocks");
  mlp.hidden_size = reader.required_count("hidden_size", "the width between blocks");
  mlp.ffn_hidden_size = reader.count("ffn_hidden_size", 4 * mlp.hidden_size);
  mlp.classes = reader.required_count("classes", "a number of outputs");
  mlp.reversible = reader.boolean("reversible");
  if (mlp.reversible && mlp.hidden_size % 2 != 0) {
    report(reader.diagnostics(), reader.get("hidden_size").value_or(reader.node()),
           std::to_string(mlp.hidden_size) +
               " has no two halves for the streams of reversible blocks; expected an even "
               "\"hidden_size\"");
  }
  if (const auto head = reader.get("head")) {
    mlp.head = read_head(*head, SiteKind::Vector, reader.diagnostics());
  }
  return mlp;
}

ModelGraph build_residual_mlp(const ResidualMlp& shape, const BuildOptions& options) {
  const Sizes z = sizes_of(shape, options);
  HeadSpec head = shape.head;
  if (!head.kind) head.kind = HeadKind::Linear;
  ModelGraph graph = {.samples_per_micro_batch = options.micro_batch_size};
  graph.modules.push_back(input_module(shape, z, options_of_layer(options, 0)));
  for (int i = 0; i < shape.layers; ++i) {
    const auto layer = static_cast<std::size_t>(i) + 1;
    const BuildOptions own = options_of_layer(options, layer);
    Module made = shape.reversible ? reversible_block(shape, z, own) : block(shape, z, own);
    made.name = "block" + std::to_string(i);
    graph.modules.push_back(std::move(made));
  }
  if (head.kind != HeadKind::LaterLayers) {
    const Head made = make_head(head, site_of(shape, z), options);
    for (Module& module : graph.modules.edit()) module.head = made;
  }
  graph.modules.push_back(readout_module(shape, z, options));
  if (head.kind == HeadKind::LaterLayers) attach_later_layers(head, options, graph.modules.edit());
  return graph;
}

}  // namespace interlock
