// Tensor layouts: the part of a matrix product that one of several devices has, and its exchanges.
// SPDX-License-Identifier: Apache-2.0
//
// OneD (Megatron-LM, arXiv 1909.08053): of two linear layers the first divides its outputs
// (Column) and the second its inputs (Row); what follows is whole on every device, or divided by
// rows with sequence parallelism (Korthikanti et al., arXiv 2205.05198, section 4.2.2).
// The others (arXiv 2110.14883 and the documentation of Colossal-AI) divide rows and columns of
// everything, rows being samples. With side q: TwoD on q x q devices makes each product in q steps
// of SUMMA; TwoAndAHalfD has `depth` such grids, each with a share of the rows and all weights;
// ThreeD on q x q x q gathers X along one axis and W along another, and adds up along the third.
// Axes: a TensorRow holds different columns of the same rows, a TensorColumn different rows of the
// same columns. On a cube a TensorDepth holds the columns of a Column layer's input and of a Row
// layer's output, and a TensorRow those between the two.
// Vectors that several devices hold whole (norms, biases) have gradients that are added up once a
// step; that is too little to count.
//
// Example: four devices in TwoD are a square of side 2, and an activation is cut in 2 x 2 parts
// before and between the layers of a pair; in OneD it is whole before and cut in four columns
// between. Eight devices in ThreeD cut it in 4 x 2.
#pragma once

#include <optional>

#include "models/layers/operators.h"
#include "models/layers/sharding.h"

namespace interlock {

/// Which of a pair of linear layers: see above. The other layouts swap axes between the two.
enum class LinearRole { Column, Row };

/// Into how many parts rows and columns of an activation are divided.
struct ActivationParts {
  int rows = 1;
  int columns = 1;
  double share() const { return 1.0 / rows / columns; }
};
/// Returns the parts before and after a pair of linear layers.
ActivationParts outer_parts(const Sharding& sharding);
/// Returns the parts between the two layers of a pair.
ActivationParts inner_parts(const Sharding& sharding);
/// Returns how the output of a layer of this role is divided; its input is divided as the output of
/// the other role.
ActivationParts output_parts(const Sharding& sharding, LinearRole role);

/// Returns the devices on a side of the square or cube; nothing if `tensor` and `tensor_depth` make
/// none, or the layout is OneD.
std::optional<int> grid_side(const Sharding& sharding);

/// Returns one device's part of the product `whole`, whose rows are those of all devices together.
Operator sharded_linear(const Linear& whole, LinearRole role, const Sharding& sharding,
                        double element);

/// Normalisation of outer (rows, width); `parameters` are those of all columns.
struct Norm {
  double rows = 1;
  std::int64_t width = 1;
  std::int64_t parameters = 0;
};
Operator sharded_norm(const Norm& whole, const Sharding& sharding, double element);

/// Rows of a table (entries, width), one for each of `rows`, to outer (rows, width).
struct Lookup {
  double rows = 1;
  std::int64_t entries = 1;
  std::int64_t width = 1;
};
Operator sharded_lookup(const Lookup& whole, const Sharding& sharding, double element);

/// Returns softmax and cross-entropy of (rows, classes), the output of a layer of this role.
Operator sharded_cross_entropy(double rows, std::int64_t classes, LinearRole role,
                               const Sharding& sharding, double element);

}  // namespace interlock
