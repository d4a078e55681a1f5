// Kernels of a layer that tells true rows from false ones by their mean square.
// SPDX-License-Identifier: Apache-2.0
//
// The first half of the rows are true. Row r has the goodness g, the mean of its squares, and the
// loss log(1 + exp(t - g)) if it is true, else log(1 + exp(g - t)), t the threshold; the loss is
// the mean over all rows. What goes on is x / sqrt(g + 1e-5). See validate/network/contrast.h.
#pragma once

#include "validate/cpu/layers/matrix_view.h"

namespace interlock {

/// Computes what goes on. Returns the loss.
template <class T>
double goodness_forward(ConstMatrixView<T> x, MatrixView<T> y);

/// Computes the gradient of the loss, which may lie where `x` does.
template <class T>
void goodness_backward(ConstMatrixView<T> x, MatrixView<T> dx);

}  // namespace interlock
