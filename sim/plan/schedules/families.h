// The schedule families, one function and one file each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/schedules/catalogue.h"

namespace interlock {

Schedule make_chain(const ScheduleInputs& inputs);        // naive, naive-split, eager, list
Schedule make_terapipe(const ScheduleInputs& inputs);     // arXiv 2102.07988
Schedule make_gpipe(const ScheduleInputs& inputs);        // arXiv 1811.06965
Schedule make_one_f_one_b(const ScheduleInputs& inputs);  // PipeDream-flush, arXiv 2006.09503

Schedule make_dual_pipe(const ScheduleInputs& inputs);  // dualpipe, dualpipe-v: arXiv 2412.19437
std::string dual_pipe_problem(const ScheduleShape& shape);
std::string dual_pipe_v_problem(const ScheduleShape& shape);
Schedule make_chimera(const ScheduleInputs& inputs);  // arXiv 2107.06925
std::string chimera_problem(const ScheduleShape& shape);
Schedule make_hanayo(const ScheduleInputs& inputs);  // arXiv 2308.15762
std::string hanayo_problem(const ScheduleShape& shape);

/// Of a file or of a search: policy.order for each step. Updates that it lacks come at its end.
Schedule make_explicit_order(const ScheduleInputs& inputs);

Schedule make_asynchronous(const ScheduleInputs& inputs);   // no flush, one version of the weights
Schedule make_pipedream(const ScheduleInputs& inputs);      // arXiv 1806.03377
Schedule make_pipedream_2bw(const ScheduleInputs& inputs);  // arXiv 2006.09503
std::string pipedream_2bw_problem(const ScheduleShape& shape);

Schedule make_eager_one_f_one_b(const ScheduleInputs& inputs);        // arXiv 2211.05322
Schedule make_interleaved(const ScheduleInputs& inputs);              // arXiv 2104.04473
Schedule make_interleaved_zero_bubble(const ScheduleInputs& inputs);  // PyTorch's, 2401.10241
Schedule make_breadth_first(const ScheduleInputs& inputs);            // arXiv 2211.05953
Schedule make_zb_h1(const ScheduleInputs& inputs);                    // arXiv 2401.10241
Schedule make_zb_h2(const ScheduleInputs& inputs);
Schedule make_zb_v(const ScheduleInputs& inputs);  // arXiv 2405.15362
/// One V is a stage on the way down and one on the way up.
std::string one_v_problem(const ScheduleShape& shape);
/// Interleaved schedules work in rounds of as many micro-batches as there are ranks.
std::string whole_rounds_problem(const ScheduleShape& shape);

}  // namespace interlock
