// The list of all schedules, each of which one family's file defines at its foot.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/schedules/catalogue.h"

/// One line for each schedule: the function that returns its entry. In the order of the catalogue.
// clang-format off
#define INTERLOCK_SCHEDULES(entry) \
  entry(naive) \
  entry(naive_split) \
  entry(gpipe) \
  entry(terapipe) \
  entry(one_f_one_b) \
  entry(dual_pipe) \
  entry(dual_pipe_v) \
  entry(chimera) \
  entry(bitpipe) \
  entry(hanayo) \
  entry(eager_one_f_one_b) \
  entry(seq1f1b) \
  entry(slim_pipe) \
  entry(interleaved) \
  entry(breadth_first) \
  entry(zb_h1) \
  entry(zb_h2) \
  entry(interleaved_zero_bubble) \
  entry(pipeoffload) \
  entry(zb_v) \
  entry(v_half) \
  entry(v_min) \
  entry(weipipe) \
  entry(helixpipe) \
  entry(pipedream) \
  entry(pipedream_2bw) \
  entry(pipelined_backprop) \
  entry(delayed_gradients) \
  entry(features_replay) \
  entry(petra) \
  entry(searched_order) \
  entry(file_order) \
  entry(eager) \
  entry(decoupled_greedy) \
  entry(ppll) \
  entry(gradient_lists)
// clang-format on

namespace interlock::schedules {

#define INTERLOCK_DECLARE_SCHEDULE(name) ScheduleEntry name();
INTERLOCK_SCHEDULES(INTERLOCK_DECLARE_SCHEDULE)
#undef INTERLOCK_DECLARE_SCHEDULE

}  // namespace interlock::schedules
