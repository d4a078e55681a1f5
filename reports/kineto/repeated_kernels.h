// Repeated kernels: the layers of a model in traces that name none.
// SPDX-License-Identifier: Apache-2.0
//
// Equal layers put equal kernels on a device, one layer after the other. On the thread of the
// forwards a sequence such as
//   embed  norm gemm attention gemm  norm gemm attention gemm  norm gemm attention gemm  norm loss
// has a part that comes three times in a row: the layers. Parts are "before", "layer 0", "layer 1",
// "layer 2" and "behind". A backward on a thread of its own has as many repeats, last layer first.
//
// Repeats are layers only where each forward of the trace has the same number of them and they make
// up more than half of its kernels. Of several lengths the shortest counts.
#pragma once

#include "reports/kineto/kineto_events.h"

namespace interlock {

/// Adds ranges "forward layer 0", ... around launches of repeated kernels. Does nothing to a trace
/// that names a forward or a backward itself, or whose kernels do not repeat so.
void name_repeated_kernels(KinetoEvents& events);

}  // namespace interlock
