// A chain of stages made in code: costs, a strategy and a schedule, lowered without a scenario.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "sim/lower/lower.h"
#include "sim/measure/metrics.h"

namespace interlock {

/// One stage: seconds, bytes and flops, in numbers that are easy to add by hand.
struct ChainStage {
  double forward = 1, backward_input = 1, backward_weight = 1, head = 0, update = 0;
  double output = 0, stash = 0;  // bytes
};

struct TestChain {
  std::vector<StageCost> costs;  // (slices, stages of all copies)
  Strategy strategy;
  SchedulePolicy policy;
  std::vector<int> rank_of_stage;  // (stages of all copies)
  int copies = 1;
  int slices = 1;   // token slices of a micro-batch
  Cluster cluster;  // a mesh of 1 kB/s links
  int micro_batches = 1;
  int steps = 1;
  double most_ticks_per_second = 1e18;
  bool contention = true;  // see LowerInputs
};

Strategy n_wise(int n, bool all_heads = false);
inline const Strategy kLocal{.kind = StrategyKind::Local};

/// A chain under a schedule with that schedule's defaults, one stage a rank; training is global or
/// local.
TestChain make_chain(const std::vector<ChainStage>& stages, std::string_view kind);
TestChain make_chain(int stages, std::string_view kind);  // of unit costs
/// A chain of equal stages on `ranks` ranks, copied and laid as its schedule asks for; `chunks`: of
/// a rank, if not as many as by default.
TestChain make_laid_chain(int ranks, std::string_view kind, const ChainStage& stage = {},
                          int chunks = 0);

/// The schedules that make their order themselves: all but those of a file and of a search.
std::vector<std::string_view> families();
/// Returns why the catalogue refuses `chain`; empty if it does not.
std::string shape_problem(const TestChain& chain);

/// Any legal chain: every strategy, schedule, layout and policy; whole seconds, so that ties
/// abound, or arbitrary costs; several stages on some ranks.
TestChain random_chain(Random& random);
TestChain random_chain(Random& random, std::string_view kind);
/// Costs of every op, slice and message of `chain`, which stay laid as they are.
void draw_costs(TestChain& chain, Random& random);
/// Draws a chain with an eager schedule of several sequences on some rank.
TestChain random_choosing_chain(Random& random);
/// Draws a chain whose messages stand in line.
TestChain random_chain_in_line(Random& random);
/// Returns `chain` in words, for INFO.
std::string describe(const TestChain& chain);

bool is_flushed(const TestChain& chain);
/// Returns whether ranks hold their stages as the scenario says, each stage with an order of its
/// own.
bool is_plain(const TestChain& chain);
/// Micro-batches, or token slices, between two updates of a stage.
int update_every(const TestChain& chain);
std::vector<StageRole> roles_of(const TestChain& chain);
Schedule schedule_of(const TestChain& chain);
/// The ranks' orders as text, one line each, cells `stage letter micro-batch` ("2F0"); a loss
/// of an input half is appended ("2I0:3"), sequences of a rank are parted by bars.
std::string to_text(const Schedule& schedule);
Program program_of(const TestChain& chain);
/// The programs of `chain` by their number of steps, for measure().
ProgramOfSteps programs_of(const TestChain& chain);

}  // namespace interlock
