// The schedule families, one function and one file each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/catalogue.h"

namespace interlock {

Schedule make_chain(const ScheduleInputs& inputs);        // naive, naive-split, eager, list
Schedule make_gpipe(const ScheduleInputs& inputs);        // arXiv 1811.06965
Schedule make_one_f_one_b(const ScheduleInputs& inputs);  // PipeDream-flush, arXiv 2006.09503

/// Of a file or of a search: policy.order for each step. Updates that it lacks come at its end.
Schedule make_explicit_order(const ScheduleInputs& inputs);

}  // namespace interlock
