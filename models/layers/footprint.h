// Footprint: the bytes and the update work that weights cost under an optimiser and a precision.
// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision (fp16, bf16, fp8) keeps an fp32 master copy beside the working weights; it
// counts as optimiser state. With Adam that makes 2 + 2 + 12 = 16 bytes a parameter.
// Source: ZeRO (arXiv 1910.02054), section 3.1.
//
// Example: a matrix of 4096 x 1024 weights and a bias of 1024 in bf16. Adam keeps 12 bytes of each
// weight; Lion 8; 8-bit Adam 4 + 2 x (1 + 4 / 256); Adafactor 4 of each, 4 more of each of the bias
// and of 4096 + 1024 rows and columns; Muon 8 of the matrix's, 12 of the bias's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/framework.h"
#include "base/work.h"

namespace interlock {

/// Muon and BasisRotation update matrices of layers; all other weights have Adam's states and
/// update.
enum class Optimizer { Sgd, SgdMomentum, Adam, Lion, Adafactor, Muon, BasisRotation };

/// Formats in which weights and states are stored.
enum class NumberFormat { Fp32, Fp16, Bf16, Fp8, Int8, Mxfp8, Nvfp4, Nf4 };

/// Returns the bytes of a number, with its share of the scales of its block. Fp8 has one scale a
/// tensor. Int8: a scale of 4 bytes for 256 numbers, and Nf4: of 1 byte for 64, whose own scales
/// take 4 bytes for 256 of them (bitsandbytes, optim/optimizer.py and functional.py, commit
/// 95f9af309d4d5793847169c39288dcd3fcbdf564). Mxfp8: 1 byte for 32; Nvfp4: 1 byte for 16
/// (Transformer Engine, docs/features/low_precision_training, commit
/// d0067d0da6cb01811b8072a7d304f0e00344ce2b).
double stored_bytes(NumberFormat format);

/// How weights are kept and updated. An Optimizer alone has its usual formats.
struct OptimizerRule {
  Optimizer kind = Optimizer::SgdMomentum;
  bool masters = true;  // beside weights that are not fp32
  NumberFormat master = NumberFormat::Fp32;
  NumberFormat first = NumberFormat::Fp32, second = NumberFormat::Fp32;  // moments
  /// Format of the weights of layers' matrices; nothing: the precision's.
  std::optional<NumberFormat> weights = {};
  int weight_copies = 2;                    // of `weights`: one is read by rows, one by columns
  std::optional<NumberFormat> frozen = {};  // of those that are not trained; none: `weights`
  bool shorter_sides = false;               // BasisRotation: they alone have bases
  int basis_every = 10;                     // BasisRotation: updates from a basis to the next
  int predictions = 0;  // copies of the weights that an update makes, moved on along its moments
  /// Format of what an update keeps for the next one to correct, a number for each weight.
  std::optional<NumberFormat> feedback = {};

  OptimizerRule(Optimizer optimizer = Optimizer::SgdMomentum) : kind(optimizer) {}
  bool operator==(const OptimizerRule&) const = default;
};

/// Equal matrices of weights; each device has `parameters` of theirs.
struct WeightMatrix {
  double rows = 1, columns = 1;  // of one, whole
  int count = 1;
  std::int64_t parameters = 1;
  bool hidden = true;  // between embedding and readout, whose matrices Muon leaves to Adam
  bool expert = false;
  bool operator==(const WeightMatrix&) const = default;
};

/// Shape of the weights of a product, as a device holds them: of each expert by itself.
struct WeightShape {
  double inputs = 0, outputs = 0;
  bool expert = false;
  auto operator<=>(const WeightShape&) const = default;
};

/// Weights that a device holds, by what optimisers tell apart.
struct WeightCount {
  std::int64_t all = 0;
  std::int64_t hidden = 0;   // of matrices of layers
  std::int64_t matrix = 0;   // of all matrices
  double lines = 0;          // rows and columns of all matrices
  double squares = 0;        // of the sides of matrices of layers, squared
  double least_squares = 0;  // of their shorter sides

  WeightCount(std::int64_t parameters = 0) : all(parameters) {}
  WeightCount(std::int64_t parameters, const std::vector<WeightMatrix>& matrices);
  WeightCount& operator+=(const WeightCount& more);
  bool operator==(const WeightCount&) const = default;
};

/// Returns the bytes of one element of a tensor in `precision`. 8-bit training keeps tensors in 16
/// bits; its linear layers multiply 8-bit copies (NVIDIA Transformer Engine's recipe).
double element_bytes(Precision precision);
/// Returns the format in which products of linear layers read their operands under `precision`,
/// where it is narrower than that of the tensors.
std::optional<NumberFormat> product_format(Precision precision);

/// Bytes held for trainable weights.
struct Footprint {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;       // masters and moments
  Bytes made_gradients;  // gradients of a backward, where they stay beside those that add them up
  Bytes update_buffers;  // of updates, where the allocator keeps them
  Bytes update_copies;   // made by an update, let go when the next step begins: in no total
  Bytes predicted;       // weights that forwards or backwards read in place of the newest
  Bytes total() const {
    return weights + gradients + optimizer + made_gradients + update_buffers + predicted;
  }
};
Footprint& operator+=(Footprint& a, const Footprint& b);
/// Returns the bytes of weights, gradients and states. `fp32_gradients`: gradients are kept in fp32
/// whatever the precision is (Megatron-LM's main gradients: 18 bytes a parameter with Adam).
Footprint footprint(const WeightCount& weights, const OptimizerRule& rule, Precision precision,
                    bool fp32_gradients = false);
/// Returns the bytes of weights that are not trained.
Bytes frozen_weights(const WeightCount& weights, const OptimizerRule& rule, Precision precision);
/// Returns the bytes of the weights as devices send them to each other. Block-scaled formats are
/// made where weights arrive, of 16 bits (Megatron-LM, reuse_grad_buf_for_mxfp8_param_ag).
Bytes sent_weights(const WeightCount& weights, const OptimizerRule& rule, Precision precision);

/// Returns one optimiser step: every state is read and written once. Adafactor reads gradients
/// three times: for its statistics, for the size of the update, and for the update (arXiv
/// 1804.04235, algorithm 4). Beside it, the bytes of each parameter that `framework` moves.
std::vector<Work> update_work(const WeightCount& weights, const OptimizerRule& rule,
                              Precision precision, const Framework& framework = {});
/// Returns the products by which Muon makes an update of each hidden matrix orthogonal: five steps
/// of Newton and Schulz, each of X Xt, of its square, and of a polynomial of both with X. Every
/// device of a tensor group has gathered the whole matrix; that gathering is not counted. Source:
/// Keller Jordan et al., Muon (kellerjordan.github.io/posts/muon), and Megatron-LM's
/// muon_num_ns_steps and muon_tp_mode "duplicated" (optimizer_config.py, commit
/// d98e8a64ddf34856e74b24714e3bedb2f5a39553).
std::vector<Work> orthogonal_work(const std::vector<WeightMatrix>& matrices, double element);
/// Returns the products by which BasisRotation updates each hidden matrix, in fp32, on every device
/// of a tensor group. An update adds G Gt and Gt G to their averages, turns the gradient and the
/// first moment into the bases and the step back; every `basis_every` of them take new bases by one
/// power iteration and a QR factorisation, spread evenly over all. Source: the authors' code of
/// arXiv 2602.03515 (joonkyoo/basis-rotation 7d3712d, optim/basis_rotation.py, "2nd"), which is
/// SOAP's (arXiv 2409.11321). QR by reflections, Q formed: 8/3 n n n flops (Golub and Van Loan).
std::vector<Work> rotation_work(const std::vector<WeightMatrix>& matrices,
                                const OptimizerRule& rule);

}  // namespace interlock
