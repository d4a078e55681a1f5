// Order times: when every op of a fixed order runs, by the rules of a pipeline alone.
// SPDX-License-Identifier: Apache-2.0
//
// Written from what a schedule means, to compare lowering and engines with; it shares no code with
// sim/run. A rank does its ops in order, one after the other, and an op waits for
//   F      the activation of the stage before;
//   I, B   the gradient of its loss from the stage after, if the loss is not its own; the last of a
//          stage also for gradients that are only added;
//   U      with a barrier, all stages to be due; then the gradients of the other copies.
// What a stage makes is sent when its op is done. A wire between two ranks carries one message
// after the other, in the order in which they were sent; a rank sends itself what it likes at once.
// Of a pair that overlaps both wait for what either needs, and send when both are done.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "tests/sim/support/test_chain.h"

namespace interlock {

/// Kind, stage, micro-batch, loss.
using OpName = std::tuple<OpKind, int, int, int>;

struct OpTimes {
  double start = 0, end = 0;  // seconds, without what the op first computes again
};

/// Returns whether `chain` has the rules above alone: fixed orders, unlimited queues, messages
/// beside compute, gradients one by one, no readouts, no replays, weights that stay.
bool has_plain_rules(const TestChain& chain);

/// Every op but R. An op that can never run is missing.
/// REQUIRES: has_plain_rules(chain).
std::map<OpName, OpTimes> order_times(const TestChain& chain);

}  // namespace interlock
